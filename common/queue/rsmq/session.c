/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rsmq layout: publishing messages, a consumer's lease, and the messages that it holds.
 *
 * A crash needs no cleaning here: once a consumer's lease ends, its messages can be received
 * by anybody, as after any consumer of RSMQ.
 */
#include <unistd.h>

#include "base/text.h"
#include "queue/lease.h"
#include "rsmq.h"

/* --- messages, and putting them in ---------------------------------------- */

/* Each element begins so, then the id. */
static const char start[] = "\xff\x00\xbe\xbe\x4a{\"Mq-Id\":[\"";
#define START (sizeof(start) - 1)

/* The id of an element, which each has here.  If lua/lib/layout.lua has written some bytes as
 * \u00ff, *unescaped has the id, for the caller to free, else NULL. */
static struct mq_part
element_id(const char *element, size_t len, char **unescaped)
{
	const char *p = element, *end = NULL;
	char *to, digits[3] = "";

	*unescaped = NULL;
	if (len >= START && memcmp(element, start, START) == 0) {
		p += START;
		end = memchr(p, '"', len - START);
	}
	if (end == NULL || memchr(p, '\\', (size_t)(end - p)) == NULL)
		return (struct mq_part){p, end != NULL ? (size_t)(end - p) : 0};
	*unescaped = to = mq_xmalloc((size_t)(end - p));
	while (p < end) {
		if (*p != '\\' || end - p < 6) {
			*to++ = *p++;
			continue;
		}
		memcpy(digits, p + 4, 2);
		*to++ = (char)strtol(digits, NULL, 16);
		p += 6;
	}
	return (struct mq_part){*unescaped, (size_t)(to - *unescaped)};
}

static void
add_ids(struct mq_command *c, const struct mq_part *elements, int n)
{
	struct mq_part id;
	char *unescaped;
	int i;

	for (i = 0; i < n; i++) {
		id = element_id(elements[i].p, elements[i].n, &unescaped);
		mq_command_arg(c, id.p, id.n);
		free(unescaped);
	}
}

/* The channel on which node announces messages of a queue; the caller frees. */
static char *
realtime_channel(const char *queue)
{
	const char *bare = rsmq_bare(queue);

	if (bare == queue)
		return mq_xasprintf("%s:rt:%s", RSMQ_NAMESPACE, bare);
	return mq_xasprintf("%.*s:rt:%s", (int)(bare - queue - 1), queue, bare);
}

static void
rsmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	const struct mq_limits *limits = &how->limits;
	const struct mq_mark *mark = &how->mark;
	struct mq_when when = how->when;
	char *channel = NULL;

	/* A message with a time of its own is not delayed by its queue. */
	if (when.kind == MQ_WHEN_NOW && when.said)
		when.kind = MQ_WHEN_IN;
	rsmq_start(c, &rsmq_script_publish, NULL, queue);
	if (how->mark.publisher != NULL)
		mq_extra_marks(&rsmq_extra_keys, c, queue, how->mark.publisher);
	if (how->realtime)
		channel = realtime_channel(queue);
	MQ_COMMAND_ARGV(c, rsmq_publish_argv, .name = mq_str(rsmq_bare(queue)),
	    .when = mq_str(mq_when_name(when.kind)), .ms = mq_int(when.ms),
	    .ready_max = mq_bound(limits->ready),
	    .high_max = mq_bound(limits->ready_high),
	    .delayed_max = mq_bound(limits->delayed),
	    .delayed_high_max = mq_bound(limits->delayed_high),
	    .channel = mq_str(channel != NULL ? channel : ""),
	    .new = mq_str(how->same_header ? "1" : ""),
	    .slot = mq_marked(mark, mark->place),
	    .before = mq_marked(mark, mark->before),
	    .behind = mq_int(mark->publisher != NULL ? mark->behind : -1));
	free(channel);
}

static void
rsmq_publish_add(struct mq_command *c, const struct mq_publishing *how,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len)
{
	struct mq_envelope e = {0};
	struct mq_buf extra = {0};
	char id[MQ_ID_LEN + 1];
	const char *why;
	long priority = 0;

	(void)how;
	/* Nearly all messages have only an id, and need no parser. */
	if (!mq_message_plain(header->data, header->len, id, &e) &&
	    mq_envelope_parse(header->data, header->len, &e, &why) == 0) {
		if (mq_message_id(&e) != NULL)
			memcpy(id, mq_message_id(&e), sizeof(id));
		priority = mq_envelope_get_long(&e, MQ_HEADER_PRIORITY, 0);
		if (priority > 100)
			priority = 0;
		rsmq_extra(&e, &extra);
		mq_envelope_free(&e);
	}
	mq_command_str(c, *id != '\0' ? id : unique);
	mq_command_int(c, mq_utf16_units(payload, len));
	mq_command_int(c, priority);
	mq_command_arg(c, extra.data, extra.len);
	mq_command_arg(c, payload, len);
	mq_buf_free(&extra);
}

/* --- session ------------------------------------------------------------- */

static void
rsmq_probe(struct mq_command *c, const struct mq_session *s, const char *queue,
    bool has_options)
{
	static const char *const uses[] = {"ZCARD ZADD", "HLEN HSET",
	    "HLEN HSET", "HLEN HSET", "HLEN HSET", "ZCARD ZADD", "HLEN HSET"};
	int i;

	(void)has_options;
	mq_command_script(c, &mq_script_probe);
	rsmq_keys(c, NULL, queue, " :Q :X");
	if (s != NULL)
		rsmq_keys(c, s->connection, queue,
		    "again held " RSMQ_REJECTED " " RSMQ_REJECTED ":Q");
	for (i = 0; i < c->keys; i++)
		mq_command_str(c, uses[i]);
}

/* The lease that a session sets itself, in milliseconds; '': by the vt of its queues. */
static struct mq_arg
own_lease(const struct mq_session *s)
{
	return mq_bound(s->lease_ms > 0 ? s->lease_ms : -1);
}

static void
rsmq_join(const struct mq_session *s, struct mq_steps *to)
{
	struct mq_command *c = mq_steps_add(to);
	int i;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	rsmq_start(c, &rsmq_script_join, s->connection, s->queues[0]);
	for (i = 0; i < s->queue_count; i++)
		rsmq_keys(c, NULL, s->queues[i], ":Q");
	if (s->push != NULL)
		rsmq_keys(c, NULL, s->push, ":Q");
	for (i = 0; i < s->queue_count; i++)
		rsmq_keys(c, NULL, s->queues[i], "counters");
	for (i = 0; i < s->queue_count; i++)
		rsmq_keys(c, NULL, s->queues[i], "holders");
	MQ_COMMAND_ARGV(c, rsmq_join_argv, .connection = mq_str(s->connection),
	    .host = mq_str(host), .pid = mq_int(getpid()),
	    .slots = mq_int(s->slots), .ms = own_lease(s),
	    .consumed = mq_int(s->queue_count),
	    .attempts = mq_int(s->attempts != -1 ? s->attempts : MQ_ATTEMPTS),
	    .makes = mq_str(s->make ? "1" : ""));
	for (i = 0; i < s->queue_count; i++)
		mq_command_str(c, rsmq_bare(s->queues[i]));
	if (s->push != NULL)
		mq_command_str(c, rsmq_bare(s->push));
}

static void
rsmq_leave(const struct mq_session *s, int queue, struct mq_steps *to)
{
	const char *name = s->queues[0];
	struct mq_command *c;

	if (queue == MQ_LEAVE_EMPTY) {
		c = mq_steps_add(to);
		rsmq_start(c, &rsmq_script_leave, s->connection, name);
		mq_command_str(c, s->connection);
	} else if (queue == MQ_LEAVE_OWN) {
		rsmq_ask(mq_steps_add(to), "DEL lease", s->connection, name);
		c = mq_steps_add(to);
		rsmq_ask(c, "ZREM connections", s->connection, name);
		mq_command_str(c, s->connection);
		rsmq_ask(mq_steps_add(to), "DEL runs", s->connection, name);
	} else {
		c = mq_steps_add(to);
		rsmq_ask(c, "HDEL holders", NULL, s->queues[queue]);
		mq_command_str(c, s->connection);
	}
}

static void
rsmq_renew(const struct mq_session *s, int queue, struct mq_steps *to)
{
	struct mq_command *c = mq_steps_add(to);
	int i;

	(void)queue;
	rsmq_start(c, &rsmq_script_renew, s->connection, s->queues[0]);
	for (i = 0; i < s->queue_count; i++)
		rsmq_keys(c, s->connection, s->queues[i], RSMQ_PLACES " held");
	MQ_COMMAND_ARGV(c, rsmq_renew_argv, .ms = own_lease(s));
	if (s->runs) {
		c = mq_steps_add(to);
		rsmq_ask(c, "EXPIRE runs", s->connection, s->queues[0]);
		mq_command_int(c, MQ_RUNNING_S);
	}
}

static int
rsmq_held(const struct mq_session *s, int queue, enum mq_held_how how,
    struct mq_command c[2])
{
	const char *name = s->queues[queue];

	if (how == MQ_HELD_COUNT || how == MQ_HELD_KEY) {
		if (how == MQ_HELD_COUNT)
			mq_command_plain(c, "HLEN");
		rsmq_keys(c, s->connection, name, "held");
		return 1;
	}
	rsmq_start(c, &rsmq_script_held, s->connection, name);
	MQ_COMMAND_ARGV(c, rsmq_held_argv,
	    .wanted = mq_str(s->heads ? "heads" : "messages"));
	return 1;
}

static void
rsmq_claim(const struct mq_session *s, int queue, const struct mq_claim *claim,
    struct mq_command *c)
{
	const char *name = s->queues[queue];
	bool rate = claim->rate.per_s > 0;

	rsmq_start(c, &rsmq_script_claim, s->connection, name);
	if (claim->shared)
		rsmq_keys(c, s->connection, name, "slots settings");
	MQ_COMMAND_ARGV(c, rsmq_claim_argv, .max = mq_int(claim->max),
	    .bytes = mq_int((long long)claim->bytes),
	    .per_s = rate ? mq_real(claim->rate.per_s) : mq_str(""),
	    .burst = rate ? mq_int(claim->rate.burst) : mq_str(""),
	    .queue = mq_str(rsmq_bare(name)),
	    .name = mq_str(s->wake != NULL ? s->wake : ""),
	    .why = mq_str(mq_claim_why(claim->why)),
	    .tracked = mq_str(claim->tracked ? "1" : ""),
	    .connection = claim->shared ? mq_str(s->connection) : MQ_NO_ARG);
}

/* The queue of a key NAMESPACE:QUEUE, maybe with an end. */
static bool
rsmq_key_of(const char *key, size_t len, const char **queue, size_t *n)
{
	static const char before[] = RSMQ_NAMESPACE ":";
	static const char *const behind[] = {
	    ":Xpaused", ":Xidle", ":Xsettings", ":Xstop"};
	size_t skip = sizeof(before) - 1, tail, i;

	for (i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		tail = strlen(behind[i]);
		if (len > tail &&
		    memcmp(key + len - tail, behind[i], tail) == 0)
			len -= tail;
	}
	*queue = key;
	*n = len;
	if (len <= skip || memcmp(key, before, skip) != 0)
		return true;
	/* Names of queues lack the default namespace. */
	if (memchr(key + skip, ':', len - skip) == NULL) {
		*queue += skip;
		*n -= skip;
	}
	return true;
}

static void
rsmq_exists(const struct mq_session *s, int queue, const char *element,
    size_t len, struct mq_command *c)
{
	rsmq_ask(c, "HEXISTS :Q", NULL, s->queues[queue]);
	add_ids(c, &(struct mq_part){element, len}, 1);
}

/* For a push, the length of the body, behind the header line, is sent as node counts it. */
static void
rsmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	bool reject = how->outcome == MQ_OUTCOME_REJECT;
	bool push = how->outcome == MQ_OUTCOME_PUSH;
	const char *name = s->queues[queue], *body = how->element, *end, *why;
	struct mq_buf to = {0}, extra = {0};
	struct mq_envelope e;
	struct mq_part id;
	char *unescaped;

	(void)n;
	mq_buf_addstr(&to, reject ? name : how->push != NULL ? how->push : "");
	if (reject)
		mq_buf_addstr(&to, RSMQ_REJECTED);
	rsmq_start(c, &rsmq_script_settle, s->connection, name);
	if (reject || push)
		rsmq_keys(c, NULL, mq_buf_str(&to), RSMQ_PLACES " names");
	if (how->header != NULL &&
	    mq_envelope_parse(how->header, how->header_len, &e, &why) == 0) {
		rsmq_extra(&e, &extra);
		mq_envelope_free(&e);
	}
	end = push ? memchr(body, '\n', how->len) : NULL;
	if (end != NULL)
		body = end + 1;
	id = element_id(how->element, how->len, &unescaped);
	MQ_COMMAND_ARGV(c, rsmq_settle_argv,
	    .how = mq_str(mq_outcome_name(how->outcome)),
	    .id = mq_bytes(id.p, id.n),
	    .replaced = mq_str(how->header != NULL ? "1" : "0"),
	    .extra = mq_bytes(extra.data, extra.len),
	    .delay_ms = mq_int(how->delay_ms),
	    .to_name = mq_str(rsmq_bare(mq_buf_str(&to))),
	    .units = push ? mq_int(mq_utf16_units(body,
				how->len - (size_t)(body - how->element))) :
			    MQ_NO_ARG);
	free(unescaped);
	mq_buf_free(&to);
	mq_buf_free(&extra);
}

static void
rsmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	rsmq_start(c, &rsmq_script_ack, s->connection, s->queues[queue]);
	add_ids(c, acks->elements, acks->n);
}

static void
rsmq_give_back(const struct mq_session *s, int queue,
    const struct mq_newest *newest, struct mq_command *c)
{
	rsmq_start(c, &rsmq_script_give_back, s->connection, s->queues[queue]);
	if (newest != NULL)
		add_ids(c, newest->elements, newest->n);
}

static void
rsmq_lapsed(const struct mq_session *s, int queue, const char *element,
    size_t len, long attempts, struct mq_command *c)
{
	char *unescaped;
	struct mq_part id = element_id(element, len, &unescaped);

	rsmq_start(c, &rsmq_script_lapsed, NULL, s->queues[queue]);
	MQ_COMMAND_ARGV(c, rsmq_lapsed_argv, .id = mq_bytes(id.p, id.n),
	    .receives = mq_int(attempts + 1));
	free(unescaped);
}

/* --- receipt ------------------------------------------------------------- */

/* Messages that are handed out by receipt, under a lease that is not renewed, and any other
 * message whose id a user knows. */

/* The lease of a message by its id, in milliseconds: the time to settle it. */
#define ADOPTED_MS 60000

/* Length of the name of a message whose id cannot be shown; see lua/lib/layout.lua. */
#define NAME_LEN 32

static void
rsmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	rsmq_start(c, &rsmq_script_receipts, s->connection, s->queues[0]);
	add_ids(c, elements, n);
}

static void
rsmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	rsmq_start(c, &rsmq_script_receipt, connection, queue);
	MQ_COMMAND_ARGV(c, rsmq_receipt_argv, .named = mq_str(number));
}

struct search {
	const char *queue, *id;
	const redisReply *connections;
	bool handed_out; /* by receipt, and so not found by its id */
	struct mq_receipt *out;
};

static void
ask_connection(void *arg, size_t i, struct mq_command *c)
{
	const struct search *s = arg;

	rsmq_receipt(c, s->connections->element[i]->str, s->queue, s->id);
	mq_command_str(c, "id");
}

static int
store_found(void *arg, size_t i, redisReply *reply)
{
	struct search *s = arg;

	s->handed_out |= reply->type == REDIS_REPLY_INTEGER;
	if (reply->type == REDIS_REPLY_STRING && s->out->connection == NULL) {
		s->out->connection =
		    mq_xstrdup(s->connections->element[i]->str);
		mq_buf_add(&s->out->element, reply->str, reply->len);
	}
	return reply->type == REDIS_REPLY_STRING ||
		reply->type == REDIS_REPLY_INTEGER ||
		reply->type == REDIS_REPLY_NIL ?
	    0 :
	    -1;
}

/* Hands a message out by its id. */
static int
adopt_message(
    struct mq_redis *r, const struct search *s, const char *id, size_t n)
{
	struct mq_command c = {0};
	struct mq_idgen ids = {0};
	redisReply *reply;
	char name[] = "receipt-......", host[256] = "";

	mq_id_random(&ids, name + strlen("receipt-"), 6);
	gethostname(host, sizeof(host) - 1);
	rsmq_start(&c, &rsmq_script_adopt, name, s->queue);
	MQ_COMMAND_ARGV(&c, rsmq_adopt_argv, .id = mq_bytes(id, n),
	    .connection = mq_str(name), .host = mq_str(host),
	    .pid = mq_int(getpid()), .queue = mq_str(rsmq_bare(s->queue)),
	    .ms = mq_int(ADOPTED_MS));
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_STRING) {
		s->out->connection = mq_xstrdup(name);
		mq_buf_add(&s->out->element, reply->str, reply->len);
	}
	freeReplyObject(reply);
	return 0;
}

static bool
is_named(const struct mq_item *item, const char *name)
{
	struct mq_envelope e;
	const char *why, *own;
	bool same;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		return false;
	own = mq_message_name(&e);
	same = own != NULL && strcmp(own, name) == 0;
	mq_envelope_free(&e);
	return same;
}

/* If an id cannot be shown, its message is found only by reading all messages. */
static int
adopt_by_name(struct mq_redis *r, const struct search *s)
{
	struct mq_scan scan;
	const redisReply *id;
	enum mq_state state;
	int i, rv = 0;

	if (strlen(s->id) != NAME_LEN ||
	    strspn(s->id, "0123456789abcdef") != NAME_LEN)
		return 0;
	for (state = MQ_READY; state <= MQ_UNACKED; state++) {
		scan = (struct mq_scan){
		    .place = {.queue = s->queue, .state = state},
		    .needle = s->id};
		while (rv == 0 && !scan.end && s->out->connection == NULL) {
			rv = rsmq_scan(r, &scan);
			for (i = 0; rv == 0 && i < scan.count; i++) {
				if (!is_named(&scan.items[i], s->id))
					continue;
				id = rsmq_walked(&scan, i)[0];
				rv = adopt_message(r, s, id->str, id->len);
				break;
			}
		}
		mq_scan_free(&scan);
	}
	return rv;
}

static int
rsmq_receipt_by_id(struct mq_redis *r, const char *queue, const char *id,
    struct mq_receipt *out)
{
	struct search s = {.queue = queue, .id = id, .out = out};
	redisReply *connections = rsmq_connections(r, queue);
	int rv;

	if (connections == NULL)
		return -1;
	s.connections = connections;
	rv = mq_ask_all(
	    r, connections->elements, ask_connection, store_found, &s);
	freeReplyObject(connections);
	if (rv == 0 && out->connection == NULL && !s.handed_out)
		rv = adopt_message(r, &s, id, strlen(id));
	if (rv == 0 && out->connection == NULL && !s.handed_out)
		rv = adopt_by_name(r, &s);
	return rv;
}

/* --- layout -------------------------------------------------------------- */

static void
add_attribute(struct mq_command *c, const char *name, long value)
{
	if (value != MQ_ATTRIBUTE_NONE)
		mq_command_add(c, "%s %ld", name, value);
}

static struct mq_arg
value_or(long value, long fallback)
{
	return mq_int(value != MQ_ATTRIBUTE_NONE ? value : fallback);
}

static void
rsmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *a, bool set)
{
	if (set) {
		rsmq_start(c, &rsmq_script_set, NULL, queue);
		add_attribute(c, "vt", a->vt_s);
		add_attribute(c, "maxsize", a->maxsize);
		add_attribute(c, "delay", a->delay_s);
		return;
	}
	rsmq_start(c, &rsmq_script_open, NULL, queue);
	MQ_COMMAND_ARGV(c, rsmq_open_argv, .name = mq_str(rsmq_bare(queue)),
	    .vt = value_or(a->vt_s, RSMQ_VT),
	    .delay = value_or(a->delay_s, RSMQ_DELAY),
	    .maxsize = value_or(a->maxsize, RSMQ_MAXSIZE));
}

static void
rsmq_known(struct mq_command *c, const char *queue, bool by_keys)
{
	(void)by_keys;
	rsmq_ask(c, "HEXISTS :Q vt", NULL, queue);
}

const struct mq_layout mq_layout_rsmq = {
    MQ_LAYOUT_TABLE(rsmq),
    .has = MQ_HAS_ATTRIBUTES | MQ_HAS_NEWS | MQ_HAS_IDS | MQ_HAS_TEXT |
	MQ_HAS_CLAIMS,
    .ns = RSMQ_NAMESPACE,
    .lapsed = rsmq_lapsed,
    .key_queue = rsmq_key_of,
    .exists = rsmq_exists,
    .receipt_by_id = rsmq_receipt_by_id,
};
