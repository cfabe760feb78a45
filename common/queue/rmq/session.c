/*
 * The rmq layout: a connection's own keys, from joining to leaving.
 *
 * A heartbeat that has expired stays so: it is renewed with EXPIRE, which does
 * nothing when it is gone, and a consumer that finds it gone takes a new name.
 * So a cleaner that once found a connection of ours dead can never meet it
 * alive again.  (Go renews with SET, which a full server refuses.)
 */
#include "rmq.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/scripts.h"

/* --- claim --------------------------------------------------------------- */

/*
 * The rmq layout: messages in the hands of a consumer, from the claim to the end.
 */

/* Bytes of an element that goes by its place; see lua/lib/remove.lua. */
#define LONG 4096
/* The most that a script moves within the list. */
#define KEEP_BYTES ((size_t)1 << 16)

static void
rmq_claim(const struct mq_session *s, int queue, const struct mq_claim *claim,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &rmq_script_claim);
	rmq_queue_keys(c, name);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_lease(c, s->connection, name);
	rmq_keys(c, name, "paused rate");
	rmq_key_info(c, s->connection, name);
	rmq_keys(c, name, "watch idle");
	mq_layout_add_claim(c, s, name, claim);
	if (claim->copied > 0)
		mq_command_int(c, (long long)claim->copied);
}

/* The keys whose changes matter to a consumer that waits. */
#define WATCHED "ready priority delayed clock paused"

static void
rmq_track(
    const struct mq_session *s, int queue, bool pause, struct mq_command *c)
{
	mq_command_plain(c, "EXISTS");
	rmq_keys(c, s->queues[queue], pause ? "paused" : WATCHED);
	/* When the slot moves, a key that is there moves, too. */
	if (c->cluster)
		rmq_key_lease(c, s->connection, s->queues[queue]);
}

static void
rmq_look(const struct mq_session *s, const int *queues, int n, enum mq_look how,
    struct mq_command *c)
{
	int i;

	if (how != MQ_LOOK_ANY)
		mq_command_script(c, &rmq_script_look);
	else
		mq_command_plain(c, "EXISTS");
	for (i = 0; i < n; i++)
		rmq_keys(c, s->queues[queues[i]],
		    how != MQ_LOOK_ANY ? WATCHED " watch idle" :
					 "ready priority delayed");
	if (how == MQ_LOOK_ANY)
		return;
	mq_command_str(c, s->wake);
	mq_command_int(c, how == MQ_LOOK_CHECK);
}

/* The ack of a short element is one plain LREM, searched from the tail, where the oldest is. */
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
	static const struct mq_result none = {.id = ""};

	if (result == NULL)
		result = &none;
	mq_command_str(c, result->id);
	mq_command_arg(c, result->text, result->len);
	mq_command_int(c, result->keep_ms);
}

static void
add_notice(
    struct mq_command *c, const char *queue, const struct mq_notice *notice)
{
	if (rmq_transfer_needed(c, queue, notice->queue))
		rmq_transfer_field(c, notice->unique, "push", notice->queue);
	else
		mq_command_str(c, "");
	mq_command_arg(c, notice->element.data, notice->element.len);
}

static void
settle_equal(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	const char *name = s->queues[queue];
	const struct mq_settlement *end = how + n;

	mq_command_script(c, &rmq_script_settle_equal);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_keys(c, name, "ready delayed rejected");
	rmq_key_queues(c, name);
	for (; how < end; how++) {
		mq_command_str(c, mq_outcome_name(how->outcome));
		mq_command_arg(c, how->element, how->len);
		if (how->outcome == MQ_OUTCOME_ACK)
			continue;
		mq_command_arg(c, how->header, how->header_len);
		mq_command_int(
		    c, how->header == NULL ? 0 : (long long)how->payload_at);
		mq_command_int(c, how->delay_ms);
		mq_command_str(c, how->unique);
	}
}

static void
rmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	const char *name = s->queues[queue];
	bool reject = how->outcome == MQ_OUTCOME_REJECT;
	bool push = how->outcome == MQ_OUTCOME_PUSH, away;

	if (n > 1) {
		settle_equal(s, queue, how, n, c);
		return;
	}
	if (how->outcome == MQ_OUTCOME_ACK && how->len < LONG && !how->holds &&
	    how->receipt == NULL && how->result == NULL &&
	    how->notice == NULL) {
		ack(s, name, how, c);
		return;
	}
	away = push && rmq_transfer_needed(c, name, how->push);
	mq_command_script(c, &rmq_script_settle);
	rmq_queue_keys(c, name);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_queues(c, name);
	if (reject)
		rmq_key_queue(c, name, "rejected");
	else if (away)
		rmq_key_queue(c, name, "outgoing");
	else if (push)
		rmq_queue_keys(c, how->push);
	if (how->receipt != NULL) {
		rmq_key_lease(c, s->connection, name);
		rmq_key_info(c, s->connection, name);
	}
	if (how->notice != NULL)
		rmq_key_notice(c, name, how->notice->queue);
	mq_command_str(
	    c, reject && how->unrun ? "expire" : mq_outcome_name(how->outcome));
	mq_command_arg(c, how->element, how->len);
	mq_command_arg(c, how->header, how->header_len);
	mq_command_int(c, how->header == NULL ? 0 : (long long)how->payload_at);
	mq_command_int(c, how->delay_ms);
	if (away)
		rmq_transfer_field(c, how->unique, "push", how->push);
	else
		mq_command_str(c, how->unique);
	mq_command_str(c, how->receipt != NULL ? how->receipt : "");
	if (how->result != NULL || how->notice != NULL)
		add_result(c, how->result);
	if (how->notice != NULL)
		add_notice(c, name, how->notice);
}

/*
 * Of a window of the list, either the others are moved together, or the acked ones
 * are removed one by one.  Moving copies the others, and takes the server twice as
 * long for each.
 */
static void
add_window(struct mq_command *c, const struct mq_acks *acks)
{
	const int *places = acks->places;
	int n = acks->n, window = places[n - 1], others = window - n, place;

	mq_command_int(c, window);
	mq_command_arg(c, acks->oldest.p, acks->oldest.n);
	mq_command_arg(c, acks->elements[n - 1].p, acks->elements[n - 1].n);
	if (others == 0)
		return;
	if (others > n / 2 || acks->others_len > KEEP_BYTES) {
		mq_command_str(c, acks->unique);
		while (n > 0)
			mq_command_int(c, places[--n]);
		return;
	}
	mq_command_str(c, "keep");
	for (place = window; place > 0; place--)
		if (n > 0 && places[n - 1] == place)
			n--;
		else
			mq_command_int(c, place);
}

static void
rmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	if (acks->holds) {
		mq_command_script(c, &rmq_script_finish);
		rmq_queue_keys(c, s->queues[queue]);
	} else {
		mq_command_script(c, &rmq_script_ack);
	}
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	add_window(c, acks);
}

/* The most of one step, which has its own bounds. */
#define ANY 500

static void
rmq_give_back(const struct mq_session *s, int queue,
    const struct mq_newest *newest, struct mq_command *c)
{
	const struct mq_part *e = newest != NULL ? newest->elements : NULL;
	int i, n = newest != NULL ? newest->n : ANY;
	int step = newest == NULL || newest->each || n == 1 ? 1 : n - 1;

	mq_command_script(c, &rmq_script_give_back);
	rmq_queue_keys(c, s->queues[queue]);
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	rmq_key_queues(c, s->queues[queue]);
	mq_command_int(c, n);
	for (i = 0; e != NULL && i < n; i += step)
		mq_command_arg(c, e[i].p, e[i].n);
}

static int
rmq_held(const struct mq_session *s, int queue, enum mq_held_how how,
    struct mq_command c[2])
{
	const char *name = s->queues[queue];

	switch (how) {
	case MQ_HELD_COUNT:
	case MQ_HELD_KEY:
		if (how == MQ_HELD_COUNT)
			mq_command_plain(&c[0], "LLEN");
		rmq_key_both(&c[0], s->connection, name, "unacked");
		return 1;
	case MQ_HELD_AT_ONCE:
		mq_command_script(&c[0], &rmq_script_held);
		rmq_key_both(&c[0], s->connection, name, "unacked");
		rmq_key_info(&c[0], s->connection, name);
		mq_command_str(&c[0], name);
		return 1;
	case MQ_HELD:
		break;
	}
	mq_command_plain(&c[0], "HGET");
	rmq_key_info(&c[0], s->connection, name);
	mq_command_fmt(&c[0], "claimed:%s", name);
	mq_command_plain(&c[1], "LRANGE");
	rmq_key_both(&c[1], s->connection, name, "unacked");
	mq_command_words(&c[1], "0 -1");
	return 2;
}

/* --- handed out by receipt, under a lease that nobody renews -------------------- */

static void
rmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	/* The list has them in the same order. */
	(void)elements;
	mq_command_script(c, &rmq_script_receipts);
	rmq_key_both(c, s->connection, s->queues[0], "unacked");
	rmq_key_info(c, s->connection, s->queues[0]);
	mq_command_int(c, n);
}

static void
rmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	mq_command_script(c, &rmq_script_receipt);
	rmq_key_both(c, connection, queue, "unacked");
	rmq_key_info(c, connection, queue);
	rmq_key_lease(c, connection, queue);
	mq_command_str(c, number);
}

static void
leave_empty(const struct mq_session *s, struct mq_command *c)
{
	const char *queue = s->queues[0];

	mq_command_script(c, &rmq_script_leave);
	rmq_key_both(c, s->connection, queue, "unacked");
	rmq_key_both(c, s->connection, queue, "consumers");
	rmq_key_own(c, s->connection, queue, "queues");
	if (c->cluster)
		rmq_key_queue(c, queue, "none");
	else
		rmq_key_all(c, RMQ_CONNECTIONS);
	rmq_key_lease(c, s->connection, queue);
	rmq_key_info(c, s->connection, queue);
	mq_command_str(c, queue);
	mq_command_str(c, s->connection);
}

/* --- session ------------------------------------------------------------- */

/* Kept for a cleaner to read after the connection's death. */
#define INFO_S 3600

/* Of a lease on a cluster: shorter than a heartbeat, so that no cleaner takes what may
 * still be claimed; longer than a failover takes. */
#define QUEUE_LEASE_MS 40000
/* What was claimed, when nobody renews it any more. */
#define QUEUE_INFO_S 86400

/* A command on one key that goes through even when memory is full; the caller adds
 * the arguments behind the key. */
static void
force_set(struct mq_command *c, const char *verb, const char *key)
{
	mq_command_script(c, &mq_script_write_when_full);
	rmq_key_all(c, key);
	mq_command_str(c, verb);
}

static void
force_connection(const struct mq_session *s, struct mq_command *c,
    const char *verb, const char *what)
{
	mq_command_script(c, &mq_script_write_when_full);
	rmq_key_connection(c, s->connection, what);
	mq_command_str(c, verb);
}

static void
set_info(const struct mq_session *s, struct mq_command *c)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	force_connection(s, c, "HSET", "info");
	mq_command_str(c, "host");
	mq_command_str(c, host);
	mq_command_str(c, "pid");
	mq_command_int(c, getpid());
	mq_command_str(c, "slots");
	mq_command_int(c, s->slots);
	if (s->attempts != -1) {
		mq_command_str(c, "attempts");
		mq_command_int(c, s->attempts);
	}
	if (s->notify != NULL) {
		mq_command_str(c, "notify");
		mq_command_str(c, s->notify);
	}
	if (s->lease_ms > 0) {
		mq_command_str(c, "lease");
		mq_command_int(c, s->lease_ms);
	}
}

/* The info goes by itself when only a Go cleaner, which knows nothing of it, came. */
static void
keep_info(const struct mq_session *s, struct mq_command *c)
{
	mq_command_plain(c, "EXPIRE");
	rmq_key_connection(c, s->connection, "info");
	mq_command_int(c, INFO_S + s->lease_ms / 1000);
}

/* What a former connection tells of itself is on other nodes of a cluster. */
static void
tell_lapsed(const struct mq_session *s, struct mq_command *c)
{
	double age_s = mq_clock_steady_s() - s->former_s;

	mq_command_script(c, &rmq_script_lapsed);
	rmq_key_connection(c, s->connection, "info");
	if (c->cluster)
		mq_command_int(c,
		    INFO_S * INT64_C(1000) + s->lease_ms -
			(int64_t)(age_s * 1000));
	else
		rmq_key_connection(c, s->former, "info");
}

/* The uses of the first n keys of rmq_probe(). */
static void
add_uses(struct mq_command *c, int n)
{
	static const char *const uses[] = {"LLEN LPUSH", "ZCARD ZADD",
	    "ZCARD ZADD", "HLEN HSET", "GET", "GET", "LLEN LPUSH",
	    "LLEN LPUSH LREM", "SCARD SADD"};
	int i;

	for (i = 0; i < n; i++)
		mq_command_str(c, uses[i]);
}

/* The same of a connection's keys, which are not in the slot of its queue. */
static void
add_own_uses(struct mq_command *c, const char *connection)
{
	mq_command_words(c, RMQ_QUEUES " SADD " RMQ_CONNECTIONS " SADD");
	rmq_key_connection(c, connection, "heartbeat");
	mq_command_str(c, "SET");
	rmq_key_connection(c, connection, "info");
	mq_command_str(c, "HSET EXPIRE");
	rmq_key_connection(c, connection, "queues");
	mq_command_str(c, "SADD");
}

static void
rmq_probe(struct mq_command *c, const struct mq_session *s, const char *queue,
    bool special)
{
	mq_command_script(c, &mq_script_probe);
	if (s == NULL && !special)
		rmq_key_queue(c, queue, "ready");
	else
		rmq_queue_keys(c, queue);
	if (s != NULL) {
		rmq_key_queue(c, queue, "rejected");
		rmq_key_both(c, s->connection, queue, "unacked");
		rmq_key_both(c, s->connection, queue, "consumers");
	}
	add_uses(c, c->keys);
	if (s != NULL)
		add_own_uses(c, s->connection);
}

/* The names of queues come last: a consumer that is refused makes no queue. */
static bool
make_queue(const struct mq_session *s, int step, struct mq_command *c)
{
	const char *queue = step < s->queue_count ? s->queues[step] : s->push;

	if (!s->make || step > s->queue_count || queue == NULL)
		return false;
	force_set(c, "SADD", RMQ_QUEUES);
	c->optional = true;
	mq_command_str(c, queue);
	return true;
}

/* The steps of one queue; on a cluster the last one is its lease. */
static void
join_queue(const struct mq_session *s, const char *queue, int step,
    struct mq_command *c)
{
	if (step == 0) {
		force_connection(s, c, "SADD", "queues");
		mq_command_str(c, queue);
		return;
	}
	mq_command_script(c, &mq_script_write_when_full);
	rmq_key_both(
	    c, s->connection, queue, step == 1 ? "consumers" : "lease");
	if (step == 1) {
		mq_command_str(c, "SADD");
		mq_command_str(c, s->consumer);
	} else {
		mq_command_words(c, "SET 1 PX");
		mq_command_int(c, QUEUE_LEASE_MS);
	}
}

static bool
rmq_join(const struct mq_session *s, int step, struct mq_command *c)
{
	bool tells = s->former != NULL;
	int each = c->cluster ? 3 : 2;

	switch (step) {
	case 0:
		force_connection(s, c, "SET", "heartbeat");
		mq_command_words(c, "1 EX");
		mq_command_int(c, RMQ_LEASE_S);
		return true;
	case 1:
		force_set(c, "SADD", RMQ_CONNECTIONS);
		mq_command_str(c, s->connection);
		return true;
	case 2:
		set_info(s, c);
		return true;
	case 3:
		if (!tells)
			break;
		tell_lapsed(s, c);
		return true;
	}
	step -= tells ? 4 : 3;
	if (step-- == 0) {
		keep_info(s, c);
		return true;
	}
	if (step >= each * s->queue_count)
		return make_queue(s, step - each * s->queue_count, c);
	join_queue(s, s->queues[step / each], step % each, c);
	return true;
}

static bool
renew_queue(
    const struct mq_session *s, int queue, int step, struct mq_command *c)
{
	const char *name = s->queues[queue];

	if (step > 0 && s->renewals % MQ_RENEW_INFO != 0)
		return false;
	mq_command_plain(c, step == 0 ? "PEXPIRE" : "EXPIRE");
	rmq_key_both(c, s->connection, name, step == 0 ? "lease" : "info");
	if (step == 0)
		mq_command_int(
		    c, s->lease_ms > 0 ? s->lease_ms : QUEUE_LEASE_MS);
	else
		mq_command_int(c, QUEUE_INFO_S + s->lease_ms / 1000);
	return step < 2;
}

static void
rmq_take_over(const struct mq_session *s, int queue, const char *from,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &rmq_script_take_over);
	rmq_key_both(c, from, name, "unacked");
	rmq_key_both(c, from, name, "consumers");
	rmq_key_both(c, from, name, "lease");
	rmq_key_both(c, from, name, "info");
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_both(c, s->connection, name, "info");
	mq_command_str(c, from);
}

/*
 * A crash in the middle leaves a listed connection, which a cleaner takes
 * apart from there, or, behind the SREM, keys that expire by themselves.
 */
static bool
rmq_leave(const struct mq_session *s, int step, struct mq_command *c)
{
	static const char *const keys[] = {
	    "queues", NULL, "heartbeat", "info", "running"};
	int last = s->runs ? 5 : 4;

	if (step == MQ_LEAVE_EMPTY) {
		leave_empty(s, c);
		return true;
	}
	if (step < s->queue_count) {
		mq_command_plain(c, "DEL");
		rmq_key_both(c, s->connection, s->queues[step], "consumers");
		if (c->cluster) {
			rmq_key_lease(c, s->connection, s->queues[step]);
			rmq_key_info(c, s->connection, s->queues[step]);
		}
		return true;
	}
	step -= s->queue_count;
	if (step == 1) {
		mq_command_plain(c, "SREM");
		rmq_key_all(c, RMQ_CONNECTIONS);
		mq_command_str(c, s->connection);
	} else if (step < last) {
		mq_command_plain(c, "DEL");
		rmq_key_connection(c, s->connection, keys[step]);
	}
	return step < last;
}

/* A heartbeat outlasts the lease, which is renewed behind it. */
static int64_t
longer_than(int64_t lease_ms)
{
	int64_t more = lease_ms / 3 + 1000;

	return lease_ms + (more < 20000 ? more : 20000);
}

static bool
rmq_renew(const struct mq_session *s, int queue, int step, struct mq_command *c)
{
	if (queue != -1)
		return renew_queue(s, queue, step, c);
	if (step > 0 && s->renewals % MQ_RENEW_INFO != 0)
		step++;
	switch (step) {
	case 0:
		mq_command_plain(c, "PEXPIRE");
		rmq_key_connection(c, s->connection, "heartbeat");
		mq_command_int(c,
		    s->lease_ms == 0 ? RMQ_LEASE_S * 1000LL :
			c->cluster   ? longer_than(s->lease_ms) :
				       s->lease_ms);
		return true;
	case 1:
		keep_info(s, c);
		return true;
	case 2:
		if (!s->runs)
			return false;
		mq_command_plain(c, "EXPIRE");
		c->optional = true;
		rmq_key_connection(c, s->connection, "running");
		mq_command_int(c, RMQ_LEASE_S);
		return true;
	default:
		return false;
	}
}

/* --- layout -------------------------------------------------------------- */

/*
 * The layout of adjust/rmq v5 (Go), outside a cluster: the table of all that it
 * can do.  keys.c says which keys it has.
 */

static void
rmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *attributes, bool set)
{
	(void)attributes;
	(void)set;
	mq_command_plain(c, "SADD");
	c->optional = true;
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

static void
rmq_known(struct mq_command *c, const char *queue, bool by_keys)
{
	if (by_keys) {
		mq_command_plain(c, "EXISTS");
		rmq_queue_keys(c, queue);
		rmq_keys(
		    c, queue, "rejected counters paused settings outgoing");
		return;
	}
	mq_command_plain(c, "SISMEMBER");
	c->optional = true;
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

const struct mq_layout mq_layout_rmq = {
    .name = "rmq",
    .has = MQ_HAS_KEYS | MQ_HAS_GROUPS | MQ_HAS_TICKS | MQ_HAS_LOW_PRIORITY |
	MQ_HAS_RESULTS | MQ_HAS_NODES,
    .lease_ms = RMQ_LEASE_S * INT64_C(1000),
    .queue_lease_ms = QUEUE_LEASE_MS,
    .attachments = &rmq_attachments,
    .rights = rmq_rights,
    .side = &rmq_side,
    .queue_error = rmq_queue_error,
    .open = rmq_open,
    .known = rmq_known,
    .probe = rmq_probe,
    .publish = rmq_publish,
    .publish_add = rmq_publish_add,
    .publish_mark = rmq_publish_mark,
    .publish_known = rmq_publish_known,
    .join = rmq_join,
    .leave = rmq_leave,
    .renew = rmq_renew,
    .take_over = rmq_take_over,
    .claim = rmq_claim,
    .track = rmq_track,
    .look = rmq_look,
    .key_queue = rmq_key_of,
    .settle = rmq_settle,
    .ack_oldest = rmq_ack_oldest,
    .give_back = rmq_give_back,
    .held = rmq_held,
    .receipts = rmq_receipts,
    .receipt = rmq_receipt,
    .clean = rmq_clean,
    .finish_pushes = rmq_finish_pushes,
    .drained = rmq_drained,
    .stats = rmq_stats,
    .running = rmq_running,
    .scan = rmq_scan,
    .take = rmq_take,
    .move = rmq_move,
    .delete_queue = rmq_delete_queue,
};
