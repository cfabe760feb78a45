/*
 * Without a command: payloads are written to stdout, and a message is acked
 * when the last byte of it has been.
 */
#include <sys/stat.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "consume.h"
#include "exit.h"
#include "say.h"

/* What a pipe or terminal that is ready takes without blocking: PIPE_BUF. */
#define SURE 4096

static size_t
waiting(const struct consumer *c)
{
	return c->out.len - c->out_start;
}

/* Acks what has been written completely. */
static void
ack_written(struct consumer *c)
{
	struct message *m, *next;

	if (!lease_held(c))
		return;
	TAILQ_FOREACH_SAFE(m, &c->messages, link, next) {
		if (m->state != STATE_RUNNING)
			continue;
		if (m->end > c->out_written)
			break;
		settle(m, MQ_OUTCOME_ACK, 0);
	}
}

void
print_give_up(struct consumer *c)
{
	struct message *m, *next;

	ev_io_stop(c->loop, &c->out_io);
	TAILQ_FOREACH_REVERSE_SAFE(m, &c->messages, messages, link, next)
		if (m->state == STATE_RUNNING || m->state == STATE_HELD)
			settle(m, MQ_OUTCOME_FRONT, 0);
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

void
print_take_back(struct consumer *c, int queue)
{
	struct message *m, *next;
	struct mq_buf kept = {0};

	TAILQ_FOREACH_SAFE(m, &c->messages, link, next) {
		if (m->state != STATE_RUNNING || m->end <= c->out_written)
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
}

static void
failed(struct consumer *c, int error)
{
	ev_io_stop(c->loop, &c->out_io);
	if (error == EPIPE) {
		/* The reader has had enough. */
		stop(c, STOP_SOON, c->exit_status, 0);
	} else {
		mq_say("standard output: %s", strerror(error));
		stop(c, STOP_SOON, MQ_EXIT_IO, 0);
	}
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
	wrote = write(STDOUT_FILENO, c->out.data + c->out_start, n);
	if (wrote == -1) {
		if (errno != EAGAIN && errno != EINTR)
			failed(c, errno);
		return;
	}
	c->out_start += (size_t)wrote;
	c->out_written += (size_t)wrote;
	if (waiting(c) == 0) {
		mq_buf_clear(&c->out);
		c->out_start = 0;
		ev_io_stop(loop, w);
	}
	ack_written(c);
	print_held(c);
	claim_more(c);
	stop_check(c);
}

static void
print(struct consumer *c, struct message *m)
{
	if (!message_open(m))
		return;
	message_state(m, STATE_RUNNING);
	pace_take(c);
	c->started++;
	m->start = c->out_written + waiting(c);
	message_frame(m, &c->out);
	m->end = c->out_written + waiting(c);
}

void
print_held(struct consumer *c)
{
	struct message *m, *next;

	if (c->held == 0 || c->stop >= STOP_SOON)
		return;
	/* What was written already makes room for what comes. */
	if (c->out_start > 0) {
		memmove(c->out.data, c->out.data + c->out_start, waiting(c));
		c->out.len -= c->out_start;
		c->out_start = 0;
	}
	TAILQ_FOREACH_SAFE(m, &c->messages, link, next)
		if (m->state == STATE_HELD && !c->queues[m->queue].paused &&
		    pace_allows(c))
			print(c, m);
	if (waiting(c) > 0)
		ev_io_start(c->loop, &c->out_io);
	else
		ack_written(c);
}

void
print_init(struct consumer *c)
{
	struct stat st;

	c->out_whole = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	ev_io_init(&c->out_io, on_writable, STDOUT_FILENO, EV_WRITE);
	c->out_io.data = c;
}
