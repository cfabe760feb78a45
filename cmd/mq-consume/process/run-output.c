#include "process.h"

#include "base/text.h"

/* Reads of one script before others have their turn. */
#define READS_AT_ONCE 16
/* Reads at the end of a run: the most that a pipe holds. */
#define READS_AT_END ((1 << 20) / PIPE_BUF)

/* A pipe of a run, for its standard error or its standard output. */
struct run_output {
	TAILQ_ENTRY(run_output) link;	 /* all */
	TAILQ_ENTRY(run_output) waiting; /* of its target */
	struct process *process;
	struct target *target;
	struct run_output *second; /* for standard output; NULL: none */
	enum output_form form;
	char label[MQ_ID_MAX + 16]; /* ID, ID+N of a batch, or worker PID */
	char what[32];		    /* follows the label in the log */
	struct spill *kept;	    /* a begun line, or a run; NULL: nothing */
	bool open_line;		    /* the last byte of kept ended no line */
	char cut[4]; /* the beginning of a character, for a terminal */
	size_t cut_len;
	int fd;	      /* -1: the pipe has no writer any more */
	bool lingers; /* its run is over */
	bool waits;
	ev_io io;
	size_t len;
	char tail[OUTPUT_TAIL]; /* the last len bytes that were read */
};

/* --- the form ------------------------------------------------------------ */

/* Whether bytes should come only when the target is ready. */
static bool
waits_for_target(const struct run_output *r)
{
	return r->form != OUTPUT_RUNS && !target_ready(r->target);
}

static void
release_kept(struct run_output *r)
{
	if (r->kept != NULL)
		target_move(r->target, r->kept, r->open_line);
	r->kept = NULL;
	r->open_line = false;
}

/* If no file can be had, the output comes in pieces. */
static void
keep(struct run_output *r, const char *p, size_t n)
{
	if (n == 0)
		return;
	if (r->kept == NULL)
		r->kept = spill_new();
	r->open_line = p[n - 1] != '\n';
	if (spill_add(r->kept, p, n))
		return;
	if (!r->target->full)
		mq_say("--output: temporary file: %s; output comes in pieces",
		    strerror(errno));
	r->target->full = true;
	release_kept(r);
	target_put(r->target, p, n);
	if (p[n - 1] != '\n' && r->form == OUTPUT_LINES)
		target_put(r->target, "\n", 1);
}

static void
add_label(const struct run_output *r, struct mq_buf *out)
{
	mq_buf_addstr(out, r->label);
	mq_buf_add(out, "\t", 1);
}

/* By lines: whole ones go on, and the begun one is kept. */
static void
put_bytes(struct run_output *r, const char *p, size_t n)
{
	struct mq_buf out = {0};
	const char *end = p + n, *newline;

	if (r->form != OUTPUT_LINES) {
		keep(r, p, n);
		return;
	}
	for (; (newline = memchr(p, '\n', (size_t)(end - p))) != NULL;
	     p = newline + 1) {
		if (r->kept != NULL) {
			keep(r, p, (size_t)(newline + 1 - p));
			release_kept(r);
			continue;
		}
		add_label(r, &out);
		mq_buf_add(&out, p, (size_t)(newline + 1 - p));
	}
	target_put(r->target, out.data, out.len);
	mq_buf_clear(&out);
	if (p < end && r->kept == NULL)
		add_label(r, &out);
	mq_buf_add(&out, p, (size_t)(end - p));
	keep(r, out.data, out.len);
	mq_buf_free(&out);
}

/* For a terminal: escapes control bytes.  last: no bytes follow. */
static void
put_visible(struct run_output *r, const char *p, size_t n, bool last)
{
	struct mq_buf raw = {0}, shown = {0};
	size_t cut = 1;

	mq_buf_add(&raw, r->cut, r->cut_len);
	mq_buf_add(&raw, p, n);
	/* A last character that is not whole waits for its rest: at most 3 bytes, the
	 * first of which begins it. */
	while (
	    cut < 3 && cut < raw.len && mq_utf8_inside(raw.data[raw.len - cut]))
		cut++;
	if (last || mq_utf8_inside(raw.data[raw.len - cut]) ||
	    mq_utf8_len(raw.data + raw.len - cut, cut) > 0)
		cut = 0;
	r->cut_len = cut;
	raw.len -= cut;
	memcpy(r->cut, raw.data + raw.len, cut);
	mq_buf_visible(&shown, raw.data, raw.len);
	put_bytes(r, shown.data, shown.len);
	mq_buf_free(&raw);
	mq_buf_free(&shown);
}

/* Ends a line that has begun. */
static void
end_line(struct run_output *r)
{
	if (r->cut_len > 0)
		put_visible(r, "", 0, true);
	if (r->form == OUTPUT_LIVE && r->target->open_line)
		target_put(r->target, "\n", 1);
	else if (r->open_line)
		put_bytes(r, "\n", 1);
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
	end_line(r);
	if (r->form == OUTPUT_RUNS)
		keep(r, line, strlen(line));
	else
		target_put(r->target, line, strlen(line));
	free(line);
}

/* The run is over.  Bytes that come later are gathered by lines, if not live. */
static void
end_form(struct run_output *r)
{
	if (r->form == OUTPUT_LIVE)
		return;
	if (r->form == OUTPUT_LINES)
		end_line(r);
	else if (r->cut_len > 0)
		put_visible(r, "", 0, true);
	release_kept(r);
	r->form = OUTPUT_LINES;
}

/* --- the pipe ------------------------------------------------------------ */

enum took { TOOK_SOME, TOOK_NOTHING, TOOK_THE_END };

static void
close_pipe(struct run_output *r)
{
	ev_io_stop(r->process->loop, &r->io);
	if (r->waits)
		TAILQ_REMOVE(&r->target->waiting, r, waiting);
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
	TAILQ_REMOVE(&r->process->outputs, r, link);
	r->process->lingering_count -= r->lingers;
	free(r);
}

static enum took
take_output(struct run_output *r)
{
	char buf[PIPE_BUF];
	size_t n, tail, drop;
	ssize_t got;

	got = read(r->fd, buf, sizeof(buf));
	if (got == -1 && (errno == EAGAIN || errno == EINTR))
		return TOOK_NOTHING;
	if (got <= 0)
		return TOOK_THE_END;
	n = (size_t)got;
	tail = MIN(n, sizeof(r->tail));
	drop = MAX(r->len + tail, sizeof(r->tail)) - sizeof(r->tail);
	r->len -= drop;
	memmove(r->tail, r->tail + drop, r->len);
	memcpy(r->tail + r->len, buf + n - tail, tail);
	r->len += tail;
	if (r->form == OUTPUT_LIVE)
		target_put(r->target, buf, n);
	else if (r->target->terminal)
		put_visible(r, buf, n, false);
	else
		put_bytes(r, buf, n);
	return TOOK_SOME;
}

/* Takes what there is, in at most so many reads, or until the end; waits: only while the
 * target is ready. */
static enum took
take_most(struct run_output *r, int reads, bool waits)
{
	enum took took = TOOK_SOME;

	while (
	    reads-- > 0 && took == TOOK_SOME && !(waits && waits_for_target(r)))
		took = take_output(r);
	return took;
}

/* The pipe has no writer any more; a run that goes on keeps its tail. */
static void
on_end(struct run_output *r)
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
	enum took took = take_most(r, READS_AT_ONCE, true);

	(void)events;
	if (took == TOOK_THE_END) {
		on_end(r);
	} else if (took == TOOK_SOME && waits_for_target(r)) {
		ev_io_stop(loop, w);
		if (!r->waits)
			TAILQ_INSERT_TAIL(&r->target->waiting, r, waiting);
		r->waits = true;
	}
}

/* Each run gets at least one read; the longest wait is first. */
static void
on_target_ready(struct target *t)
{
	struct process *p = t->process;
	struct run_output *r;

	while (target_ready(t) && (r = TAILQ_FIRST(&t->waiting)) != NULL) {
		TAILQ_REMOVE(&t->waiting, r, waiting);
		r->waits = false;
		ev_io_start(p->loop, &r->io);
		if (take_output(r) == TOOK_THE_END)
			on_end(r);
	}
	if (p->hear != NULL)
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
	/* Only our end: the script's must block. */
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
run_output_open(struct process *p, int log, int ends[2])
{
	struct run_output *r;

	ends[0] = ends[1] = -1;
	r = open_pipe(
	    p, p->logs != NULL ? &p->logs[log] : &p->errors, &ends[0]);
	if (r != NULL && p->logs == NULL && p->apart) {
		r->second = open_pipe(p, &p->standard, &ends[1]);
		if (r->second != NULL)
			return r;
		free_output(r);
		return NULL;
	}
	if (p->logs != NULL || p->opt->output != OUTPUT_LIVE)
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
		if (r->fd != -1 &&
		    take_most(r, READS_AT_END, false) == TOOK_THE_END)
			close_pipe(r);
		ended = ended && r->fd == -1;
	}
	return ended;
}

bool
run_output_silent(struct run_output *r, int other)
{
	int second = r->second != NULL ? r->second->fd : -1, i;
	struct pollfd fds[] = {{.fd = r->fd, .events = POLLIN},
	    {.fd = other, .events = POLLIN}, {.fd = second, .events = POLLIN}};
	int n = r->second != NULL ? 3 : 2;

	/* A pipe whose end was seen before counts as not silent. */
	if (poll(fds, (nfds_t)n, 0) != n)
		return false;
	for (i = 0; i < n; i++)
		if (fds[i].revents != POLLHUP)
			return false;
	close_pipe(r);
	if (r->second != NULL)
		close_pipe(r->second);
	return true;
}

const char *
run_output_so_far(struct run_output *r)
{
	char *text = r->process->text;
	size_t i;

	(void)run_output_ended(r);
	for (i = 0; i < r->len; i++)
		text[i] = r->tail[i] == '\0' ? '?' : r->tail[i];
	while (i > 0 && strchr("\r\n", text[i - 1]) != NULL)
		i--;
	text[i] = '\0';
	return text;
}

void
run_output_forget(struct run_output *r)
{
	/* An end, or a target that is not ready, is noticed by the next event. */
	if (r->fd != -1 && !waits_for_target(r))
		(void)take_most(r, READS_AT_ONCE, true);
	r->len = 0;
}

/* A piece is written when its run is over, whoever has the pipe. */
static void
close_output(struct run_output *r)
{
	struct process *p = r->process;
	struct run_output *first = TAILQ_FIRST(&p->outputs);

	end_form(r);
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
run_output_close(struct run_output *r, const char *how)
{
	const char *text = run_output_so_far(r);

	write_note(r, how);
	if (r->second != NULL)
		close_output(r->second);
	r->second = NULL;
	close_output(r);
	return text;
}

/* --- all of them --------------------------------------------------------- */

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
	p->written = on_target_ready;
	target_init(&p->errors, p, STDERR_FILENO, NULL);
	/* Unless both are the same file, pipe or terminal. */
	p->apart = p->opt->output != OUTPUT_LIVE &&
	    (fstat(STDOUT_FILENO, &out) == -1 ||
		fstat(STDERR_FILENO, &err) == -1 || out.st_dev != err.st_dev ||
		out.st_ino != err.st_ino);
	if (p->apart)
		target_init(&p->standard, p, STDOUT_FILENO, NULL);
	/* Our own lines must not block the loop either. */
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
	/* Earlier output belongs into the old file. */
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
			(void)take_most(r, READS_AT_END, false);
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
