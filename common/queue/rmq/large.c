/*
 * The rmq layout: large messages, which no script copies; see lua/exchange.lua.
 */
#include "layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "message/headers.h"
#include "scripts.h"

/* A settlement, and the bytes of its stub: in unacked, and behind that. */
struct exchange {
	const struct mq_session *session;
	const char *queue;
	const struct mq_settlement *how;
	bool in_set; /* the target is a sorted set */
	struct mq_buf stub, arrived;
};

static void
make_stubs(struct exchange *x)
{
	const struct mq_settlement *how = x->how;

	mq_buf_add(&x->stub, how->element, how->payload_at);
	mq_buf_addstr(&x->stub, how->unique);
	if (x->in_set)
		mq_buf_addstr(&x->arrived, how->unique);
	if (how->header == NULL) {
		mq_buf_add(&x->arrived, x->stub.data, x->stub.len);
	} else {
		mq_buf_add(&x->arrived, how->header, how->header_len);
		mq_buf_addstr(&x->arrived, how->unique);
	}
}

static void
add_target(struct mq_command *c, const struct exchange *x)
{
	const struct mq_settlement *how = x->how;

	if (how->outcome == MQ_OUTCOME_PUSH)
		rmq_key_queue(c, how->push, "ready");
	else
		rmq_key_queue(c, x->queue,
		    x->in_set				  ? "delayed" :
			how->outcome == MQ_OUTCOME_REJECT ? "rejected" :
							    "ready");
}

static void
add_verb(struct mq_command *c, const struct exchange *x, const char *verb)
{
	const struct mq_spot *spot = &x->how->spot;

	mq_command_script(c, &rmq_script_exchange, RMQ_QUEUE_KEYS + 4);
	rmq_queue_keys(c, x->queue);
	rmq_key_both(c, x->session->connection, x->queue, "unacked");
	rmq_key_connection(c, x->session->connection, "info");
	add_target(c, x);
	rmq_key_queue(c, x->queue, "moving");
	mq_command_str(c, verb);
	mq_command_arg(c, x->stub.data, x->stub.len);
	mq_command_arg(c, x->arrived.data, x->arrived.len);
	mq_command_str(c, x->in_set ? "" : mq_outcome_name(x->how->outcome));
	mq_command_int(c, spot->place);
	mq_command_int(c, spot->count);
	mq_command_int(c, spot->received);
	mq_command_str(c, x->queue);
}

/* The element as it goes on. */
static void
add_whole(struct mq_command *c, const struct exchange *x)
{
	const struct mq_settlement *how = x->how;
	size_t at = how->header == NULL ? 0 : how->payload_at;
	const struct mq_part parts[] = {
	    {how->unique, x->in_set ? MQ_ID_LEN : 0},
	    {how->header, how->header_len},
	    {how->element + at, how->len - at},
	};

	mq_command_parts(c, parts, 3);
}

static void
add_settle(struct mq_command *c, const struct exchange *x, int queue)
{
	struct mq_settlement how = *x->how;

	how.element = x->stub.data;
	how.len = x->stub.len;
	rmq_settle(x->session, queue, &how, c);
}

/* What is behind the stub in its target: the message, and not the stub. */
static void
add_list_step(struct mq_command *c, const struct exchange *x, bool first)
{
	mq_command_plain(c, first ? "LINSERT" : "LREM");
	add_target(c, x);
	if (first)
		mq_command_str(c, "AFTER");
	else
		mq_command_int(c, x->how->outcome == MQ_OUTCOME_FRONT ? -1 : 1);
	mq_command_arg(c, x->arrived.data, x->arrived.len);
	if (first)
		add_whole(c, x);
}

/*
 * What the scripts need, in commands that do nothing behind them.  A server
 * refuses those at once that the user may not send, and then the transaction;
 * in a script, it would do so too late.
 */
static const char *const in_scripts[] = {"ZSCORE", "ZREM", "RENAME", "DEL"};
enum { IN_SCRIPTS = sizeof(in_scripts) / sizeof(in_scripts[0]) };

static void
add_in_script(
    struct mq_command *c, const char *queue, const char *target, int i)
{
	mq_command_plain(c, in_scripts[i]);
	rmq_key_queue(c, queue, "moving");
	if (strcmp(in_scripts[i], "RENAME") == 0)
		rmq_key_queue(c, queue, target);
	else if (in_scripts[i][0] == 'Z')
		mq_command_str(c, "");
}

static void
add_set_step(
    struct mq_command *c, const struct exchange *x, int64_t now_ms, int i)
{
	if (i > 2) {
		add_in_script(c, x->queue, "delayed", i - 3);
		return;
	}
	if (i != 1) {
		add_verb(c, x, i == 0 ? "open" : "close");
		return;
	}
	mq_command_plain(c, "ZADD");
	rmq_key_queue(c, x->queue, "moving");
	mq_command_int(c, now_ms + x->how->delay_ms);
	add_whole(c, x);
}

bool
rmq_settle_large(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int64_t now_ms, int step,
    struct mq_command *c)
{
	struct exchange x = {.session = s,
	    .queue = s->queues[queue],
	    .how = how,
	    .in_set = how->outcome == MQ_OUTCOME_AGAIN && how->delay_ms > 0};
	int behind = step - MQ_SETTLE_LARGE - 1;
	bool more = behind < (x.in_set ? 3 + IN_SCRIPTS : 2);

	if (!more)
		return false;
	make_stubs(&x);
	if (step == 0)
		add_verb(c, &x, "begin");
	else if (step == 1)
		add_settle(c, &x, queue);
	else if (step == MQ_SETTLE_LARGE)
		add_verb(c, &x, "take");
	else if (x.in_set)
		add_set_step(c, &x, now_ms, behind);
	else
		add_list_step(c, &x, behind == 0);
	mq_buf_free(&x.stub);
	mq_buf_free(&x.arrived);
	return true;
}

/* --- publishing --------------------------------------------------------------- */

/* A message that is published, and where. */
struct entry {
	const char *queue, *target;
	bool in_set;
	long long score;
	char front[MQ_ID_LEN + 1]; /* of the member; empty in a list */
	const struct mq_buf *header;
	struct mq_buf stub;
};

static bool
has(const struct mq_buf *header, const char *word)
{
	return memmem(header->data, header->len, word, strlen(word)) != NULL;
}

/* The number in the header that lua/lib/options.lua finds; false: it may be
 * any. */
static bool
read_priority(const struct mq_buf *header, long *n)
{
	static const char name[] = "\"" MQ_HEADER_PRIORITY "\":[\"";
	const char *at =
	    memmem(header->data, header->len, name, sizeof(name) - 1);
	char *end;

	*n = 0;
	if (at == NULL)
		return !has(header, MQ_HEADER_PRIORITY);
	at += sizeof(name) - 1;
	*n = strtol(at, &end, 10);
	return (isdigit((unsigned char)at[0]) || at[0] == '-') &&
	    memchr(header->data, '\\', header->len) == NULL && end[0] == '"' &&
	    *n >= -100 && *n <= 100 &&
	    memmem(end, header->len - (size_t)(end - header->data),
		MQ_HEADER_PRIORITY, strlen(MQ_HEADER_PRIORITY)) == NULL;
}

/* Where publish.lua puts its stub, if it is not refused; false: who knows. */
static bool
find_place(
    struct entry *e, const struct mq_when *when, int64_t now_us, const char *id)
{
	long priority = 0;

	if (e->header->len == 0 || has(e->header, MQ_HEADER_GROUP))
		return false;
	if (when->kind != MQ_WHEN_NOW) {
		e->target = "delayed";
		e->in_set = true;
		e->score =
		    when->ms + (when->kind == MQ_WHEN_IN ? now_us / 1000 : 0);
		memcpy(e->front, id, MQ_ID_LEN);
		/* One that is due is ready at once, and no clock is exact. */
		return when->ms > 0 &&
		    (when->kind == MQ_WHEN_IN ||
			e->score >= now_us / 1000 + 60000);
	}
	if (has(e->header, MQ_HEADER_FROM_TICK) ||
	    !read_priority(e->header, &priority))
		return false;
	e->in_set = priority != 0;
	e->target = e->in_set ? "priority" : "ready";
	e->score = -priority;
	if (e->in_set) /* as in_order() of lua/lib/place.lua */
		snprintf(e->front, sizeof(e->front), "n%016lld000001000000000",
		    (long long)now_us);
	return true;
}

static void
add_published(struct mq_command *c, const struct entry *e, const char *verb)
{
	mq_command_script(c, &rmq_script_exchange, RMQ_QUEUE_KEYS + 4);
	rmq_queue_keys(c, e->queue);
	rmq_key_queue(c, e->queue, "ready"); /* unused, as is the next one */
	rmq_key_queue(c, e->queue, "ready");
	rmq_key_queue(c, e->queue, e->target);
	rmq_key_queue(c, e->queue, "moving");
	mq_command_str(c, verb);
	mq_command_str(c, "");
	mq_command_arg(c, e->stub.data, e->stub.len);
	mq_command_str(c, "");
}

static void
add_to_list(
    struct mq_command *c, const struct entry *e, const struct mq_part *whole)
{
	mq_command_plain(&c[0], "LINSERT");
	rmq_key_queue(&c[0], e->queue, "ready");
	mq_command_str(&c[0], "AFTER");
	mq_command_arg(&c[0], e->stub.data, e->stub.len);
	mq_command_parts(&c[0], whole, 3);
	mq_command_plain(&c[1], "LREM");
	rmq_key_queue(&c[1], e->queue, "ready");
	mq_command_int(&c[1], 1);
	mq_command_arg(&c[1], e->stub.data, e->stub.len);
	mq_command_plain(&c[2], "SET");
	rmq_key_queue(&c[2], e->queue, "large");
	mq_command_words(&c[2], "1 EX 604800 NX");
}

static void
add_to_set(
    struct mq_command *c, const struct entry *e, const struct mq_part *member)
{
	int i;

	add_published(&c[0], e, "open");
	mq_command_plain(&c[1], "ZADD");
	rmq_key_queue(&c[1], e->queue, "moving");
	mq_command_int(&c[1], e->score);
	mq_command_parts(&c[1], member, 3);
	add_published(&c[2], e, "close");
	for (i = 0; i < IN_SCRIPTS; i++)
		add_in_script(&c[3 + i], e->queue, e->target, i);
}

int
rmq_publish_large(const char *queue, const struct mq_publishing *how,
    int64_t now_us, const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len, struct mq_command *behind)
{
	struct entry e = {.queue = queue, .header = header};

	if (!find_place(&e, &how->when, now_us, id))
		return 0;
	const struct mq_part parts[] = {{e.front, strlen(e.front)},
	    {header->data, header->len}, {payload, len}};
	mq_buf_addstr(&e.stub, e.front);
	mq_buf_add(&e.stub, header->data, header->len);
	mq_buf_add(&e.stub, id, MQ_ID_LEN);
	if (e.in_set)
		add_to_set(behind, &e, parts);
	else
		add_to_list(behind, &e, parts);
	mq_buf_free(&e.stub);
	return e.in_set ? 3 + IN_SCRIPTS : 3;
}
