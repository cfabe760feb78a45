/*
 * What a script that has several messages reads on its standard input: a batch
 * is there as a whole, a worker that stays is fed by a pipe.
 */
#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consume.h"

/* NULL, or why the payload cannot be told from what is behind it. */
static const char *
unframable(const struct message *m)
{
	const struct mq_envelope *e = &m->envelope;

	if (m->c->opt->framing == MQ_FRAME_LINES && e->payload_len > 0 &&
	    memchr(e->payload, '\n', e->payload_len) != NULL)
		return "its payload has more than one line: --lines cannot "
		       "carry it";
	if (m->c->opt->framing == MQ_FRAME_NULL && e->payload_len > 0 &&
	    memchr(e->payload, '\0', e->payload_len) != NULL)
		return "its payload has a NUL: --null cannot carry it";
	return NULL;
}

bool
feed_frame(struct message *m, struct mq_buf *out)
{
	const char *why = unframable(m);

	if (why != NULL) {
		verdict_reject(m, why);
		return false;
	}
	message_frame(m, out);
	return true;
}

static size_t
unwritten(const struct feed *f)
{
	return f->out.len - f->start;
}

/* What is left in the pipe, nobody has read. */
void
feed_look(struct feed *f)
{
	int left, fd = f->fd != -1 ? f->fd : f->other;

	if (fd != -1 && ioctl(fd, FIONREAD, &left) == 0)
		f->taken = f->written - (size_t)left;
}

static void
feed_close(struct feed *f)
{
	if (f->other != -1)
		close(f->other);
	f->other = -1;
	if (f->fd == -1)
		return;
	ev_io_stop(f->s->c->loop, &f->room);
	close(f->fd);
	f->fd = -1;
}

/* The worker finds the end when there is no such end as ours any more; one like
 * its own still tells what it has not read. */
static void
feed_end(struct feed *f)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		f->taken = f->written;
	feed_close(f);
	f->other = fd;
}

void
feed_cut(struct feed *f)
{
	feed_look(f);
	feed_close(f);
	f->deaf = true;
}

/* With nothing to write, nothing else tells. */
void
feed_check(struct feed *f)
{
	struct pollfd pipe = {.fd = f->fd};

	if (f->fd == -1 || poll(&pipe, 1, 0) != 1 ||
	    (pipe.revents & POLLERR) == 0)
		return;
	feed_cut(f);
	worker_is_deaf(f->s);
}

/* One message may have been large. */
static void
clear(struct feed *f)
{
	if (f->out.cap > 2 * FEED_BYTES)
		mq_buf_free(&f->out);
	mq_buf_clear(&f->out);
	f->start = 0;
}

static void
write_out(struct feed *f)
{
	struct ev_loop *loop = f->s->c->loop;
	ssize_t n;

	while (f->fd != -1 && unwritten(f) > 0) {
		n = write(f->fd, f->out.data + f->start, unwritten(f));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			ev_io_start(loop, &f->room);
			return;
		}
		if (n == -1) {
			feed_cut(f);
			worker_is_deaf(f->s);
			return;
		}
		f->start += (size_t)n;
		f->written += (size_t)n;
	}
	if (f->fd == -1)
		return;
	clear(f);
	ev_io_stop(loop, &f->room);
	if (f->last)
		feed_end(f);
}

static void
on_room(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	write_out(w->data);
}

int
feed_open(struct slot *s)
{
	struct feed *f = &s->feed;
	int fds[2];

	*f = (struct feed){.s = s, .fd = -1, .other = -1};
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
feed_free(struct feed *f)
{
	feed_close(f);
	mq_buf_free(&f->out);
}

bool
feed_wants(const struct feed *f)
{
	return f->fd != -1 && !f->last && unwritten(f) < FEED_BYTES;
}

bool
feed_put(struct feed *f, struct message *m)
{
	/* What was written already makes room for what comes. */
	if (f->start > FEED_BYTES) {
		f->out.len -= f->start;
		memmove(f->out.data, f->out.data + f->start, f->out.len);
		f->start = 0;
	}
	m->start = f->written + unwritten(f);
	if (!feed_frame(m, &f->out))
		return false;
	m->end = f->written + unwritten(f);
	return true;
}

void
feed_flush(struct feed *f)
{
	if (f->fd != -1 && !ev_is_active(&f->room))
		write_out(f);
}

void
feed_last(struct feed *f)
{
	f->last = true;
	feed_flush(f);
}

bool
feed_begun(const struct feed *f, const struct message *m)
{
	return m->start < f->taken;
}

bool
feed_whole(const struct feed *f, const struct message *m)
{
	return m->end <= f->taken;
}

/* What is in the pipe can still be read, as long as there is somebody. */
void
feed_take_back(struct feed *f, struct messages *hand)
{
	size_t from = f->deaf ? f->taken : f->written;
	struct message *m;

	while ((m = TAILQ_LAST(hand, messages)) != NULL && m->start >= from) {
		if (!f->deaf)
			f->out.len -= m->end - m->start;
		message_unstart(m);
	}
}
