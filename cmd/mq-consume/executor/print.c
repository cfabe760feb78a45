#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "executor.h"
#include "printer.h"

/* What waits to be written is about so much at most, or one message. */
#define OUT_BYTES ((size_t)256 * 1024)
/* How many messages may be on their way to the reader. */
#define UNDER_WAY 4096
/* How many may be claimed ahead of those. */
#define AHEAD	    2000
#define AHEAD_BYTES ((size_t)1024 * 1024)
/*
 * The reader of a pipe may go after a few messages, and what it has taken by
 * then is gone with it.  So the first ones are written one by one, each when
 * the one before has been taken, and then more and more.
 */
#define ONE_BY_ONE 32
/* With --at-most-once, so many are lost if we are killed. */
#define ONCE 250

static int
may_be_under_way(const struct printer *p)
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
	/* Half of them come while the other half is printed. */
	ahead -= inbox_held(p->inbox);
	return ahead < AHEAD / 2 ? ahead : AHEAD / 2;
}

/* --- taking back ------------------------------------------------------------ */

static void
print_take_back_all(void *work, bool now)
{
	struct printer *p = work;
	bool all = p->lost || now;

	printer_cut(p, all);
	printer_return_unwritten(p, all);
}

/* What has been acked is to be printed. */
static void
print_once_take_back_all(void *work, bool now)
{
	struct printer *p = work;

	if (p->lost || now)
		printer_cut(p, true);
}

static void
print_take_back(void *work, int queue)
{
	struct printer *p = work;
	size_t written = out_pipe_written(&p->pipe);
	struct message *m, *next;
	struct mq_buf kept = {0};

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

static bool
print_take_away(void *work, struct message *m)
{
	printer_remove(work, m);
	return false;
}

/* --- writing ---------------------------------------------------------------- */

/* What has not arrived is not done, and goes back. */
static void
fail(struct printer *p, int status)
{
	p->lost = true;
	ev_io_stop(p->loop, &p->room);
	out_pipe_end(&p->pipe);
	out_pipe_look(&p->pipe);
	printer_ack_arrived(p);
	policy_stop(p->policy, STOP_SOON, status, 0);
}

/* It has had enough. */
static void
on_reader_gone(void *arg)
{
	fail(arg, MQ_EXIT_OK);
}

/* The reader may have taken something. */
static void
go_on(void *work)
{
	struct printer *p = work;

	out_pipe_look(&p->pipe);
	printer_ack_arrived(p);
	printer_watch(p);
	p->events->wake(p->arg);
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
		on_reader_gone(p);
		return;
	}
	if (wrote == -1) {
		mq_say("standard output: %s", strerror(errno));
		fail(p, MQ_EXIT_IO);
		return;
	}
	p->start += (size_t)wrote;
	if (printer_unwritten(p) == 0) {
		mq_buf_clear(&p->out);
		p->start = 0;
		ev_io_stop(loop, w);
	}
	go_on(p);
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

/* Puts as much as may be into the output; whether there was any. */
static bool
fill(struct printer *p)
{
	struct message *m;
	bool any = false;

	while (p->running < may_be_under_way(p) &&
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
	/* What was written already makes room for what comes. */
	if (p->start > 0 && printer_unwritten(p) <= OUT_BYTES) {
		memmove(
		    p->out.data, p->out.data + p->start, printer_unwritten(p));
		p->out.len -= p->start;
		p->start = 0;
	}
	/* What is empty has arrived as soon as that before it. */
	while (fill(p) && printer_unwritten(p) == 0)
		printer_ack_arrived(p);
	if (printer_unwritten(p) > 0)
		ev_io_start(p->loop, &p->room);
}

/* The next ones, when the last ones have been acked and written. */
static void
print_once_start(void *work)
{
	struct printer *p = work;
	/* If it cannot be written, that shows with the first ones. */
	long n = 1 + p->arrived / 4;
	struct message *m;

	if (!may_print(p) || printer_unwritten(p) > 0 ||
	    p->events->settling(p->arg))
		return;
	if (n > ONCE)
		n = ONCE;
	for (; n > 0 && policy_may_start(p->policy) &&
	     (m = inbox_next(p->inbox, -1)) != NULL;
	     n--) {
		policy_started(p->policy);
		p->events->done(p->arg, m);
	}
	p->events->flush(p->arg);
}

static void
print_acked(void *work, const struct message *m)
{
	struct printer *p = work;

	printer_frame(p, m);
	p->arrived++;
	/* Even if it is empty: then the next one can come. */
	if (!p->lost)
		ev_io_start(p->loop, &p->room);
}

/* --- the tables ------------------------------------------------------------- */

static bool
print_once_owes(const void *work)
{
	const struct printer *p = work;

	return printer_unwritten(p) > 0 && !p->lost;
}

static int
print_running(const void *work)
{
	return ((const struct printer *)work)->running;
}

static void
print_init(void *work)
{
	struct printer *p = work;

	TAILQ_INIT(&p->printed);
	out_pipe_init(&p->pipe, p->loop, go_on, on_reader_gone, p);
	p->terminal = isatty(out_pipe_fd(&p->pipe));
	if (p->terminal && !p->opt->quiet)
		mq_say("each message that is printed here is removed; "
		       "mq-stats --list ready %s only looks",
		    p->opt->queues[0]);
	ev_io_init(&p->room, on_writable, out_pipe_fd(&p->pipe), EV_WRITE);
	p->room.data = p;
}

const struct executor_table executor_print = {
    .flows = true,
    .many = true,
    .init = print_init,
    .room = print_room,
    .start = print_start,
    .take_back = print_take_back,
    .take_back_all = print_take_back_all,
    .take_away = print_take_away,
    .running = print_running,
    .tick = go_on,
};

const struct executor_table executor_print_once = {
    .flows = true,
    .many = true,
    .init = print_init,
    .room = print_room,
    .start = print_once_start,
    .take_back_all = print_once_take_back_all,
    .acked = print_acked,
    .owes = print_once_owes,
    .running = print_running,
    .tick = go_on,
};
