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

void
executor_init(struct executor *x)
{
	const struct options *opt = x->opt;

	x->table = opt->command == NULL ? &executor_print :
	    opt->stream			? &executor_stream :
	    opt->batch > 0		? &executor_batch :
					  &executor_fork;
	x->batch = opt->batch > 0 ? opt->batch : 1;
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
	struct slot *s = m->slot;
	bool *ending;

	if (s == NULL || s->run.pid == 0 ||
	    (x->opt->stream && m != TAILQ_FIRST(&s->hand)))
		return false;
	m->stop = how;
	s->killed = true;
	requests_hurry(&s->requests);
	ending = x->opt->stream ? &s->worker.terminated : &s->timed_out;
	/* Else KILL is near anyway. */
	if (*ending)
		return true;
	*ending = true;
	/* The message stays in hand even if the worker has not read it. */
	if (x->opt->stream)
		worker_flush(s, true);
	ev_timer_stop(x->loop, &s->timer);
	ev_timer_set(&s->timer, (double)x->opt->grace_ms / 1000, 0);
	ev_timer_start(x->loop, &s->timer);
	kill(-s->run.pid, SIGTERM);
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

void
executor_describe(const struct executor *x, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_run *runs = NULL;
	struct message *m;
	struct slot *s;
	int i, n = 0;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		m = TAILQ_FIRST(&s->hand);
		if (m == NULL || m->lost || now - s->started < LONG_S)
			continue;
		if (runs == NULL)
			runs = mq_xcalloc((size_t)x->made, sizeof(*runs));
		/* Other machines know unix time. */
		if (s->started_ms == 0)
			s->started_ms = mq_clock_unix_us() / 1000 -
			    (int64_t)((now - s->started) * 1000);
		/* The strings but text are borrowed. */
		runs[n++] = (struct mq_run){
		    .queue = (char *)(uintptr_t)m->queue_name,
		    .id = m->id,
		    .script =
			(char *)(uintptr_t)process_command(x->process)->line,
		    .text = copy_text(mq_verbs_text(&s->verbs)),
		    .attempt = m->attempts + 1,
		    .pid = s->run.pid,
		    .started_ms = s->started_ms,
		    .grace_ms = x->opt->grace_ms};
	}
	if (n > 0)
		mq_runs_write(runs, n, out);
	while (n > 0)
		free(runs[--n].text);
	free(runs);
}
