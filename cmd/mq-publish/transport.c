#include "publish.h"

#include <sys/param.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "shared/interrupt.h"

/* --- transport ----------------------------------------------------------- */

/* About so many bytes are under way at most. */
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024)
/* How long a server may be away. */
#define PATIENCE_MS 60000
/* Between two connections. */
#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 1000

static struct batch *
batch_at(struct transport *t, unsigned i)
{
	return &t->ring[(t->first + i) % MQ_MARKS];
}

/* How many messages are under way, so that nobody knows about them. */
static unsigned long
count_unknown(struct transport *t)
{
	unsigned long n = 0;
	unsigned i;

	for (i = 0; i < t->used; i++)
		n += (unsigned long)batch_at(t, i)->post.count;
	return n;
}

static bool
wait_for_server(void *arg, int fd, int64_t ms)
{
	struct transport *t = arg;
	int n = interrupt_wait(fd, ms);

	if (n == -1)
		outcome_interrupt(t->outcome, count_unknown(t));
	return n != 0;
}

static void __attribute__((noreturn)) give_up(struct transport *t, int status)
{
	/* All are accepted; only whether they are safe is not known. */
	if (t->used == 0 && outcome_unsafe(t->outcome))
		status = MQ_EXIT_AGAIN;
	mq_say("%s", t->redis->error);
	outcome_end(t->outcome, count_unknown(t), status);
}

void
transport_begin(struct transport *t)
{
	mq_redis_wait_with(t->redis, wait_for_server, t);
}

void
transport_free(struct transport *t)
{
	size_t i;

	for (i = 0; i < MQ_MARKS; i++) {
		mq_post_free(&t->ring[i].post);
		mq_buf_free(&t->ring[i].ids);
	}
}

/* The batch to fill, which is empty after one is sent. */
static struct batch *
next_batch(struct transport *t)
{
	return batch_at(t, t->used);
}

/* Whether so many batches are under way that the next one has to wait. */
static bool
is_full(struct transport *t)
{
	unsigned most =
	    mq_publisher_alone(t->publisher, &t->how) ? 0 : MQ_MARKS - 1;

	t->overtaken &= t->used > 0;
	return t->used > most || t->overtaken ||
	    (t->used > 0 && t->bytes > UNDER_WAY_BYTES);
}

bool
transport_reconnect(struct transport *t, int64_t until_ms, int64_t *pause_ms)
{
	struct mq_redis *r = t->redis;
	double until = until_ms == -1 ? INFINITY : (double)until_ms / 1000;
	int64_t left;

	mq_redis_close(r);
	for (;;) {
		left = until_ms == -1 ? PAUSE_MAX_MS :
					until_ms - mq_clock_steady_ms();
		if (left <= 0)
			return false;
		(void)wait_for_server(t, -1, MIN(*pause_ms, left));
		*pause_ms = *pause_ms == 0 ? PAUSE_MIN_MS :
					     MIN(2 * *pause_ms, PAUSE_MAX_MS);
		if (mq_redis_open_until(r, r->server, until) == 0) {
			mq_redis_wait_with(r, wait_for_server, t);
			return true;
		}
		if (r->status != MQ_EXIT_UNAVAILABLE &&
		    r->status != MQ_EXIT_AGAIN)
			give_up(t, r->status);
	}
}

struct verdicts {
	struct outcome *outcome;
	const struct mq_buf *ids;
};

static void
take_verdict(void *arg, int i, enum mq_published verdict, const char *joined)
{
	const struct verdicts *v = arg;
	const char *id =
	    v->ids->len == 0 ? NULL : v->ids->data + (size_t)i * MQ_ID_LEN;

	outcome_take(v->outcome, joined != NULL ? joined : id, verdict);
}

/* The server has answered for the batch, which is empty from now on. */
static void
note_answered(struct transport *t, struct batch *b)
{
	t->bytes -= mq_post_bytes(&b->post);
	t->lost_ms = t->pause_ms = 0;
	mq_post_clear(&b->post);
	mq_buf_clear(&b->ids);
}

/* Finds out what has become of a batch: mq_post_settle(), mq_post_answer(). */
typedef enum mq_call judge_fn(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);

static enum mq_call
judge(struct transport *t, struct batch *b, judge_fn *fn)
{
	return fn(t->publisher, &b->post, take_verdict,
	    &(struct verdicts){t->outcome, &b->ids});
}

/* Of the batches from number `from` on, those that are done are under way no more; the
 * others stay, in their order.  False: one was refused. */
static bool
settle_ring(struct transport *t, unsigned from, judge_fn *fn)
{
	struct batch all[MQ_MARKS] = {0};
	unsigned i, n = t->used, left = from, done = 0;
	bool good = true;
	enum mq_call result;

	for (i = from; i < n; i++)
		all[i] = *batch_at(t, i);
	for (i = from; i < n; i++) {
		result = judge(t, &all[i], fn);
		good &= result != MQ_CALL_REFUSED;
		if (result == MQ_CALL_DONE) {
			note_answered(t, &all[i]);
			*batch_at(t, n - ++done) = all[i];
		} else {
			*batch_at(t, left++) = all[i];
		}
	}
	t->used = left;
	return good;
}

static int
send_one(struct transport *t, unsigned i, bool eval)
{
	return mq_post_send(t->publisher, &batch_at(t, i)->post,
	    i > 0 ? &batch_at(t, i - 1)->post : NULL, eval);
}

/* The server may not know the script: its text goes with the first. */
static enum mq_call
send_rest(struct transport *t)
{
	bool eval = true;
	unsigned i;

	if (mq_redis_room(t->redis, t->bytes) == -1) {
		mq_say("%s", t->redis->error);
		/* The server has nothing of the rest. */
		outcome_end(t->outcome, 0, t->redis->status);
	}
	for (i = 0; i < t->used; i++) {
		if (send_one(t, i, eval) == -1)
			return MQ_CALL_LOST;
		eval &= !mq_post_whole(&batch_at(t, i)->post);
	}
	return MQ_CALL_DONE;
}

/* Whether all batches under way find their marks themselves. */
static bool
all_whole(struct transport *t)
{
	unsigned i;

	for (i = 0; i < t->used; i++)
		if (!mq_post_whole(&batch_at(t, i)->post))
			return false;
	return true;
}

/* Whether the marks will say all that there is to know about them. */
static bool
can_resume(struct transport *t)
{
	unsigned i;

	for (i = 0; i < t->used; i++)
		if (batch_at(t, i)->post.how.mark.publisher == NULL)
			return false;
	return !t->ending &&
	    mq_publisher_can_resume(t->publisher, all_whole(t));
}

/* On a new connection: finds out what was done meanwhile. */
static enum mq_call
try_resume(struct transport *t)
{
	long long missing;
	bool proven;
	enum mq_call result =
	    mq_publisher_resume(t->publisher, all_whole(t), &missing, &proven);

	if (result != MQ_CALL_DONE)
		return result;
	if (missing > 0)
		outcome_lose(t->outcome, missing);
	if (!settle_ring(t, 0, mq_post_settle))
		give_up(t, MQ_EXIT_UNAVAILABLE);
	t->overtaken = t->used > 0;
	outcome_reconnected(t->outcome, proven);
	return send_rest(t);
}

/*
 * The connection is lost, and the answers for what was under way with it: goes on with
 * another one, or ends the program.  The server has marked what it has done, and only
 * the rest is sent again.
 */
static void
resume(struct transport *t)
{
	enum mq_call result = MQ_CALL_LOST;

	if (!can_resume(t))
		give_up(t, t->redis->status);
	if (!t->quiet && t->lost_ms == 0)
		mq_say("%s; reconnecting", t->redis->error);
	while (result == MQ_CALL_LOST || result == MQ_CALL_AGAIN) {
		/* Again, when something was found to be done. */
		if (t->lost_ms == 0)
			t->lost_ms = mq_clock_steady_ms();
		if (!transport_reconnect(
			t, t->lost_ms + PATIENCE_MS, &t->pause_ms))
			give_up(t, t->redis->status);
		result = try_resume(t);
	}
	if (result == MQ_CALL_REFUSED)
		give_up(t, MQ_EXIT_UNAVAILABLE);
}

/* The oldest one under way was not done, and so none that has to come behind it: all go
 * out again, in their order.  What was refused is refused again when its turn comes. */
static void
send_again(struct transport *t)
{
	(void)settle_ring(t, 1, mq_post_answer);
	if (mq_redis_lost(t->redis) || send_rest(t) == MQ_CALL_LOST)
		resume(t);
}

/* Waits for the answer to the oldest batch. */
static enum mq_call
wait_for_answer(struct transport *t)
{
	return judge(t, batch_at(t, 0), mq_post_answer);
}

/* Waits for an answer to the oldest one.  False: the server refused it, with the
 * error. */
static bool
collect(struct transport *t)
{
	struct batch *b = batch_at(t, 0);
	enum mq_call result = wait_for_answer(t);

	if (result == MQ_CALL_LOST) {
		resume(t);
		return true;
	}
	/* At the end, the one that it has to come behind was refused. */
	if (result == MQ_CALL_AGAIN && !t->ending) {
		send_again(t);
		return true;
	}
	t->first = (t->first + 1) % MQ_MARKS;
	t->used--;
	note_answered(t, b);
	return result == MQ_CALL_DONE;
}

/* --- trial --------------------------------------------------------------- */

/*
 * The first batch of a publisher, which goes out before anything is known of the server
 * and the queue.
 */

static void __attribute__((noreturn))
end_with(struct transport *t, const struct mq_redis *r)
{
	mq_say("%s", r->error);
	outcome_end(t->outcome, count_unknown(t), r->status);
}

/* What a first command meets that gets no answer at all: if it is a server, its
 * next connection answers, or is refused for as long as the server is away. */
static void
check_server(struct transport *t)
{
	const struct mq_redis *r = t->redis;
	struct mq_redis other;

	/* It has had its time. */
	if (r->greet_until != 0 && mq_clock_steady_s() >= r->greet_until)
		end_with(t, r);
	if (mq_redis_open(&other, r->server) == -1)
		return;
	if (mq_redis_check(&other) == -1)
		end_with(t, &other);
	mq_redis_close(&other);
}

/*
 * The first batch, before anything is known of the queue: sends it as a trial, and
 * waits for the answer.  False: nothing was done, with the error, or the batch cannot be
 * tried.  It is the next one again then, and *only says whether nothing but a
 * second trial would be safe: that looks for the mark of a first one, which may still
 * arrive on a connection that was lost.
 */
static bool
try_first(struct transport *t, bool *only)
{
	struct batch *b = next_batch(t);
	const struct mq_redis *r = t->redis;
	enum mq_call result = MQ_CALL_LOST;

	*only = false;
	if (!mq_post_trial(t->publisher, &b->post))
		return false;
	t->bytes = mq_post_bytes(&b->post);
	t->used++;
	if (send_one(t, 0, true) == 0)
		result = wait_for_answer(t);
	if (result == MQ_CALL_LOST && !r->heard)
		check_server(t);
	/* Lost with an answer, it does nothing for us. */
	while (result == MQ_CALL_LOST && r->status != MQ_EXIT_CONFIG &&
	    r->status != MQ_EXIT_NOPERM) {
		resume(t);
		result = t->used > 0 ? wait_for_answer(t) : MQ_CALL_DONE;
	}
	/* A resumption has settled what it found to be done. */
	if (result == MQ_CALL_DONE && t->used > 0)
		note_answered(t, b);
	t->used = 0;
	if (result == MQ_CALL_DONE)
		return true;
	mq_post_no_trial(&b->post);
	t->bytes = 0;
	t->lost_ms = t->pause_ms = 0;
	*only = mq_publisher_loose(t->publisher);
	return false;
}

/* --- batch --------------------------------------------------------------- */

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536

/* No more can be published: ends when all that is under way is settled. */
static void __attribute__((noreturn))
end_when_answered(struct transport *t, int status)
{
	t->ending = true;
	while (t->used > 0)
		(void)collect(t);
	(void)outcome_settle(t->outcome);
	mq_publisher_count(t->publisher);
	outcome_end(t->outcome, 0, status);
}

static void __attribute__((noreturn)) end_refused(struct transport *t)
{
	int status = t->redis->status;

	mq_say("%s", t->redis->error);
	end_when_answered(t, status);
}

static void
end_if_full(struct transport *t)
{
	if (!outcome_full(t->outcome))
		return;
	mq_say("%s: the queue is full", t->queue);
	end_when_answered(t, MQ_EXIT_AGAIN);
}

static void
collect_or_end(struct transport *t)
{
	if (!collect(t))
		end_refused(t);
	end_if_full(t);
}

/* Publishes the first batch without a question, if that is possible. */
static bool
publish_first(struct transport *t)
{
	bool only, done = try_first(t, &only);

	if (!done)
		t->open(t->arg);
	t->open = NULL;
	if (!done && only) {
		done = try_first(t, &only);
		if (!done)
			end_refused(t);
	}
	return done;
}

/* Sends the batch, if there is anything in it.  A private server ends when its disk is
 * full. */
static void
send_batch(struct transport *t)
{
	const struct mq_post *post = &next_batch(t)->post;

	if (post->count == 0)
		return;
	if (mq_redis_room(t->redis, t->bytes + mq_post_bytes(post)) == -1)
		end_refused(t);
	if (t->open != NULL && publish_first(t))
		return;
	t->bytes += mq_post_bytes(post);
	if (send_one(t, t->used++, false) == -1)
		resume(t);
	end_if_full(t);
	while (is_full(t))
		collect_or_end(t);
}

static void
flush_output(struct transport *t)
{
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		outcome_end(t->outcome, 0, MQ_EXIT_IO);
	}
}

void
batch_flush(struct transport *t)
{
	send_batch(t);
	while (t->used > 0)
		collect_or_end(t);
	mq_publisher_count(t->publisher);
	flush_output(t);
}

void
batch_settle(struct transport *t)
{
	batch_flush(t);
	while (!outcome_settle(t->outcome)) {
		/* Sentinels soon name another server, which may have all. */
		if (!mq_redis_lost(t->redis) ||
		    t->redis->server->url.kind != MQ_URL_SENTINEL) {
			mq_say("%s", t->redis->error);
			outcome_end(t->outcome, 0, MQ_EXIT_AGAIN);
		}
		resume(t);
	}
	/* A connection that is lost now is lost for the first time. */
	t->lost_ms = t->pause_ms = 0;
	flush_output(t);
}

/* Ids that are held must not become too many. */
static void
send_or_settle(struct transport *t)
{
	send_batch(t);
	if (outcome_holds_many(t->outcome))
		batch_settle(t);
}

bool
batch_is_plain(const struct transport *t)
{
	return !t->how.special && t->how.when.kind == MQ_WHEN_NOW;
}

void
batch_set_when(struct transport *t, struct mq_when when)
{
	if (when.kind == t->how.when.kind && when.ms == t->how.when.ms)
		return;
	send_or_settle(t);
	t->how.when = when;
}

void
batch_set_special(struct transport *t)
{
	if (t->how.special)
		return;
	/* Messages before it come first. */
	batch_flush(t);
	t->how.special = true;
}

void
batch_add(struct transport *t, const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct batch *next = next_batch(t);

	if (next->post.count > 0 &&
	    mq_post_bytes(&next->post) + n > BATCH_BYTES) {
		send_or_settle(t);
		next = next_batch(t);
	}
	if (next->post.count == 0)
		mq_post_begin(t->publisher, &next->post, &t->how);
	mq_post_add(t->publisher, &next->post, unique, header, payload, n);
	if (t->ids)
		mq_buf_add(&next->ids, id, MQ_ID_LEN);
	if (next->post.count == BATCH_COUNT ||
	    mq_post_bytes(&next->post) > BATCH_BYTES)
		send_or_settle(t);
}

void
batch_end(struct transport *t, int status, const char *fmt, ...)
{
	va_list ap;
	char *why;

	va_start(ap, fmt);
	why = mq_xvasprintf(fmt, ap);
	va_end(ap);
	batch_settle(t);
	mq_say("%s", why);
	outcome_end(t->outcome, 0, status);
}
