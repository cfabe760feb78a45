#include "executor.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes that wait for a worker that does not read; or one message. */
#define INPUT_BYTES ((size_t)1 << 18)

static size_t
unwritten_bytes(const struct worker_input *f)
{
	return f->out.len - f->start;
}

/* Bytes that are left in the pipe are unread. */
void
worker_input_poll(struct worker_input *f)
{
	int left, fd = f->fd != -1 ? f->fd : f->other;

	if (fd != -1 && ioctl(fd, FIONREAD, &left) == 0)
		f->read = f->written - (size_t)left;
}

static void
close_pipe(struct worker_input *f)
{
	if (f->other != -1)
		close(f->other);
	f->other = -1;
	if (f->fd == -1)
		return;
	ev_io_stop(f->loop, &f->room);
	close(f->fd);
	f->fd = -1;
}

/* The worker finds the end when no write end is open.  A read end of our own still
 * tells what is unread. */
static void
end_input(struct worker_input *f)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		f->read = f->written;
	close_pipe(f);
	f->other = fd;
}

void
worker_input_cut(struct worker_input *f)
{
	worker_input_poll(f);
	close_pipe(f);
	f->cut = true;
}

/* Without output, no event tells that nobody reads. */
void
worker_input_check(struct worker_input *f)
{
	struct pollfd pipe = {.fd = f->fd};

	if (f->fd == -1 || poll(&pipe, 1, 0) != 1 ||
	    (pipe.revents & POLLERR) == 0)
		return;
	worker_input_cut(f);
	f->closed(f->arg);
}

static void
write_output(struct worker_input *f)
{
	ssize_t n;

	while (f->fd != -1 && unwritten_bytes(f) > 0) {
		n = write(f->fd, f->out.data + f->start, unwritten_bytes(f));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			ev_io_start(f->loop, &f->room);
			return;
		}
		if (n == -1) {
			worker_input_cut(f);
			f->closed(f->arg);
			return;
		}
		f->start += (size_t)n;
		f->written += (size_t)n;
	}
	if (f->fd == -1)
		return;
	/* After a large message, the buffer is freed. */
	if (f->out.cap > 2 * INPUT_BYTES)
		mq_buf_free(&f->out);
	mq_buf_clear(&f->out);
	f->start = 0;
	ev_io_stop(f->loop, &f->room);
	if (f->last)
		end_input(f);
}

static void
on_room(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	write_output(w->data);
}

int
worker_input_open(struct worker_input *f, struct ev_loop *loop,
    void (*closed)(void *arg), void *arg)
{
	int fds[2];

	*f = (struct worker_input){
	    .loop = loop, .closed = closed, .arg = arg, .fd = -1, .other = -1};
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	/* Only our end: the worker's must block. */
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	f->fd = fds[1];
	ev_io_init(&f->room, on_room, f->fd, EV_WRITE);
	f->room.data = f;
	return fds[0];
}

void
worker_input_free(struct worker_input *f)
{
	close_pipe(f);
	mq_buf_free(&f->out);
}

bool
worker_input_wants(const struct worker_input *f)
{
	return f->fd != -1 && !f->last && unwritten_bytes(f) < INPUT_BYTES;
}

void
worker_input_write(
    struct worker_input *f, struct message *m, enum mq_framing framing)
{
	if (f->start > INPUT_BYTES) {
		f->out.len -= f->start;
		memmove(f->out.data, f->out.data + f->start, f->out.len);
		f->start = 0;
	}
	m->start = f->written + unwritten_bytes(f);
	message_frame(m, framing, &f->out);
	m->end = f->written + unwritten_bytes(f);
}

void
worker_input_flush(struct worker_input *f)
{
	if (f->fd != -1 && !ev_is_active(&f->room))
		write_output(f);
}

void
worker_input_last(struct worker_input *f)
{
	f->last = true;
	worker_input_flush(f);
}

bool
worker_input_partly_read(const struct worker_input *f, const struct message *m)
{
	return m->start < f->read;
}

bool
worker_input_read(const struct worker_input *f, const struct message *m)
{
	return m->end <= f->read;
}

/* Bytes in the pipe can still be read, unless it is cut. */
bool
worker_input_take_back(struct worker_input *f, const struct message *m)
{
	if (m->start < (f->cut ? f->read : f->written))
		return false;
	if (!f->cut)
		f->out.len -= m->end - m->start;
	return true;
}
