#include "process.h"

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

static size_t
spill_size(const struct spill *s)
{
	return (size_t)(s->end - s->start);
}

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

/* The most bytes that wait; or, if all do, when no more runs start. */
#define WAIT_MAX  ((size_t)1 << 20)
#define LAST_WAIT 5000 /* milliseconds */
#define CHUNK	  ((size_t)64 << 10)
/* Chunks that are written before others have their turn. */
#define CHUNKS_AT_ONCE 64
/* Erases from the cursor to the end of the line. */
#define ERASE "\033[K"

/* One write that does not block: a ready pipe or terminal takes PIPE_BUF bytes.
 * Returns how many bytes were taken; 0: the target has to wait.  Bytes that fail
 * count as taken, since they would fail again; for a file that is said. */
static size_t
write_some(struct target *t, const char *p, size_t n)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
	ssize_t wrote;
	int error;

	if (!t->whole) {
		if (poll(&pfd, 1, 0) == 0)
			return 0;
		n = MIN(n, PIPE_BUF);
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

/* Writes some of the first piece.  False: the target has to wait.  If the file of the
 * piece cannot be read, its rest is lost. */
static bool
write_piece(struct target *t)
{
	struct spill *s = STAILQ_FIRST(&t->pieces);
	size_t n = MIN(spill_size(s), t->whole ? CHUNK : PIPE_BUF), taken;
	char buf[CHUNK];
	ssize_t got;

	if (s->fd == -1) {
		taken = write_some(t, s->memory.data + s->start, n);
	} else {
		do
			got = pread(s->fd, buf, n, s->start);
		while (got == -1 && errno == EINTR);
		taken =
		    got > 0 ? write_some(t, buf, (size_t)got) : spill_size(s);
	}
	s->start += (off_t)taken;
	if (spill_size(s) == 0) {
		STAILQ_REMOVE_HEAD(&t->pieces, link);
		spill_free(s);
	}
	return taken > 0;
}

static void
write_pieces(struct target *t)
{
	int i;

	for (i = 0; i < CHUNKS_AT_ONCE && !target_ready(t); i++)
		if (!write_piece(t))
			break;
	if (!target_ready(t))
		ev_io_start(t->process->loop, &t->io);
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
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct target *t = w->data;

	(void)events;
	write_pieces(t);
	if (target_ready(t))
		say_lost(t);
	/* Only here, so that whoever waits for the target hears of it. */
	if (target_ready(t))
		ev_io_stop(loop, w);
	t->process->written(t);
}

/* --- what waits ---------------------------------------------------------- */

bool
target_ready(const struct target *t)
{
	return STAILQ_EMPTY(&t->pieces);
}

static bool
is_live(const struct target *t)
{
	return t->process->opt->output == OUTPUT_LIVE;
}

static size_t
count_waiting(const struct target *t)
{
	const struct spill *s;
	size_t n = 0;

	STAILQ_FOREACH(s, &t->pieces, link)
		n += spill_size(s);
	return n;
}

bool
target_clogged(const struct target *t)
{
	return !is_live(t) && count_waiting(t) >= WAIT_MAX;
}

/* NULL: nothing waits.  libbsd's macro uses an extension of GNU C. */
static struct spill *
last_piece(const struct target *t)
{
	return __extension__ STAILQ_LAST(&t->pieces, spill, link);
}

/* Appends to the last piece if that stays in memory, else begins another one. */
static void
add_waiting(struct target *t, const char *p, size_t n)
{
	struct spill *s = last_piece(t);

	if (s == NULL || !spill_fits(s, n)) {
		s = spill_new();
		STAILQ_INSERT_TAIL(&t->pieces, s, link);
	}
	if (is_live(t) || !spill_add(s, p, n)) {
		/* Longer than what stays in memory, and no file to be had, or one that
		 * the disk has no room for. */
		if (s->fd != -1) {
			s = spill_new();
			STAILQ_INSERT_TAIL(&t->pieces, s, link);
		}
		mq_buf_add(&s->memory, p, n);
		s->end += (off_t)n;
	}
}

/* While output is live, at most 1 MiB waits; the rest is lost, which is said later. */
static void
put_bytes(struct target *t, const char *p, size_t n)
{
	size_t taken, room;
	struct spill *s;
	char *last;

	while (n > 0 && target_ready(t) && (taken = write_some(t, p, n)) > 0) {
		p += taken;
		n -= taken;
	}
	room = is_live(t) ? WAIT_MAX - count_waiting(t) : n;
	if (n > 0 && room > 0)
		add_waiting(t, p, MIN(n, room));
	if (n > room) {
		t->lost += n - room;
		/* The text after lost bytes begins a line. */
		s = last_piece(t);
		last = &s->memory.data[s->memory.len - 1];
		t->lost += *last != '\n';
		*last = '\n';
	}
	if (!target_ready(t))
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
	if (line == NULL || !target_ready(t) || t->open_line)
		return;
	put_bytes(t, line, strlen(line));
	put_bytes(t, ERASE "\r", strlen(ERASE "\r"));
	t->shown = true;
}

void
target_put(struct target *t, const char *p, size_t n)
{
	if (n == 0)
		return;
	hide_line(t);
	t->open_line = p[n - 1] != '\n';
	put_bytes(t, p, n);
}

void
target_move(struct target *t, struct spill *s, bool open_line)
{
	if (spill_size(s) == 0) {
		spill_free(s);
		return;
	}
	hide_line(t);
	t->open_line = open_line;
	STAILQ_INSERT_TAIL(&t->pieces, s, link);
	write_pieces(t);
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
target_init(struct target *t, struct process *p, int fd, const char *path)
{
	bool output = path == NULL && fd == STDOUT_FILENO;

	*t = (struct target){.process = p};
	STAILQ_INIT(&t->pieces);
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
	bool waits = ev_is_active(&t->io);

	ev_io_stop(t->process->loop, &t->io);
	close(t->fd);
	take_descriptor(t, fd);
	if (waits)
		ev_io_start(t->process->loop, &t->io);
}

void
target_end(struct target *t)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
	struct spill *s;

	ev_io_stop(t->process->loop, &t->io);
	while (!target_ready(t) && poll(&pfd, 1, LAST_WAIT) == 1)
		(void)write_piece(t);
	if (target_ready(t))
		say_lost(t);
	while ((s = STAILQ_FIRST(&t->pieces)) != NULL) {
		STAILQ_REMOVE_HEAD(&t->pieces, link);
		spill_free(s);
	}
	if (t->own)
		close(t->fd);
	free(t->path);
}
