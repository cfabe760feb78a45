/*
 * What the scripts write to standard error, and with --log-dir to standard
 * output as well.  Each run has a pipe of its own for it.  What comes is
 * copied to ours, or to the log, as it comes, and the end of it is kept, for
 * the message's history.  While the sink takes nothing, nothing is read, and
 * the scripts have to wait in their writes, as they would without us.
 *
 * A process that a script has left behind may keep the pipe.  What it writes
 * is copied, too, but belongs to no run any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"

/* A script that writes a lot shares the loop with others. */
#define READS_AT_ONCE 16
/* At the end of a run: no pipe holds more. */
#define READS_AT_END ((1 << 20) / PIPE_BUF)
/* Pipes that outlive their runs. */
#define LINGERING_MAX 64
/* Descriptors that do not depend on the options, or nearly none. */
#define OTHERS 128

struct errors {
	TAILQ_ENTRY(errors) lingering;
	TAILQ_ENTRY(errors) waiting;
	struct consumer *c;
	struct sink *sink;
	int fd; /* -1: nobody can write to it any more */
	bool lingers, waits;
	ev_io io;
	size_t len;
	char tail[ERRORS_TAIL]; /* the last len bytes that were read */
};

enum took { TOOK_SOME, TOOK_NOTHING, TOOK_THE_END };

static void
wait_for_sink(struct errors *e)
{
	ev_io_stop(e->c->loop, &e->io);
	if (!e->waits)
		TAILQ_INSERT_TAIL(&e->sink->waiting, e, waiting);
	e->waits = true;
}

static void
close_pipe(struct errors *e)
{
	ev_io_stop(e->c->loop, &e->io);
	if (e->waits)
		TAILQ_REMOVE(&e->sink->waiting, e, waiting);
	e->waits = false;
	if (e->fd != -1)
		close(e->fd);
	e->fd = -1;
}

static void
forget(struct errors *e)
{
	close_pipe(e);
	if (e->lingers) {
		TAILQ_REMOVE(&e->c->outputs.lingering, e, lingering);
		e->c->outputs.lingering_count--;
	}
	free(e);
}

static void
keep_tail(struct errors *e, const char *p, size_t n)
{
	size_t drop;

	if (n > sizeof(e->tail)) {
		p += n - sizeof(e->tail);
		n = sizeof(e->tail);
	}
	if (e->len + n > sizeof(e->tail)) {
		drop = e->len + n - sizeof(e->tail);
		e->len -= drop;
		memmove(e->tail, e->tail + drop, e->len);
	}
	memcpy(e->tail + e->len, p, n);
	e->len += n;
}

static enum took
take(struct errors *e)
{
	char buf[PIPE_BUF];
	ssize_t n = read(e->fd, buf, sizeof(buf));

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return TOOK_NOTHING;
	if (n <= 0)
		return TOOK_THE_END;
	keep_tail(e, buf, (size_t)n);
	sink_put(e->sink, buf, (size_t)n);
	return TOOK_SOME;
}

/* Nobody can write to it any more; a run that goes on keeps its tail. */
static void
ended(struct errors *e)
{
	if (e->lingers)
		forget(e);
	else
		close_pipe(e);
}

/* Takes what is there, or a good part of it. */
static void
copy(struct errors *e)
{
	enum took took = TOOK_SOME;
	int i;

	for (i = 0; i < READS_AT_ONCE && took == TOOK_SOME; i++) {
		if (!sink_ready(e->sink)) {
			wait_for_sink(e);
			return;
		}
		took = take(e);
	}
	if (took == TOOK_THE_END)
		ended(e);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	copy(w->data);
}

/* Who has waited longest is first, and gets at least one read. */
static void
on_sink_ready(struct sink *s)
{
	struct errors *e;

	while (sink_ready(s) && (e = TAILQ_FIRST(&s->waiting)) != NULL) {
		TAILQ_REMOVE(&s->waiting, e, waiting);
		e->waits = false;
		ev_io_start(e->c->loop, &e->io);
		if (take(e) == TOOK_THE_END)
			ended(e);
	}
}

struct errors *
errors_open(struct consumer *c, int queue, int *end)
{
	struct errors *e;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return NULL;
	/* Only our end: the script's must block. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	e = mq_xcalloc(1, sizeof(*e));
	e->c = c;
	e->sink = c->outputs.logs != NULL ? &c->outputs.logs[queue] :
					    &c->outputs.stderr_sink;
	e->fd = fds[0];
	ev_io_init(&e->io, on_readable, e->fd, EV_READ);
	e->io.data = e;
	*end = fds[1];
	return e;
}

void
errors_listen(struct errors *e)
{
	if (e->fd != -1)
		ev_io_start(e->c->loop, &e->io);
}

static void
linger(struct errors *e)
{
	struct consumer *c = e->c;

	e->lingers = true;
	TAILQ_INSERT_TAIL(&c->outputs.lingering, e, lingering);
	if (++c->outputs.lingering_count > LINGERING_MAX)
		forget(TAILQ_FIRST(&c->outputs.lingering));
	if (!e->waits)
		ev_io_start(c->loop, &e->io);
}

const char *
errors_so_far(struct errors *e)
{
	enum took took = TOOK_SOME;
	char *text = e->c->outputs.text;
	size_t i;
	int reads;

	for (reads = 0;
	     reads < READS_AT_END && e->fd != -1 && took == TOOK_SOME; reads++)
		took = take(e);
	if (took == TOOK_THE_END)
		close_pipe(e);
	for (i = 0; i < e->len; i++)
		text[i] = e->tail[i] == '\0' ? '?' : e->tail[i];
	while (i > 0 && strchr("\r\n", text[i - 1]) != NULL)
		i--;
	text[i] = '\0';
	return text;
}

void
errors_forget(struct errors *e)
{
	if (e->fd != -1 && sink_ready(e->sink))
		copy(e);
	e->len = 0;
}

const char *
errors_close(struct errors *e)
{
	const char *text = errors_so_far(e);

	if (e->fd == -1)
		forget(e);
	else
		linger(e);
	return text;
}

void
errors_init(struct consumer *c)
{
	/* Each slot has its process, and pipes for input, verbs and answers, too. */
	mq_worker_limits(&c->setup,
	    5 * c->opt->slots + c->opt->queue_count + LINGERING_MAX + OTHERS);
	TAILQ_INIT(&c->outputs.lingering);
	sink_init_stderr(&c->outputs.stderr_sink, c->loop);
	c->outputs.stderr_sink.ready = on_sink_ready;
	c->outputs.stderr_stream = sink_stream(&c->outputs.stderr_sink);
	/* Ours, too: a line about a message must not keep the others. */
	mq_say_to(c->outputs.stderr_stream);
}

/* What was written before the log is moved belongs into the old file. */
static void
copy_all(struct consumer *c, const struct sink *s)
{
	struct errors *e, *next;
	int i;

	for (i = 0; i < c->opt->slots; i++) {
		e = c->slots[i].errors;
		if (e != NULL && e->fd != -1 && e->sink == s)
			copy(e);
	}
	TAILQ_FOREACH_SAFE(e, &c->outputs.lingering, lingering, next)
		if (e->sink == s)
			copy(e);
}

void
errors_log(struct consumer *c, int queue, int fd, const char *path)
{
	if (c->outputs.logs == NULL)
		c->outputs.logs = mq_xcalloc(
		    (size_t)c->opt->queue_count, sizeof(*c->outputs.logs));
	if (c->outputs.logs[queue].loop != NULL) {
		copy_all(c, &c->outputs.logs[queue]);
		sink_move(&c->outputs.logs[queue], fd);
		return;
	}
	sink_init(&c->outputs.logs[queue], c->loop, fd, path);
	c->outputs.logs[queue].ready = on_sink_ready;
}

void
errors_end(struct consumer *c)
{
	struct errors *e, *next;
	int i;

	TAILQ_FOREACH_SAFE(e, &c->outputs.lingering, lingering, next) {
		for (i = 0; i < READS_AT_END && take(e) == TOOK_SOME; i++)
			;
		forget(e);
	}
	for (i = 0; c->outputs.logs != NULL && i < c->opt->queue_count; i++)
		sink_end(&c->outputs.logs[i]);
	free(c->outputs.logs);
	mq_say_to(NULL);
	fclose(c->outputs.stderr_stream);
	sink_end(&c->outputs.stderr_sink);
}
