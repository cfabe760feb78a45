/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "process.h"

#include "base/text.h"
#include "mq-consume/kept.h"

/* --- target -------------------------------------------------------------- */

/* Bytes of a piece in memory, unless more come in one call. */
#define PIECE_MEMORY ((size_t)32 << 10)
#define LAST_WAIT    5000 /* milliseconds */
/* Bytes of output that are read, or written, at once: as many as a pipe holds. */
#define COPY_MAX       ((size_t)64 << 10)
#define WRITES_AT_ONCE 64	/* to a target, in one turn of the loop */
#define ERASE	       "\033[K" /* from the cursor to the end of the line */

/* Bytes that wait, in a file and then in memory. */
struct piece {
	STAILQ_ENTRY(piece) link;
	int fd;	     /* -1: no file */
	size_t size; /* bytes in the file */
	struct mq_buf memory;
	size_t taken; /* bytes that the target has taken */
};

static struct piece *
new_piece(void)
{
	struct piece *s = mq_xcalloc(1, sizeof(*s));

	s->fd = -1;
	return s;
}

static void
free_piece(struct piece *s)
{
	if (s->fd != -1)
		close(s->fd);
	mq_buf_free(&s->memory);
	free(s);
}

static bool
is_ready(const struct target *t)
{
	return STAILQ_EMPTY(&t->pieces);
}

/* Writes once without blocking.  Returns how many bytes were taken; 0: the target is not
 * ready.  After an error, all bytes count as taken, since they would fail again; for a file,
 * the error is said. */
static size_t
write_some(struct target *t, const char *p, size_t n)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
	ssize_t wrote;
	int error;

	if (poll(&pfd, 1, 0) == 0)
		return 0;
	wrote = write(t->fd, p, MIN(n, t->most));
	error = errno;
	if (wrote == -1 && (error == EAGAIN || error == EINTR))
		return 0;
	if (wrote == -1) {
		if (t->name != NULL && t->error != error)
			mq_say("%s: %s; the output of workers is lost", t->name,
			    strerror(error));
		t->error = error;
		return n;
	}
	t->error = 0;
	return (size_t)wrote;
}

/* Writes bytes of the first piece.  False: the target is not ready.  If the file of the piece
 * cannot be read, its bytes are lost. */
static bool
write_piece(struct target *t)
{
	struct piece *s = STAILQ_FIRST(&t->pieces);
	size_t left = s->size + s->memory.len - s->taken, taken;
	char buf[PIPE_BUF];
	ssize_t got;

	if (s->taken < s->size) {
		taken = s->size - s->taken;
		got =
		    pread(s->fd, buf, MIN(sizeof(buf), taken), (off_t)s->taken);
		if (got > 0)
			taken = write_some(t, buf, (size_t)got);
	} else {
		taken =
		    write_some(t, s->memory.data + (s->taken - s->size), left);
	}
	s->taken += taken;
	t->process->waiting -= taken;
	if (taken == left) {
		STAILQ_REMOVE_HEAD(&t->pieces, link);
		free_piece(s);
	}
	return taken > 0;
}

static void
write_pieces(struct target *t)
{
	int i;

	for (i = 0; i < WRITES_AT_ONCE && !is_ready(t); i++)
		if (!write_piece(t))
			break;
	if (!is_ready(t))
		ev_io_start(t->process->loop, &t->io);
}

static void
put_bytes(struct target *t, const char *p, size_t n)
{
	struct process *all = t->process;
	struct piece *s;
	size_t taken;

	while (n > 0 && is_ready(t) && (taken = write_some(t, p, n)) > 0) {
		p += taken;
		n -= taken;
	}
	if (n == 0)
		return;
	ev_io_start(all->loop, &t->io);
	/* libbsd's macro uses an extension of GNU C. */
	s = __extension__ STAILQ_LAST(&t->pieces, piece, link);
	if (drops_output(all) && all->waiting + n > WAITING_MAX) {
		t->lost += n;
		t->open_line = false;
		if (s == NULL || s->memory.data[s->memory.len - 1] == '\n')
			return;
		/* The text after lost bytes begins a line. */
		p = "\n";
		n = 1;
	}
	if (s == NULL || s->memory.len + n > PIECE_MEMORY) {
		s = new_piece();
		STAILQ_INSERT_TAIL(&t->pieces, s, link);
	}
	mq_buf_add(&s->memory, p, n);
	all->waiting += n;
}

/* While a line is shown, the cursor is at its beginning. */
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
	if (line == NULL || !is_ready(t) || t->open_line)
		return;
	put_bytes(t, line, strlen(line));
	put_bytes(t, ERASE "\r", strlen(ERASE "\r"));
	t->shown = true;
}

/* Writes n bytes, which stay together, now or later. */
static void
target_put(struct target *t, const char *p, size_t n)
{
	if (n == 0)
		return;
	hide_line(t);
	t->open_line = p[n - 1] != '\n';
	put_bytes(t, p, n);
}

/* Takes a piece, with bytes in memory, and writes it, now or later. */
static void
target_move(struct target *t, struct piece *s)
{
	hide_line(t);
	t->open_line = s->memory.data[s->memory.len - 1] != '\n';
	t->process->waiting += s->size + s->memory.len;
	STAILQ_INSERT_TAIL(&t->pieces, s, link);
	write_pieces(t);
}

static void
say_lost(struct target *t)
{
	size_t lost = t->lost;

	t->lost = 0;
	if (lost > 0)
		mq_say("%s took nothing for too long: %zu byte%s lost",
		    t->name != NULL ? t->name : "standard error", lost,
		    lost == 1 ? " is" : "s are");
}

/* --- the form ------------------------------------------------------------ */

/* Reads from one pipe in one turn of the loop. */
#define READS_AT_ONCE 4
/* Reads at the end of a run: as many bytes as a pipe can hold. */
#define READS_AT_END ((1 << 20) / (int)COPY_MAX)
/* Bytes; longer lines come in pieces. */
#define LONGEST_LINE ((size_t)1 << 20)

/* A pipe of a run, for its standard error or its standard output. */
struct run_output {
	TAILQ_ENTRY(run_output) link;
	TAILQ_ENTRY(run_output) waiting; /* in the target's queue */
	struct process *process;
	struct target *target;
	struct run_output *second; /* standard output's pipe; NULL: none */
	enum output_form form;
	char label[MQ_ID_MAX + 16]; /* ID, ID+N of a batch, or worker PID */
	char what[32];		    /* follows the label in the log */
	struct mq_buf begun;	    /* not live: a line that has no end yet */
	struct piece *kept;	    /* runs: the lines so far; NULL: none */
	struct kept_run *remote;    /* --output-keep; NULL: none, or over */
	struct run_result *result;  /* bytes of the pipe; NULL: none, or over */
	bool silent;		    /* nothing goes to the target */
	int fd;			    /* -1: no writer is left */
	bool lingers;		    /* the run is over */
	bool waits;		    /* for the target to be ready */
	ev_io io;
	struct mq_buf tail; /* the last bytes, OUTPUT_TAIL at most */
};

/* Whether the pipe is better not read until the target is ready: once the pipe is full, the script
 * waits, too. */
static bool
waits_for_target(const struct run_output *r)
{
	return !r->silent && r->form != OUTPUT_RUNS && !is_ready(r->target);
}

/* Moves bytes in memory to a file, which nobody else can open.  False with errno: moved nothing. */
static bool
move_to_file(struct piece *s)
{
	const char *dir = getenv("TMPDIR");
	char *name;
	ssize_t wrote;

	if (s->fd == -1) {
		name = mq_xasprintf("%s/mq-consume.XXXXXX",
		    dir != NULL && *dir != '\0' ? dir : "/tmp");
		s->fd = mkostemp(name, O_CLOEXEC);
		if (s->fd != -1)
			unlink(name);
		free(name);
	}
	if (s->fd == -1)
		return false;
	wrote = pwrite(s->fd, s->memory.data, s->memory.len, (off_t)s->size);
	/* A short write to a file means that the disk is full. */
	if (wrote >= 0 && (size_t)wrote < s->memory.len)
		errno = ENOSPC;
	if (wrote != (ssize_t)s->memory.len)
		return false;
	s->size += (size_t)wrote;
	mq_buf_clear(&s->memory);
	return true;
}

/* Keeps bytes until the run is over.  False: no file can be had; the kept bytes go to the target,
 * and output comes as lines from now on. */
static bool
keep_bytes(struct run_output *r, const char *p, size_t n)
{
	if (r->kept == NULL)
		r->kept = new_piece();
	if (r->kept->memory.len > 0 && r->kept->memory.len + n > PIECE_MEMORY &&
	    !move_to_file(r->kept)) {
		mq_say("--output: temporary file: %s; output comes in lines",
		    strerror(errno));
		target_move(r->target, r->kept);
		r->kept = NULL;
		r->form = OUTPUT_LINES;
		return false;
	}
	mq_buf_add(&r->kept->memory, p, n);
	return true;
}

static void
put_lines(struct run_output *r, const char *p, size_t n)
{
	const char *end = p + n, *next;
	struct mq_buf out = {0};

	for (; p < end; p = next) {
		next = memchr(p, '\n', (size_t)(end - p));
		next = next != NULL ? next + 1 : end;
		mq_buf_addstr(&out, r->label);
		mq_buf_add(&out, "\t", 1);
		mq_buf_add(&out, p, (size_t)(next - p));
	}
	if (end[-1] != '\n')
		mq_buf_add(&out, "\n", 1);
	target_put(r->target, out.data, out.len);
	mq_buf_free(&out);
}

/* Passes on the first n bytes of `begun`. */
static void
pass_begun(struct run_output *r, size_t n)
{
	struct mq_buf *b = &r->begun, text = {0};

	if (n == 0)
		return;
	if (r->target->terminal)
		mq_buf_visible(&text, b->data, n);
	else
		mq_buf_add(&text, b->data, n);
	if (r->form != OUTPUT_RUNS || !keep_bytes(r, text.data, text.len))
		put_lines(r, text.data, text.len);
	mq_buf_free(&text);
	mq_buf_drop(b, n);
}

static void
gather(struct run_output *r, const char *p, size_t n)
{
	const char *newline = memrchr(p, '\n', n);

	mq_buf_add(&r->begun, p, n);
	if (newline != NULL)
		pass_begun(r, r->begun.len - (size_t)(p + n - newline - 1));
	/* One byte stays in `begun`: the line has no end yet. */
	if (r->begun.len >= LONGEST_LINE)
		pass_begun(r, r->begun.len - 1);
}

/* Writes a line about the run into its log, if there are logs. */
static void
write_note(struct run_output *r, const char *text)
{
	char stamp[32], *line;
	time_t now = time(NULL);
	struct tm tm;

	if (r->process->logs == NULL || *text == '\0')
		return;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z",
	    localtime_r(&now, &tm));
	line =
	    mq_xasprintf("--- %s %s%s: %s\n", stamp, r->label, r->what, text);
	if (r->form == OUTPUT_LIVE && r->target->open_line)
		target_put(r->target, "\n", 1);
	else if (r->begun.len > 0)
		gather(r, "\n", 1);
	if (r->form == OUTPUT_RUNS)
		gather(r, line, strlen(line));
	else
		target_put(r->target, line, strlen(line));
	free(line);
}

/* The run is over.  Unless live, bytes that come later are passed on by lines. */
static void
end_form(struct run_output *r)
{
	if (r->form == OUTPUT_LIVE)
		return;
	pass_begun(r, r->begun.len);
	if (r->kept != NULL)
		target_move(r->target, r->kept);
	r->kept = NULL;
	r->form = OUTPUT_LINES;
}

/* --- the pipe ------------------------------------------------------------ */

enum got { GOT_BYTES, GOT_NOTHING, GOT_END };

static void
close_pipe(struct run_output *r)
{
	ev_io_stop(r->process->loop, &r->io);
	if (r->waits)
		TAILQ_REMOVE(&r->target->queue, r, waiting);
	r->waits = false;
	if (r->fd != -1)
		close(r->fd);
	r->fd = -1;
}

static void
free_output(struct run_output *r)
{
	close_pipe(r);
	end_form(r);
	mq_buf_free(&r->begun);
	mq_buf_free(&r->tail);
	TAILQ_REMOVE(&r->process->outputs, r, link);
	r->process->lingering_count -= r->lingers;
	free(r);
}

static enum got
copy_once(struct run_output *r)
{
	char p[COPY_MAX];
	size_t some;
	ssize_t n;

	n = read(r->fd, p, sizeof(p));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return GOT_NOTHING;
	if (n <= 0)
		return GOT_END;
	if (r->result != NULL)
		run_result_add(r->result, p, (size_t)n);
	if (!r->silent && r->form == OUTPUT_LIVE)
		target_put(r->target, p, (size_t)n);
	else if (!r->silent)
		gather(r, p, (size_t)n);
	kept_take(r->remote, r->second != NULL ? 2 : 1, p, (size_t)n);
	some = MIN((size_t)n, OUTPUT_TAIL);
	mq_buf_add(&r->tail, p + n - some, some);
	if (r->tail.len > OUTPUT_TAIL)
		mq_buf_drop(&r->tail, r->tail.len - OUTPUT_TAIL);
	return GOT_BYTES;
}

/* Copies output in at most this many reads; waits: only while the target is ready. */
static enum got
copy_most(struct run_output *r, int reads, bool waits)
{
	enum got got = GOT_BYTES;

	while (
	    reads-- > 0 && got == GOT_BYTES && !(waits && waits_for_target(r)))
		got = copy_once(r);
	return got;
}

/* The pipe has no writer left; a run that goes on keeps its tail. */
static void
end_pipe(struct run_output *r)
{
	if (r->lingers)
		free_output(r);
	else
		close_pipe(r);
}

static void
copy_output(struct ev_loop *loop, ev_io *w, int events)
{
	struct run_output *r = w->data;
	enum got got = copy_most(r, READS_AT_ONCE, true);

	(void)events;
	if (got == GOT_END) {
		end_pipe(r);
	} else if (got == GOT_BYTES && waits_for_target(r)) {
		ev_io_stop(loop, w);
		if (!r->waits)
			TAILQ_INSERT_TAIL(&r->target->queue, r, waiting);
		r->waits = true;
	}
}

/* Each waiting run gets at least one read, the longest waiting first. */
static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct target *t = w->data;
	struct process *p = t->process;
	struct run_output *r;

	(void)events;
	write_pieces(t);
	if (is_ready(t))
		say_lost(t);
	if (is_ready(t))
		ev_io_stop(loop, w);
	while (is_ready(t) && (r = TAILQ_FIRST(&t->queue)) != NULL) {
		TAILQ_REMOVE(&t->queue, r, waiting);
		r->waits = false;
		ev_io_start(loop, &r->io);
		if (copy_once(r) == GOT_END)
			end_pipe(r);
	}
	tell(p, FACT_WAKE);
}

/* --- one run ------------------------------------------------------------- */

static struct run_output *
open_pipe(struct process *p, struct target *target, int *end)
{
	struct run_output *r;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return NULL;
	/* The script's end must block. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	r = mq_xcalloc(1, sizeof(*r));
	r->process = p;
	r->target = target;
	r->form = p->opt->output;
	r->fd = fds[0];
	TAILQ_INSERT_TAIL(&p->outputs, r, link);
	ev_io_init(&r->io, copy_output, r->fd, EV_READ);
	r->io.data = r;
	*end = fds[1];
	return r;
}

struct run_output *
run_output_open(
    struct process *p, int log, struct run_result *result, int ends[2])
{
	struct target *t = p->logs != NULL ? &p->logs[log] : &p->errors;
	struct run_output *r;

	ends[0] = ends[1] = -1;
	r = open_pipe(p, t, &ends[0]);
	if (r != NULL && (p->apart || p->kept != NULL || result != NULL)) {
		r->second = open_pipe(p, p->apart ? &p->standard : t, &ends[1]);
		if (r->second == NULL) {
			free_output(r);
			return NULL;
		}
		r->second->result = result;
		r->second->silent = result != NULL && p->logs == NULL;
		return r;
	}
	if (p->logs != NULL || !is_live(p))
		ends[1] = ends[0];
	return r;
}

void
run_output_label(
    struct run_output *r, const struct run_info *info, pid_t worker)
{
	const struct message *m = info->message;

	if (info->batch > 1)
		snprintf(r->label, sizeof(r->label), "%s+%d", m->id,
		    info->batch - 1);
	else if (m != NULL)
		strlcpy(r->label, m->id, sizeof(r->label));
	else
		snprintf(
		    r->label, sizeof(r->label), "worker %ld", (long)worker);
	if (info->batch > 0)
		snprintf(r->what, sizeof(r->what), " batch of %d", info->batch);
	else if (m != NULL)
		snprintf(
		    r->what, sizeof(r->what), " attempt %ld", m->attempts + 1);
	if (r->second != NULL)
		strlcpy(r->second->label, r->label, sizeof(r->second->label));
	if (r->process->kept != NULL && r->second != NULL)
		r->remote = r->second->remote =
		    kept_begin(r->process->kept, m, worker);
	write_note(r, r->process->command.line);
}

void
run_output_listen(struct run_output *r)
{
	for (; r != NULL; r = r->second)
		if (r->fd != -1)
			ev_io_start(r->process->loop, &r->io);
}

bool
run_output_ended(struct run_output *r)
{
	bool ended = true;

	for (; r != NULL; r = r->second) {
		if (r->fd != -1 && copy_most(r, READS_AT_END, false) == GOT_END)
			close_pipe(r);
		ended = ended && r->fd == -1;
	}
	return ended;
}

const char *
run_output_so_far(struct run_output *r)
{
	char *text = r->process->text;
	size_t i;

	(void)run_output_ended(r);
	for (i = 0; i < r->tail.len; i++)
		text[i] = r->tail.data[i] == '\0' ? '?' : r->tail.data[i];
	while (i > 0 && strchr("\r\n", text[i - 1]) != NULL)
		i--;
	text[i] = '\0';
	return text;
}

void
run_output_forget(struct run_output *r)
{
	/* The next event notices an end, or a target that is not ready. */
	if (r->fd != -1)
		(void)copy_most(r, READS_AT_ONCE, true);
	mq_buf_clear(&r->tail);
}

/* The output of a run is passed on when the run is over, even if a process still has the pipe. */
static void
close_output(struct run_output *r)
{
	struct process *p = r->process;
	struct run_output *first = TAILQ_FIRST(&p->outputs);

	end_form(r);
	r->remote = NULL;
	r->result = NULL;
	if (r->fd == -1) {
		free_output(r);
		return;
	}
	if (p->lingering_count == OUTPUTS_LINGERING_MAX) {
		while (!first->lingers)
			first = TAILQ_NEXT(first, link);
		free_output(first);
	}
	r->lingers = true;
	p->lingering_count++;
	TAILQ_REMOVE(&p->outputs, r, link);
	TAILQ_INSERT_TAIL(&p->outputs, r, link);
	if (!r->waits)
		ev_io_start(p->loop, &r->io);
}

const char *
run_output_close(struct run_output *r, int status, const char *how)
{
	const char *text = run_output_so_far(r);

	kept_end(r->remote, status);
	write_note(r, how);
	if (r->second != NULL)
		close_output(r->second);
	r->second = NULL;
	close_output(r);
	return text;
}

/* --- all targets --------------------------------------------------------- */

static void
set_descriptor(struct target *t, int fd)
{
	bool blocks = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
	struct stat st;

	t->fd = fd;
	/* A ready pipe or terminal takes PIPE_BUF bytes without blocking. */
	t->most = blocks && (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) ?
	    PIPE_BUF :
	    COPY_MAX;
	ev_io_init(&t->io, on_writable, fd, EV_WRITE);
	t->io.data = t;
}

/* fd: that of a log, which is taken, or our own descriptor 1 or 2.  name: NULL for standard
 * error. */
static void
target_init(struct target *t, struct process *p, int fd, const char *name)
{
	bool own = fd == STDOUT_FILENO || fd == STDERR_FILENO;
	char again[32];
	struct stat st;

	*t = (struct target){.process = p, .terminal = own && isatty(fd)};
	if (name != NULL)
		t->name = mq_xstrdup(name);
	STAILQ_INIT(&t->pieces);
	TAILQ_INIT(&t->queue);
	set_descriptor(t, fd);
	if (!own || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return;
	/* Other processes may fill the same pipe or terminal just before we write.  Only the
	 * descriptor opened anew is non-blocking. */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	fd = open(again, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd != -1)
		set_descriptor(t, fd);
}

static void
target_reopen(struct target *t, int fd)
{
	ev_io_stop(t->process->loop, &t->io);
	close(t->fd);
	set_descriptor(t, fd);
	write_pieces(t);
}

static void
target_end(struct target *t)
{
	struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
	struct piece *s;

	ev_io_stop(t->process->loop, &t->io);
	while (!is_ready(t) && poll(&pfd, 1, LAST_WAIT) == 1)
		(void)write_piece(t);
	if (is_ready(t))
		say_lost(t);
	while ((s = STAILQ_FIRST(&t->pieces)) != NULL) {
		STAILQ_REMOVE_HEAD(&t->pieces, link);
		free_piece(s);
	}
	free(t->name);
}

static ssize_t
put_line(void *target, const char *p, size_t n)
{
	target_put(target, p, n);
	return (ssize_t)n;
}

void
outputs_init(struct process *p)
{
	const cookie_io_functions_t functions = {.write = put_line};
	struct stat out, err;

	TAILQ_INIT(&p->outputs);
	target_init(&p->errors, p, STDERR_FILENO, NULL);
	/* If both are the same file, pipe or terminal, one target keeps their order. */
	p->apart = (!is_live(p) || p->opt->output_keep > 0) &&
	    p->opt->log_dir == NULL &&
	    (fstat(STDOUT_FILENO, &out) == -1 ||
		fstat(STDERR_FILENO, &err) == -1 || out.st_dev != err.st_dev ||
		out.st_ino != err.st_ino);
	if (p->apart)
		target_init(&p->standard, p, STDOUT_FILENO, "standard output");
	/* Our own messages must not block the loop either. */
	p->stream = fopencookie(&p->errors, "w", functions);
	if (p->stream == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	setvbuf(p->stream, NULL, _IOLBF, 0);
	mq_say_to(p->stream);
}

void
outputs_log(struct process *p, int queue, int fd, const char *path)
{
	struct run_output *r, *next;
	struct target *t;

	if (p->logs == NULL)
		p->logs =
		    mq_xcalloc((size_t)p->opt->queue_count, sizeof(*p->logs));
	t = &p->logs[queue];
	if (t->process == NULL) {
		target_init(t, p, fd, path);
		return;
	}
	/* Output of before the change belongs into the old file. */
	TAILQ_FOREACH_SAFE(r, &p->outputs, link, next)
		if (r->fd != -1 && r->target == t)
			copy_output(p->loop, &r->io, EV_READ);
	target_reopen(t, fd);
}

void
outputs_end(struct process *p)
{
	struct run_output *r, *next;
	int i;

	TAILQ_FOREACH_SAFE(r, &p->outputs, link, next)
		if (r->lingers) {
			(void)copy_most(r, READS_AT_END, false);
			free_output(r);
		}
	for (i = 0; i < p->opt->queue_count && p->logs != NULL; i++)
		target_end(&p->logs[i]);
	free(p->logs);
	mq_say_to(NULL);
	fclose(p->stream);
	if (p->apart)
		target_end(&p->standard);
	target_end(&p->errors);
}
