/*
 * The first batch of a publisher, which goes out before anything is known of the server
 * and the queue.
 */
#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "publish.h"

static void __attribute__((noreturn))
end_with(struct transport *t, const struct mq_redis *r)
{
	mq_say("%s", r->error);
	outcome_end(t->outcome, transport_unknown(t), r->status);
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

static enum mq_call
send_trial(struct transport *t, struct batch *b)
{
	t->bytes = mq_post_bytes(&b->post);
	t->used++;
	if (mq_post_send(t->publisher, &b->post, NULL, true) == -1)
		return MQ_CALL_LOST;
	return transport_wait(t);
}

/* Whether the connection was lost with an answer: the server does nothing for us. */
static bool
was_turned_away(const struct transport *t)
{
	return t->redis->status == MQ_EXIT_CONFIG ||
	    t->redis->status == MQ_EXIT_NOPERM;
}

bool
transport_try(struct transport *t, bool *only)
{
	struct batch *b = transport_next(t);
	enum mq_call result;

	*only = false;
	if (!mq_post_trial(t->publisher, &b->post))
		return false;
	result = send_trial(t, b);
	if (result == MQ_CALL_LOST && !t->redis->heard)
		check_server(t);
	while (result == MQ_CALL_LOST && !was_turned_away(t)) {
		transport_resume(t);
		result = t->used > 0 ? transport_wait(t) : MQ_CALL_DONE;
	}
	/* A resumption has settled what it found to be done. */
	if (result == MQ_CALL_DONE && t->used > 0)
		transport_answered(t, b);
	t->used = 0;
	if (result == MQ_CALL_DONE)
		return true;
	mq_post_no_trial(&b->post);
	t->bytes = 0;
	t->lost_ms = t->pause_ms = 0;
	*only = mq_publisher_loose(t->publisher);
	return false;
}
