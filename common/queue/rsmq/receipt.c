/*
 * The rsmq layout: messages that are handed out by receipt, under a lease that
 * nobody renews; and all others that somebody knows the id of.
 */
#include "rsmq.h"

#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "queue/lease.h"

/* How long it may take to do something with a message that nobody was handed. */
#define ADOPTED_MS 60000

/* Digits of the name of a message whose id cannot be shown; see lua/lib/layout.lua. */
#define NAME_LEN 32

void
rsmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	int i;

	mq_command_script(c, &rsmq_script_receipts, 2);
	rsmq_key_held(c, s->connection, s->queues[0]);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	for (i = 0; i < n; i++)
		rsmq_add_id(c, elements[i].p, elements[i].n);
}

static void
look_for_message(struct mq_command *c, const char *connection,
    const char *queue, const char *what, const char *value)
{
	mq_command_script(c, &rsmq_script_receipt, RSMQ_QUEUE_KEYS + 2);
	rsmq_queue_keys(c, queue);
	rsmq_key_held(c, connection, queue);
	rsmq_key_lease(c, connection, queue);
	mq_command_str(c, what);
	mq_command_str(c, value);
}

void
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
	mq_command_script(&c, &rsmq_script_adopt, RSMQ_QUEUE_KEYS + 3);
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

int
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

void
rsmq_vacate(const struct mq_session *s, struct mq_command *c)
{
	mq_command_script(c, &rsmq_script_leave, RSMQ_QUEUE_KEYS + 3);
	rsmq_queue_keys(c, s->queues[0]);
	rsmq_key_held(c, s->connection, s->queues[0]);
	rsmq_key_lease(c, s->connection, s->queues[0]);
	rsmq_key_common(c, s->queues[0], "::connections");
	mq_command_str(c, s->connection);
}
