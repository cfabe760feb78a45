#include <sys/types.h>

#include "parts.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fcntl.h>
#include <linux/major.h>
#include <unistd.h>

/* Bytes that a ready pipe or terminal takes without blocking: PIPE_BUF. */
#define SURE	 ((size_t)4096)
#define LOOK_MIN 0.001
#define LOOK_MAX 0.05

void
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

void
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

static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct out_pipe *p = w->data;

	(void)loop;
	(void)events;
	p->look_s *= 1.5;
	if (p->look_s > LOOK_MAX)
		p->look_s = LOOK_MAX;
	p->taken(p->arg);
}

static void
on_reader_gone(struct ev_loop *loop, ev_io *w, int events)
{
	struct out_pipe *p = w->data;

	(void)loop;
	(void)events;
	p->gone(p->arg);
}

void
out_pipe_end(struct out_pipe *p)
{
	ev_io_stop(p->loop, &p->reader);
	ev_timer_stop(p->loop, &p->timer);
}

ssize_t
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

size_t
out_pipe_written(const struct out_pipe *p)
{
	return p->written;
}

size_t
out_pipe_arrived(const struct out_pipe *p)
{
	return p->read;
}

bool
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

int
out_pipe_init(struct out_pipe *p, struct ev_loop *loop,
    void (*taken)(void *arg), void (*gone)(void *arg), void *arg)
{
	struct stat st;

	*p = (struct out_pipe){.loop = loop,
	    .taken = taken,
	    .gone = gone,
	    .arg = arg,
	    .fd = STDOUT_FILENO,
	    .look_s = LOOK_MIN};
	ev_init(&p->reader, on_reader_gone);
	ev_init(&p->timer, on_look);
	p->reader.data = p->timer.data = p;
	if (fstat(STDOUT_FILENO, &st) == -1)
		return p->fd;
	if (S_ISFIFO(st.st_mode))
		open_pipe(p);
	else
		p->whole = S_ISREG(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEM_MAJOR);
	return p->fd;
}
