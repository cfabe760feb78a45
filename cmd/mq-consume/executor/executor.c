/*
 * Which of the ways messages take, and what is said of long runs.
 */
#include "executor.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

/* A bit less than a tick, so that a run is shown with the second one. */
#define LONG_S 0.9
/* Bytes of the last text of a command. */
#define TEXT_MAX 1024

static const struct executor_table *
find_table(const struct options *opt)
{
	if (opt->command == NULL)
		return &executor_print;
	if (opt->stream)
		return &executor_stream;
	return opt->batch > 0 ? &executor_batch : &executor_fork;
}

void
executor_init(struct executor *x)
{
	x->table = find_table(x->opt);
	x->batch = x->opt->batch > 0 ? x->opt->batch : 1;
	TAILQ_INIT(&x->free);
	TAILQ_INIT(&x->printer.printed);
	x->table->init(x);
}

void
executor_free(struct executor *x)
{
	free(x->all);
	free(x->runs);
	mq_buf_free(&x->printer.out);
}

bool
executor_take_away(struct executor *x, struct message *m)
{
	struct slot *s = m->slot;

	if (s != NULL && s->run.pid != 0) {
		s->killed = true;
		kill(-s->run.pid, SIGKILL);
	}
	if (s == NULL && !x->opt->at_most_once) {
		TAILQ_REMOVE(&x->printer.printed, m, line);
		x->running--;
	}
	return s != NULL;
}

bool
executor_stop_run(struct executor *x, struct message *m, enum mq_stop how)
{
	if (m->slot == NULL || m->slot->run.pid == 0 ||
	    (x->opt->stream && m != TAILQ_FIRST(&m->slot->hand)))
		return false;
	m->stop = how;
	if (x->opt->stream)
		worker_stop(m->slot);
	else
		run_stop(m->slot);
	return true;
}

int
executor_running(const struct executor *x)
{
	return x->running;
}

int
executor_busy(const struct executor *x)
{
	return x->busy;
}

bool
executor_rests(const struct executor *x)
{
	return x->resting > 0 && x->resting >= x->limit;
}

/* --- long runs --------------------------------------------------------------- */

static bool
runs_long(const struct slot *s, double now)
{
	const struct message *m = TAILQ_FIRST(&s->hand);

	return m != NULL && !m->lost && now - s->started >= LONG_S;
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
	struct message *m = TAILQ_FIRST(&s->hand);

	/* Other machines know unix time. */
	if (s->started_ms == 0)
		s->started_ms = mq_clock_unix_us() / 1000 -
		    (int64_t)((now - s->started) * 1000);
	return (struct mq_run){.queue = (char *)(uintptr_t)m->queue_name,
	    .id = m->id,
	    .script = (char *)(uintptr_t)process_command(s->executor->process),
	    .text = copy_text(mq_verbs_text(&s->verbs)),
	    .attempt = m->attempts + 1,
	    .pid = s->run.pid,
	    .started_ms = s->started_ms,
	    .grace_ms = s->executor->opt->grace_ms};
}

void
executor_describe(const struct executor *x, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_run *runs = NULL;
	int i, n = 0;

	for (i = 0; i < x->made; i++) {
		if (!runs_long(&x->all[i], now))
			continue;
		if (runs == NULL)
			runs = mq_xcalloc((size_t)x->made, sizeof(*runs));
		runs[n++] = describe_run(&x->all[i], now);
	}
	if (n > 0)
		mq_runs_write(runs, n, out);
	while (n > 0)
		free(runs[--n].text);
	free(runs);
}
