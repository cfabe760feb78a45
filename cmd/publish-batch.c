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

/* So many bytes of ids wait until their messages are safe. */
#define HELD_BYTES ((size_t)1024 * 1024)

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

redisReply *
publish_answer(struct publisher *p, int64_t ms)
{
	const struct timespec patience = {ms / 1000, ms % 1000 * 1000000};
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
	redisReply *reply = publish_answer(p, PATIENCE_MS);
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

/* With --durable, that has to be safe as well. */
static void
print_id(struct publisher *p, const char *id)
{
	if (!p->opt->durable) {
		printf("%.*s\n", MQ_ID_LEN, id);
		return;
	}
	mq_buf_add(&p->durable.held, id, MQ_ID_LEN);
	mq_buf_add(&p->durable.held, "\n", 1);
}

static void
take_accepted(struct publisher *p, const struct batch *b, int i)
{
	const char *id = NULL;

	if (b->ids.len > 0)
		id = b->ids.data + (size_t)i * MQ_ID_LEN;
	p->accepted++;
	p->durable.unsure = p->durable.ours = true;
	if (p->opt->ids)
		print_id(p, id);
	if (p->opt->wait)
		mq_buf_add(&p->awaited, id, MQ_ID_LEN);
}

/* The other one may not be safe yet, and somebody else's. */
static void
take_duplicate(struct publisher *p)
{
	p->duplicates++;
	p->durable.unsure = true;
	p->durable.ours = false;
}

/*
 * What became of each message of a batch.  False when the reply makes no
 * sense.
 */
static bool
take_verdicts(
    struct publisher *p, const struct batch *b, const redisReply *reply)
{
	int i;

	for (i = 0; i < b->count; i++)
		switch (p->layout->published(reply, i)) {
		case MQ_PUBLISHED_NONSENSE:
			return false;
		case MQ_PUBLISHED:
			take_accepted(p, b, i);
			break;
		case MQ_PUBLISHED_DUPLICATE:
			take_duplicate(p);
			break;
		case MQ_PUBLISHED_STALE:
			p->stale++;
			break;
		case MQ_PUBLISHED_TOO_LONG:
			p->too_long++;
			break;
		case MQ_PUBLISHED_FULL:
			p->full = true;
			break;
		}
	return true;
}

static void
empty(struct batch *b)
{
	b->count = 0;
	b->count_follows = false;
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

	if (mq_redis_send_eval(&p->redis, &b->command) == -1)
		lost(p);
	*b = (struct batch){0};
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	empty(publish_batch(p));
	*publish_batch(p) = copy;
	p->used++;
}

/* The server has answered for the oldest batch under way. */
static void
answered(struct publisher *p, struct batch *b, bool there)
{
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	p->bytes -= b->command.wire.len;
	if (b->count_follows && next_counted(p) && !there)
		p->miscounted += b->count;
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
	redisReply *reply = publish_answer(p, PATIENCE_MS);
	bool good = false;

	if (reply == NULL)
		lost(p);
	if (mq_reply_noscript(reply)) {
		freeReplyObject(reply);
		send_again(p, b);
		return true;
	}
	if (!mq_redis_refused(&p->redis, reply)) {
		good = take_verdicts(p, b, reply);
		p->known |= !b->count_follows;
		if (!good) {
			p->redis.status = MQ_EXIT_WRONGTYPE;
			snprintf(p->redis.error, sizeof(p->redis.error),
			    "%s: a reply that makes no sense",
			    p->redis.server->name);
		}
	}
	freeReplyObject(reply);
	answered(p, b, good);
	return good;
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
	if (p->opt->durable)
		(void)publish_durable(p);
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
	if (!p->full)
		return;
	p->redis.status = MQ_EXIT_AGAIN;
	snprintf(p->redis.error, sizeof(p->redis.error),
	    "%s: the queue is full", p->opt->queue);
	refused(p);
}

/*
 * How many batches may stay under way while the next one is filled.  With
 * limits none, so that those which are accepted are the first ones.  Nor may
 * any overtake the first of a script: that goes out again when the server does
 * not know the script yet, and those behind it may be of the same group.
 */
static unsigned
may_stay(const struct publisher *p)
{
	if (p->layout->publish_counts(&p->how) &&
	    (p->opt->limited || !p->known))
		return 0;
	return UNDER_WAY - 1;
}

/* Sends the batch, if there is anything in it. */
static void
send_batch(struct publisher *p)
{
	struct batch *b = publish_batch(p);

	if (b->count == 0)
		return;
	p->used++;
	p->bytes += b->command.wire.len;
	b->count_follows = !p->layout->publish_counts(&p->how);
	if (b->count_follows)
		p->layout->count_published(&p->count, p->opt->queue, b->count);
	if ((b->count_follows ? mq_redis_append(&p->redis, &b->command) == -1 ||
			mq_redis_send(&p->redis, &p->count) == -1 :
				mq_redis_send(&p->redis, &b->command) == -1))
		lost(p);
	while (p->used > may_stay(p) ||
	    (p->used > 0 && p->bytes > UNDER_WAY_BYTES))
		collect_or_end(p);
}

static void
flush_output(struct publisher *p)
{
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		publish_report(p, 0);
		exit(MQ_EXIT_IO);
	}
}

void
publish_flush(struct publisher *p)
{
	send_batch(p);
	while (p->used > 0)
		collect_or_end(p);
	flush_output(p);
}

void
publish_settle(struct publisher *p)
{
	publish_flush(p);
	if (!p->opt->durable)
		return;
	if (!publish_durable(p)) {
		mq_say("%s", p->redis.error);
		publish_report(p, 0);
		exit(p->redis.status);
	}
	flush_output(p);
}

void
publish_send(struct publisher *p)
{
	send_batch(p);
	if (p->durable.held.len > HELD_BYTES)
		publish_settle(p);
}

void
publish_catch_signals(void)
{
	/* The second one ends us in any case. */
	struct sigaction sa = {
	    .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

void
publish_check(struct publisher *p)
{
	if (!interrupted)
		return;
	publish_flush(p);
	end_by_signal(p);
}
