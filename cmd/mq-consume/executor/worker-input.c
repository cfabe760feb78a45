#include "worker-input.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So much waits for a worker that does not read, and then one message more. */
#define INPUT_BYTES ((size_t)1 << 18)

static size_t
unwritten(const struct worker_input *f)
{
	return f->out.len - f->start;
}

/* What is left in the pipe, nobody has read. */
void
worker_input_look(struct worker_input *f)
{
	int left, fd = f->fd != -1 ? f->fd : f->other;

	if (fd != -1 && ioctl(fd, FIONREAD, &left) == 0)
		f->taken = f->written - (size_t)left;
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

/* The worker finds the end when there is no such end as ours any more; one like
 * its own still tells what it has not read. */
static void
end_input(struct worker_input *f)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		f->taken = f->written;
	close_pipe(f);
	f->other = fd;
}

void
worker_input_cut(struct worker_input *f)
{
	worker_input_look(f);
	close_pipe(f);
	f->cut = true;
}

/* With nothing to write, nothing else tells. */
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

/* One message may have been large. */
static void
clear_out(struct worker_input *f)
{
	if (f->out.cap > 2 * INPUT_BYTES)
		mq_buf_free(&f->out);
	mq_buf_clear(&f->out);
	f->start = 0;
}

static void
write_out(struct worker_input *f)
{
	ssize_t n;

	while (f->fd != -1 && unwritten(f) > 0) {
		n = write(f->fd, f->out.data + f->start, unwritten(f));
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
	clear_out(f);
	ev_io_stop(f->loop, &f->room);
	if (f->last)
		end_input(f);
}

static void
on_room(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	write_out(w->data);
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
	return f->fd != -1 && !f->last && unwritten(f) < INPUT_BYTES;
}

void
worker_input_put(
    struct worker_input *f, struct message *m, enum mq_framing framing)
{
	/* What was written already makes room for what comes. */
	if (f->start > INPUT_BYTES) {
		f->out.len -= f->start;
		memmove(f->out.data, f->out.data + f->start, f->out.len);
		f->start = 0;
	}
	m->start = f->written + unwritten(f);
	message_frame(m, framing, &f->out);
	m->end = f->written + unwritten(f);
}

void
worker_input_flush(struct worker_input *f)
{
	if (f->fd != -1 && !ev_is_active(&f->room))
		write_out(f);
}

void
worker_input_last(struct worker_input *f)
{
	f->last = true;
	worker_input_flush(f);
}

bool
worker_input_begun(const struct worker_input *f, const struct message *m)
{
	return m->start < f->taken;
}

bool
worker_input_whole(const struct worker_input *f, const struct message *m)
{
	return m->end <= f->taken;
}

bool
worker_input_ended(const struct worker_input *f)
{
	return f->fd == -1;
}

bool
worker_input_is_last(const struct worker_input *f)
{
	return f->last;
}

bool
worker_input_is_cut(const struct worker_input *f)
{
	return f->cut;
}

/* What is in the pipe can still be read, as long as there is somebody. */
bool
worker_input_take_back(struct worker_input *f, const struct message *m)
{
	if (m->start < (f->cut ? f->taken : f->written))
		return false;
	if (!f->cut)
		f->out.len -= m->end - m->start;
	return true;
}
