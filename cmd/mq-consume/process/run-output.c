#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/visible.h"
#include "base/xalloc.h"

/* --- gather -------------------------------------------------------------- */

static void
gather_init(struct gather *g, struct target *target, enum output_form form)
{
	g->target = target;
	g->form = form;
}

static void
gather_label(struct gather *g, const char *label)
{
	strlcpy(g->label, label, sizeof(g->label));
}

/* Whether bytes should come only when the target is ready. */
static bool
gather_waits(const struct gather *g)
{
	return g->form != OUTPUT_RUNS && !target_ready(g->target);
}

/* Lets go of what is kept. */
static void
release_kept(struct gather *g)
{
	if (g->kept != NULL)
		target_move(g->target, g->kept);
	g->kept = NULL;
	g->open_line = false;
}

/* If no file can be had, the output comes in pieces. */
static void
keep(struct gather *g, const char *p, size_t n)
{
	if (n == 0)
		return;
	if (g->kept == NULL)
		g->kept = spill_new();
	g->open_line = p[n - 1] != '\n';
	if (spill_add(g->kept, p, n))
		return;
	if (!g->target->full)
		mq_say("--output: temporary file: %s; output comes in pieces",
		    strerror(errno));
	g->target->full = true;
	release_kept(g);
	target_put(g->target, p, n);
	if (p[n - 1] != '\n' && g->form == OUTPUT_LINES)
		target_put(g->target, "\n", 1);
}

static void
add_label(const struct gather *g, struct mq_buf *out)
{
	mq_buf_addstr(out, g->label);
	mq_buf_add(out, "\t", 1);
}

/* Whole lines go on, and the begun one is kept. */
static void
put_lines(struct gather *g, const char *p, size_t n)
{
	struct mq_buf out = {0};
	const char *end = p + n, *newline;

	for (; (newline = memchr(p, '\n', (size_t)(end - p))) != NULL;
	     p = newline + 1) {
		if (g->kept != NULL) {
			keep(g, p, (size_t)(newline + 1 - p));
			release_kept(g);
			continue;
		}
		add_label(g, &out);
		mq_buf_add(&out, p, (size_t)(newline + 1 - p));
	}
	target_put(g->target, out.data, out.len);
	mq_buf_clear(&out);
	if (p < end && g->kept == NULL)
		add_label(g, &out);
	mq_buf_add(&out, p, (size_t)(end - p));
	keep(g, out.data, out.len);
	mq_buf_free(&out);
}

static void
put_bytes(struct gather *g, const char *p, size_t n)
{
	if (g->form == OUTPUT_LINES)
		put_lines(g, p, n);
	else
		keep(g, p, n);
}

/* How many of n bytes do not belong to a character that goes on behind them. */
static size_t
whole_characters(const char *p, size_t n)
{
	unsigned char c;
	size_t back;

	for (back = 1; back <= 3 && back <= n; back++) {
		c = (unsigned char)p[n - back];
		if (c >= 0xc0)
			return back < (c >= 0xf0	? 4u :
					      c >= 0xe0 ? 3u :
							  2u) ?
			    n - back :
			    n;
		if (c < 0x80)
			break;
	}
	return n;
}

/* For a terminal: escapes control bytes.  last: no bytes follow. */
static void
put_visible(struct gather *g, const char *p, size_t n, bool last)
{
	struct mq_buf raw = {0}, shown = {0};
	size_t whole;

	mq_buf_add(&raw, g->cut, g->cut_len);
	mq_buf_add(&raw, p, n);
	whole = last ? raw.len : whole_characters(raw.data, raw.len);
	g->cut_len = raw.len - whole;
	memcpy(g->cut, raw.data + whole, g->cut_len);
	mq_add_visible(&shown, raw.data, whole);
	put_bytes(g, shown.data, shown.len);
	mq_buf_free(&raw);
	mq_buf_free(&shown);
}

static void
gather_put(struct gather *g, const char *p, size_t n)
{
	if (g->form == OUTPUT_LIVE)
		target_put(g->target, p, n);
	else if (g->target->terminal)
		put_visible(g, p, n, false);
	else
		put_bytes(g, p, n);
}

/* Ends a line that has begun. */
static void
end_line(struct gather *g)
{
	if (g->cut_len > 0)
		put_visible(g, "", 0, true);
	if (g->form == OUTPUT_LIVE && g->target->open_line)
		target_put(g->target, "\n", 1);
	else if (g->open_line)
		put_bytes(g, "\n", 1);
}

/* A line of ours, which begins a line. */
static void
gather_say(struct gather *g, const char *line)
{
	end_line(g);
	if (g->form == OUTPUT_RUNS)
		keep(g, line, strlen(line));
	else
		target_put(g->target, line, strlen(line));
}

/* The run is over.  Bytes that come later are gathered by lines, if not live. */
static void
gather_end(struct gather *g)
{
	if (g->form == OUTPUT_LIVE)
		return;
	if (g->form == OUTPUT_LINES)
		end_line(g);
	else if (g->cut_len > 0)
		put_visible(g, "", 0, true);
	release_kept(g);
	g->form = OUTPUT_LINES;
}

/* --- run-output ---------------------------------------------------------- */

/* Reads of one script before others have their turn. */
#define READS_AT_ONCE 16
/* Reads at the end of a run: the most that a pipe holds. */
#define READS_AT_END ((1 << 20) / PIPE_BUF)

struct run_output {
	TAILQ_ENTRY(run_output) link;	 /* running or lingering */
	TAILQ_ENTRY(run_output) waiting; /* of its target */
	struct run_outputs *runs;
	struct output_target *target;
	struct run_output *second; /* for standard output; NULL: none */
	struct gather gather;
	int fd; /* -1: the pipe has no writer any more */
	bool lingers, waits;
	bool polled; /* reads do not block */
	ev_io io;
	size_t len;
	char tail[OUTPUT_TAIL]; /* the last len bytes that were read */
};

enum took { TOOK_SOME, TOOK_NOTHING, TOOK_THE_END };

static void
wait_for_target(struct run_output *r)
{
	ev_io_stop(r->runs->loop, &r->io);
	if (!r->waits)
		TAILQ_INSERT_TAIL(&r->target->waiting, r, waiting);
	r->waits = true;
}

static void
close_pipe(struct run_output *r)
{
	ev_io_stop(r->runs->loop, &r->io);
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
	gather_end(&r->gather);
	if (r->lingers) {
		TAILQ_REMOVE(&r->runs->lingering, r, link);
		r->runs->lingering_count--;
	} else {
		TAILQ_REMOVE(&r->runs->running, r, link);
	}
	free(r);
}

static void
keep_tail(struct run_output *r, const char *p, size_t n)
{
	size_t drop;

	if (n > sizeof(r->tail)) {
		p += n - sizeof(r->tail);
		n = sizeof(r->tail);
	}
	if (r->len + n > sizeof(r->tail)) {
		drop = r->len + n - sizeof(r->tail);
		r->len -= drop;
		memmove(r->tail, r->tail + drop, r->len);
	}
	memcpy(r->tail + r->len, p, n);
	r->len += n;
}

static enum took
take_output(struct run_output *r)
{
	char buf[PIPE_BUF];
	ssize_t n;

	/* Only our end: the script's must block. */
	if (!r->polled)
		fcntl(r->fd, F_SETFL, O_NONBLOCK);
	r->polled = true;
	n = read(r->fd, buf, sizeof(buf));
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return TOOK_NOTHING;
	if (n <= 0)
		return TOOK_THE_END;
	keep_tail(r, buf, (size_t)n);
	gather_put(&r->gather, buf, (size_t)n);
	return TOOK_SOME;
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

/* Copies output without waiting. */
static void
copy_output(struct run_output *r)
{
	enum took took = TOOK_SOME;
	int i;

	for (i = 0; i < READS_AT_ONCE && took == TOOK_SOME; i++) {
		if (gather_waits(&r->gather)) {
			wait_for_target(r);
			return;
		}
		took = take_output(r);
	}
	if (took == TOOK_THE_END)
		on_end(r);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	copy_output(w->data);
}

/* Each run gets at least one read; the longest wait is first. */
static void
on_target_ready(void *arg)
{
	struct output_target *t = arg;
	struct run_output *r;

	while (target_ready(&t->target) &&
	    (r = TAILQ_FIRST(&t->waiting)) != NULL) {
		TAILQ_REMOVE(&t->waiting, r, waiting);
		r->waits = false;
		ev_io_start(r->runs->loop, &r->io);
		if (take_output(r) == TOOK_THE_END)
			on_end(r);
	}
	if (t->runs->flows != NULL)
		t->runs->flows(t->runs->arg);
}

void
output_target_init(struct output_target *t, struct run_outputs *o)
{
	t->runs = o;
	TAILQ_INIT(&t->waiting);
	t->target.ready = on_target_ready;
	t->target.arg = t;
}

static struct run_output *
open_pipe(struct run_outputs *o, struct output_target *target, int *end)
{
	struct run_output *r;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return NULL;
	r = mq_xcalloc(1, sizeof(*r));
	r->runs = o;
	r->target = target;
	r->fd = fds[0];
	gather_init(&r->gather, &target->target, o->form);
	TAILQ_INSERT_TAIL(&o->running, r, link);
	ev_io_init(&r->io, on_readable, r->fd, EV_READ);
	r->io.data = r;
	*end = fds[1];
	return r;
}

struct run_output *
run_output_open(struct run_outputs *o, struct output_target *errors,
    struct output_target *standard, int ends[2])
{
	struct run_output *r = open_pipe(o, errors, &ends[0]);

	if (r == NULL || standard == NULL)
		return r;
	r->second = open_pipe(o, standard, &ends[1]);
	if (r->second != NULL)
		return r;
	close(ends[0]);
	free_output(r);
	return NULL;
}

void
run_output_label(struct run_output *r, const char *label)
{
	gather_label(&r->gather, label);
	if (r->second != NULL)
		gather_label(&r->second->gather, label);
}

void
run_output_say(struct run_output *r, const char *line)
{
	gather_say(&r->gather, line);
}

void
run_output_listen(struct run_output *r)
{
	if (r->fd != -1)
		ev_io_start(r->runs->loop, &r->io);
	if (r->second != NULL)
		run_output_listen(r->second);
}

static void
let_linger(struct run_output *r)
{
	struct run_outputs *o = r->runs;

	r->lingers = true;
	TAILQ_REMOVE(&o->running, r, link);
	TAILQ_INSERT_TAIL(&o->lingering, r, link);
	if (++o->lingering_count > OUTPUTS_LINGERING_MAX)
		free_output(TAILQ_FIRST(&o->lingering));
	if (!r->waits)
		ev_io_start(o->loop, &r->io);
}

/* Copies what there is; whether the pipe has ended. */
static bool
copy_rest(struct run_output *r)
{
	enum took took = TOOK_SOME;
	int reads;

	for (reads = 0;
	     reads < READS_AT_END && r->fd != -1 && took == TOOK_SOME; reads++)
		took = take_output(r);
	if (took == TOOK_THE_END)
		close_pipe(r);
	return r->fd == -1;
}

bool
run_output_ended(struct run_output *r)
{
	bool ended = copy_rest(r);

	return (r->second == NULL || copy_rest(r->second)) && ended;
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
	char *text = r->runs->text;
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
	if (r->fd != -1 && !gather_waits(&r->gather))
		copy_output(r);
	r->len = 0;
}

/* A piece is written when its run is over, whoever has the pipe. */
static void
close_output(struct run_output *r)
{
	gather_end(&r->gather);
	if (r->fd == -1)
		free_output(r);
	else
		let_linger(r);
}

const char *
run_output_close(struct run_output *r)
{
	const char *text = run_output_so_far(r);

	if (r->second != NULL)
		close_output(r->second);
	r->second = NULL;
	close_output(r);
	return text;
}

void
run_outputs_init(
    struct run_outputs *o, struct ev_loop *loop, enum output_form form)
{
	o->loop = loop;
	o->form = form;
	TAILQ_INIT(&o->running);
	TAILQ_INIT(&o->lingering);
}

static void
copy_list(const struct run_output_list *list, const struct output_target *t)
{
	struct run_output *r, *next;

	TAILQ_FOREACH_SAFE(r, list, link, next)
		if (r->fd != -1 && r->target == t)
			copy_output(r);
}

void
run_outputs_copy(struct run_outputs *o, const struct output_target *t)
{
	copy_list(&o->running, t);
	copy_list(&o->lingering, t);
}

void
run_outputs_end(struct run_outputs *o)
{
	struct run_output *r, *next;
	int i;

	TAILQ_FOREACH_SAFE(r, &o->lingering, link, next) {
		for (i = 0; i < READS_AT_END && take_output(r) == TOOK_SOME;
		     i++)
			;
		free_output(r);
	}
}
