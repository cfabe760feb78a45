/*
 * Batches under way to the server.  Each is kept until the server has confirmed
 * it.  So memory is bounded by the longest message, the count of what was
 * accepted is exact whatever goes wrong, and what got lost can be sent again.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "publish.h"

/* About so many bytes are under way at most. */
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024)

/* So many bytes of ids wait until their messages are safe. */
#define HELD_BYTES ((size_t)1024 * 1024)

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	/* The second one ends us in any case. */
	if (interrupted)
		mq_end_by(sig);
	interrupted = sig;
}

struct batch *
publish_batch(struct publisher *p)
{
	return &p->ring[(p->first + p->used) % UNDER_WAY];
}

void
publish_begin(struct publisher *p, struct batch *b)
{
	p->how.mark = (struct mq_mark){.publisher = p->marks ? p->id : NULL,
	    .place = (int)(p->batches++ % MQ_MARKS),
	    .before = p->sent};
	b->mark = p->how.mark;
	b->whole = p->layout->publish_counts(&p->how);
	p->layout->publish(&b->command, p->opt->queue, &p->how);
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

void
publish_lost(struct publisher *p)
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
	mq_end_by(interrupted);
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

bool
publish_verdicts(
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
	mq_buf_clear(&b->ids);
	/* One huge message must not keep its memory for ever. */
	if (b->command.wire.cap > 4 * (size_t)BATCH_BYTES)
		mq_command_free(&b->command);
}

void
publish_done(struct publisher *p, struct batch *b)
{
	p->bytes -= b->command.wire.len;
	p->confirmed += b->count;
	if (p->confirmed_last < b->mark.before)
		p->confirmed_last = b->mark.before;
	p->confirmed_ms = publish_now_ms();
	p->marked |= p->marks;
	p->lost_ms = p->pause_ms = 0;
	empty(b);
}

static void
transmit_or_resume(struct publisher *p, struct batch *b, bool eval)
{
	if (publish_transmit(p, b, eval) == -1)
		publish_resume(p);
}

/* The oldest one under way goes out again, last: as the server does not know
 * the script any more, or must not mark it. */
static void
send_again(struct publisher *p)
{
	struct batch *b = &p->ring[p->first], copy = *b;

	*b = (struct batch){0};
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	b = publish_batch(p);
	mq_buf_free(&b->ids);
	mq_command_free(&b->command);
	*b = copy;
	p->used++;
	transmit_or_resume(p, b, true);
}

/*
 * Takes the answer for the oldest batch under way, unless that has to be sent
 * once more.  Returns false when the server refused it.
 */
static bool
collect(struct publisher *p)
{
	struct batch *b = &p->ring[p->first];
	bool had_mark = b->mark.publisher != NULL, good = false;
	redisReply *reply = publish_reply(p, b);

	if (reply == NULL) {
		publish_resume(p);
		return true;
	}
	if (mq_reply_noscript(reply) ||
	    (had_mark && b->mark.publisher == NULL)) {
		freeReplyObject(reply);
		send_again(p);
		return true;
	}
	if (!mq_redis_refused(&p->redis, reply)) {
		good = publish_verdicts(p, b, reply);
		p->known |= b->whole;
		if (good && !b->whole && b->mark.publisher == NULL)
			p->uncounted += b->count;
		if (!good) {
			p->redis.status = MQ_EXIT_WRONGTYPE;
			snprintf(p->redis.error, sizeof(p->redis.error),
			    "%s: a reply that makes no sense",
			    p->redis.server->name);
		}
	}
	freeReplyObject(reply);
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	publish_done(p, b);
	return good;
}

/*
 * Counts what was not counted in the step that published it.  Whatever comes of
 * it, the messages have their own: if the connection is lost here, whoever uses
 * it next finds out.
 */
static void
count(struct publisher *p)
{
	struct mq_command c = {0};
	redisReply *reply = NULL;

	if (p->uncounted == 0)
		return;
	p->layout->count_published(&c, p->opt->queue, p->uncounted);
	p->uncounted = 0;
	if (mq_redis_send(&p->redis, &c) == 0)
		reply = publish_answer(p, PATIENCE_MS);
	if (reply == NULL)
		/* A late answer must not be taken for the next one. */
		shutdown(p->redis.context->fd, SHUT_RDWR);
	else
		freeReplyObject(reply);
	mq_command_free(&c);
}

/* Ends with what the server has said, when all that is under way is settled. */
static void
refused(struct publisher *p)
{
	int status = p->redis.status;

	mq_say("%s", p->redis.error);
	p->ending = true;
	while (p->used > 0)
		(void)collect(p);
	if (p->opt->durable)
		(void)publish_durable(p);
	count(p);
	publish_report(p, 0);
	exit(status);
}

static void
end_if_full(struct publisher *p)
{
	if (!p->full)
		return;
	p->redis.status = MQ_EXIT_AGAIN;
	snprintf(p->redis.error, sizeof(p->redis.error),
	    "%s: the queue is full", p->opt->queue);
	refused(p);
}

static void
collect_or_end(struct publisher *p)
{
	if (!collect(p))
		refused(p);
	end_if_full(p);
}

/*
 * How many batches may stay under way while the next one is filled.  With
 * limits none, so that those which are accepted are the first ones.  Nor may
 * any overtake the first of a script, or the first one that is marked: that
 * goes out again when the server does not know the script yet, or must not mark
 * it, and those behind it may be of the same group.
 */
static unsigned
may_stay(const struct publisher *p)
{
	bool whole = p->layout->publish_counts(&p->how);

	if (whole && (p->opt->limited || !p->known))
		return 0;
	if (!whole && p->marks && !p->marked)
		return 0;
	return UNDER_WAY - 1;
}

/* A private server ends when its disk is full, so too much for it is not sent. */
static void
end_if_no_room(struct publisher *p, size_t bytes)
{
	struct mq_redis *r = &p->redis;

	r->status =
	    mq_server_room(r->server, bytes, r->error, sizeof(r->error));
	if (r->status != 0)
		refused(p);
}

/* Sends the batch, if there is anything in it. */
static void
send_batch(struct publisher *p)
{
	struct batch *b = publish_batch(p);

	if (b->count == 0)
		return;
	end_if_no_room(p, p->bytes + b->command.wire.len);
	p->used++;
	p->bytes += b->command.wire.len;
	p->sent += b->count;
	transmit_or_resume(p, b, false);
	end_if_full(p);
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
	count(p);
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
	struct sigaction sa = {.sa_handler = on_signal};

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
