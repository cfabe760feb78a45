/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The layout of adjust/rmq v5 (Go): its table, and the commands of publishers and consumers.
 *
 * Expired heartbeats never come back: EXPIRE, which renews a heartbeat, does nothing when that
 * is gone, and the consumer takes a new name.  So a connection that a cleaner has found dead
 * stays dead.  (Go renews with SET, which is refused while memory is full.)
 */
#include "rmq.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

/* --- publishing ---------------------------------------------------------- */

/* The key of messages that need only one plain command, which takes the server less time: a
 * script copies each message twice.  NULL: the script is needed. */
static const char *
plain_key(const struct mq_publishing *how)
{
	if (how->has_options && !how->order_only)
		return NULL;
	if (how->when.kind == MQ_WHEN_NOW && !how->in_tick &&
	    how->priority == 0)
		return "ready";
	if (how->now_us == 0 || !how->by_command)
		return NULL;
	return how->when.kind == MQ_WHEN_NOW ? "priority" : "delayed";
}

static bool
is_listed(const char *key)
{
	return key != NULL && strcmp(key, "ready") == 0;
}

static void
rmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	const struct mq_limits *limits = &how->limits;
	const struct mq_mark *mark = &how->mark;
	const char *key = plain_key(how);

	if (key != NULL) {
		mq_command_plain(c, is_listed(key) ? "LPUSH" : "ZADD");
		rmq_key_queue(c, queue, key);
		return;
	}
	rmq_start(c, &rmq_script_publish, NULL, queue);
	if (how->mark.publisher != NULL)
		mq_extra_marks(&rmq_extra_keys, c, queue, how->mark.publisher);
	else if (how->files != NULL)
		rmq_key_queue(c, queue, "none");
	if (how->files != NULL)
		rmq_attach_keys(c, how->files);
	MQ_COMMAND_ARGV(c, rmq_publish_argv,
	    .when = mq_str(mq_when_name(how->when.kind)),
	    .ms = mq_int(how->when.ms), .ready_max = mq_bound(limits->ready),
	    .high_max = mq_bound(limits->ready_high),
	    .delayed_max = mq_bound(limits->delayed),
	    .delayed_high_max = mq_bound(limits->delayed_high),
	    .alike = mq_str(how->same_header ? "alike" : ""),
	    .join = mq_str(how->join ? "join" :
		    how->replace     ? "replace" :
				       ""),
	    .slot = mq_marked(mark, mark->place),
	    .before = mq_marked(mark, mark->before),
	    .behind = mq_int(mark->publisher != NULL ? mark->behind : -1));
}

static bool
rmq_publish_mark(struct mq_command *c, const char *queue,
    const struct mq_publishing *how, int n)
{
	const char *key = plain_key(how);

	if (key == NULL || c == NULL)
		return key != NULL;
	mq_command_plain(c, "EVAL");
	mq_command_add(
	    c, "%s %d", rmq_script_mark.text, rmq_script_mark.most_keys);
	rmq_key_queue(c, queue, key);
	rmq_key_queue(c, queue, "counters");
	mq_extra_marks(&rmq_extra_keys, c, queue, how->mark.publisher);
	rmq_keys(c, NULL, queue, "known settings");
	mq_command_add(c, "%d %lld %lld %d %s", how->mark.place,
	    how->mark.before,
	    (long long)(how->mark.place < MQ_MARKS ? MQ_MARKS_KEEP_MS :
						     MQ_MARKS_LONG_MS),
	    n, c->cluster ? "" : queue);
	mq_command_words(c, is_listed(key) ? "LPUSH LLEN" : "ZADD ZCARD");
	return true;
}

static void
rmq_publish_add(struct mq_command *c, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len)
{
	const char *key = plain_key(how);
	char front[24] = "";
	struct mq_part parts[] = {{front, 0}, {id, MQ_ID_LEN},
	    {header->data, header->len}, {payload, len}};
	int64_t score = 0;
	/* The first of the parts to send.  A unique id orders delayed messages. */
	int skip = 1;

	if (key != NULL && !is_listed(key)) {
		/* Members begin as in_tick() and in_order() of lua/lib/leaving.lua have
		 * them. */
		if (how->when.kind == MQ_WHEN_AT) {
			score = how->when.ms;
		} else if (how->when.kind == MQ_WHEN_IN) {
			score = how->when.ms + how->now_us / 1000;
		} else if (how->in_tick) {
			score = RMQ_TICKS;
			snprintf(front, sizeof(front), "%03d0000",
			    100 - how->priority);
		} else {
			score = -how->priority;
			snprintf(front, sizeof(front), "n%016jd",
			    (intmax_t)how->now_us);
		}
		parts[0].n = strlen(front);
		parts[1].n -= parts[0].n;
		mq_command_int(c, score);
		skip = 0;
	} else if (how->when.kind == MQ_WHEN_NOW &&
	    (how->same_header || !how->has_options)) {
		skip = 2;
	}
	mq_command_parts(c, parts + skip, 4 - skip);
}

/* --- from the claim to the end -------------------------------------------- */

/* Longer elements are removed by lua/lib/remove.lua. */
#define LONG 4096
/* Most bytes that an ack copies. */
#define KEEP_BYTES ((size_t)1 << 16)

static void
add_own(struct mq_command *c, const struct mq_session *s, int queue,
    const char *words)
{
	rmq_keys(c, s->connection, s->queues[queue], words);
}

/* Starts a script with keys of the session and the queue. */
static void
start(struct mq_command *c, const struct mq_script *script,
    const struct mq_session *s, int queue)
{
	rmq_start(c, script, s->connection, s->queues[queue]);
}

static void
rmq_claim(const struct mq_session *s, int queue, const struct mq_claim *claim,
    struct mq_command *c)
{
	bool rate = claim->rate.per_s > 0;

	start(c, &rmq_script_claim, s, queue);
	if (claim->shared)
		add_own(c, s, queue, "slots settings");
	MQ_COMMAND_ARGV(c, rmq_claim_argv, .max = mq_int(claim->max),
	    .bytes = mq_int((long long)claim->bytes),
	    .per_s = rate ? mq_real(claim->rate.per_s) : mq_str(""),
	    .burst = rate ? mq_int(claim->rate.burst) : mq_str(""),
	    .queue = mq_str(s->queues[queue]),
	    .name = mq_str(s->wake != NULL ? s->wake : ""),
	    .why = mq_str(mq_claim_why(claim->why)),
	    .tracked = mq_str(claim->tracked ? "1" : ""),
	    .copy_budget = claim->copied > 0 ?
		mq_int((long long)claim->copied) :
		claim->shared ? mq_str("") :
				MQ_NO_ARG,
	    .connection = claim->shared ? mq_str(s->connection) : MQ_NO_ARG);
}

/* The number of an element's bytes that a header replaces. */
static long long
offset_of(const struct mq_settlement *how)
{
	return how->header == NULL ? 0 : (long long)how->payload_at;
}

static bool
is_away(const struct mq_command *c, const char *queue,
    const struct mq_settlement *how)
{
	return how->outcome == MQ_OUTCOME_PUSH &&
	    rmq_transfer_needed(c, queue, how->push);
}

/* Adds the keys of the queue, or list, that a message goes to. */
static void
add_goal(
    struct mq_command *c, const char *queue, const struct mq_settlement *how)
{
	if (is_away(c, queue, how))
		rmq_key_queue(c, queue, "outgoing");
	else if (how->outcome == MQ_OUTCOME_PUSH)
		rmq_key_queue(c, how->push, RMQ_PLACES);
	else if (how->outcome == MQ_OUTCOME_REJECT)
		rmq_key_queue(c, queue, "rejected");
}

/* Settles a message with a receipt, a result or a notice. */
static void
announce(const struct mq_session *s, int queue, const struct mq_settlement *how,
    const struct rmq_settle_argv *argv, struct mq_command *c)
{
	static const struct mq_result no_result = {.id = "", .text = ""};
	const struct mq_result *result =
	    how->result != NULL ? how->result : &no_result;
	const struct mq_notice *notice = how->notice;
	const char *name = s->queues[queue];
	char field[RMQ_FIELD] = "";

	start(c, &rmq_script_announce, s, queue);
	if (notice == NULL)
		rmq_key_queue(c, name, "none none");
	else
		rmq_key_notice(c, name, notice->queue);
	if (notice != NULL && rmq_transfer_needed(c, name, notice->queue))
		rmq_transfer_field(field, notice->unique, notice->queue);
	add_goal(c, name, how);
	MQ_COMMAND_ARGV(c, rmq_announce_argv, .how = argv->how,
	    .element = argv->element, .header = argv->header,
	    .offset = argv->offset, .ms = argv->ms, .unique = argv->unique,
	    .receipt = mq_str(how->receipt != NULL ? how->receipt : ""),
	    .id = mq_str(result->id),
	    .result = mq_bytes(result->text, result->len),
	    .keep_ms = mq_int(result->keep_ms), .field = mq_str(field),
	    .notice = notice == NULL ?
		mq_str("") :
		mq_bytes(notice->element.data, notice->element.len),
	    .listed = result->listed ? mq_str("1") : MQ_NO_ARG);
}

static void
settle_one(const struct mq_session *s, int queue,
    const struct mq_settlement *how, struct mq_command *c)
{
	const char *name = s->queues[queue];
	bool expired = how->outcome == MQ_OUTCOME_REJECT && how->unrun;
	char transfer[RMQ_FIELD];
	bool away = is_away(c, name, how);
	const struct rmq_settle_argv argv = {
	    .how = mq_str(expired ? "expire" :
		    how->purged	  ? "purge" :
				    mq_outcome_name(how->outcome)),
	    .element = mq_bytes(how->element, how->len),
	    .header = mq_bytes(how->header, how->header_len),
	    .offset = mq_int(offset_of(how)),
	    .ms = mq_int(how->delay_ms),
	    .unique = mq_str(away ?
		    rmq_transfer_field(transfer, how->unique, how->push) :
		    how->unique)};

	if (how->receipt != NULL || how->result != NULL ||
	    how->notice != NULL) {
		announce(s, queue, how, &argv, c);
		return;
	}
	start(c, &rmq_script_settle, s, queue);
	add_goal(c, name, how);
	mq_command_argv(c, &argv, sizeof(argv));
}

static void
rmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	const struct mq_settlement *end = how + n;

	if (n > 1) {
		start(c, &rmq_script_settle_equal, s, queue);
		for (; how < end; how++) {
			mq_command_str(c, mq_outcome_name(how->outcome));
			mq_command_arg(c, how->element, how->len);
			if (how->outcome == MQ_OUTCOME_ACK)
				continue;
			mq_command_arg(c, how->header, how->header_len);
			mq_command_add(c, "%lld %lld %s", offset_of(how),
			    (long long)how->delay_ms, how->unique);
		}
	} else if (how->outcome == MQ_OUTCOME_ACK && how->len < LONG &&
	    !how->holds && how->receipt == NULL && how->result == NULL &&
	    how->notice == NULL) {
		/* -1: LREM goes from the oldest end. */
		rmq_ask(
		    c, "LREM B:unacked -1", s->connection, s->queues[queue]);
		mq_command_arg(c, how->element, how->len);
	} else if (how->next) {
		start(c, &rmq_script_ack_next, s, queue);
		MQ_COMMAND_ARGV(c, rmq_ack_next_argv,
		    .element = mq_bytes(how->element, how->len),
		    .queue = mq_str(s->queues[queue]));
	} else {
		settle_one(s, queue, how, c);
	}
}

/* If few short messages of a window stay, the window is removed, and those are put back
 * (keep); else the acked ones are removed.  Both take the server the same time a message. */
static void
rmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	const int *places = acks->places;
	int n = acks->n, window = places[n - 1], others = window - n, place;
	bool keep = others > 0 && others <= n && acks->others_len <= KEEP_BYTES;

	start(c, &rmq_script_ack, s, queue);
	if (acks->holds)
		add_own(c, s, queue, RMQ_PLACES);
	MQ_COMMAND_ARGV(c, rmq_ack_argv, .window = mq_int(window),
	    .oldest = mq_bytes(acks->oldest.p, acks->oldest.n),
	    .newest =
		mq_bytes(acks->elements[n - 1].p, acks->elements[n - 1].n),
	    .mark = others == 0 ? MQ_NO_ARG :
		keep		? mq_str("keep") :
				  mq_str(acks->unique));
	while (!keep && others > 0 && n > 0)
		mq_command_int(c, places[--n]);
	for (place = keep ? window : 0; place > 0; place--)
		if (n > 0 && places[n - 1] == place)
			n--;
		else
			mq_command_int(c, place);
}

/* As MOST of lua/lib/give_back.lua. */
#define ANY 500

static void
rmq_give_back(const struct mq_session *s, int queue,
    const struct mq_newest *newest, struct mq_command *c)
{
	const struct mq_part *e = newest != NULL ? newest->elements : NULL;
	int i, n = newest != NULL ? newest->n : ANY;
	int step = newest == NULL || newest->each || n == 1 ? 1 : n - 1;

	start(c, &rmq_script_give_back, s, queue);
	MQ_COMMAND_ARGV(c, rmq_give_back_argv, .max = mq_int(n));
	for (i = 0; e != NULL && i < n; i += step)
		mq_command_arg(c, e[i].p, e[i].n);
}

static int
rmq_held(const struct mq_session *s, int queue, enum mq_held_how how,
    struct mq_command c[2])
{
	const char *name = s->queues[queue];

	if (how == MQ_HELD && !s->heads) {
		rmq_ask(&c[0], "HGET B:info", s->connection, name);
		mq_command_fmt(&c[0], "claimed:%s", name);
		rmq_ask(&c[1], "LRANGE B:unacked 0 -1", s->connection, name);
		return 2;
	}
	if (how == MQ_HELD_COUNT || how == MQ_HELD_KEY) {
		if (how == MQ_HELD_COUNT)
			mq_command_plain(c, "LLEN");
		add_own(c, s, queue, "unacked");
		return 1;
	}
	start(c, &rmq_script_held, s, queue);
	MQ_COMMAND_ARGV(c, rmq_held_argv, .queue = mq_str(name),
	    .heads = mq_str(s->heads ? "1" : ""));
	return 1;
}

/* --- receipts, under a lease that is not renewed --------------------------------- */

static void
rmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	/* The unacked list has the same elements. */
	(void)elements;
	start(c, &rmq_script_receipts, s, 0);
	MQ_COMMAND_ARGV(c, rmq_receipts_argv, .count = mq_int(n));
}

static void
rmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	rmq_start(c, &rmq_script_receipt, connection, queue);
	MQ_COMMAND_ARGV(c, rmq_receipt_argv, .receipt = mq_str(number));
}

/* --- session ------------------------------------------------------------- */

/* A cleaner reads the info of a connection that died in the last hour. */
#define INFO_S 3600

/* A lease of a queue on a cluster is shorter than a heartbeat, so that a consumer whose
 * messages a cleaner takes cannot claim; and longer than a failover takes. */
#define QUEUE_LEASE_MS 40000
/* Life of the counts of claims on a cluster after their last renewal. */
#define QUEUE_INFO_S 86400

static void
rmq_probe(struct mq_command *c, const struct mq_session *s, const char *queue,
    bool has_options)
{
	static const char *const uses[] = {"LLEN LPUSH", "ZCARD ZADD",
	    "ZCARD ZADD", "HLEN HSET", "GET", "GET", "LLEN LPUSH",
	    "LLEN LPUSH LREM", "SCARD SADD"};
	int i;

	mq_command_script(c, &mq_script_probe);
	if (s != NULL)
		rmq_keys(c, s->connection, queue,
		    RMQ_PLACES " rejected unacked consumers");
	else
		rmq_key_queue(c, queue, has_options ? RMQ_PLACES : "ready");
	for (i = 0; i < c->keys; i++)
		mq_command_str(c, uses[i]);
	if (s == NULL)
		return;
	/* On a cluster, keys in other slots can only be arguments. */
	mq_command_words(c, RMQ_QUEUES " SADD " RMQ_CONNECTIONS " SADD");
	rmq_keys(c, s->connection, NULL, "C:heartbeat");
	mq_command_str(c, "SET");
	rmq_keys(c, s->connection, NULL, "C:info");
	mq_command_str(c, "HSET EXPIRE");
	rmq_keys(c, s->connection, NULL, "C:queues");
	mq_command_str(c, "SADD");
}

static void
add_info(const struct mq_session *s, struct mq_command *c)
{
	char host[256] = "", process[MQ_PROC_MAX] = "";

	gethostname(host, sizeof(host) - 1);
	rmq_ask(c, "!HSET C:info host", s->connection, NULL);
	mq_command_add(c, "%s pid %d slots %d", host, (int)getpid(), s->slots);
	/* A lease by receipt outlives its process. */
	if (s->lease_ms == 0)
		mq_proc_self(process);
	if (*process != '\0')
		mq_command_add(c, "process %s", process);
	if (s->attempts != -1)
		mq_command_add(c, "attempts %d", s->attempts);
	if (s->notify != NULL)
		mq_command_add(c, "notify %s", s->notify);
	if (s->lease_ms > 0)
		mq_command_add(c, "lease %lld", (long long)s->lease_ms);
}

/* Renews the info, which a Go cleaner would leave, so it has a time to live. */
static void
keep_info(const struct mq_session *s, struct mq_command *c)
{
	rmq_ask(c, "EXPIRE C:info", s->connection, NULL);
	mq_command_int(c, INFO_S + s->lease_ms / 1000);
}

/* Notes the lost lease of a former connection.  On a cluster, that connection's info is on
 * another node. */
static void
tell_lapsed(const struct mq_session *s, struct mq_command *c)
{
	double age_s = mq_clock_steady_s() - s->former_s;
	int64_t left_ms =
	    INFO_S * INT64_C(1000) + s->lease_ms - (int64_t)(age_s * 1000);

	rmq_start(c, &rmq_script_lapsed, s->connection, NULL);
	if (!c->cluster)
		rmq_keys(c, s->former, NULL, "C:info");
	MQ_COMMAND_ARGV(c, rmq_lapsed_argv,
	    .left_ms = c->cluster ? mq_int(left_ms) : MQ_NO_ARG);
}

static void
join_queue(const struct mq_session *s, const char *name, struct mq_steps *to)
{
	struct mq_command *c;

	rmq_ask(mq_steps_add(to), "!SADD C:queues %q", s->connection, name);
	c = mq_steps_add(to);
	rmq_ask(c, "!SADD B:consumers", s->connection, name);
	mq_command_str(c, s->consumer);
	if (!c->cluster)
		return;
	c = mq_steps_add(to);
	rmq_ask(c, "!SET B:lease 1 PX", s->connection, name);
	mq_command_int(c, QUEUE_LEASE_MS);
}

/* Lists the connection for lua/holders.lua.  On a cluster no script sees all these keys. */
static void
list_alive(const struct mq_session *s, struct mq_command *c)
{
	int i;

	mq_command_script(c, &rmq_script_extend);
	rmq_keys(c, s->connection, NULL, "C:heartbeat");
	for (i = 0; i < s->queue_count; i++)
		rmq_key_queue(c, s->queues[i], "holders");
	MQ_COMMAND_ARGV(c, rmq_extend_argv,
	    .ms = mq_int(RMQ_LEASE_S * INT64_C(1000)),
	    .connection = mq_str(s->connection), .alive = mq_str(RMQ_HOLDERS),
	    .sure = mq_str("1"));
}

static void
rmq_join(const struct mq_session *s, struct mq_steps *to)
{
	struct mq_command *c = mq_steps_add(to);
	int i;

	rmq_ask(c, "!SET C:heartbeat 1 EX", s->connection, NULL);
	mq_command_int(c, RMQ_LEASE_S);
	rmq_ask(mq_steps_add(to), "!SADD A:" RMQ_CONNECTIONS " %n",
	    s->connection, NULL);
	add_info(s, mq_steps_add(to));
	if (s->former != NULL)
		tell_lapsed(s, mq_steps_add(to));
	keep_info(s, mq_steps_add(to));
	for (i = 0; i < s->queue_count; i++)
		join_queue(s, s->queues[i], to);
	if (!mq_redis_command(to->redis).cluster)
		list_alive(s, mq_steps_add(to));
	/* The names of queues come last: a consumer that is refused makes no queue. */
	for (i = 0; s->make && i < s->queue_count + (s->push != NULL); i++) {
		c = mq_steps_add(to);
		rmq_ask(c, "!SADD A:" RMQ_QUEUES " %n",
		    i < s->queue_count ? s->queues[i] : s->push, NULL);
		c->optional = true;
	}
}

static void
rmq_take_over(const struct mq_session *s, int queue, const char *from,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	rmq_start(c, &rmq_script_take_over, from, name);
	rmq_keys(c, s->connection, name, mq_command_keys(c));
	MQ_COMMAND_ARGV(c, rmq_take_over_argv, .former = mq_str(from));
}

/* After a crash in the middle, the connection is listed, and a cleaner goes on; or, after the
 * SREM, its other keys expire. */
static void
rmq_leave(const struct mq_session *s, int queue, struct mq_steps *to)
{
	static const char *const own[] = {("ZREM A:" RMQ_HOLDERS " %n"),
	    "DEL C:queues", ("SREM A:" RMQ_CONNECTIONS " %n"),
	    "DEL C:heartbeat", "DEL C:info", "DEL C:running"};
	bool cluster = mq_redis_command(to->redis).cluster;
	struct mq_command *c;
	int i;

	if (queue == MQ_LEAVE_OWN) {
		for (i = cluster ? 1 : 0; i < (s->runs ? 6 : 5); i++)
			rmq_ask(mq_steps_add(to), own[i], s->connection, NULL);
		return;
	}
	c = mq_steps_add(to);
	if (queue == MQ_LEAVE_EMPTY) {
		start(c, &rmq_script_leave, s, 0);
		MQ_COMMAND_ARGV(c, rmq_leave_argv,
		    .queue = mq_str(s->queues[0]),
		    .connection = mq_str(s->connection));
	} else {
		mq_command_plain(c, "DEL");
		add_own(c, s, queue,
		    cluster ? "consumers lease info" : "consumers");
		if (!cluster)
			rmq_ask(mq_steps_add(to), "HDEL B:holders %n",
			    s->connection, s->queues[queue]);
	}
}

static void
rmq_renew(const struct mq_session *s, int queue, struct mq_steps *to)
{
	struct mq_command *c = mq_steps_add(to);
	int64_t ms = s->lease_ms;
	/* In every second renewal the server has more to do for a consumer. */
	bool lists =
	    queue == -1 && !c->cluster && (ms > 0 || s->renewals % 2 == 0);

	if (ms > 0 || lists)
		mq_command_script(c, &rmq_script_extend);
	else
		mq_command_plain(c, "PEXPIRE");
	if (queue != -1) {
		add_own(c, s, queue, "lease");
		mq_command_int(c, ms > 0 ? ms : QUEUE_LEASE_MS);
	} else {
		rmq_keys(c, s->connection, NULL, "C:heartbeat");
		/* On a cluster the heartbeat outlasts the leases, which are renewed
		 * after it. */
		mq_command_int(c,
		    ms == 0	   ? RMQ_LEASE_S * INT64_C(1000) :
			c->cluster ? ms + MIN(ms / 3 + 1000, 20000) :
				     ms);
		if (lists)
			mq_command_add(c,
			    ms > 0 ? "%s " RMQ_HOLDERS : "%s " RMQ_HOLDERS " 1",
			    s->connection);
	}
	if (s->renewals % MQ_RENEW_INFO == 0) {
		c = mq_steps_add(to);
		if (queue == -1) {
			keep_info(s, c);
		} else {
			rmq_ask(c, "EXPIRE B:info", s->connection,
			    s->queues[queue]);
			mq_command_int(c, QUEUE_INFO_S + ms / 1000);
		}
	}
	if (queue == -1 && s->runs) {
		c = mq_steps_add(to);
		rmq_ask(c, "EXPIRE C:running", s->connection, NULL);
		mq_command_int(c, RMQ_LEASE_S);
		c->optional = true;
	}
}

/* --- layout -------------------------------------------------------------- */

static void
rmq_known(struct mq_command *c, const char *queue, bool by_keys)
{
	if (by_keys) {
		mq_command_plain(c, "EXISTS");
		rmq_key_queue(c, queue,
		    RMQ_PLACES " rejected counters paused settings outgoing");
		return;
	}
	rmq_ask(c, "SISMEMBER A:" RMQ_QUEUES " %n", queue, NULL);
	c->optional = true;
}

const struct mq_layout mq_layout_rmq = {
    MQ_LAYOUT_TABLE(rmq),
    .has = MQ_HAS_KEYS | MQ_HAS_GROUPS | MQ_HAS_TICKS | MQ_HAS_LOW_PRIORITY |
	MQ_HAS_RESULTS | MQ_HAS_NODES | MQ_HAS_BATCHES,
    .lease_ms = RMQ_LEASE_S * INT64_C(1000),
    .queue_lease_ms = QUEUE_LEASE_MS,
    .attachments = &rmq_attachments,
    .publish_mark = rmq_publish_mark,
    .take_over = rmq_take_over,
    .key_queue = rmq_key_of,
    .finish_pushes = rmq_transfer_complete,
};
