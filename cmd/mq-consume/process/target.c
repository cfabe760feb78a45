#include "parts.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

/* --- sink ---------------------------------------------------------------- */

#define KEPT_MAX  ((size_t)1 << 20)
#define LAST_WAIT 5000 /* milliseconds */
/* Erases from the cursor to the end of the line. */
#define ERASE "\033[K"

static void
note_failure(struct sink *s, int error)
{
	bool new = error != s->error;

	s->error = error;
	if (s->path != NULL && new)
		mq_say("%s: %s; the output of workers is lost", s->path,
		    strerror(error));
}

/*
 * One write that does not block: a ready pipe or terminal takes PIPE_BUF bytes.
 * Returns how many bytes were taken; 0: the sink has to wait.  Bytes that fail
 * count as taken, since they would fail again.
 */
static size_t
write_some(struct sink *s, const char *p, size_t n)
{
	struct pollfd pfd = {.fd = s->fd, .events = POLLOUT};
	ssize_t wrote;

	if (!s->whole) {
		if (poll(&pfd, 1, 0) == 0)
			return 0;
		if (n > PIPE_BUF)
			n = PIPE_BUF;
	}
	wrote = write(s->fd, p, n);
	if (wrote == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (wrote == -1) {
		note_failure(s, errno);
		return n;
	}
	s->error = 0;
	return (size_t)wrote;
}

static void
write_kept(struct sink *s)
{
	size_t n = write_some(s, s->kept.data, s->kept.len);

	s->kept.len -= n;
	memmove(s->kept.data, s->kept.data + n, s->kept.len);
}

static void
say_lost(struct sink *s)
{
	size_t lost = s->lost;

	s->lost = 0;
	if (lost > 0)
		mq_say("%s took nothing for too long: %zu byte%s lost",
		    s->path != NULL ? s->path : "standard error", lost,
		    lost == 1 ? " is" : "s are");
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct sink *s = w->data;

	(void)events;
	write_kept(s);
	if (s->kept.len == 0)
		say_lost(s);
	if (s->kept.len > 0)
		return;
	ev_io_stop(loop, w);
	s->ready(s->arg);
}

static void
take_descriptor(struct sink *s, int fd)
{
	struct stat st;

	s->fd = fd;
	s->whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	ev_io_init(&s->io, on_writable, fd, EV_WRITE);
	s->io.data = s;
}

/* For a file; the sink takes the descriptor and a copy of the path. */
static void
sink_init(struct sink *s, struct ev_loop *loop, int fd, const char *path)
{
	*s = (struct sink){.loop = loop, .own = true};
	s->path = path != NULL ? mq_xstrdup(path) : NULL;
	take_descriptor(s, fd);
}

/*
 * For our own standard output or standard error: 1 or 2.  Other writers may fill the
 * same pipe or terminal just before we write.  Opened anew, it is non-blocking for us
 * only.
 */
static void
sink_init_standard(struct sink *s, struct ev_loop *loop, int which)
{
	bool output = which == STDOUT_FILENO;
	int fd = -1;

	sink_init(s, loop, which, output ? "standard output" : NULL);
	if (!s->whole)
		fd = open(output ? "/proc/self/fd/1" : "/proc/self/fd/2",
		    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd != -1)
		take_descriptor(s, fd);
	s->own = fd != -1;
}

void
sink_move(struct sink *s, int fd)
{
	bool kept = ev_is_active(&s->io);

	ev_io_stop(s->loop, &s->io);
	close(s->fd);
	take_descriptor(s, fd);
	if (kept)
		ev_io_start(s->loop, &s->io);
}

/* False: bytes put now would be kept. */
static bool
sink_ready(const struct sink *s)
{
	return s->kept.len == 0;
}

/* The text after lost bytes begins a line. */
static void
end_line(struct sink *s)
{
	char *last = &s->kept.data[s->kept.len - 1];

	s->lost += *last != '\n';
	*last = '\n';
}

static void
put_bytes(struct sink *s, const void *bytes, size_t n)
{
	const char *p = bytes;
	size_t taken, room;

	while (n > 0 && sink_ready(s) && (taken = write_some(s, p, n)) > 0) {
		p += taken;
		n -= taken;
	}
	if (n == 0)
		return;
	room = KEPT_MAX - s->kept.len;
	mq_buf_add(&s->kept, p, n < room ? n : room);
	if (n > room) {
		s->lost += n - room;
		end_line(s);
	}
	ev_io_start(s->loop, &s->io);
}

/* The cursor is at the beginning of the line. */
static void
hide_line(struct sink *s)
{
	if (s->shown)
		put_bytes(s, ERASE, strlen(ERASE));
	s->shown = false;
}

void
sink_show(struct sink *s, const char *line)
{
	if (line == NULL)
		hide_line(s);
	if (line == NULL || !sink_ready(s) || s->line_open)
		return;
	put_bytes(s, line, strlen(line));
	put_bytes(s, ERASE "\r", strlen(ERASE "\r"));
	s->shown = true;
}

/*
 * Writes or keeps n bytes.  At most 1 MiB is kept; the rest is lost, which is said
 * later.  Bytes whose write fails are lost as well; for a file that is said at
 * once.
 */
static void
sink_put(struct sink *s, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	hide_line(s);
	s->line_open = ((const char *)bytes)[n - 1] != '\n';
	put_bytes(s, bytes, n);
}

/* Writes the kept bytes, while some are taken within 5 s and no signal comes.
 * Whether all are written. */
static bool
sink_wait(struct sink *s)
{
	struct pollfd pfd = {.fd = s->fd, .events = POLLOUT};

	ev_io_stop(s->loop, &s->io);
	while (s->kept.len > 0 && poll(&pfd, 1, LAST_WAIT) == 1)
		write_kept(s);
	return s->kept.len == 0;
}

/* The same; closes and frees. */
static void
sink_end(struct sink *s)
{
	if (sink_wait(s))
		say_lost(s);
	if (s->own)
		close(s->fd);
	mq_buf_free(&s->kept);
	free(s->path);
}

/* --- target -------------------------------------------------------------- */

/* Bytes that wait when no more runs start. */
#define CLOGGED ((size_t)1 << 20)
#define CHUNK	((size_t)64 << 10)
/* Chunks that are written before others have their turn. */
#define CHUNKS_AT_ONCE 64

bool
target_ready(const struct target *t)
{
	return TAILQ_EMPTY(&t->backlog) && sink_ready(&t->sink);
}

bool
target_clogged(const struct target *t)
{
	const struct spill *s;
	size_t n = 0;

	TAILQ_FOREACH(s, &t->backlog, link)
		n += spill_size(s);
	return n >= CLOGGED;
}

/* Writes the next bytes of the backlog. */
static void
write_chunk(struct target *t)
{
	struct spill *s = TAILQ_FIRST(&t->backlog);
	char buf[CHUNK];

	sink_put(&t->sink, buf, spill_take(s, buf, sizeof(buf)));
	if (spill_size(s) > 0)
		return;
	TAILQ_REMOVE(&t->backlog, s, link);
	spill_free(s);
}

static void
write_backlog(struct target *t)
{
	int i;

	for (i = 0; i < CHUNKS_AT_ONCE && sink_ready(&t->sink) &&
	     !TAILQ_EMPTY(&t->backlog);
	     i++)
		write_chunk(t);
	if (sink_ready(&t->sink) && !TAILQ_EMPTY(&t->backlog))
		ev_timer_start(t->sink.loop, &t->more);
}

static void
on_sink_ready(void *arg)
{
	struct target *t = arg;

	write_backlog(t);
	t->ready(t->arg);
}

static void
on_more(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	on_sink_ready(w->data);
}

/* Appends to the last one of the backlog if that stays in memory. */
static void
put_behind(struct target *t, const void *p, size_t n)
{
	struct spill *last = TAILQ_LAST(&t->backlog, spills);

	if (last == NULL || !spill_fits(last, n)) {
		last = spill_new();
		TAILQ_INSERT_TAIL(&t->backlog, last, link);
	}
	if (!spill_add(last, p, n)) {
		/* Longer than what stays in memory, and no file to be had. */
		mq_buf_add(&last->memory, p, n);
		last->end += (off_t)n;
	}
}

void
target_put(struct target *t, const void *p, size_t n)
{
	if (n == 0)
		return;
	t->open_line = ((const char *)p)[n - 1] != '\n';
	if (!t->patient || target_ready(t))
		sink_put(&t->sink, p, n);
	else
		put_behind(t, p, n);
}

void
target_move(struct target *t, struct spill *s)
{
	TAILQ_INSERT_TAIL(&t->backlog, s, link);
	write_backlog(t);
}

static ssize_t
put_line(void *target, const char *p, size_t n)
{
	target_put(target, p, n);
	return (ssize_t)n;
}

FILE *
target_stream(struct target *t)
{
	const cookie_io_functions_t functions = {.write = put_line};
	FILE *f = fopencookie(t, "w", functions);

	if (f == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	setvbuf(f, NULL, _IOLBF, 0);
	return f;
}

static void
init_backlog(struct target *t, bool patient)
{
	t->patient = patient;
	TAILQ_INIT(&t->backlog);
	ev_timer_init(&t->more, on_more, 0, 0);
	t->more.data = t;
	t->sink.ready = on_sink_ready;
	t->sink.arg = t;
}

void
target_init(struct target *t, struct ev_loop *loop, int fd, bool patient)
{
	sink_init_standard(&t->sink, loop, fd);
	t->terminal = isatty(fd);
	init_backlog(t, patient);
}

void
target_init_log(struct target *t, struct ev_loop *loop, int fd,
    const char *path, bool patient)
{
	sink_init(&t->sink, loop, fd, path);
	init_backlog(t, patient);
}

void
target_end(struct target *t)
{
	struct spill *s;

	ev_timer_stop(t->sink.loop, &t->more);
	while (!TAILQ_EMPTY(&t->backlog) && sink_wait(&t->sink))
		write_chunk(t);
	while ((s = TAILQ_FIRST(&t->backlog)) != NULL) {
		TAILQ_REMOVE(&t->backlog, s, link);
		spill_free(s);
	}
	sink_end(&t->sink);
}
