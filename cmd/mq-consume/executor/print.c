/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "parts.h"

#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "base/syscall.h"

/* Bytes that a ready pipe or terminal takes without blocking: PIPE_BUF. */
#define SURE ((size_t)4096)
/* Seconds between two looks at the pipe. */
#define LOOK_MIN 0.001
#define LOOK_MAX 0.05
/* Bytes of unwritten output, from which on no message is added. */
#define OUT_BYTES ((size_t)256 * 1024)
/* Messages on their way to the reader, at most. */
#define UNDER_WAY 4096
/* Unstarted messages, at most; no more are claimed from AHEAD_BYTES bytes on. */
#define AHEAD	    2000
#define AHEAD_BYTES ((size_t)1024 * 1024)
/* If the reader of a pipe ends after a few messages, all that it has read is lost.  So this many
 * messages are written one by one, each when the reader has taken the one before; after that,
 * more and more at once. */
#define ONE_BY_ONE 32
/* With --at-most-once, a crash loses at most this many messages. */
#define ONCE 250

/* --- arrivals ------------------------------------------------------------------ */

static size_t
count_unwritten(const struct printer *p)
{
	return p->out.len - p->start;
}

static void
look_at_pipe(struct printer *p)
{
	size_t behind = p->written - p->read;
	int unread;

	if (p->piped &&
	    (ioctl(p->fd, FIONREAD, &unread) == -1 || unread < 0 ||
		(size_t)unread > behind))
		/* Another process writes to the pipe as well: its bytes cannot be told
		 * from ours. */
		p->piped = false;
	if (!p->piped) {
		p->read = p->written;
		return;
	}
	if ((size_t)unread < behind)
		p->look_s = LOOK_MIN;
	p->read = p->written - (size_t)unread;
}

/* Looks later for arrived messages; not while output waits for the pipe, since the next write
 * looks, too. */
static void
await_arrival(struct executor *x)
{
	struct printer *p = &x->printer;

	if (!p->piped || p->lost || TAILQ_EMPTY(&p->printed) ||
	    ev_is_active(&p->room)) {
		p->look_s = LOOK_MIN;
		mq_timer_stop(&p->timer);
	} else if (!mq_timer_runs(&p->timer)) {
		mq_timer_start(&p->timer, p->look_s, 0);
	}
}

static void
end_message(struct executor *x, struct message *m)
{
	hand_end(x->hand, m);
	tell(x, FACT_ENDED, .message = m);
}

static void
end_arrived(struct executor *x)
{
	struct printer *p = &x->printer;
	struct message *m;

	while ((m = TAILQ_FIRST(&p->printed)) != NULL && m->end <= p->read) {
		p->arrived++;
		TAILQ_REMOVE(&p->printed, m, line);
		end_message(x, m);
	}
}

static void
add_frame(struct executor *x, const struct message *m)
{
	struct printer *p = &x->printer;
	struct mq_buf one = {0};

	if (!p->terminal) {
		message_frame(m, x->opt->framing, &p->out);
		return;
	}
	message_frame(m, x->opt->framing, &one);
	mq_buf_visible(&p->out, one.data, one.len);
	mq_buf_free(&one);
}

static long
print_room(const struct executor *x, int queue, bool careful)
{
	const struct printer *p = &x->printer;
	long ahead = p->piped ? MIN(AHEAD, p->arrived + ONE_BY_ONE) : AHEAD;

	(void)queue;
	(void)careful;
	if (hand_unstarted_bytes(x->hand) + count_unwritten(p) > AHEAD_BYTES)
		return 0;
	/* Half of the messages come while the other half is printed. */
	return MIN(
	    ahead - hand_count(x->hand, -1, MESSAGE_UNSTARTED), AHEAD / 2);
}

void
executor_take_back(struct executor *x, int queue, bool begun)
{
	struct printer *p = &x->printer;
	size_t written = p->written, to = written, from;
	struct message *m, *next;

	begun = begun || p->lost;
	if (x->all != NULL || (x->opt->at_most_once && !begun))
		return;
	TAILQ_FOREACH_SAFE(m, &p->printed, line, next) {
		if (begun ||
		    (m->start >= written &&
			(queue == -1 ||
			    (m->queue == queue && m->end > written)))) {
			TAILQ_REMOVE(&p->printed, m, line);
			hand_put_back(x->hand, m);
			continue;
		}
		if (m->end <= written)
			continue;
		/* The unwritten bytes of a message that stays move forward. */
		from = MAX(m->start, written);
		if (from > to)
			memmove(p->out.data + p->start + (to - written),
			    p->out.data + p->start + (from - written),
			    m->end - from);
		m->start -= from - to;
		m->end -= from - to;
		to = m->end;
	}
	p->out.len = p->start + (to - written);
	if (to == written)
		ev_io_stop(x->loop, &p->room);
	await_arrival(x);
}

/* --- writing ---------------------------------------------------------------- */

/* Ends the consumer: messages that have not arrived go back. */
static void
fail_output(struct executor *x, int status)
{
	struct printer *p = &x->printer;

	p->lost = true;
	ev_io_stop(x->loop, &p->room);
	ev_io_stop(x->loop, &p->reader);
	mq_timer_stop(&p->timer);
	look_at_pipe(p);
	end_arrived(x);
	tell(x, FACT_MUST_END, .status = status);
}

static void
print_progress(struct executor *x)
{
	look_at_pipe(&x->printer);
	end_arrived(x);
	await_arrival(x);
	tell(x, FACT_WAKE);
}

static void
on_look(void *executor)
{
	struct executor *x = executor;

	x->printer.look_s = MIN(x->printer.look_s * 1.5, LOOK_MAX);
	print_progress(x);
}

static void
on_output(struct ev_loop *loop, ev_io *w, int events)
{
	struct executor *x = w->data;
	struct printer *p = &x->printer;
	size_t all = count_unwritten(p);
	ssize_t wrote;
	bool gone;

	(void)events;
	/* An event of `reader`: the reader is gone. */
	if (w == &p->reader) {
		fail_output(x, MQ_EXIT_OK);
		return;
	}
	wrote = write(
	    p->fd, p->out.data + p->start, p->whole ? all : MIN(all, SURE));
	if (wrote == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (wrote == -1) {
		gone = errno == EPIPE;
		if (!gone)
			mq_say("standard output: %s", strerror(errno));
		fail_output(x, gone ? MQ_EXIT_OK : MQ_EXIT_IO);
		return;
	}
	p->written += (size_t)wrote;
	p->start += (size_t)wrote;
	if (count_unwritten(p) == 0) {
		mq_buf_clear(&p->out);
		p->start = 0;
		ev_io_stop(loop, w);
	}
	print_progress(x);
}

/* --- starting --------------------------------------------------------------- */

/* --at-most-once: whether another message may be acked before it is printed.  If stdout cannot
 * be written, few are lost: the next messages are acked once the last ones are written. */
static bool
may_ack_first(const struct executor *x)
{
	const struct printer *p = &x->printer;

	if (p->acked > 0)
		return p->acked < MIN(1 + p->arrived / 4, ONCE);
	return count_unwritten(p) == 0 &&
	    hand_count(x->hand, -1, MESSAGE_ENDED) == 0 &&
	    hand_count(x->hand, -1, MESSAGE_SETTLING) == 0 &&
	    hand_count(x->hand, -1, MESSAGE_SETTLED) == 0;
}

/* Whether another message may be on its way to the reader. */
static bool
may_print(struct executor *x)
{
	struct printer *p = &x->printer;
	long more = MAX(p->arrived - ONE_BY_ONE, 0) / 4;
	long most = p->piped ? MIN(1 + more, UNDER_WAY) : UNDER_WAY;

	/* A message with an empty frame arrives at once, and makes room for others. */
	if (count_unwritten(p) == 0)
		end_arrived(x);
	return hand_count(x->hand, -1, MESSAGE_RUNNING) < most &&
	    count_unwritten(p) <= OUT_BYTES;
}

static bool
print_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	*queue = -1;
	return terms->may && hand_next(x->hand, -1) != NULL &&
	    (x->opt->at_most_once ? may_ack_first(x) : may_print(x));
}

static bool
print_take(struct executor *x, struct message *m)
{
	struct printer *p = &x->printer;

	if (x->opt->at_most_once) {
		p->acked++;
		end_message(x, m);
		return false;
	}
	if (p->start > OUT_BYTES) {
		mq_buf_drop(&p->out, p->start);
		p->start = 0;
	}
	m->start = p->written + count_unwritten(p);
	add_frame(x, m);
	m->end = p->written + count_unwritten(p);
	TAILQ_INSERT_TAIL(&p->printed, m, line);
	return false;
}

static void
print_started(struct executor *x, const struct start_terms *terms)
{
	struct printer *p = &x->printer;

	(void)terms;
	p->acked = 0;
	if (count_unwritten(p) == 0)
		end_arrived(x);
	else if (!p->lost)
		ev_io_start(x->loop, &p->room);
}

void
executor_acked(struct executor *x, const struct message *m)
{
	if (!x->opt->at_most_once)
		return;
	add_frame(x, m);
	x->printer.arrived++;
	/* After an empty frame, too, the next message must follow. */
	if (!x->printer.lost)
		ev_io_start(x->loop, &x->printer.room);
}

bool
executor_owes(const struct executor *x)
{
	const struct printer *p = &x->printer;

	return x->opt->at_most_once && count_unwritten(p) > 0 && !p->lost;
}

/* --- the table -------------------------------------------------------------- */

/* The write end of a pipe becomes readable when the reader is gone. */
static void
open_pipe(struct printer *p, struct ev_loop *loop)
{
	int fd, before = 0, mode = fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE;

	if (mode == O_RDONLY || ioctl(STDOUT_FILENO, FIONREAD, &before) == -1)
		return;
	/* O_NONBLOCK on stdout itself would hit other processes that share it. */
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd != -1) {
		p->fd = fd;
		p->whole = true;
	}
	/* Bytes of earlier writers, still in the pipe, count as ours. */
	p->written = (size_t)before;
	p->piped = true;
	if (fd != -1 || mode == O_WRONLY) {
		ev_io_set(&p->reader, p->fd, EV_READ);
		ev_io_start(loop, &p->reader);
	}
}

void
print_init(struct executor *x)
{
	struct printer *p = &x->printer;
	struct stat st = {.st_mode = 0};

	p->fd = STDOUT_FILENO;
	p->look_s = LOOK_MIN;
	ev_init(&p->reader, on_output);
	mq_timer_init(&p->timer, x->loop, on_look, x);
	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		open_pipe(p, x->loop);
	else
		p->whole = S_ISREG(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && major(st.st_rdev) == MQ_MEM_MAJOR);
	p->terminal = isatty(p->fd);
	if (p->terminal && !x->opt->quiet)
		mq_say("messages printed here are removed from the queue; to "
		       "keep them, use mq-stats --list ready QUEUE");
	ev_io_init(&p->room, on_output, p->fd, EV_WRITE);
	p->reader.data = p->room.data = x;
}

const struct executor_table executor_print = {
    .way = {.flows = true, .acks = ACKS_FOR_OTHERS, .takes_back = true},
    .wants = print_wants,
    .take = print_take,
    .started = print_started,
    .room = print_room,
    .tick = print_progress,
};
