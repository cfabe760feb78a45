/*
 * Telling others what runs here.  Short runs are not worth it: the server is
 * told once a second of those that have lasted for about as long, and only
 * when something about them has changed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consume.h"
#include "queue/running.h"

/* A bit less than a tick, so that a run is told of with the second one. */
#define LONG_S 0.9
/* So much of what a script said last; there may be many scripts. */
#define TEXT_MAX 1024

static bool
is_long(const struct slot *s, double now)
{
	const struct message *m = slot_on(s);

	return m != NULL && !m->lost && now - s->started >= LONG_S;
}

/* When it began, by the clock that the others have, too. */
static int64_t
started_ms(struct slot *s, double now)
{
	if (s->started_ms == 0)
		s->started_ms = mq_clock_unix_us() / 1000 -
		    (int64_t)((now - s->started) * 1000);
	return s->started_ms;
}

/* The start of a text, cut between two characters. */
static char *
start_of(const char *text)
{
	size_t n = strnlen(text, TEXT_MAX + 1);

	if (n > TEXT_MAX)
		for (n = TEXT_MAX; n > 0 && (text[n] & 0xc0) == 0x80;)
			n--;
	return mq_xstrndup(text, n);
}

/* The strings but text are borrowed. */
static struct mq_run
describe(struct consumer *c, struct slot *s, double now)
{
	struct message *m = slot_on(s);

	return (struct mq_run){
	    .queue = (char *)(uintptr_t)c->opt->queues[m->queue],
	    .id = m->id,
	    .script = (char *)(uintptr_t)process_script(&c->process),
	    .text = start_of(mq_verbs_text(&s->verbs)),
	    .attempt = m->attempts + 1,
	    .pid = s->pid,
	    .started_ms = started_ms(s, now)};
}

/* The text of the list; nothing when nothing runs for long. */
static void
list(struct consumer *c, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_run *runs = NULL;
	int i, n = 0;

	for (i = 0; c->slots != NULL && i < c->opt->slots; i++) {
		if (!is_long(&c->slots[i], now))
			continue;
		if (runs == NULL)
			runs = mq_xcalloc((size_t)c->opt->slots, sizeof(*runs));
		runs[n++] = describe(c, &c->slots[i], now);
	}
	if (n > 0)
		mq_runs_write(runs, n, out);
	while (n > 0)
		free(runs[--n].text);
	free(runs);
}

static void
on_told(void *arg, const struct mq_answer *answer)
{
	struct consumer *c = arg;

	/* The server's memory may be full: the next tick tries again. */
	if (answer == NULL || answer->error != NULL)
		c->told_well = false;
}

void
running_tell(struct consumer *c)
{
	struct mq_buf text = {0};

	list(c, &text);
	if (c->told_well && text.len == c->told.len &&
	    (text.len == 0 || memcmp(text.data, c->told.data, text.len) == 0)) {
		mq_buf_free(&text);
		return;
	}
	mq_consumer_tell_running(&c->self, &text, on_told, c);
	mq_buf_free(&c->told);
	c->told = text;
	c->told_well = true;
}

void
running_untold(struct consumer *c)
{
	c->told_well = false;
}

void
running_end(struct consumer *c)
{
	mq_buf_free(&c->told);
}
