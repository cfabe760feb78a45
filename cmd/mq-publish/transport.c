#include "publish.h"

#include <sys/param.h>

#include <math.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "shared/interrupt.h"

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

unsigned long
transport_unknown(struct transport *t)
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
		outcome_interrupt(t->outcome, transport_unknown(t));
	return n != 0;
}

static void __attribute__((noreturn)) give_up(struct transport *t, int status)
{
	/* All are accepted; only whether they are safe is not known. */
	if (t->used == 0 && outcome_unsafe(t->outcome))
		status = MQ_EXIT_AGAIN;
	mq_say("%s", t->redis->error);
	outcome_end(t->outcome, transport_unknown(t), status);
}

void
transport_init(struct transport *t, struct mq_redis *r,
    struct mq_publisher *publisher, struct outcome *outcome, bool quiet)
{
	*t = (struct transport){.redis = r,
	    .publisher = publisher,
	    .outcome = outcome,
	    .quiet = quiet};
	mq_redis_wait_with(r, wait_for_server, t);
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

struct batch *
transport_next(struct transport *t)
{
	return batch_at(t, t->used);
}

bool
transport_busy(const struct transport *t)
{
	return t->used > 0;
}

bool
transport_full(struct transport *t, const struct mq_publishing *how)
{
	unsigned most =
	    mq_publisher_alone(t->publisher, how) ? 0 : MQ_MARKS - 1;

	t->overtaken &= t->used > 0;
	return t->used > most || t->overtaken ||
	    (t->used > 0 && t->bytes > UNDER_WAY_BYTES);
}

bool
transport_has_room(struct transport *t)
{
	return mq_redis_room(t->redis,
		   t->bytes + mq_post_bytes(&transport_next(t)->post)) == 0;
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

void
transport_rest(struct transport *t)
{
	t->lost_ms = t->pause_ms = 0;
}

void
transport_answered(struct transport *t, struct batch *b)
{
	t->bytes -= mq_post_bytes(&b->post);
	transport_rest(t);
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
			transport_answered(t, &all[i]);
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
		eval &= !batch_at(t, i)->post.whole;
	}
	return MQ_CALL_DONE;
}

/* Whether all batches under way find their marks themselves. */
static bool
all_whole(struct transport *t)
{
	unsigned i;

	for (i = 0; i < t->used; i++)
		if (!batch_at(t, i)->post.whole)
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
	enum mq_call result =
	    mq_publisher_resume(t->publisher, all_whole(t), &missing);

	if (result != MQ_CALL_DONE)
		return result;
	if (missing > 0)
		outcome_lose(t->outcome, missing);
	if (!settle_ring(t, 0, mq_post_settle))
		give_up(t, MQ_EXIT_UNAVAILABLE);
	t->overtaken = t->used > 0;
	outcome_reconnected(t->outcome);
	return send_rest(t);
}

/*
 * The connection is lost, and the answers for what was under way with it.  The server
 * has marked what it has done, and only the rest is sent again.
 */
void
transport_resume(struct transport *t)
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

void
transport_send(struct transport *t)
{
	t->bytes += mq_post_bytes(&transport_next(t)->post);
	if (send_one(t, t->used++, false) == -1)
		transport_resume(t);
}

/* The oldest one under way was not done, and so none that has to come behind it: all go
 * out again, in their order.  What was refused is refused again when its turn comes. */
static void
send_again(struct transport *t)
{
	(void)settle_ring(t, 1, mq_post_answer);
	if (mq_redis_lost(t->redis) || send_rest(t) == MQ_CALL_LOST)
		transport_resume(t);
}

enum mq_call
transport_wait(struct transport *t)
{
	return judge(t, batch_at(t, 0), mq_post_answer);
}

bool
transport_collect(struct transport *t)
{
	struct batch *b = batch_at(t, 0);
	enum mq_call result = transport_wait(t);

	if (result == MQ_CALL_LOST) {
		transport_resume(t);
		return true;
	}
	/* At the end, the one that it has to come behind was refused. */
	if (result == MQ_CALL_AGAIN && !t->ending) {
		send_again(t);
		return true;
	}
	t->first = (t->first + 1) % MQ_MARKS;
	t->used--;
	transport_answered(t, b);
	return result == MQ_CALL_DONE;
}

void
transport_drain(struct transport *t)
{
	t->ending = true;
	while (t->used > 0)
		(void)transport_collect(t);
}
