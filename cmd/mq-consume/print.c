/*
 * Without a command: payloads are written to stdout, and a message is acked
 * when the last byte of it has been; if that is a pipe, when its reader has
 * taken that byte.  With --at-most-once it is the other way round: a message
 * is acked, and when that is confirmed its payload is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "consume.h"
#include "executor.h"

/* What a pipe or terminal that is ready takes without blocking: PIPE_BUF. */
#define SURE 4096
/* What waits to be written is about so much at most, or one message. */
#define OUT_BYTES ((size_t)256 * 1024)
/* How many messages may be on their way to the reader. */
#define UNDER_WAY 4096
/* How many may be claimed ahead of those. */
#define AHEAD	    2000
#define AHEAD_BYTES ((size_t)1024 * 1024)
/*
 * Whoever reads a pipe may go after a few messages, and what it has taken by
 * then is gone with it.  So the first ones are written one by one, each when
 * the one before has been taken, and then more and more.
 */
#define ONE_BY_ONE 32
/* With --at-most-once, so many are lost if we are killed. */
#define ONCE 250

static size_t
waiting(const struct consumer *c)
{
	return c->out.len - c->out_start;
}

static int
may_be_under_way(const struct consumer *c)
{
	long more = (c->out_count - ONE_BY_ONE) / 4;

	if (!c->out_piped || more >= UNDER_WAY)
		return UNDER_WAY;
	return more > 0 ? 1 + (int)more : 1;
}

static long
print_room(const struct consumer *c, int queue)
{
	long ahead = AHEAD;

	(void)queue;
	if (c->held_bytes + waiting(c) > AHEAD_BYTES)
		return 0;
	if (c->out_piped && ahead > c->out_count + ONE_BY_ONE)
		ahead = c->out_count + ONE_BY_ONE;
	/* Half of them come while the other half is printed. */
	ahead -= c->held;
	return ahead < AHEAD / 2 ? ahead : AHEAD / 2;
}

/* Acks what has arrived completely. */
static void
ack_read(struct consumer *c)
{
	struct message *m, *next;

	if (!lease_held(c))
		return;
	TAILQ_FOREACH_SAFE(m, &c->printed, hand, next) {
		if (m->end > c->out_read)
			break;
		c->out_count++;
		settle(m, MQ_OUTCOME_ACK, 0);
	}
}

/* Forgets what is to be written, but for the rest of what has begun. */
static void
cut(struct consumer *c, bool all)
{
	struct message *m;
	size_t rest = 0;

	TAILQ_FOREACH(m, &c->printed, hand)
		if (!all && m->start < c->out_written &&
		    m->end > c->out_written)
			rest = m->end - c->out_written;
	c->out.len = c->out_start + rest;
	if (rest == 0)
		ev_io_stop(c->loop, &c->out_io);
}

static void
print_give_back(struct consumer *c)
{
	bool all = c->out_lost || policy_level(&c->policy) == STOP_NOW;
	struct message *m, *next;

	if (all || c->executor->acked == NULL)
		cut(c, all);
	TAILQ_FOREACH_REVERSE_SAFE(m, &c->messages, messages, link, next)
		if (m->state == STATE_HELD ||
		    (m->state == STATE_RUNNING &&
			(all || m->start >= c->out_written)))
			settle(m, MQ_OUTCOME_FRONT, 0);
	pipe_watch(c);
}

/* Moves to another buffer what is left to write of a message. */
static void
move(struct consumer *c, struct message *m, struct mq_buf *to)
{
	const char *out = c->out.data + c->out_start;
	size_t from = m->start > c->out_written ? m->start : c->out_written;
	size_t shift = from - c->out_written - to->len;

	mq_buf_add(to, out + (from - c->out_written), m->end - from);
	m->start -= shift;
	m->end -= shift;
}

static void
print_take_back(struct consumer *c, int queue)
{
	struct message *m, *next;
	struct mq_buf kept = {0};

	TAILQ_FOREACH_SAFE(m, &c->printed, hand, next) {
		if (m->end <= c->out_written)
			continue;
		if (m->queue == queue && m->start >= c->out_written)
			message_unstart(m);
		else
			move(c, m, &kept);
	}
	mq_buf_free(&c->out);
	c->out = kept;
	c->out_start = 0;
	if (kept.len == 0)
		ev_io_stop(c->loop, &c->out_io);
	pipe_watch(c);
}

/* What has not arrived is not done, and goes back. */
static void
failed(struct consumer *c, int status)
{
	c->out_lost = true;
	pipe_end(c);
	pipe_look(c);
	ack_read(c);
	policy_stop(&c->policy, STOP_SOON, status, 0);
}

void
print_reader_gone(struct consumer *c)
{
	/* It has had enough. */
	failed(c, MQ_EXIT_OK);
}

void
print_go_on(struct consumer *c)
{
	pipe_look(c);
	ack_read(c);
	pipe_watch(c);
	engine_mark(c);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct consumer *c = w->data;
	size_t n = waiting(c);
	ssize_t wrote;

	(void)events;
	if (!c->out_whole && n > SURE)
		n = SURE;
	wrote = write(c->out_fd, c->out.data + c->out_start, n);
	if (wrote == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (wrote == -1 && errno == EPIPE) {
		print_reader_gone(c);
		return;
	}
	if (wrote == -1) {
		mq_say("standard output: %s", strerror(errno));
		failed(c, MQ_EXIT_IO);
		return;
	}
	c->out_start += (size_t)wrote;
	c->out_written += (size_t)wrote;
	if (waiting(c) == 0) {
		mq_buf_clear(&c->out);
		c->out_start = 0;
		ev_io_stop(loop, w);
	}
	print_go_on(c);
}

/* On a terminal, of which lines and tabs may be had, and nothing else. */
static void
add_visible(struct mq_buf *out, const struct mq_buf *frame)
{
	const char *p = frame->data, *end = p + frame->len, *stop;
	char *text;

	for (; p < end; p = stop) {
		for (stop = p; stop < end && *stop != '\n' && *stop != '\t';)
			stop++;
		text = mq_visible(p, (size_t)(stop - p));
		if (text == NULL)
			mq_die(MQ_EXIT_AGAIN, "out of memory");
		mq_buf_addstr(out, text);
		free(text);
		if (stop < end)
			mq_buf_add(out, stop++, 1);
	}
}

static void
frame(const struct message *m)
{
	struct consumer *c = m->c;
	struct mq_buf one = {0};

	if (!c->out_terminal) {
		message_frame(m, &c->out);
		return;
	}
	message_frame(m, &one);
	add_visible(&c->out, &one);
	mq_buf_free(&one);
}

static void
print(struct consumer *c, struct message *m)
{
	if (!message_open(m))
		return;
	message_state(m, STATE_RUNNING);
	policy_started(&c->policy);
	m->start = c->out_written + waiting(c);
	frame(m);
	m->end = c->out_written + waiting(c);
}

/* Puts as much as may be into the output; whether there was any. */
static bool
fill(struct consumer *c)
{
	struct message *m;
	bool any = false;

	while (c->running < may_be_under_way(c) && waiting(c) <= OUT_BYTES &&
	    policy_may_start(&c->policy) && (m = run_next(c)) != NULL) {
		print(c, m);
		any = true;
	}
	return any;
}

/* The next ones, when the last ones have been acked and written. */
static void
print_once_start(struct consumer *c)
{
	/* If it cannot be written, that shows with the first ones. */
	long n = 1 + c->out_count / 4;
	struct message *m;

	if (c->held == 0 || policy_level(&c->policy) >= STOP_SOON ||
	    c->settling > 0 || waiting(c) > 0)
		return;
	if (n > ONCE)
		n = ONCE;
	for (;
	     n > 0 && policy_may_start(&c->policy) && (m = run_next(c)) != NULL;
	     n--) {
		if (!message_open(m))
			continue;
		policy_started(&c->policy);
		settle(m, MQ_OUTCOME_ACK, 0);
	}
	acks_send(c);
}

static void
print_acked(const struct message *m)
{
	struct consumer *c = m->c;

	frame(m);
	c->out_count++;
	/* Even if it is empty: then the next one can come. */
	if (!c->out_lost)
		ev_io_start(c->loop, &c->out_io);
}

static bool
print_owes(const struct consumer *c)
{
	return c->executor->acked != NULL && waiting(c) > 0 && !c->out_lost;
}

static void
print_start(struct consumer *c)
{
	if (c->held == 0 || policy_level(&c->policy) >= STOP_SOON)
		return;
	/* What was written already makes room for what comes. */
	if (c->out_start > 0 && waiting(c) <= OUT_BYTES) {
		memmove(c->out.data, c->out.data + c->out_start, waiting(c));
		c->out.len -= c->out_start;
		c->out_start = 0;
	}
	/* What is empty has arrived as soon as that before it. */
	while (fill(c) && waiting(c) == 0)
		ack_read(c);
	if (waiting(c) > 0)
		ev_io_start(c->loop, &c->out_io);
}

void
print_init(struct consumer *c)
{
	TAILQ_INIT(&c->printed);
	pipe_init(c);
	c->out_terminal = isatty(c->out_fd);
	if (!c->executor->runs && c->out_terminal && !c->opt->quiet)
		mq_say("each message that is printed here is removed; "
		       "mq-stats --list ready %s only looks",
		    c->opt->queues[0]);
	ev_io_init(&c->out_io, on_writable, c->out_fd, EV_WRITE);
	c->out_io.data = c;
}

static bool
print_wants_few(const struct consumer *c, int queue)
{
	(void)c;
	(void)queue;
	return false;
}

static void
print_stop(struct consumer *c)
{
	(void)c;
}

/* What has been acked is to be printed. */
static void
print_once_take_back(struct consumer *c, int queue)
{
	(void)c;
	(void)queue;
}

const struct executor executor_print = {
    .flows = true,
    .many = true,
    .room = print_room,
    .wants_few = print_wants_few,
    .start = print_start,
    .take_back = print_take_back,
    .owes = print_owes,
    .tick = print_go_on,
    .stop = print_stop,
    .give_back = print_give_back,
};

const struct executor executor_print_once = {
    .flows = true,
    .many = true,
    .room = print_room,
    .wants_few = print_wants_few,
    .start = print_once_start,
    .take_back = print_once_take_back,
    .acked = print_acked,
    .owes = print_owes,
    .tick = print_go_on,
    .stop = print_stop,
    .give_back = print_give_back,
};
