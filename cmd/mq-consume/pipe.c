/*
 * Who reads what is printed.  What stands in a pipe is lost with its reader,
 * so a message is done only when the reader has taken the last byte of it:
 * FIONREAD says how much is still in there.  Nothing tells when that becomes
 * less, unless the pipe was full; so it is looked at again and again while
 * there is something, less often while nothing moves, and not at all when
 * everything has been taken.  A full pipe tells only of whole pages: each tick
 * looks for the rest.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fcntl.h>
#include <linux/major.h>
#include <unistd.h>

#include "consume.h"

#define LOOK_MIN 0.001
#define LOOK_MAX 0.05

void
pipe_look(struct consumer *c)
{
	size_t behind = c->out_written - c->out_read;
	int unread;

	if (!c->out_piped) {
		c->out_read = c->out_written;
		return;
	}
	if (ioctl(c->out_fd, FIONREAD, &unread) == -1 || unread < 0 ||
	    (size_t)unread > behind) {
		/* Somebody else writes to it as well: what is ours cannot be
		 * told any more. */
		c->out_piped = false;
		c->out_read = c->out_written;
		return;
	}
	if ((size_t)unread < behind)
		c->out_look_s = LOOK_MIN;
	c->out_read = c->out_written - (size_t)unread;
}

void
pipe_watch(struct consumer *c)
{
	/* As long as it is full, or about to be written to, that tells. */
	if (!c->out_piped || c->out_lost || c->running == 0 ||
	    ev_is_active(&c->out_io)) {
		c->out_look_s = LOOK_MIN;
		ev_timer_stop(c->loop, &c->out_timer);
	} else if (!ev_is_active(&c->out_timer)) {
		ev_timer_set(&c->out_timer, c->out_look_s, 0);
		ev_timer_start(c->loop, &c->out_timer);
	}
}

static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	c->out_look_s *= 1.5;
	if (c->out_look_s > LOOK_MAX)
		c->out_look_s = LOOK_MAX;
	print_go_on(c);
}

static void
on_reader_gone(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	print_reader_gone(w->data);
}

void
pipe_end(struct consumer *c)
{
	ev_io_stop(c->loop, &c->out_io);
	ev_io_stop(c->loop, &c->out_gone);
	ev_timer_stop(c->loop, &c->out_timer);
}

/*
 * The other end of a pipe that can be written to only: not ready to be read
 * until nobody reads it any more.
 */
static void
open_pipe(struct consumer *c)
{
	int fd, before = 0, mode = fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE;

	if (mode == O_RDONLY || ioctl(STDOUT_FILENO, FIONREAD, &before) == -1)
		return;
	/* Not to block is our own wish, and not that of all who share it. */
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd != -1) {
		c->out_fd = fd;
		c->out_whole = true;
	}
	/* What others have written before is as good as ours. */
	c->out_written = (size_t)before;
	c->out_piped = true;
	if (fd != -1 || mode == O_WRONLY) {
		ev_io_set(&c->out_gone, c->out_fd, EV_READ);
		ev_io_start(c->loop, &c->out_gone);
	}
}

void
pipe_init(struct consumer *c)
{
	struct stat st;

	c->out_fd = STDOUT_FILENO;
	c->out_look_s = LOOK_MIN;
	ev_init(&c->out_gone, on_reader_gone);
	ev_init(&c->out_timer, on_look);
	c->out_gone.data = c;
	c->out_timer.data = c;
	if (c->opt->command != NULL || fstat(STDOUT_FILENO, &st) == -1)
		return;
	if (S_ISFIFO(st.st_mode))
		open_pipe(c);
	else
		c->out_whole = S_ISREG(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEM_MAJOR);
}
