#include "parts.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"

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
