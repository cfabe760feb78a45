#include "process.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Bytes that are kept of what the pipe does not take. */
#define UNREAD_MAX 65536

void
mq_answers_close(struct mq_answers *a)
{
	if (a->fd == -1)
		return;
	ev_io_stop(a->loop, &a->room);
	close(a->fd);
	close(a->worker_fd);
	a->fd = -1;
	mq_buf_free(&a->unread);
}

static void
write_unread(struct mq_answers *a)
{
	ssize_t n;

	while (a->unread.len > 0) {
		n = write(a->fd, a->unread.data, a->unread.len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n == -1) {
			mq_answers_close(a);
			return;
		}
		a->unread.len -= (size_t)n;
		memmove(a->unread.data, a->unread.data + n, a->unread.len);
	}
	/* A worker that reads after all finds the end behind what the pipe held,
	 * and no answers that belong to other questions. */
	if (a->unread.len > UNREAD_MAX)
		mq_answers_close(a);
	else if (a->unread.len > 0)
		ev_io_start(a->loop, &a->room);
	else
		ev_io_stop(a->loop, &a->room);
}

static void
on_room(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	write_unread(w->data);
}

void
mq_answers_say(struct mq_answers *a, const char *text)
{
	size_t start = a->unread.len, i;

	if (a->fd == -1)
		return;
	/* Only our end: the worker's must block. */
	if (!a->used)
		fcntl(a->fd, F_SETFL, O_NONBLOCK);
	a->used = true;
	mq_buf_addstr(&a->unread, text);
	for (i = start; i < a->unread.len; i++)
		if ((unsigned char)a->unread.data[i] < ' ' ||
		    a->unread.data[i] == '\x7f')
			a->unread.data[i] = '?';
	mq_buf_add(&a->unread, "\n", 1);
	write_unread(a);
}

int
mq_answers_open(struct mq_answers *a)
{
	int fds[2];

	if (a->fd != -1)
		return a->worker_fd;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	a->worker_fd = fds[0];
	a->fd = fds[1];
	a->used = false;
	ev_io_init(&a->room, on_room, a->fd, EV_WRITE);
	a->room.data = a;
	return a->worker_fd;
}

/* The worker shared the flags of its end, and may have opened it for writing. */
void
mq_answers_keep(struct mq_answers *a)
{
	int bytes;

	if (a->used || a->fd == -1 ||
	    ioctl(a->worker_fd, FIONREAD, &bytes) == -1 || bytes > 0 ||
	    fcntl(a->worker_fd, F_SETFL, 0) == -1)
		mq_answers_close(a);
}
