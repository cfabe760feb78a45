/*
 * Batches under way to the server.  Each is kept until the server has confirmed
 * it.  So memory is bounded by the longest message, and the count of what was
 * accepted is exact whatever goes wrong.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "publish.h"
#include "say.h"
#include "xalloc.h"

/* About so many bytes are under way at most. */
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024)

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	interrupted = sig;
}

struct batch *
publish_batch(struct publisher *p)
{
	return &p->ring[(p->first + p->used) % UNDER_WAY];
}

void
publish_report(const struct publisher *p, unsigned long unknown)
{
	char more[64] = "";

	if (unknown > 0)
		snprintf(more, sizeof(more), ", and up to %lu more", unknown);
	mq_say("%lu message%s accepted%s", p->accepted,
	    p->accepted == 1 ? "" : "s", more);
}

/* How many messages are under way, so that nobody knows about them. */
static unsigned long
unknown(const struct publisher *p)
{
	unsigned long n = 0;
	unsigned i;

	for (i = 0; i < p->used; i++)
		n += (unsigned long)p->ring[(p->first + i) % UNDER_WAY].count;
	return n;
}

/* The connection is gone, and with it the answers about what was under way. */
static void
lost(struct publisher *p)
{
	mq_say("%s", p->redis.error);
	publish_report(p, unknown(p));
	exit(p->redis.status);
}

static void
end_by_signal(struct publisher *p)
{
	fflush(stdout);
	mq_say("interrupted");
	publish_report(p, unknown(p));
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}

/*
 * Waits for input, and ends the program when a signal comes before it.  False
 * when nothing came for so long; NULL waits for ever.
 */
bool
publish_wait(struct publisher *p, int fd, const struct timespec *timeout)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	sigset_t ours, before;
	int n;

	/* Blocked, so that none can come between the look and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	n = interrupted ? -1 : ppoll(&pfd, 1, timeout, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (n == -1 && interrupted)
		end_by_signal(p);
	return n != 0;
}

/* NULL when the connection is lost. */
static redisReply *
next_reply(struct publisher *p)
{
	const struct timespec patience = {.tv_sec = 60};
	struct mq_redis *r = &p->redis;
	redisReply *reply = NULL;
	bool readable = false;

	for (;;) {
		if (mq_redis_reply_so_far(r, readable, &reply) == -1)
			return NULL;
		if (reply != NULL)
			return reply;
		if (!publish_wait(p, r->context->fd, &patience)) {
			r->status = MQ_EXIT_UNAVAILABLE;
			snprintf(r->error, sizeof(r->error),
			    "%s: no answer for too long", r->server->name);
			return NULL;
		}
		readable = true;
	}
}

/*
 * Takes the reply to the command that counts.  Whatever became of it, the
 * messages have their own: if the connection is lost here, whoever uses it
 * next finds out.
 */
static bool
next_counted(struct publisher *p)
{
	redisReply *reply = next_reply(p);
	bool counted;

	if (reply == NULL) {
		/* A late answer must not be taken for the next one. */
		shutdown(p->redis.context->fd, SHUT_RDWR);
		return false;
	}
	counted = reply->type == REDIS_REPLY_INTEGER;
	freeReplyObject(reply);
	return counted;
}

/*
 * What became of each message of a batch.  Returns how many are not there, or
 * -1 when the reply makes no sense.
 */
static int
take_verdicts(
    struct publisher *p, const struct batch *b, const redisReply *reply)
{
	enum mq_published verdict;
	int i, missing = 0;

	for (i = 0; i < b->count; i++) {
		verdict = p->layout->published(reply, i);
		switch (verdict) {
		case MQ_PUBLISHED_NONSENSE:
			return -1;
		case MQ_PUBLISHED:
			p->accepted++;
			if (p->opt->ids)
				printf("%.*s\n", MQ_ID_LEN,
				    b->ids.data + (size_t)i * MQ_ID_LEN);
			continue;
		case MQ_PUBLISHED_DUPLICATE:
			p->duplicates++;
			break;
		case MQ_PUBLISHED_FULL:
		case MQ_PUBLISHED_STALE:
			p->refusal = verdict;
			break;
		}
		missing++;
	}
	return missing;
}

static void
empty(struct batch *b)
{
	b->count = 0;
	b->again = false;
	b->counted = false;
	mq_buf_clear(&b->ids);
	/* One huge message must not keep its memory for ever. */
	if (b->command.wire.cap > 4 * (size_t)BATCH_BYTES)
		mq_command_free(&b->command);
}

/* The server knows the script no more: the batch goes out again, last. */
static void
send_again(struct publisher *p, struct batch *b)
{
	struct batch copy = *b;

	copy.again = true;
	if (mq_redis_send_eval(&p->redis, &b->command) == -1)
		lost(p);
	*b = (struct batch){0};
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	empty(publish_batch(p));
	*publish_batch(p) = copy;
	p->used++;
}

/* The server has answered for the oldest batch under way; so many of its
 * messages are not there. */
static void
answered(struct publisher *p, struct batch *b, int missing)
{
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	p->bytes -= b->command.wire.len;
	if (!b->again)
		b->counted = next_counted(p);
	if (b->counted)
		p->miscounted += missing;
	empty(b);
}

/*
 * Takes the answer for the oldest batch under way.  Returns false when the
 * server refused it.
 */
static bool
collect(struct publisher *p)
{
	struct batch *b = &p->ring[p->first];
	redisReply *reply = next_reply(p);
	int missing = -1;

	if (reply == NULL)
		lost(p);
	if (mq_reply_noscript(reply)) {
		freeReplyObject(reply);
		b->counted = next_counted(p);
		send_again(p, b);
		return true;
	}
	if (!mq_redis_refused(&p->redis, reply)) {
		missing = take_verdicts(p, b, reply);
		if (missing == -1) {
			p->redis.status = MQ_EXIT_WRONGTYPE;
			snprintf(p->redis.error, sizeof(p->redis.error),
			    "%s: a reply that makes no sense",
			    p->redis.server->name);
		}
	}
	freeReplyObject(reply);
	answered(p, b, missing == -1 ? b->count : missing);
	return missing != -1;
}

/* What was refused has not been published.  Nothing waits for the reply. */
static void
correct_count(struct publisher *p)
{
	struct mq_command c = {0};

	if (p->miscounted == 0)
		return;
	p->layout->count_published(&c, p->opt->queue, -p->miscounted);
	(void)mq_redis_send(&p->redis, &c);
	mq_command_free(&c);
}

/* Waits for all that is under way, then ends with what the server said. */
static void
refused(struct publisher *p)
{
	int status = p->redis.status;
	char *error = mq_xstrdup(p->redis.error);

	while (p->used > 0)
		(void)collect(p);
	correct_count(p);
	mq_say("%s", error);
	publish_report(p, 0);
	exit(status);
}

static void
collect_or_end(struct publisher *p)
{
	if (!collect(p))
		refused(p);
	if (p->refusal == MQ_PUBLISHED)
		return;
	p->redis.status =
	    p->refusal == MQ_PUBLISHED_FULL ? MQ_EXIT_AGAIN : MQ_EXIT_NO;
	snprintf(p->redis.error, sizeof(p->redis.error), "%s: %s",
	    p->opt->queue,
	    p->refusal == MQ_PUBLISHED_FULL ? "the queue is full" :
					      "the last tick is over");
	refused(p);
}

void
publish_send(struct publisher *p)
{
	struct batch *b = publish_batch(p);

	if (b->count == 0)
		return;
	p->used++;
	p->bytes += b->command.wire.len;
	p->layout->count_published(&p->count, p->opt->queue, b->count);
	if (mq_redis_append(&p->redis, &b->command) == -1 ||
	    mq_redis_send(&p->redis, &p->count) == -1)
		lost(p);
	/* One place stays free: the batch that is filled next. */
	while (
	    p->used == UNDER_WAY || (p->used > 0 && p->bytes > UNDER_WAY_BYTES))
		collect_or_end(p);
}

void
publish_flush(struct publisher *p)
{
	publish_send(p);
	while (p->used > 0)
		collect_or_end(p);
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		publish_report(p, 0);
		exit(MQ_EXIT_IO);
	}
}

void
publish_catch_signals(void)
{
	/* The second one ends us in any case. */
	struct sigaction sa = {
	    .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void
publish_check(struct publisher *p)
{
	if (!interrupted)
		return;
	publish_flush(p);
	end_by_signal(p);
}
