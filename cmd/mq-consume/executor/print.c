#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/major.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/visible.h"
#include "executor.h"
#include "parts.h"

/* --- out-pipe ------------------------------------------------------------ */

/* Bytes that a ready pipe or terminal takes without blocking: PIPE_BUF. */
#define SURE	 ((size_t)4096)
#define LOOK_MIN 0.001
#define LOOK_MAX 0.05

/* Finds out how much of what was written has arrived. */
static void
out_pipe_look(struct out_pipe *p)
{
	size_t behind = p->written - p->read;
	int unread;

	if (!p->piped) {
		p->read = p->written;
		return;
	}
	if (ioctl(p->fd, FIONREAD, &unread) == -1 || unread < 0 ||
	    (size_t)unread > behind) {
		/* Another process writes to the pipe as well: its bytes cannot
		 * be told from ours. */
		p->piped = false;
		p->read = p->written;
		return;
	}
	if ((size_t)unread < behind)
		p->look_s = LOOK_MIN;
	p->read = p->written - (size_t)unread;
}

/* Looks again later, if it is wanted. */
static void
out_pipe_watch(struct out_pipe *p, bool wanted)
{
	if (!p->piped || !wanted) {
		p->look_s = LOOK_MIN;
		ev_timer_stop(p->loop, &p->timer);
	} else if (!ev_is_active(&p->timer)) {
		ev_timer_set(&p->timer, p->look_s, 0);
		ev_timer_start(p->loop, &p->timer);
	}
}

/* Stops the looks. */
static void
out_pipe_end(struct out_pipe *p)
{
	ev_io_stop(p->loop, &p->reader);
	ev_timer_stop(p->loop, &p->timer);
}

/* Writes some of n bytes; as write(2). */
static ssize_t
out_pipe_write(struct out_pipe *p, const void *data, size_t n)
{
	ssize_t wrote;

	if (!p->whole && n > SURE)
		n = SURE;
	wrote = write(p->fd, data, n);
	if (wrote > 0)
		p->written += (size_t)wrote;
	return wrote;
}

/* How many bytes have been written, and have arrived. */
static size_t
out_pipe_written(const struct out_pipe *p)
{
	return p->written;
}

static size_t
out_pipe_arrived(const struct out_pipe *p)
{
	return p->read;
}

/* Whether out_pipe_arrived() is what a reader has taken. */
static bool
out_pipe_tells(const struct out_pipe *p)
{
	return p->piped;
}

/*
 * The write end of a pipe becomes readable when the reader is gone.
 */
static void
open_pipe(struct out_pipe *p)
{
	int fd, before = 0, mode = fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE;

	if (mode == O_RDONLY || ioctl(STDOUT_FILENO, FIONREAD, &before) == -1)
		return;
	/* Opened anew: other writers that share stdout may want to block. */
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd != -1) {
		p->fd = fd;
		p->whole = true;
	}
	/* Bytes of earlier writers count as ours. */
	p->written = (size_t)before;
	p->piped = true;
	if (fd != -1 || mode == O_WRONLY) {
		ev_io_set(&p->reader, p->fd, EV_READ);
		ev_io_start(p->loop, &p->reader);
	}
}

/* Returns the descriptor to be written to. */
static int
out_pipe_init(struct out_pipe *p, struct ev_loop *loop)
{
	struct stat st;

	p->loop = loop;
	p->fd = STDOUT_FILENO;
	p->look_s = LOOK_MIN;
	if (fstat(STDOUT_FILENO, &st) == -1)
		return p->fd;
	if (S_ISFIFO(st.st_mode))
		open_pipe(p);
	else
		p->whole = S_ISREG(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEM_MAJOR);
	return p->fd;
}

/* --- printer ------------------------------------------------------------- */

/* Bytes of output that are not written yet. */
static size_t
printer_unwritten(const struct printer *p)
{
	return p->out.len - p->start;
}

/* Appends a message to printed; or removes it. */
static void
printer_add(struct printer *p, struct message *m)
{
	TAILQ_INSERT_TAIL(&p->printed, m, line);
	p->running++;
}

static void
printer_remove(struct printer *p, struct message *m)
{
	TAILQ_REMOVE(&p->printed, m, line);
	p->running--;
}

/* Gives a message back. */
static void
printer_return(struct printer *p, struct message *m)
{
	printer_remove(p, m);
	policy_unstarted(p->policy);
	tell(p, FACT_RETURNED, .message = m);
}

/* Looks later for arrived messages, if no event will tell: while output waits for the
 * pipe, the next write does. */
static void
printer_watch(struct printer *p)
{
	out_pipe_watch(
	    &p->pipe, !p->lost && p->running > 0 && !ev_is_active(&p->room));
}

/* Reports completely arrived messages as done. */
static void
printer_ack_arrived(struct printer *p)
{
	struct message *m;

	tell(p, FACT_JUDGING);
	while ((m = TAILQ_FIRST(&p->printed)) != NULL &&
	    m->end <= out_pipe_arrived(&p->pipe)) {
		p->arrived++;
		printer_remove(p, m);
		tell(p, FACT_DONE, .message = m);
	}
}

/* Drops unwritten output, but for the rest of a begun message; all: that, too. */
static void
printer_cut(struct printer *p, bool all)
{
	size_t written = out_pipe_written(&p->pipe), rest = 0;
	const struct message *m;

	TAILQ_FOREACH(m, &p->printed, line)
		if (!all && m->start < written && m->end > written)
			rest = m->end - written;
	p->out.len = p->start + rest;
	if (rest == 0)
		ev_io_stop(p->loop, &p->room);
}

/* Gives unbegun messages back; all: the others, too. */
static void
printer_return_unwritten(struct printer *p, bool all)
{
	struct message *m;

	while ((m = TAILQ_LAST(&p->printed, messages)) != NULL &&
	    (all || m->start >= out_pipe_written(&p->pipe)))
		printer_return(p, m);
	printer_watch(p);
}

/* Moves the unwritten rest of a message to another buffer. */
static void
printer_move_rest(struct printer *p, struct message *m, struct mq_buf *to)
{
	const char *out = p->out.data + p->start;
	size_t written = out_pipe_written(&p->pipe);
	size_t from = m->start > written ? m->start : written;
	size_t shift = from - written - to->len;

	mq_buf_add(to, out + (from - written), m->end - from);
	m->start -= shift;
	m->end -= shift;
}

/* Appends a framed message to the output. */
static void
printer_frame(struct printer *p, const struct message *m)
{
	struct mq_buf one = {0};

	if (!p->terminal) {
		message_frame(m, p->opt->framing, &p->out);
		return;
	}
	message_frame(m, p->opt->framing, &one);
	mq_add_visible(&p->out, one.data, one.len);
	mq_buf_free(&one);
}

void
printer_free(struct printer *p)
{
	mq_buf_free(&p->out);
}

/* --- print --------------------------------------------------------------- */

/* Unwritten output, in bytes; at least one message. */
#define OUT_BYTES ((size_t)256 * 1024)
/* Messages on their way to the reader. */
#define UNDER_WAY 4096
/* Messages claimed ahead of those. */
#define AHEAD	    2000
#define AHEAD_BYTES ((size_t)1024 * 1024)
/*
 * The reader of a pipe may end after a few messages, and loses what it has read.
 * So the first messages are written one by one, each when the reader has taken
 * the one before; then more and more at once.
 */
#define ONE_BY_ONE 32
/* With --at-most-once, a crash loses at most that many messages. */
#define ONCE 250

static int
under_way_max(const struct printer *p)
{
	long more = (p->arrived - ONE_BY_ONE) / 4;

	if (!out_pipe_tells(&p->pipe) || more >= UNDER_WAY)
		return UNDER_WAY;
	return more > 0 ? 1 + (int)more : 1;
}

static long
print_room(const void *work, int queue)
{
	const struct printer *p = work;
	long ahead = AHEAD;

	(void)queue;
	if (inbox_held_bytes(p->inbox) + printer_unwritten(p) > AHEAD_BYTES)
		return 0;
	if (out_pipe_tells(&p->pipe) && ahead > p->arrived + ONE_BY_ONE)
		ahead = p->arrived + ONE_BY_ONE;
	/* Half of the messages come while the other half is printed. */
	ahead -= inbox_held(p->inbox);
	return ahead < AHEAD / 2 ? ahead : AHEAD / 2;
}

/* --- taking back ------------------------------------------------------------ */

void
printer_take_back_all(struct printer *p, bool now)
{
	bool all = p->lost || now;

	if (!p->opt->at_most_once) {
		printer_cut(p, all);
		printer_return_unwritten(p, all);
	} else if (all) {
		printer_cut(p, true);
	}
}

void
printer_take_back(struct printer *p, int queue)
{
	size_t written = out_pipe_written(&p->pipe);
	struct message *m, *next;
	struct mq_buf kept = {0};

	if (p->opt->at_most_once)
		return;
	TAILQ_FOREACH_SAFE(m, &p->printed, line, next) {
		if (m->end <= written)
			continue;
		if (m->queue == queue && m->start >= written)
			printer_return(p, m);
		else
			printer_move_rest(p, m, &kept);
	}
	mq_buf_free(&p->out);
	p->out = kept;
	p->start = 0;
	if (kept.len == 0)
		ev_io_stop(p->loop, &p->room);
	printer_watch(p);
}

void
printer_take_away(struct printer *p, struct message *m)
{
	if (!p->opt->at_most_once)
		printer_remove(p, m);
}

/* --- writing ---------------------------------------------------------------- */

/* Messages that have not arrived go back. */
static void
fail_output(struct printer *p, int status)
{
	p->lost = true;
	ev_io_stop(p->loop, &p->room);
	out_pipe_end(&p->pipe);
	out_pipe_look(&p->pipe);
	printer_ack_arrived(p);
	policy_stop(p->policy, STOP_SOON, status, 0);
	/* Even if it has been stopping before. */
	tell(p, FACT_WAKE);
}

static void
on_reader_gone(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	fail_output(w->data, MQ_EXIT_OK);
}

/* Reports arrived messages as done. */
static void
print_progress(void *work)
{
	struct printer *p = work;

	out_pipe_look(&p->pipe);
	printer_ack_arrived(p);
	printer_watch(p);
	tell(p, FACT_WAKE);
}

static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct printer *p = w->data;

	(void)loop;
	(void)events;
	p->pipe.look_s *= 1.5;
	if (p->pipe.look_s > LOOK_MAX)
		p->pipe.look_s = LOOK_MAX;
	print_progress(p);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct printer *p = w->data;
	ssize_t wrote = out_pipe_write(
	    &p->pipe, p->out.data + p->start, printer_unwritten(p));

	(void)events;
	if (wrote == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (wrote == -1 && errno == EPIPE) {
		fail_output(p, MQ_EXIT_OK);
		return;
	}
	if (wrote == -1) {
		mq_say("standard output: %s", strerror(errno));
		fail_output(p, MQ_EXIT_IO);
		return;
	}
	p->start += (size_t)wrote;
	if (printer_unwritten(p) == 0) {
		mq_buf_clear(&p->out);
		p->start = 0;
		ev_io_stop(loop, w);
	}
	print_progress(p);
}

static void
print_message(struct printer *p, struct message *m)
{
	size_t written = out_pipe_written(&p->pipe);

	policy_started(p->policy);
	m->start = written + printer_unwritten(p);
	printer_frame(p, m);
	m->end = written + printer_unwritten(p);
	printer_add(p, m);
}

/* Prints as many messages as may be under way; false: none. */
static bool
fill_output(struct printer *p)
{
	struct message *m;
	bool any = false;

	while (p->running < under_way_max(p) &&
	    printer_unwritten(p) <= OUT_BYTES && policy_may_start(p->policy) &&
	    (m = inbox_next(p->inbox, -1)) != NULL) {
		print_message(p, m);
		any = true;
	}
	return any;
}

static bool
may_print(const struct printer *p)
{
	return inbox_held(p->inbox) > 0 && policy_level(p->policy) < STOP_SOON;
}

static void
print_start(void *work)
{
	struct printer *p = work;

	if (!may_print(p))
		return;
	if (p->start > 0 && printer_unwritten(p) <= OUT_BYTES) {
		memmove(
		    p->out.data, p->out.data + p->start, printer_unwritten(p));
		p->out.len -= p->start;
		p->start = 0;
	}
	/* An empty frame arrives at once, and makes room for others. */
	while (fill_output(p) && printer_unwritten(p) == 0)
		printer_ack_arrived(p);
	if (printer_unwritten(p) > 0)
		ev_io_start(p->loop, &p->room);
}

/* Acks the next messages once the last ones are written. */
static void
print_once_start(void *work)
{
	struct printer *p = work;
	/* If stdout cannot be written, few messages are lost. */
	long n = 1 + p->arrived / 4;
	struct message *m;

	if (!may_print(p) || printer_unwritten(p) > 0 ||
	    outbox_settling(p->outbox) > 0)
		return;
	if (n > ONCE)
		n = ONCE;
	for (; n > 0 && policy_may_start(p->policy) &&
	     (m = inbox_next(p->inbox, -1)) != NULL;
	     n--) {
		policy_started(p->policy);
		tell(p, FACT_DONE, .message = m);
	}
	outbox_flush(p->outbox);
}

void
printer_acked(struct printer *p, const struct message *m)
{
	if (!p->opt->at_most_once)
		return;
	printer_frame(p, m);
	p->arrived++;
	/* An empty frame, too, must lead to the next message. */
	if (!p->lost)
		ev_io_start(p->loop, &p->room);
}

/* --- the tables ------------------------------------------------------------- */

bool
printer_owes(const struct printer *p)
{
	return p->opt->at_most_once && printer_unwritten(p) > 0 && !p->lost;
}

static void
print_init(void *work)
{
	struct printer *p = work;
	int fd;

	ev_init(&p->pipe.reader, on_reader_gone);
	ev_init(&p->pipe.timer, on_look);
	p->pipe.reader.data = p->pipe.timer.data = p;
	fd = out_pipe_init(&p->pipe, p->loop);
	TAILQ_INIT(&p->printed);
	p->terminal = isatty(fd);
	if (p->terminal && !p->opt->quiet)
		mq_say("messages printed here are removed from the queue; to "
		       "keep them, use mq-stats --list ready %s",
		    p->opt->queues[0]);
	ev_io_init(&p->room, on_writable, fd, EV_WRITE);
	p->room.data = p;
}

const struct executor_table executor_print = {
    .flows = true,
    .many = true,
    .init = print_init,
    .room = print_room,
    .start = print_start,
    .tick = print_progress,
};

const struct executor_table executor_print_once = {
    .flows = true,
    .many = true,
    .init = print_init,
    .room = print_room,
    .start = print_once_start,
    .tick = print_progress,
};
