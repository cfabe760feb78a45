#include "process.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/xalloc.h"

/* --- spill --------------------------------------------------------------- */

/* The most that is kept in memory. */
#define SPILL_MEMORY ((size_t)32 << 10)

struct spill *
spill_new(void)
{
	struct spill *s = mq_xcalloc(1, sizeof(*s));

	s->fd = -1;
	return s;
}

static void
spill_free(struct spill *s)
{
	if (s->fd != -1)
		close(s->fd);
	mq_buf_free(&s->memory);
	free(s);
}

/* Bytes that wait. */
static size_t
spill_size(const struct spill *s)
{
	return (size_t)(s->end - s->start);
}

/* Whether n bytes more stay in memory. */
static bool
spill_fits(const struct spill *s, size_t n)
{
	return s->fd == -1 && s->memory.len + n <= SPILL_MEMORY;
}

/* False with errno; a file takes less only if the disk is full. */
static bool
write_all(int fd, const char *p, size_t n, off_t at)
{
	ssize_t wrote = pwrite(fd, p, n, at);

	if (wrote >= 0 && (size_t)wrote < n)
		errno = ENOSPC;
	return wrote == (ssize_t)n;
}

/* Moves all bytes from memory into a file.  Nobody else can open the file, and nothing is
 * left of it after a crash. */
static bool
move_to_file(struct spill *s)
{
	const char *dir = getenv("TMPDIR");
	char *name;
	int fd, error;

	if (dir == NULL || *dir == '\0')
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		/* This file system has no files without a name. */
		name = mq_xasprintf("%s/mq-consume.XXXXXX", dir);
		fd = mkostemp(name, O_CLOEXEC);
		if (fd != -1)
			unlink(name);
		free(name);
	}
	if (fd == -1)
		return false;
	if (!write_all(fd, s->memory.data, s->memory.len, 0)) {
		error = errno;
		close(fd);
		errno = error;
		return false;
	}
	mq_buf_free(&s->memory);
	s->fd = fd;
	return true;
}

bool
spill_add(struct spill *s, const void *p, size_t n)
{
	if (spill_fits(s, n))
		mq_buf_add(&s->memory, p, n);
	else if ((s->fd == -1 && !move_to_file(s)) ||
	    !write_all(s->fd, p, n, s->end))
		return false;
	s->end += (off_t)n;
	return true;
}

/* --- writing ------------------------------------------------------------- */

#define KEPT_MAX  ((size_t)1 << 20)
#define LAST_WAIT 5000 /* milliseconds */
/* Bytes that wait when no more runs start. */
#define CLOGGED ((size_t)1 << 20)
#define CHUNK	((size_t)64 << 10)
/* Chunks that are written before others have their turn. */
#define CHUNKS_AT_ONCE 64
/* Erases from the cursor to the end of the line. */
#define ERASE "\033[K"

/*
 * One write that does not block: a ready pipe or terminal takes PIPE_BUF bytes.
 * Returns how many bytes were taken; 0: the target has to wait.  Bytes that fail
 * count as taken, since they would fail again.
 */
static size_t
write_some(struct target *t, const char *p, size_t n)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
	ssize_t wrote;
	int error;

	if (!t->whole) {
		if (poll(&pfd, 1, 0) == 0)
			return 0;
		if (n > PIPE_BUF)
			n = PIPE_BUF;
	}
	wrote = write(t->fd, p, n);
	error = errno;
	if (wrote == -1 && (error == EAGAIN || error == EINTR))
		return 0;
	if (wrote == -1) {
		if (t->path != NULL && t->error != error)
			mq_say("%s: %s; the output of workers is lost", t->path,
			    strerror(error));
		t->error = error;
		return n;
	}
	t->error = 0;
	return (size_t)wrote;
}

static void
write_kept(struct target *t)
{
	size_t n = write_some(t, t->kept.data, t->kept.len);

	t->kept.len -= n;
	memmove(t->kept.data, t->kept.data + n, t->kept.len);
}

static void
say_lost(struct target *t)
{
	size_t lost = t->lost;

	t->lost = 0;
	if (lost > 0)
		mq_say("%s took nothing for too long: %zu byte%s lost",
		    t->path != NULL ? t->path : "standard error", lost,
		    lost == 1 ? " is" : "s are");
}

static void
put_bytes(struct target *t, const char *p, size_t n)
{
	size_t taken, room;
	char *last;

	while (n > 0 && t->kept.len == 0 && (taken = write_some(t, p, n)) > 0) {
		p += taken;
		n -= taken;
	}
	if (n == 0)
		return;
	room = KEPT_MAX - t->kept.len;
	mq_buf_add(&t->kept, p, n < room ? n : room);
	if (n > room) {
		t->lost += n - room;
		/* The text after lost bytes begins a line. */
		last = &t->kept.data[t->kept.len - 1];
		t->lost += *last != '\n';
		*last = '\n';
	}
	ev_io_start(t->process->loop, &t->io);
}

/* The cursor is at the beginning of the line. */
static void
hide_line(struct target *t)
{
	if (t->shown)
		put_bytes(t, ERASE, strlen(ERASE));
	t->shown = false;
}

void
target_show(struct target *t, const char *line)
{
	if (line == NULL)
		hide_line(t);
	if (line == NULL || t->kept.len > 0 || t->open_line)
		return;
	put_bytes(t, line, strlen(line));
	put_bytes(t, ERASE "\r", strlen(ERASE "\r"));
	t->shown = true;
}

/*
 * Writes or keeps n bytes.  At most 1 MiB is kept; the rest is lost, which is said
 * later.  Bytes whose write fails are lost as well; for a file that is said at
 * once.
 */
static void
write_or_keep(struct target *t, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	hide_line(t);
	t->open_line = ((const char *)bytes)[n - 1] != '\n';
	put_bytes(t, bytes, n);
}

/* --- the backlog --------------------------------------------------------- */

bool
target_ready(const struct target *t)
{
	return TAILQ_EMPTY(&t->backlog) && t->kept.len == 0;
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

/* Writes the next bytes of the backlog.  If its file cannot be read, the rest is lost. */
static void
write_chunk(struct target *t)
{
	struct spill *s = TAILQ_FIRST(&t->backlog);
	size_t n = spill_size(s) < CHUNK ? spill_size(s) : CHUNK;
	char buf[CHUNK];
	ssize_t got;

	if (s->fd == -1) {
		write_or_keep(t, s->memory.data + s->start, n);
		s->start += (off_t)n;
	} else {
		do
			got = pread(s->fd, buf, n, s->start);
		while (got == -1 && errno == EINTR);
		if (got > 0)
			write_or_keep(t, buf, (size_t)got);
		s->start = got > 0 ? s->start + got : s->end;
	}
	if (spill_size(s) > 0)
		return;
	TAILQ_REMOVE(&t->backlog, s, link);
	spill_free(s);
}

static void
write_backlog(struct target *t)
{
	int i;

	for (i = 0; i < CHUNKS_AT_ONCE && t->kept.len == 0 &&
	     !TAILQ_EMPTY(&t->backlog);
	     i++)
		write_chunk(t);
	if (t->kept.len == 0 && !TAILQ_EMPTY(&t->backlog))
		ev_io_start(t->process->loop, &t->io);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct target *t = w->data;

	(void)events;
	if (t->kept.len > 0)
		write_kept(t);
	if (t->kept.len > 0)
		return;
	say_lost(t);
	/* That line may have to wait, too. */
	if (t->kept.len > 0)
		return;
	ev_io_stop(loop, w);
	write_backlog(t);
	t->ready(t);
}

void
target_put(struct target *t, const char *p, size_t n)
{
	struct spill *s = TAILQ_LAST(&t->backlog, spills);

	if (t->process->opt->output == OUTPUT_LIVE || target_ready(t)) {
		write_or_keep(t, p, n);
		return;
	}
	if (n == 0)
		return;
	/* Behind the last one of the backlog if that stays in memory. */
	if (s == NULL || !spill_fits(s, n)) {
		s = spill_new();
		TAILQ_INSERT_TAIL(&t->backlog, s, link);
	}
	if (!spill_add(s, p, n)) {
		/* Longer than what stays in memory, and no file to be had. */
		mq_buf_add(&s->memory, p, n);
		s->end += (off_t)n;
	}
}

void
target_move(struct target *t, struct spill *s)
{
	TAILQ_INSERT_TAIL(&t->backlog, s, link);
	write_backlog(t);
}

/* --- beginning and end --------------------------------------------------- */

static void
take_descriptor(struct target *t, int fd)
{
	struct stat st;

	t->fd = fd;
	t->whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	ev_io_init(&t->io, on_writable, fd, EV_WRITE);
	t->io.data = t;
}

void
target_init(struct target *t, struct process *p, int fd, const char *path,
    void (*ready)(struct target *))
{
	bool output = path == NULL && fd == STDOUT_FILENO;

	*t = (struct target){.process = p, .ready = ready};
	TAILQ_INIT(&t->backlog);
	TAILQ_INIT(&t->waiting);
	take_descriptor(t, fd);
	t->own = path != NULL;
	if (output)
		path = "standard output";
	if (path != NULL)
		t->path = mq_xstrdup(path);
	if (t->own)
		return;
	t->terminal = isatty(fd);
	if (t->whole)
		return;
	/* Other writers may fill the same pipe or terminal just before we write.
	 * Opened anew, it is non-blocking for us only. */
	fd = open(output ? "/proc/self/fd/1" : "/proc/self/fd/2",
	    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return;
	take_descriptor(t, fd);
	t->own = true;
}

void
target_reopen(struct target *t, int fd)
{
	bool kept = ev_is_active(&t->io);

	ev_io_stop(t->process->loop, &t->io);
	close(t->fd);
	take_descriptor(t, fd);
	if (kept)
		ev_io_start(t->process->loop, &t->io);
}

/* Writes the kept bytes, while some are taken within 5 s and no signal comes.
 * Whether all are written. */
static bool
write_last(struct target *t)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};

	ev_io_stop(t->process->loop, &t->io);
	while (t->kept.len > 0 && poll(&pfd, 1, LAST_WAIT) == 1)
		write_kept(t);
	return t->kept.len == 0;
}

void
target_end(struct target *t)
{
	struct spill *s;

	while (!TAILQ_EMPTY(&t->backlog) && write_last(t))
		write_chunk(t);
	while ((s = TAILQ_FIRST(&t->backlog)) != NULL) {
		TAILQ_REMOVE(&t->backlog, s, link);
		spill_free(s);
	}
	if (write_last(t))
		say_lost(t);
	if (t->own)
		close(t->fd);
	mq_buf_free(&t->kept);
	free(t->path);
}
