#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/xalloc.h"

/* Reads of one script before others have their turn. */
#define READS_AT_ONCE 16
/* Reads at the end of a run: the most that a pipe holds. */
#define READS_AT_END ((1 << 20) / PIPE_BUF)

struct run_output {
	TAILQ_ENTRY(run_output) link;	 /* running or lingering */
	TAILQ_ENTRY(run_output) waiting; /* of its target */
	struct outputs *outputs;
	struct output_target *target;
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
	ev_io_stop(r->outputs->loop, &r->io);
	if (!r->waits)
		TAILQ_INSERT_TAIL(&r->target->waiting, r, waiting);
	r->waits = true;
}

static void
close_pipe(struct run_output *r)
{
	ev_io_stop(r->outputs->loop, &r->io);
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
	if (r->lingers) {
		TAILQ_REMOVE(&r->outputs->lingering, r, link);
		r->outputs->lingering_count--;
	} else {
		TAILQ_REMOVE(&r->outputs->running, r, link);
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
	sink_put(&r->target->sink, buf, (size_t)n);
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
		if (!sink_ready(&r->target->sink)) {
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
on_sink_ready(void *arg)
{
	struct output_target *t = arg;
	struct run_output *r;

	while (sink_ready(&t->sink) && (r = TAILQ_FIRST(&t->waiting)) != NULL) {
		TAILQ_REMOVE(&t->waiting, r, waiting);
		r->waits = false;
		ev_io_start(r->outputs->loop, &r->io);
		if (take_output(r) == TOOK_THE_END)
			on_end(r);
	}
}

struct run_output *
run_output_open(struct outputs *o, int i, int *end)
{
	struct run_output *r;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return NULL;
	r = mq_xcalloc(1, sizeof(*r));
	r->outputs = o;
	r->target = o->logs != NULL ? &o->logs[i] : &o->errors;
	r->fd = fds[0];
	TAILQ_INSERT_TAIL(&o->running, r, link);
	ev_io_init(&r->io, on_readable, r->fd, EV_READ);
	r->io.data = r;
	*end = fds[1];
	return r;
}

void
run_output_listen(struct run_output *r)
{
	if (r->fd != -1)
		ev_io_start(r->outputs->loop, &r->io);
}

static void
let_linger(struct run_output *r)
{
	struct outputs *o = r->outputs;

	r->lingers = true;
	TAILQ_REMOVE(&o->running, r, link);
	TAILQ_INSERT_TAIL(&o->lingering, r, link);
	if (++o->lingering_count > OUTPUTS_LINGERING_MAX)
		free_output(TAILQ_FIRST(&o->lingering));
	if (!r->waits)
		ev_io_start(o->loop, &r->io);
}

bool
run_output_ended(struct run_output *r)
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
run_output_silent(struct run_output *r, int other)
{
	struct pollfd fds[] = {
	    {.fd = r->fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	/* A pipe whose end was seen before counts as not silent. */
	if (poll(fds, 2, 0) != 2 || fds[0].revents != POLLHUP ||
	    fds[1].revents != POLLHUP)
		return false;
	close_pipe(r);
	return true;
}

const char *
run_output_so_far(struct run_output *r)
{
	char *text = r->outputs->text;
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
	if (r->fd != -1 && sink_ready(&r->target->sink))
		copy_output(r);
	r->len = 0;
}

const char *
run_output_close(struct run_output *r)
{
	const char *text = run_output_so_far(r);

	if (r->fd == -1)
		free_output(r);
	else
		let_linger(r);
	return text;
}

void
outputs_init(struct outputs *o, struct ev_loop *loop)
{
	o->loop = loop;
	TAILQ_INIT(&o->running);
	TAILQ_INIT(&o->lingering);
	TAILQ_INIT(&o->errors.waiting);
	sink_init_stderr(&o->errors.sink, loop);
	o->errors.sink.ready = on_sink_ready;
	o->errors.sink.arg = &o->errors;
	o->stream = sink_stream(&o->errors.sink);
	/* Our own lines must not block the loop either. */
	mq_say_to(o->stream);
}

static void
copy_list(struct run_output_list *list, const struct output_target *t)
{
	struct run_output *r, *next;

	TAILQ_FOREACH_SAFE(r, list, link, next)
		if (r->fd != -1 && r->target == t)
			copy_output(r);
}

void
outputs_log(struct outputs *o, int i, int n, int fd, const char *path)
{
	struct output_target *t;

	if (o->logs == NULL)
		o->logs = mq_xcalloc((size_t)n, sizeof(*o->logs));
	o->log_count = n;
	t = &o->logs[i];
	if (t->sink.loop == NULL) {
		TAILQ_INIT(&t->waiting);
		sink_init(&t->sink, o->loop, fd, path);
		t->sink.ready = on_sink_ready;
		t->sink.arg = t;
		return;
	}
	/* Earlier output belongs into the old file. */
	copy_list(&o->running, t);
	copy_list(&o->lingering, t);
	sink_move(&t->sink, fd);
}

void
outputs_log_line(struct outputs *o, int i, const char *line)
{
	if (o->logs != NULL)
		sink_put(&o->logs[i].sink, line, strlen(line));
}

bool
outputs_has_logs(const struct outputs *o)
{
	return o->logs != NULL;
}

void
outputs_end(struct outputs *o)
{
	struct run_output *r, *next;
	int i;

	TAILQ_FOREACH_SAFE(r, &o->lingering, link, next) {
		for (i = 0; i < READS_AT_END && take_output(r) == TOOK_SOME;
		     i++)
			;
		free_output(r);
	}
	for (i = 0; i < o->log_count; i++)
		sink_end(&o->logs[i].sink);
	free(o->logs);
	mq_say_to(NULL);
	fclose(o->stream);
	sink_end(&o->errors.sink);
}
