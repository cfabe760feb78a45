#include "publish.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536

/* No more can be published: ends when all that is under way is settled. */
static void __attribute__((noreturn))
end_when_answered(struct batcher *b, int status)
{
	transport_drain(b->transport);
	(void)outcome_settle(b->outcome);
	mq_publisher_count(b->publisher);
	outcome_end(b->outcome, 0, status);
}

static void __attribute__((noreturn)) end_refused(struct batcher *b)
{
	int status = b->redis->status;

	mq_say("%s", b->redis->error);
	end_when_answered(b, status);
}

static void
end_if_full(struct batcher *b)
{
	if (!outcome_full(b->outcome))
		return;
	mq_say("%s: the queue is full", b->queue);
	end_when_answered(b, MQ_EXIT_AGAIN);
}

static void
collect_or_end(struct batcher *b)
{
	if (!transport_collect(b->transport))
		end_refused(b);
	end_if_full(b);
}

/* Publishes the first batch without a question, if that is possible. */
static bool
publish_first(struct batcher *b)
{
	bool only, done = transport_try(b->transport, &only);

	if (!done)
		b->open(b->arg);
	b->open = NULL;
	if (!done && only) {
		done = transport_try(b->transport, &only);
		if (!done)
			end_refused(b);
	}
	return done;
}

/* Sends the batch, if there is anything in it. */
static void
send_batch(struct batcher *b)
{
	if (transport_next(b->transport)->post.count == 0)
		return;
	if (!transport_has_room(b->transport))
		end_refused(b);
	if (b->open != NULL && publish_first(b))
		return;
	transport_send(b->transport);
	end_if_full(b);
	while (transport_full(b->transport, &b->how))
		collect_or_end(b);
}

static void
flush_output(struct batcher *b)
{
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		outcome_end(b->outcome, 0, MQ_EXIT_IO);
	}
}

void
batch_flush(struct batcher *b)
{
	send_batch(b);
	while (transport_busy(b->transport))
		collect_or_end(b);
	mq_publisher_count(b->publisher);
	flush_output(b);
}

void
batch_settle(struct batcher *b)
{
	batch_flush(b);
	while (!outcome_settle(b->outcome)) {
		/* Sentinels soon name another server, which may have all. */
		if (!mq_redis_lost(b->redis) ||
		    b->redis->server->url.kind != MQ_URL_SENTINEL) {
			mq_say("%s", b->redis->error);
			outcome_end(b->outcome, 0, MQ_EXIT_AGAIN);
		}
		transport_resume(b->transport);
	}
	transport_rest(b->transport);
	flush_output(b);
}

/* Ids that are held must not become too many. */
static void
send_or_settle(struct batcher *b)
{
	send_batch(b);
	if (outcome_holds_many(b->outcome))
		batch_settle(b);
}

bool
batch_is_plain(const struct batcher *b)
{
	return !b->how.special && b->how.when.kind == MQ_WHEN_NOW;
}

void
batch_set_when(struct batcher *b, struct mq_when when)
{
	if (when.kind == b->how.when.kind && when.ms == b->how.when.ms)
		return;
	send_or_settle(b);
	b->how.when = when;
}

void
batch_set_special(struct batcher *b)
{
	if (b->how.special)
		return;
	/* Messages before it come first. */
	batch_flush(b);
	b->how.special = true;
}

void
batch_add(struct batcher *b, const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct batch *next = transport_next(b->transport);

	if (next->post.count > 0 &&
	    mq_post_bytes(&next->post) + n > BATCH_BYTES) {
		send_or_settle(b);
		next = transport_next(b->transport);
	}
	if (next->post.count == 0) {
		mq_post_begin(b->publisher, &next->post, &b->how);
	}
	mq_post_add(b->publisher, &next->post, unique, header, payload, n);
	if (b->ids)
		mq_buf_add(&next->ids, id, MQ_ID_LEN);
	if (next->post.count == BATCH_COUNT ||
	    mq_post_bytes(&next->post) > BATCH_BYTES)
		send_or_settle(b);
}

void
batch_end(struct batcher *b, int status, const char *fmt, ...)
{
	va_list ap;
	char *why;

	va_start(ap, fmt);
	why = mq_xvasprintf(fmt, ap);
	va_end(ap);
	batch_settle(b);
	mq_say("%s", why);
	outcome_end(b->outcome, 0, status);
}
