/*
 * The rmq layout: one queue of a dead connection.
 */
#include "rmq.h"

#include <string.h>

#include "base/clock.h"
#include "message/headers.h"
#include "message/history.h"
#include "message/result.h"

/* Bytes of headers in one reply; it has one in any case. */
#define SHOW_BYTES 16384
/* The most that one step returns, as in reclaim_dead.lua.  That many go back in one step
 * with those that may have been running: a consumer that waits finds the
 * latter in front, and knows that another one has died. */
#define STEP 500
/* The numbers before the headers in a reply. */
enum { MOVED, BACK, OUT, LEFT, UNLISTED, FIRST };
/* How many are left when the queue has keys in the form for a cluster. */
#define CLUSTER (-2)

static long
at_most(long n, long max)
{
	return n < max ? n : max;
}

static long
shown(const struct rmq_dead_queue *q)
{
	if (q->shown == NULL)
		return 0;
	return at_most((long)q->shown->elements - FIRST, RMQ_HEADERS);
}

/* What the queue hears that its consumer notified. */
struct notice {
	char id[MQ_ID_LEN + 1];
	struct mq_buf element; /* empty: nothing */
};

static void
write_notice(const struct rmq_dead_queue *q, const struct mq_envelope *e,
    long attempt, struct notice *out)
{
	const char *id = mq_message_id(e);
	struct mq_ending end = {.queue = q->queue,
	    .state = MQ_END_REJECTED,
	    .text = mq_envelope_get(e, MQ_HEADER_ERROR),
	    .status = -1,
	    .attempts = attempt,
	    .host = q->owner->host,
	    .finished_ms = mq_clock_unix_us() / 1000};
	struct mq_buf text = {0};

	if (mq_envelope_get(e, MQ_HEADER_NOTICE) != NULL)
		return;
	if (id != NULL)
		strlcpy(end.id, id, sizeof(end.id));
	mq_ending_write(&end, &text);
	mq_notice_write(out->id, q->queue, &text, &out->element);
	mq_buf_free(&text);
}

static void
add_notice(struct mq_command *c, const struct rmq_dead_queue *q,
    const struct notice *notice)
{
	const char *to = q->notify;

	if (rmq_transfer_needed(c, q->queue, to))
		rmq_transfer_field(c, notice->id, "push", to);
	else
		mq_command_str(c, "");
	mq_command_arg(c, notice->element.data, notice->element.len);
}

/*
 * A message that may have been running when its consumer died has had one run more:
 * appends its new header.  One with a bad header goes back as it is, and the consumer
 * that claims it next rejects it.
 */
static enum rmq_crash
count_crash(const redisReply *header, const struct rmq_dead_queue *q,
    struct mq_buf *out, struct notice *notice)
{
	const struct rmq_dead *d = q->owner;
	struct mq_envelope e;
	const char *why;
	long attempt;
	bool last;

	if (header->len == 1 ||
	    mq_envelope_parse(header->str, header->len, &e, &why) == -1) {
		mq_buf_add(out, header->str, header->len);
		return RMQ_CRASH_NONE;
	}
	attempt = mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0) + 1;
	last = attempt >= q->attempts;
	mq_history_crash(&e, attempt, last, d->host);
	mq_envelope_write_header(&e, out);
	if (last && q->notify != NULL)
		write_notice(q, &e, attempt, notice);
	mq_envelope_free(&e);
	return last ? RMQ_CRASH_REJECT : RMQ_CRASH_BACK;
}

/* Adds the fate of the messages that were shown. */
static void
add_crashes(struct rmq_dead_queue *q, struct mq_command *c)
{
	struct mq_buf header = {0};
	struct notice notice = {.id = ""};
	struct mq_idgen ids = {0};
	const redisReply *old;
	long i, n = shown(q);

	for (i = 0; i < n; i++) {
		old = q->shown->element[FIRST + i];
		mq_buf_clear(&header);
		mq_buf_clear(&notice.element);
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), notice.id);
		q->crashes[i] = count_crash(old, q, &header, &notice);
		mq_command_arg(c, old->str, old->len);
		mq_command_arg(c, header.data, header.len);
		mq_command_str(c,
		    q->crashes[i] == RMQ_CRASH_REJECT ? "rejected" : "ready");
		if (q->notify != NULL)
			add_notice(c, q, &notice);
	}
	mq_buf_free(&header);
	mq_buf_free(&notice.element);
}

long
rmq_dead_queue_kept(const struct rmq_dead_queue *q)
{
	return q->owner->slots > 0 ? q->owner->slots + STEP : 0;
}

void
rmq_dead_queue_begin(
    const struct rmq_cleaner *w, struct rmq_dead_queue *q, bool show)
{
	q->show = show;
	q->looks = show && !q->looked && !w->how->dry_run;
	q->looked |= q->looks;
	q->at += shown(q);
}

/* On a cluster, which has no keys of the other form, the connection stays listed; see
 * reclaim.c. */
static void
add_listed(struct mq_command *c, const char *connection, const char *queue)
{
	int i;

	for (i = 0; i < 3 && c->cluster; i++)
		rmq_key_queue(c, queue, "none");
	if (c->cluster)
		return;
	rmq_key_all(c, RMQ_CONNECTIONS);
	rmq_key_both_other(c, connection, queue, "consumers");
	rmq_key_both_other(c, connection, queue, "unacked");
}

void
rmq_dead_queue_step(
    const struct rmq_cleaner *w, struct rmq_dead_queue *q, struct mq_command *c)
{
	const char *connection = q->owner->connection;

	mq_command_script(c, &rmq_script_reclaim_dead,
	    RMQ_QUEUE_KEYS + (q->owner->ours ? 11 : 9) +
		(q->notify != NULL ? 2 : 0));
	rmq_queue_keys(c, q->queue);
	rmq_key_both(c, connection, q->queue, "unacked");
	rmq_key_queue(c, q->queue, "rejected");
	rmq_key_lease(c, connection, q->queue);
	rmq_key_both(c, connection, q->queue, "consumers");
	rmq_key_own(c, connection, q->queue, "queues");
	rmq_key_queues(c, q->queue);
	add_listed(c, connection, q->queue);
	if (q->owner->ours) {
		rmq_key_info(c, connection, q->queue);
		rmq_key_own(c, connection, q->queue, "running");
	}
	if (q->notify != NULL)
		rmq_key_notice(c, q->queue, q->notify);
	mq_command_str(c, q->queue);
	mq_command_str(c, connection);
	mq_command_int(c, q->show ? q->owner->slots : rmq_dead_queue_kept(q));
	mq_command_int(c, q->show ? SHOW_BYTES : 0);
	if (w->how->dry_run || q->looks)
		mq_command_int(c, q->at);
	else
		mq_command_str(c, "");
	add_crashes(q, c);
}

static bool
is_sound(struct rmq_cleaner *w, const redisReply *reply)
{
	size_t i;

	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY))
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
		    (i < FIRST ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return mq_round_nonsense(&w->round);
	return i >= FIRST || mq_round_nonsense(&w->round);
}

/* Counts the first n of the messages that were shown. */
static void
count_crashes(struct rmq_cleaner *w, const struct rmq_dead_queue *q, long n)
{
	long i, crashed = 0, rejected = 0;

	for (i = 0; i < n; i++) {
		crashed += q->crashes[i] != RMQ_CRASH_NONE;
		rejected += q->crashes[i] == RMQ_CRASH_REJECT;
	}
	w->out->rejected += rejected;
	w->out->returned += n - rejected;
	rmq_cleaner_count(w, q->queue, crashed, rejected, 0);
}

static void
count_reply(
    struct rmq_cleaner *w, struct rmq_dead_queue *q, const redisReply *reply)
{
	long moved = (long)reply->element[MOVED]->integer;
	long settled = (long)(reply->element[BACK]->integer +
	    reply->element[OUT]->integer);
	long left = (long)reply->element[LEFT]->integer;

	if (w->how->dry_run) {
		if (q->shown == NULL && left > q->owner->slots)
			moved = left - q->owner->slots;
		settled = shown(q);
		left = at_most(left, q->owner->slots) - q->at;
	}
	if (reply->element[UNLISTED]->integer > 0) {
		w->out->connections++;
		q->owner->closed = true;
	}
	w->out->returned += moved;
	count_crashes(w, q, at_most(settled, shown(q)));
	q->left = left;
}

void
rmq_dead_queue_leave(struct rmq_cleaner *w, struct rmq_dead_queue *q)
{
	struct rmq_dead *d = q->owner;

	if (!d->cluster && w->how->cluster != NULL)
		mq_names_add(w->how->cluster, d->connection, NULL);
	d->cluster = d->failed = true;
	q->left = 0;
}

/* The fate of the messages is known only if the reply is sound. */
void
rmq_dead_queue_reply(
    struct rmq_cleaner *w, struct rmq_dead_queue *q, redisReply *reply)
{
	if (!is_sound(w, reply)) {
		q->owner->failed = true;
		q->left = 0;
		freeReplyObject(reply);
		return;
	}
	if (reply->element[LEFT]->integer == CLUSTER) {
		rmq_dead_queue_leave(w, q);
	} else if (reply->element[LEFT]->integer < 0) {
		/* The connection lives again. */
		q->owner->failed = true;
		q->left = 0;
	} else if (!q->looks) {
		count_reply(w, q, reply);
	}
	freeReplyObject(q->shown);
	q->shown = reply;
}

void
rmq_dead_queue_free(struct rmq_dead_queue *q)
{
	freeReplyObject(q->shown);
	freeReplyObject(q->settings);
}
