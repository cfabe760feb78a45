/*
 * The rsmq layout: what a message is there, putting messages in, a consumer's lease, and
 * the messages in its hands.
 *
 * A crash needs no cleaning here: when nobody renews the lease, what it held
 * can be received again by anybody, as after any consumer of RSMQ.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/xalloc.h"
#include "message/envelope.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/layout.h"
#include "queue/lease.h"
#include "queue/scripts.h"
#include "rsmq.h"

/* --- messages, and putting them in ---------------------------------------- */

/* How each element begins: the id is what the message is known by. */
static const char start[] = "\xff\x00\xbe\xbe\x4a{\"Mq-Id\":[\"";
#define START (sizeof(start) - 1)

/* An id of whose bytes lua/lib/layout.lua has written some as \u00ff; the caller
 * frees. */
static char *
unescape(const char *p, size_t *n)
{
	const char *end = p + *n;
	char *id = mq_xstrndup(p, *n), *to = id, digits[3] = "";

	while (p < end) {
		if (*p != '\\' || end - p < 6) {
			*to++ = *p++;
			continue;
		}
		memcpy(digits, p + 4, 2);
		*to++ = (char)strtol(digits, NULL, 16);
		p += 6;
	}
	*n = (size_t)(to - id);
	return id;
}

/*
 * The id that an element begins with; *n bytes, maybe in *own, which the caller frees.
 * NULL: it has none, and so is none of ours.
 */
static const char *
id_of(const char *element, size_t *n, size_t len, char **own)
{
	const char *end;

	*own = NULL;
	if (len < START || memcmp(element, start, START) != 0)
		return NULL;
	end = memchr(element + START, '"', len - START);
	if (end == NULL)
		return NULL;
	*n = (size_t)(end - element) - START;
	if (memchr(element + START, '\\', *n) == NULL)
		return element + START;
	*own = unescape(element + START, n);
	return *own;
}

static void
rsmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	static const char *const kinds[] = {
	    [MQ_WHEN_NOW] = "now", [MQ_WHEN_IN] = "in", [MQ_WHEN_AT] = "at"};
	char *channel;

	mq_command_script(c, &rsmq_script_publish);
	rsmq_queue_keys(c, queue);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_key(c, queue, ":Xcounters :Xlater :Xsettings");
	if (how->mark.publisher != NULL)
		mq_side_marks(&rsmq_side, c, queue, how->mark.publisher);
	mq_command_str(c, rsmq_bare(queue));
	/* No message is delayed by its queue that has said when. */
	if (how->when.kind == MQ_WHEN_NOW && how->when.said) {
		mq_command_str(c, kinds[MQ_WHEN_IN]);
		mq_command_int(c, 0);
	} else {
		mq_command_str(c, kinds[how->when.kind]);
		mq_command_int(c, how->when.ms);
	}
	mq_layout_add_limits(c, &how->limits);
	if (how->realtime) {
		channel = mq_xasprintf(":rt:%s", rsmq_bare(queue));
		rsmq_key_common(c, queue, channel);
		free(channel);
	} else {
		mq_command_str(c, "");
	}
	mq_command_str(c, how->alike ? "1" : "");
	mq_mark_add_behind(c, &how->mark);
}

/* Nearly all messages have nothing but their id: then nothing is to be parsed. */
static bool
is_bare_id(const struct mq_buf *header)
{
	static const char tail[] = "\"]}\n";
	size_t n = START + MQ_ID_LEN + sizeof(tail) - 1;

	return header->len == n && memcmp(header->data, start, START) == 0 &&
	    memcmp(header->data + START + MQ_ID_LEN, tail, sizeof(tail) - 1) ==
	    0;
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
	memcpy(id, unique, sizeof(id));
	if (is_bare_id(header)) {
		memcpy(id, header->data + START, MQ_ID_LEN);
	} else if (header->len > 0 &&
	    mq_envelope_parse(header->data, header->len, &e, &why) == 0) {
		if (mq_message_id(&e) != NULL)
			memcpy(id, mq_message_id(&e), sizeof(id));
		priority = mq_envelope_get_long(&e, MQ_HEADER_PRIORITY, 0);
		rsmq_extra(&e, &extra);
		mq_envelope_free(&e);
	}
	mq_command_str(c, id);
	mq_command_int(c, mq_utf16_units(payload, len));
	mq_command_int(c, priority);
	mq_command_arg(c, extra.data, extra.len);
	mq_command_arg(c, payload, len);
	mq_buf_free(&extra);
}

/* --- session ------------------------------------------------------------- */

static void
rsmq_probe(struct mq_command *c, const struct mq_session *s, const char *queue,
    bool special)
{
	static const char *const uses[] = {"ZCARD ZADD", "HLEN HSET",
	    "HLEN HSET", "HLEN HSET", "HLEN HSET", "ZCARD ZADD", "HLEN HSET"};
	int i;

	(void)special;
	mq_command_script(c, &mq_script_probe);
	rsmq_key(c, queue, " :Q :X");
	if (s != NULL) {
		rsmq_key(c, queue, ":Xagain");
		rsmq_key_held(c, s->connection, queue);
		rsmq_key(c, queue, RSMQ_REJECTED " " RSMQ_REJECTED ":Q");
	}
	for (i = 0; i < c->keys; i++)
		mq_command_str(c, uses[i]);
}

static bool
rsmq_join(const struct mq_session *s, int step, struct mq_command *c)
{
	int i;
	char host[256] = "";

	if (step > 0)
		return false;
	gethostname(host, sizeof(host) - 1);
	mq_command_script(c, &rsmq_script_join);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	rsmq_key_common(c, s->queues[0], "::connections");
	rsmq_key_common(c, s->queues[0], ":QUEUES");
	for (i = 0; i < s->queue_count; i++)
		rsmq_key(c, s->queues[i], ":Q");
	if (s->push != NULL)
		rsmq_key(c, s->push, ":Q");
	for (i = 0; i < s->queue_count; i++)
		rsmq_key(c, s->queues[i], ":Xcounters");
	mq_command_str(c, s->connection);
	mq_command_str(c, host);
	mq_command_int(c, getpid());
	mq_command_int(c, s->slots);
	if (s->lease_ms > 0)
		mq_command_int(c, s->lease_ms);
	else
		mq_command_str(c, "");
	mq_command_int(c, s->queue_count);
	mq_command_int(c, s->attempts != -1 ? s->attempts : MQ_ATTEMPTS);
	mq_command_str(c, s->make ? "1" : "");
	for (i = 0; i < s->queue_count; i++)
		mq_command_str(c, rsmq_bare(s->queues[i]));
	if (s->push != NULL)
		mq_command_str(c, rsmq_bare(s->push));
	return true;
}

static void
leave_empty(const struct mq_session *s, struct mq_command *c)
{
	mq_command_script(c, &rsmq_script_leave);
	rsmq_queue_keys(c, s->queues[0]);
	rsmq_key_held(c, s->connection, s->queues[0]);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	rsmq_key_common(c, s->queues[0], "::connections");
	mq_command_str(c, s->connection);
}

static bool
rsmq_leave(const struct mq_session *s, int step, struct mq_command *c)
{
	switch (step) {
	case MQ_LEAVE_EMPTY:
		leave_empty(s, c);
		return true;
	case 0:
		mq_command_plain(c, "DEL");
		rsmq_key_lease(c, s->connection, s->queues[0]);
		return true;
	case 1:
		mq_command_plain(c, "ZREM");
		rsmq_key_common(c, s->queues[0], "::connections");
		mq_command_str(c, s->connection);
		return true;
	case 2:
		mq_command_plain(c, "DEL");
		rsmq_key_running(c, s->connection, s->queues[0]);
		return true;
	default:
		return false;
	}
}

static bool
rsmq_renew(
    const struct mq_session *s, int queue, int step, struct mq_command *c)
{
	int i;

	(void)queue;
	switch (step) {
	case 0:
		mq_command_script(c, &rsmq_script_renew);
		rsmq_key_lease(c, s->connection, s->queues[0]);
		for (i = 0; i < s->queue_count; i++) {
			rsmq_queue_keys(c, s->queues[i]);
			rsmq_key_held(c, s->connection, s->queues[i]);
		}
		if (s->lease_ms > 0)
			mq_command_int(c, s->lease_ms);
		else
			mq_command_str(c, "");
		return true;
	case 1:
		if (!s->runs)
			return false;
		mq_command_plain(c, "EXPIRE");
		rsmq_key_running(c, s->connection, s->queues[0]);
		mq_command_int(c, MQ_SIDE_RUNNING_S);
		return true;
	default:
		return false;
	}
}

static int
rsmq_held(const struct mq_session *s, int queue, enum mq_held_how how,
    struct mq_command c[2])
{
	if (how == MQ_HELD_COUNT) {
		mq_command_plain(&c[0], "HLEN");
	} else if (how != MQ_HELD_KEY) {
		mq_command_script(&c[0], &rsmq_script_held);
		rsmq_queue_keys(&c[0], s->queues[queue]);
	}
	rsmq_key_held(&c[0], s->connection, s->queues[queue]);
	return 1;
}

static void
rsmq_claim(const struct mq_session *s, int queue, const struct mq_claim *claim,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &rsmq_script_claim);
	rsmq_queue_keys(c, name);
	rsmq_key_held(c, s->connection, name);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	rsmq_key(c, name, ":Xpaused :Xrate :Xlater");
	rsmq_key_common(c, name, ":QUEUES");
	rsmq_key(c, name, ":Xwatch :Xidle");
	mq_layout_add_claim(c, s, rsmq_bare(name), claim);
}

static void
rsmq_track(
    const struct mq_session *s, int queue, bool pause, struct mq_command *c)
{
	mq_command_plain(c, "EXISTS");
	rsmq_key(c, s->queues[queue], pause ? ":Xpaused" : " :Xpaused");
}

static void
rsmq_look(const struct mq_session *s, const int *queues, int n,
    enum mq_look how, struct mq_command *c)
{
	int i;

	if (how != MQ_LOOK_ANY)
		mq_command_script(c, &rsmq_script_look);
	else
		mq_command_plain(c, "EXISTS");
	for (i = 0; i < n; i++)
		rsmq_key(c, s->queues[queues[i]],
		    how != MQ_LOOK_ANY ? " :Xpaused :Xwatch :Xidle" : " ");
	if (how == MQ_LOOK_ANY)
		return;
	mq_command_str(c, s->wake);
	mq_command_int(c, how == MQ_LOOK_CHECK);
}

/* NAMESPACE:QUEUE, or the same and what the key is. */
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
	/* The default namespace is not said. */
	if (memchr(key + skip, ':', len - skip) == NULL) {
		*queue += skip;
		*n -= skip;
	}
	return true;
}

/* Adds the id of an element, by which the layout knows a message, and which no element
 * lacks, as an argument. */
static void
rsmq_add_id(struct mq_command *c, const char *element, size_t len)
{
	char *own;
	size_t n = 0;
	const char *id = id_of(element, &n, len, &own);

	mq_command_arg(c, id, id != NULL ? n : 0);
	free(own);
}

static void
rsmq_exists(const struct mq_session *s, int queue, const char *element,
    size_t len, struct mq_command *c)
{
	mq_command_plain(c, "HEXISTS");
	rsmq_key(c, s->queues[queue], ":Q");
	rsmq_add_id(c, element, len);
}

/* The length of the body as node counts it; the header is one line. */
static long long
units_of(const struct mq_settlement *how)
{
	const char *end = memchr(how->element, '\n', how->len);
	size_t skip = end != NULL ? (size_t)(end - how->element) + 1 : 0;

	return mq_utf16_units(how->element + skip, how->len - skip);
}

/* The further headers in a header; empty if it is bad. */
static void
extra_in(const char *header, size_t len, struct mq_buf *extra)
{
	struct mq_envelope e;
	const char *why;

	if (mq_envelope_parse(header, len, &e, &why) == -1)
		return;
	rsmq_extra(&e, extra);
	mq_envelope_free(&e);
}

static void
rsmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	bool reject = how->outcome == MQ_OUTCOME_REJECT;
	bool moves = reject || how->outcome == MQ_OUTCOME_PUSH;
	const char *name = s->queues[queue];
	struct mq_buf to = {0}, extra = {0};

	(void)n;
	mq_buf_addstr(&to, reject ? name : how->push != NULL ? how->push : "");
	if (reject)
		mq_buf_addstr(&to, RSMQ_REJECTED);
	mq_command_script(c, &rsmq_script_settle);
	rsmq_queue_keys(c, name);
	rsmq_key_held(c, s->connection, name);
	rsmq_key(c, name, ":Xlater");
	if (moves) {
		rsmq_queue_keys(c, mq_buf_str(&to));
		rsmq_key_common(c, name, ":QUEUES");
	}
	mq_command_str(c, mq_outcome_name(how->outcome));
	rsmq_add_id(c, how->element, how->len);
	mq_command_str(c, how->header != NULL ? "1" : "0");
	if (how->header != NULL)
		extra_in(how->header, how->header_len, &extra);
	mq_command_arg(c, extra.data, extra.len);
	mq_command_int(c, how->delay_ms);
	mq_command_str(c, rsmq_bare(mq_buf_str(&to)));
	if (how->outcome == MQ_OUTCOME_PUSH)
		mq_command_int(c, units_of(how));
	mq_buf_free(&to);
	mq_buf_free(&extra);
}

static void
rsmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	int i;

	mq_command_script(c, &rsmq_script_ack);
	rsmq_queue_keys(c, s->queues[queue]);
	rsmq_key_held(c, s->connection, s->queues[queue]);
	for (i = 0; i < acks->n; i++)
		rsmq_add_id(c, acks->elements[i].p, acks->elements[i].n);
}

static void
rsmq_give_back(const struct mq_session *s, int queue,
    const struct mq_newest *newest, struct mq_command *c)
{
	int i;

	mq_command_script(c, &rsmq_script_give_back);
	rsmq_queue_keys(c, s->queues[queue]);
	rsmq_key_held(c, s->connection, s->queues[queue]);
	for (i = 0; newest != NULL && i < newest->n; i++)
		rsmq_add_id(c, newest->elements[i].p, newest->elements[i].n);
}

static void
rsmq_lapsed(const struct mq_session *s, int queue, const char *element,
    size_t len, long attempts, struct mq_command *c)
{
	mq_command_script(c, &rsmq_script_lapsed);
	rsmq_queue_keys(c, s->queues[queue]);
	rsmq_add_id(c, element, len);
	mq_command_int(c, attempts + 1);
}

/* --- receipt ------------------------------------------------------------- */

/*
 * The rsmq layout: messages that are handed out by receipt, under a lease that
 * nobody renews; and all others that somebody knows the id of.
 */

/* How long it may take to do something with a message that nobody was handed. */
#define ADOPTED_MS 60000

/* Digits of the name of a message whose id cannot be shown; see lua/lib/layout.lua. */
#define NAME_LEN 32

static void
rsmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	int i;

	mq_command_script(c, &rsmq_script_receipts);
	rsmq_key_held(c, s->connection, s->queues[0]);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	for (i = 0; i < n; i++)
		rsmq_add_id(c, elements[i].p, elements[i].n);
}

static void
look_for_message(struct mq_command *c, const char *connection,
    const char *queue, const char *what, const char *value)
{
	mq_command_script(c, &rsmq_script_receipt);
	rsmq_queue_keys(c, queue);
	rsmq_key_held(c, connection, queue);
	rsmq_key_lease(c, connection, queue);
	mq_command_str(c, what);
	mq_command_str(c, value);
}

static void
rsmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	look_for_message(c, connection, queue, "number", number);
}

struct search {
	const char *queue, *id;
	const redisReply *connections;
	bool handed_out; /* by receipt: not to be had by its id */
	struct mq_receipt *out;
};

static void
ask_connection(void *arg, size_t i, struct mq_command *c)
{
	const struct search *s = arg;

	look_for_message(
	    c, s->connections->element[i]->str, s->queue, "id", s->id);
}

static int
note_answer(void *arg, size_t i, redisReply *reply)
{
	struct search *s = arg;

	if (reply->type == REDIS_REPLY_NIL)
		return 0;
	if (reply->type == REDIS_REPLY_INTEGER) {
		s->handed_out = true;
		return 0;
	}
	if (reply->type != REDIS_REPLY_STRING)
		return -1;
	if (s->out->connection != NULL)
		return 0;
	s->out->connection = mq_xstrdup(s->connections->element[i]->str);
	mq_buf_add(&s->out->element, reply->str, reply->len);
	return 0;
}

/* Nobody has been handed it: then it is handed out now. */
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
	mq_command_script(&c, &rsmq_script_adopt);
	rsmq_queue_keys(&c, s->queue);
	rsmq_key_held(&c, name, s->queue);
	rsmq_key_lease(&c, name, s->queue);
	rsmq_key_common(&c, s->queue, "::connections");
	mq_command_arg(&c, id, n);
	mq_command_str(&c, name);
	mq_command_str(&c, host);
	mq_command_int(&c, getpid());
	mq_command_str(&c, rsmq_bare(s->queue));
	mq_command_int(&c, ADOPTED_MS);
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

/* Whether one of this slice is shown by that name; then it is handed out. */
static int
adopt_walked(struct mq_redis *r, const struct search *s, struct mq_scan *scan)
{
	const redisReply *id;
	struct mq_envelope e;
	const char *why, *name;
	bool same;
	int i;

	for (i = 0; i < scan->count; i++) {
		if (mq_envelope_parse(scan->items[i].element,
			scan->items[i].len, &e, &why) == -1)
			continue;
		name = mq_message_name(&e);
		same = name != NULL && strcmp(name, s->id) == 0;
		mq_envelope_free(&e);
		id = rsmq_walked(scan, i)[0];
		if (same)
			return adopt_message(r, s, id->str, id->len);
	}
	return 0;
}

/* An id that cannot be shown has a name that only a look at each message finds. */
static int
adopt_by_name(struct mq_redis *r, const struct search *s)
{
	static const enum mq_state states[] = {
	    MQ_READY, MQ_DELAYED, MQ_UNACKED};
	struct mq_scan scan;
	size_t i;
	int rv = 0;

	if (strlen(s->id) != NAME_LEN ||
	    strspn(s->id, "0123456789abcdef") != NAME_LEN)
		return 0;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		scan = (struct mq_scan){
		    .place = {.queue = s->queue, .state = states[i]},
		    .needle = s->id};
		while (rv == 0 && !scan.end && s->out->connection == NULL) {
			rv = rsmq_scan(r, &scan);
			if (rv == 0)
				rv = adopt_walked(r, s, &scan);
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
	    r, connections->elements, ask_connection, note_answer, &s);
	freeReplyObject(connections);
	if (rv == 0 && out->connection == NULL && !s.handed_out)
		rv = adopt_message(r, &s, id, strlen(id));
	if (rv == 0 && out->connection == NULL && !s.handed_out)
		rv = adopt_by_name(r, &s);
	return rv;
}

/* --- layout -------------------------------------------------------------- */

/*
 * The layout of RSMQ (npm rsmq 0.12, and its ports): the table of all that it can
 * do.  keys.c says which keys it has.
 */

static void
add_attribute(struct mq_command *c, long said, long otherwise)
{
	mq_command_int(c, said != MQ_ATTRIBUTE_NONE ? said : otherwise);
}

static void
add_change(struct mq_command *c, const char *name, long said)
{
	if (said == MQ_ATTRIBUTE_NONE)
		return;
	mq_command_str(c, name);
	mq_command_int(c, said);
}

static void
set_attributes(
    struct mq_command *c, const char *queue, const struct mq_attributes *a)
{
	mq_command_script(c, &rsmq_script_set);
	rsmq_key(c, queue, ":Q");
	add_change(c, "vt", a->vt_s);
	add_change(c, "maxsize", a->maxsize);
	add_change(c, "delay", a->delay_s);
}

static void
rsmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *a, bool set)
{
	if (set) {
		set_attributes(c, queue, a);
		return;
	}
	mq_command_script(c, &rsmq_script_open);
	rsmq_key(c, queue, ":Q");
	rsmq_key_common(c, queue, ":QUEUES");
	mq_command_str(c, rsmq_bare(queue));
	add_attribute(c, a->vt_s, RSMQ_VT);
	add_attribute(c, a->delay_s, RSMQ_DELAY);
	add_attribute(c, a->maxsize, RSMQ_MAXSIZE);
}

static void
rsmq_known(struct mq_command *c, const char *queue, bool by_keys)
{
	(void)by_keys;
	mq_command_plain(c, "HEXISTS");
	rsmq_key(c, queue, ":Q");
	mq_command_str(c, "vt");
}

const struct mq_layout mq_layout_rsmq = {
    .name = "rsmq",
    .has = MQ_HAS_ATTRIBUTES | MQ_HAS_NEWS | MQ_HAS_IDS | MQ_HAS_TEXT |
	MQ_HAS_CLAIMS,
    .ns = RSMQ_NAMESPACE,
    .rights = rsmq_rights,
    .side = &rsmq_side,
    .queue_error = rsmq_queue_error,
    .open = rsmq_open,
    .known = rsmq_known,
    .probe = rsmq_probe,
    .publish = rsmq_publish,
    .publish_add = rsmq_publish_add,
    .join = rsmq_join,
    .leave = rsmq_leave,
    .renew = rsmq_renew,
    .lapsed = rsmq_lapsed,
    .claim = rsmq_claim,
    .track = rsmq_track,
    .look = rsmq_look,
    .key_queue = rsmq_key_of,
    .settle = rsmq_settle,
    .ack_oldest = rsmq_ack_oldest,
    .give_back = rsmq_give_back,
    .held = rsmq_held,
    .exists = rsmq_exists,
    .receipts = rsmq_receipts,
    .receipt = rsmq_receipt,
    .receipt_by_id = rsmq_receipt_by_id,
    .clean = rsmq_clean,
    .drained = rsmq_drained,
    .stats = rsmq_stats,
    .running = rsmq_running,
    .scan = rsmq_scan,
    .take = rsmq_take,
    .move = rsmq_move,
    .delete_queue = rsmq_delete_queue,
};
