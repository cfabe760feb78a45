/*
 * What the slots tell others about their long runs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "executor.h"

/* A bit less than a tick, so that a run is shown with the second one. */
#define LONG_S 0.9
/* Bytes of the last text of a command. */
#define TEXT_MAX 1024

static bool
runs_long(const struct slot *s, double now)
{
	const struct message *m = slot_message(s);

	return m != NULL && !m->lost && now - s->started >= LONG_S;
}

/* The start in unix time, which other machines know. */
static int64_t
unix_start_ms(struct slot *s, double now)
{
	if (s->started_ms == 0)
		s->started_ms = mq_clock_unix_us() / 1000 -
		    (int64_t)((now - s->started) * 1000);
	return s->started_ms;
}

/* The beginning of a text, cut between two characters. */
static char *
copy_text(const char *text)
{
	size_t n = strnlen(text, TEXT_MAX + 1);

	if (n > TEXT_MAX)
		for (n = TEXT_MAX; n > 0 && (text[n] & 0xc0) == 0x80;)
			n--;
	return mq_xstrndup(text, n);
}

/* The strings but text are borrowed. */
static struct mq_run
describe_run(struct slot *s, double now)
{
	struct message *m = slot_message(s);

	return (struct mq_run){.queue = (char *)(uintptr_t)m->queue_name,
	    .id = m->id,
	    .script = (char *)(uintptr_t)process_command(s->slots->process),
	    .text = copy_text(mq_verbs_text(&s->verbs)),
	    .attempt = m->attempts + 1,
	    .pid = s->pid,
	    .started_ms = unix_start_ms(s, now)};
}

void
slots_describe(const struct slots *ss, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_run *runs = NULL;
	int i, n = 0;

	for (i = 0; i < ss->made; i++) {
		if (!runs_long(&ss->all[i], now))
			continue;
		if (runs == NULL)
			runs = mq_xcalloc((size_t)ss->made, sizeof(*runs));
		runs[n++] = describe_run(&ss->all[i], now);
	}
	if (n > 0)
		mq_runs_write(runs, n, out);
	while (n > 0)
		free(runs[--n].text);
	free(runs);
}
