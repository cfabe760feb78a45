/*
 * The layout of adjust/rmq v5 (Go), outside a cluster.  Its keys:
 *
 *	rmq::queues				set of queue names
 *	rmq::queue::[Q]::ready, ::rejected	lists, pushed left, taken right
 *	rmq::connections			set of connection names
 *	rmq::connection::C::heartbeat		"1", with a TTL of 60 s
 *	rmq::connection::C::queues		set of queues that C consumes
 *	rmq::connection::C::queue::[Q]::consumers	set of consumer names
 *	rmq::connection::C::queue::[Q]::unacked	list, pushed left
 *
 * and ours, which a Go peer does not know and does not need:
 *
 *	rmq::queue::[Q]::priority	sorted set, claimable: as delayed
 *	rmq::queue::[Q]::delayed	sorted set, not yet claimable; see
 *					lua/lib/place.lua
 *	rmq::queue::[Q]::locks		hash: who holds a key, or a group
 *	rmq::queue::[Q]::clock		the tick
 *	rmq::queue::[Q]::rate		hash: a rate that consumers share
 *	rmq::queue::[Q]::result::ID	list of one: what became of a message
 *	rmq::queue::[Q]::paused		"1", maybe with a TTL
 *	rmq::queue::[Q]::counters	hash: what has been counted
 *	rmq::queue::[Q]::publisher::ID	hash: what has become of its batches;
 *					see mark.h
 *	rmq::connection::C::info	hash: host, pid, slots
 *	rmq::connection::C::running	what runs there: see running.h
 */
#include "layout.h"

#include <stdio.h>
#include <string.h>

#include "keys.h"
#include "queue/counts.h"

#define QUEUE_NAME_MAX 512

/* By hand: looking at many queues spends much of its time here. */
static void
key(struct mq_command *c, const char *const *part, int n)
{
	struct mq_part parts[6];
	int i;

	for (i = 0; i < n; i++)
		parts[i] = (struct mq_part){part[i], strlen(part[i])};
	mq_command_parts(c, parts, n);
}

void
rmq_key_queue(struct mq_command *c, const char *queue, const char *what)
{
	key(c, (const char *const[]){"rmq::queue::[", queue, "]::", what}, 4);
}

void
rmq_key_home(struct mq_command *c, const char *queue)
{
	rmq_key_queue(c, queue, "ready");
	rmq_key_queue(c, queue, "priority");
	rmq_key_queue(c, queue, "delayed");
	rmq_key_queue(c, queue, "locks");
	rmq_key_queue(c, queue, "clock");
	rmq_key_queue(c, queue, "result::");
}

void
rmq_key_connection(
    struct mq_command *c, const char *connection, const char *what)
{
	key(c,
	    (const char *const[]){"rmq::connection::", connection, "::", what},
	    4);
}

void
rmq_key_both(struct mq_command *c, const char *connection, const char *queue,
    const char *what)
{
	key(c,
	    (const char *const[]){"rmq::connection::", connection, "::queue::[",
		queue, "]::", what},
	    6);
}

void
rmq_key_cluster(struct mq_command *c, const char *connection, const char *queue)
{
	static const char form[] = "rmq::connection::%s::queue::{%s}::%s";

	mq_command_fmt(c, form, connection, queue, "consumers");
	mq_command_fmt(c, form, connection, queue, "unacked");
}

/* Names are not escaped anywhere, so what could be mistaken is refused. */
static const char *
rmq_queue_error(const char *queue)
{
	const unsigned char *p;

	if (*queue == '\0')
		return "a queue's name cannot be empty";
	if (strlen(queue) > QUEUE_NAME_MAX)
		return "a queue's name cannot be longer than 512 bytes";
	if (strpbrk(queue, "[]{}") != NULL || strstr(queue, "::") != NULL)
		return "a queue's name cannot have [ ] { } or :: in it";
	for (p = (const unsigned char *)queue; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			return "a queue's name cannot have control characters "
			       "in it";
	return NULL;
}

static void
rmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *attributes)
{
	(void)attributes;
	mq_command_plain(c, "SADD");
	mq_command_str(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

static void
rmq_known(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "SISMEMBER");
	mq_command_str(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

void
rmq_force(struct mq_command *c, const char *verb, const char *key)
{
	mq_command_script(c, &mq_script_force, 1);
	mq_command_str(c, key);
	mq_command_str(c, verb);
}

static void
rmq_claim(const struct mq_session *s, int queue, int max, size_t bytes,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &mq_script_claim, RMQ_HOME + 5);
	rmq_key_home(c, name);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_connection(c, s->connection, "heartbeat");
	rmq_key_queue(c, name, "paused");
	rmq_key_queue(c, name, "rate");
	rmq_key_connection(c, s->connection, "info");
	mq_command_int(c, max);
	mq_command_int(c, (long long)bytes);
	if (s->rate_s <= 0) {
		mq_command_str(c, "");
		mq_command_str(c, "");
	} else {
		mq_command_fmt(c, "%.6f", s->rate_s);
		mq_command_int(c, s->burst);
	}
	mq_command_str(c, name);
}

/* Messages come into keys of their queue; those of a connection, and the rate,
 * are changed by consumers. */
static bool
rmq_key_of(const char *key, size_t len, const char **queue, size_t *n)
{
	static const char before[] = "rmq::queue::[", behind[] = "]::rate";
	const char *end = memrchr(key, ']', len);
	size_t start = sizeof(before) - 1, tail = sizeof(behind) - 1;

	if (end == NULL || len < start || memcmp(key, before, start) != 0)
		return false;
	*queue = key + start;
	*n = (size_t)(end - *queue);
	return (size_t)(key + len - end) != tail ||
	    memcmp(end, behind, tail) != 0;
}

/* An ack is one plain LREM, searched from the tail, where the oldest is. */
static void
ack(const struct mq_session *s, const char *queue,
    const struct mq_settlement *how, struct mq_command *c)
{
	mq_command_plain(c, "LREM");
	rmq_key_both(c, s->connection, queue, "unacked");
	mq_command_int(c, -1);
	mq_command_arg(c, how->element, how->len);
}

static void
add_result(struct mq_command *c, const struct mq_result *result)
{
	mq_command_str(c, result->id);
	mq_command_arg(c, result->text, result->len);
	mq_command_int(c, result->keep_ms);
}

static void
rmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, struct mq_command *c)
{
	static const char *const verbs[] = {[MQ_OUTCOME_ACK] = "ack",
	    [MQ_OUTCOME_REJECT] = "reject",
	    [MQ_OUTCOME_FRONT] = "front",
	    [MQ_OUTCOME_AGAIN] = "again",
	    [MQ_OUTCOME_PUSH] = "push"};
	const char *name = s->queues[queue];
	bool reject = how->outcome == MQ_OUTCOME_REJECT;
	bool push = how->outcome == MQ_OUTCOME_PUSH;

	if (how->outcome == MQ_OUTCOME_ACK && !how->holds &&
	    how->receipt == NULL && how->result == NULL) {
		ack(s, name, how, c);
		return;
	}
	mq_command_script(c, &mq_script_settle,
	    RMQ_HOME + 2 + (push ? RMQ_HOME : reject) +
		(how->receipt != NULL ? 2 : 0));
	rmq_key_home(c, name);
	rmq_key_both(c, s->connection, name, "unacked");
	mq_command_str(c, RMQ_QUEUES);
	if (reject)
		rmq_key_queue(c, name, "rejected");
	else if (push)
		rmq_key_home(c, how->push);
	if (how->receipt != NULL) {
		rmq_key_connection(c, s->connection, "heartbeat");
		rmq_key_connection(c, s->connection, "info");
	}
	mq_command_str(
	    c, reject && how->unrun ? "expire" : verbs[how->outcome]);
	mq_command_arg(c, how->element, how->len);
	mq_command_arg(c, how->header, how->header_len);
	mq_command_int(c, how->header == NULL ? 0 : (long long)how->payload_at);
	mq_command_int(c, how->delay_ms);
	mq_command_str(c, how->unique);
	mq_command_str(c, how->receipt != NULL ? how->receipt : "");
	if (how->result != NULL)
		add_result(c, how->result);
}

static void
rmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	const struct mq_part *e = acks->elements, *last = &e[acks->n - 1];

	if (acks->twins) {
		mq_command_script(c, &mq_script_ack_equal, 1);
		rmq_key_both(c, s->connection, s->queues[queue], "unacked");
		for (; e <= last; e++)
			mq_command_arg(c, e->p, e->n);
		return;
	}
	if (acks->holds) {
		mq_command_script(c, &mq_script_finish, RMQ_HOME + 1);
		rmq_key_home(c, s->queues[queue]);
	} else {
		mq_command_script(c, &mq_script_ack, 1);
	}
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	mq_command_int(c, acks->n);
	mq_command_arg(c, e->p, e->n);
	mq_command_arg(c, last->p, last->n);
}

static void
rmq_held(const struct mq_session *s, int queue, struct mq_command *c)
{
	mq_command_script(c, &mq_script_held, 2);
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	rmq_key_connection(c, s->connection, "info");
	mq_command_str(c, s->queues[queue]);
}

static void
rmq_held_count(const struct mq_session *s, int queue, struct mq_command *c)
{
	mq_command_plain(c, "LLEN");
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
}

/*
 * The list of one is turned round, which leaves it as it is, so that any
 * number can wait and none takes the result from another.
 */
static void
rmq_result(
    struct mq_command *c, const char *queue, const char *id, int64_t block_ms)
{
	char what[sizeof("result::") + MQ_ID_LEN];

	snprintf(what, sizeof(what), "result::%s", id);
	mq_command_plain(c, block_ms > 0 ? "BLMOVE" : "LINDEX");
	rmq_key_queue(c, queue, what);
	if (block_ms == 0) {
		mq_command_int(c, 0);
		return;
	}
	rmq_key_queue(c, queue, what);
	mq_command_str(c, "LEFT");
	mq_command_str(c, "LEFT");
	mq_command_fmt(c, "%.3f", (double)block_ms / 1000);
}

static void
rmq_count(struct mq_command *c, const char *queue, const struct mq_counts *n)
{
	mq_command_script(c, &mq_script_count, 1);
	rmq_key_queue(c, queue, "counters");
	mq_counts_add(c, n);
}

static void
rmq_count_published(struct mq_command *c, const char *queue, long long n)
{
	mq_command_plain(c, "HINCRBY");
	rmq_key_queue(c, queue, "counters");
	mq_command_str(c, "published");
	mq_command_int(c, n);
}

static void
rmq_pause(struct mq_command *c, const char *queue, int64_t ms)
{
	/* Maybe just because it has filled the memory. */
	mq_command_script(c, &mq_script_force, 1);
	rmq_key_queue(c, queue, "paused");
	mq_command_str(c, "SET");
	mq_command_str(c, "1");
	if (ms < 0)
		return;
	mq_command_str(c, "PX");
	mq_command_int(c, ms);
}

static void
rmq_resume(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "DEL");
	rmq_key_queue(c, queue, "paused");
}

static void
rmq_pause_at_least(struct mq_command *c, const char *queue, int64_t ms)
{
	mq_command_script(c, &mq_script_pause, 1);
	rmq_key_queue(c, queue, "paused");
	mq_command_int(c, ms);
}

const struct mq_layout mq_layout_rmq = {
    .name = "rmq",
    .has = MQ_HAS_KEYS | MQ_HAS_GROUPS | MQ_HAS_TICKS | MQ_HAS_LOW_PRIORITY |
	MQ_HAS_RESULTS,
    .rights = rmq_rights,
    .queue_error = rmq_queue_error,
    .open = rmq_open,
    .known = rmq_known,
    .probe = rmq_probe,
    .publish = rmq_publish,
    .publish_add = rmq_publish_add,
    .published = rmq_published,
    .publish_counts = rmq_publish_counts,
    .publish_mark = rmq_publish_mark,
    .marks = rmq_marks,
    .tick = rmq_tick,
    .join = rmq_join,
    .leave = rmq_leave,
    .renew = rmq_renew,
    .lease = rmq_lease,
    .claim = rmq_claim,
    .claimed = mq_layout_claimed,
    .key_queue = rmq_key_of,
    .settle = rmq_settle,
    .settled = mq_layout_settled,
    .ack_oldest = rmq_ack_oldest,
    .held = rmq_held,
    .held_count = rmq_held_count,
    .result = rmq_result,
    .count = rmq_count,
    .count_published = rmq_count_published,
    .receipts = rmq_receipts,
    .receipt = rmq_receipt,
    .vacate = rmq_vacate,
    .tell_running = rmq_tell_running,
    .pause = rmq_pause,
    .resume = rmq_resume,
    .pause_at_least = rmq_pause_at_least,
    .clean = rmq_clean,
    .drained = rmq_drained,
    .stats = rmq_stats,
    .running = rmq_running,
    .scan = rmq_scan,
    .take = rmq_take,
    .scan_end = rmq_scan_end,
    .move = rmq_move,
    .purge = rmq_purge,
    .delete_queue = rmq_delete_queue,
};
