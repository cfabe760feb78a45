/*
 * The rmq layout: large messages, which no script copies; see lua/exchange.lua.
 */
#include "layout.h"

#include <string.h>

#include "keys.h"
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
add_in_script(struct mq_command *c, const char *queue, int i)
{
	mq_command_plain(c, in_scripts[i]);
	rmq_key_queue(c, queue, "moving");
	if (strcmp(in_scripts[i], "RENAME") == 0)
		rmq_key_queue(c, queue, "delayed");
	else if (in_scripts[i][0] == 'Z')
		mq_command_str(c, "");
}

static void
add_set_step(
    struct mq_command *c, const struct exchange *x, int64_t now_ms, int i)
{
	if (i > 2) {
		add_in_script(c, x->queue, i - 3);
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

/* A header with one of these words may send the message elsewhere. */
static bool
has_own_way(const struct mq_buf *header)
{
	static const char *const words[] = {
	    "Mq-Priority", "Mq-Group", "Mq-From-Tick"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(header->data, header->len, words[i],
			strlen(words[i])) != NULL)
			return true;
	return header->len == 0;
}

static void
add_published(struct mq_command *c, const char *queue, const char *verb,
    const struct mq_buf *stub)
{
	mq_command_script(c, &rmq_script_exchange, RMQ_QUEUE_KEYS + 4);
	rmq_queue_keys(c, queue);
	rmq_key_queue(c, queue, "ready"); /* unused, as is the next one */
	rmq_key_queue(c, queue, "ready");
	rmq_key_queue(c, queue, "delayed");
	rmq_key_queue(c, queue, "moving");
	mq_command_str(c, verb);
	mq_command_str(c, "");
	mq_command_arg(c, stub->data, stub->len);
	mq_command_str(c, "");
}

static void
add_to_list(struct mq_command *c, const char *queue, const struct mq_buf *stub,
    const struct mq_part *whole)
{
	mq_command_plain(&c[0], "LINSERT");
	rmq_key_queue(&c[0], queue, "ready");
	mq_command_str(&c[0], "AFTER");
	mq_command_arg(&c[0], stub->data, stub->len);
	mq_command_parts(&c[0], whole, 2);
	mq_command_plain(&c[1], "LREM");
	rmq_key_queue(&c[1], queue, "ready");
	mq_command_int(&c[1], 1);
	mq_command_arg(&c[1], stub->data, stub->len);
	mq_command_plain(&c[2], "SET");
	rmq_key_queue(&c[2], queue, "large");
	mq_command_words(&c[2], "1 EX 604800");
}

static void
add_to_set(struct mq_command *c, const char *queue, const struct mq_buf *stub,
    int64_t due_ms, const struct mq_part *member)
{
	int i;

	add_published(&c[0], queue, "open", stub);
	mq_command_plain(&c[1], "ZADD");
	rmq_key_queue(&c[1], queue, "moving");
	mq_command_int(&c[1], due_ms);
	mq_command_parts(&c[1], member, 3);
	add_published(&c[2], queue, "close", stub);
	for (i = 0; i < IN_SCRIPTS; i++)
		add_in_script(&c[3 + i], queue, i);
}

int
rmq_publish_large(const char *queue, const struct mq_publishing *how,
    int64_t now_ms, const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len, struct mq_command *behind)
{
	bool delayed = how->when.kind != MQ_WHEN_NOW;
	int64_t due =
	    how->when.ms + (how->when.kind == MQ_WHEN_IN ? now_ms : 0);
	const struct mq_part parts[] = {
	    {id, MQ_ID_LEN}, {header->data, header->len}, {payload, len}};
	struct mq_buf stub = {0};

	/* One that is due already is ready at once, and no clock is exact. */
	if (has_own_way(header) ||
	    (delayed &&
		(now_ms == 0 || how->when.ms <= 0 ||
		    (how->when.kind == MQ_WHEN_AT && due < now_ms + 60000))))
		return 0;
	if (delayed)
		mq_buf_add(&stub, id, MQ_ID_LEN);
	mq_buf_add(&stub, header->data, header->len);
	mq_buf_add(&stub, id, MQ_ID_LEN);
	if (delayed)
		add_to_set(behind, queue, &stub, due, parts);
	else
		add_to_list(behind, queue, &stub, parts + 1);
	mq_buf_free(&stub);
	return delayed ? 3 + IN_SCRIPTS : 3;
}
