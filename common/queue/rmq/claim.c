/*
 * The rmq layout: messages in the hands of a consumer, from the claim to the end.
 */
#include "rmq.h"

#include <string.h>


/* Bytes of an element that goes by its place; see lua/lib/remove.lua. */
#define LONG 4096
/* The most that a script moves within the list. */
#define KEEP_BYTES ((size_t)1 << 16)

void
rmq_claim(const struct mq_session *s, int queue, const struct mq_claim *claim,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &rmq_script_claim, RMQ_QUEUE_KEYS + 7);
	rmq_queue_keys(c, name);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_lease(c, s->connection, name);
	rmq_key_queue(c, name, "paused");
	rmq_key_queue(c, name, "rate");
	rmq_key_info(c, s->connection, name);
	rmq_side.waits(c, name);
	mq_layout_add_claim(c, s, name, claim);
	if (claim->copied > 0)
		mq_command_int(c, (long long)claim->copied);
}

/* The keys whose changes matter to a consumer that waits: the pause comes last. */
static const char *const watched[] = {
    "ready", "priority", "delayed", "clock", "paused"};
enum { WATCHED = sizeof(watched) / sizeof(watched[0]) };

void
rmq_track(
    const struct mq_session *s, int queue, bool pause, struct mq_command *c)
{
	int i;

	mq_command_plain(c, "EXISTS");
	for (i = pause ? WATCHED - 1 : 0; i < WATCHED; i++)
		rmq_key_queue(c, s->queues[queue], watched[i]);
	/* When the slot moves, a key that is there moves, too. */
	if (c->cluster)
		rmq_key_lease(c, s->connection, s->queues[queue]);
}

void
rmq_look(const struct mq_session *s, const int *queues, int n, bool check,
    struct mq_command *c)
{
	int i, k;

	mq_command_script(c, &rmq_script_look, n * (WATCHED + 2));
	for (i = 0; i < n; i++) {
		for (k = 0; k < WATCHED; k++)
			rmq_key_queue(c, s->queues[queues[i]], watched[k]);
		rmq_side.waits(c, s->queues[queues[i]]);
	}
	mq_command_str(c, s->wake);
	mq_command_int(c, check);
}

/* Those that are tracked have one name in brackets. */
bool
rmq_key_of(const char *key, size_t len, const char **queue, size_t *n)
{
	const char *end = memrchr(key, ']', len), *start;

	if (end == NULL)
		end = memrchr(key, '}', len);
	start = end == NULL ?
	    NULL :
	    memrchr(key, *end == ']' ? '[' : '{', (size_t)(end - key));
	if (start == NULL)
		return false;
	*queue = start + 1;
	*n = (size_t)(end - *queue);
	return true;
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

void
rmq_settle(const struct mq_session *s, int queue,
    const struct mq_settlement *how, struct mq_command *c)
{
	const char *name = s->queues[queue];
	bool reject = how->outcome == MQ_OUTCOME_REJECT;
	bool push = how->outcome == MQ_OUTCOME_PUSH, away;

	if (how->outcome == MQ_OUTCOME_ACK && how->len < LONG && !how->holds &&
	    how->receipt == NULL && how->result == NULL &&
	    how->notice == NULL) {
		ack(s, name, how, c);
		return;
	}
	away = push && rmq_transfer_needed(c, name, how->push);
	mq_command_script(c, &rmq_script_settle,
	    RMQ_QUEUE_KEYS + 2 +
		(push && !away ? RMQ_QUEUE_KEYS : reject || away) +
		(how->receipt != NULL ? 2 : 0) + (how->notice != NULL ? 2 : 0));
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

void
rmq_settle_equal(const struct mq_session *s, int queue,
    const struct mq_settlement *how, int n, struct mq_command *c)
{
	const char *name = s->queues[queue];
	const struct mq_settlement *end = how + n;

	mq_command_script(c, &rmq_script_settle_equal, 5);
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_queue(c, name, "ready");
	rmq_key_queue(c, name, "delayed");
	rmq_key_queue(c, name, "rejected");
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

void
rmq_ack_oldest(const struct mq_session *s, int queue,
    const struct mq_acks *acks, struct mq_command *c)
{
	if (acks->holds) {
		mq_command_script(c, &rmq_script_finish, RMQ_QUEUE_KEYS + 1);
		rmq_queue_keys(c, s->queues[queue]);
	} else {
		mq_command_script(c, &rmq_script_ack, 1);
	}
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	add_window(c, acks);
}

/* The most of one step, which has its own bounds. */
#define ANY 500

void
rmq_give_back(const struct mq_session *s, int queue,
    const struct mq_newest *newest, struct mq_command *c)
{
	const struct mq_part *e = newest != NULL ? newest->elements : NULL;
	int i, n = newest != NULL ? newest->n : ANY;
	int step = newest == NULL || newest->each || n == 1 ? 1 : n - 1;

	mq_command_script(c, &rmq_script_give_back, RMQ_QUEUE_KEYS + 2);
	rmq_queue_keys(c, s->queues[queue]);
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
	rmq_key_queues(c, s->queues[queue]);
	mq_command_int(c, n);
	for (i = 0; e != NULL && i < n; i += step)
		mq_command_arg(c, e[i].p, e[i].n);
}

int
rmq_held(
    const struct mq_session *s, int queue, bool script, struct mq_command c[2])
{
	const char *name = s->queues[queue];

	if (script) {
		mq_command_script(&c[0], &rmq_script_held, 2);
		rmq_key_both(&c[0], s->connection, name, "unacked");
		rmq_key_info(&c[0], s->connection, name);
		mq_command_str(&c[0], name);
		return 1;
	}
	mq_command_plain(&c[0], "HGET");
	rmq_key_info(&c[0], s->connection, name);
	mq_command_fmt(&c[0], "claimed:%s", name);
	mq_command_plain(&c[1], "LRANGE");
	rmq_key_both(&c[1], s->connection, name, "unacked");
	mq_command_words(&c[1], "0 -1");
	return 2;
}

void
rmq_held_count(const struct mq_session *s, int queue, struct mq_command *c)
{
	mq_command_plain(c, "LLEN");
	rmq_key_both(c, s->connection, s->queues[queue], "unacked");
}

/* --- handed out by receipt, under a lease that nobody renews -------------------- */

void
rmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	/* The list has them in the same order. */
	(void)elements;
	mq_command_script(c, &rmq_script_receipts, 2);
	rmq_key_both(c, s->connection, s->queues[0], "unacked");
	rmq_key_info(c, s->connection, s->queues[0]);
	mq_command_int(c, n);
}

void
rmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	mq_command_script(c, &rmq_script_receipt, 3);
	rmq_key_both(c, connection, queue, "unacked");
	rmq_key_info(c, connection, queue);
	rmq_key_lease(c, connection, queue);
	mq_command_str(c, number);
}

void
rmq_vacate(const struct mq_session *s, struct mq_command *c)
{
	const char *queue = s->queues[0];

	mq_command_script(c, &rmq_script_leave, 6);
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
