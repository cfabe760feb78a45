/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The ways of running messages, by their tables; stops of runs; a description of long runs. */
#include "parts.h"

#include <limits.h>

#include "mq-consume/duplicates.h"

/* Seconds, a bit less than a tick: a run is described from its second tick on. */
#define LONG_S 0.9
/* Bytes of a command's last text. */
#define TEXT_MAX 1024

/* --- starts ------------------------------------------------------------------ */

bool
executor_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	return x->table->wants(x, terms, queue);
}

const char *
executor_refuses(const struct executor *x, const struct message *m)
{
	const struct mq_envelope *e = &m->envelope;

	if (x->opt->replace != NULL)
		return arguments_refuse(e->payload, e->payload_len);
	return x->opt->batch > 0 || x->opt->stream ?
	    message_unframable(m, x->opt->framing) :
	    NULL;
}

bool
executor_take(struct executor *x, struct message *m)
{
	return x->table->take(x, m);
}

int
executor_spare(const struct executor *x)
{
	return x->table->begin == NULL ? INT_MAX :
					 (int)(slots_idle(x) - 1) * x->batch;
}

void
executor_begin(struct executor *x)
{
	if (x->table->begin != NULL)
		x->table->begin(x);
}

void
executor_started(struct executor *x, const struct start_terms *terms)
{
	if (x->table->started != NULL)
		x->table->started(x, terms);
}

long
executor_room(const struct executor *x, int queue, bool careful)
{
	return x->table->room(x, queue, careful);
}

bool
executor_wants_few(const struct executor *x, int queue)
{
	/* With --batch: the batch of the queue is not full, and a slot is free for it. */
	return x->opt->stream ||
	    (x->opt->batch > hand_count(x->hand, queue, MESSAGE_UNSTARTED) &&
		slots_idle_for(x, queue) > 0);
}

/* --- events ------------------------------------------------------------------- */

void
executor_tick(struct executor *x)
{
	x->table->tick(x);
}

void
executor_answered(struct executor *x, int n, bool all)
{
	struct slot *s = &x->all[n];

	if (all)
		s->waits = false;
	x->table->answered(s, all);
}

void
executor_kill(struct executor *x, int sig)
{
	bool pauses = sig == SIGSTOP || sig == SIGCONT;
	struct slot *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (!pauses)
			requests_hurry(s->requests);
		if (s->run.pid == 0)
			continue;
		s->killed = s->killed || !pauses;
		kill(-s->run.pid, sig);
	}
}

void
executor_stop(struct executor *x)
{
	x->stopping = true;
	if (x->table->stop != NULL)
		x->table->stop(x);
}

bool
executor_take_away(struct executor *x, struct message *m)
{
	struct slot *s = m->slot;

	if (s != NULL && s->run.pid != 0) {
		s->killed = true;
		kill(-s->run.pid, SIGKILL);
	}
	if (s == NULL)
		TAILQ_REMOVE(&x->printer.printed, m, line);
	return s != NULL;
}

bool
executor_stop_run(struct executor *x, struct message *m, enum mq_stop how)
{
	struct slot *s = m->slot;
	bool *ending;

	if (s == NULL || s->run.pid == 0 ||
	    (x->opt->stream && m != TAILQ_FIRST(&s->messages)))
		return false;
	m->stop = how;
	s->killed = true;
	requests_hurry(s->requests);
	ending = x->opt->stream ? &s->worker.terminated : &s->timed_out;
	/* After an earlier TERM, KILL is near anyway. */
	if (*ending)
		return true;
	*ending = true;
	/* A stream worker keeps the message even if it has not read it: the next turn only
	 * ends the input. */
	tell(x, FACT_WAKE);
	mq_timer_start(&s->timer, (double)x->opt->grace_ms / 1000, 0);
	kill(-s->run.pid, SIGTERM);
	return true;
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

static struct mq_run
describe_run(const struct slot *s, const struct message *m)
{
	const struct executor *x = s->executor;
	const char *text = s->verbs.about > 0 ?
	    s->verbs.ones[s->verbs.about - 1].text :
	    s->verbs.text;
	size_t len = strnlen(text, TEXT_MAX);

	/* Cut between two characters. */
	while (len > 0 && (text[len] & 0xc0) == 0x80)
		len--;
	return (struct mq_run){.queue = mq_xstrdup(m->queue_name),
	    .id = mq_xstrdup(m->id),
	    .script = mq_xstrdup(x->command->line),
	    .text = mq_xstrndup(text, len),
	    .attempt = m->attempts + 1,
	    .pid = s->run.pid,
	    .started_ms = s->started_ms,
	    .grace_ms = x->opt->grace_ms};
}

void
executor_describe(const struct executor *x, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_runs runs = {0};
	const struct message *m;
	struct slot *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		m = TAILQ_FIRST(&s->messages);
		if (m == NULL || m->lost || now - s->started < LONG_S)
			continue;
		/* Other machines do not know our monotonic time. */
		if (s->started_ms == 0)
			s->started_ms = mq_clock_unix_us() / 1000 -
			    (int64_t)((now - s->started) * 1000);
		runs.runs = mq_xreallocarray(
		    runs.runs, (size_t)runs.count + 1, sizeof(*runs.runs));
		runs.runs[runs.count++] = describe_run(s, m);
	}
	if (runs.count > 0)
		mq_runs_write(runs.runs, runs.count, out);
	mq_runs_free(&runs);
}

/* --- beginning and end ----------------------------------------------------------- */

const struct executor_way *
executor_way(const struct executor *x)
{
	return &x->way;
}

int
executor_capacity(const struct executor *x)
{
	return x->all != NULL ? x->limit * x->batch : 0;
}

void
executor_resize(struct executor *x)
{
	int i;

	if (x->all == NULL)
		return;
	x->slots_differ = false;
	x->limit = rules_slots(x->opt, &x->slots_differ);
	x->slots_differ &= !x->opt->stream;
	process_allow(x->process, x->limit);
	/* The free slot listed last is used first: that shall be the first slot. */
	for (i = x->limit - 1; i >= x->made; i--)
		slot_init(&x->all[i], x, i);
	x->made = MAX(x->made, x->limit);
	for (i = 0; i < x->opt->queue_count; i++)
		slots_count(x, i, 0);
}

static void
init_way(struct executor *x)
{
	const struct options *opt = x->opt;

	x->table = opt->command == NULL ? &executor_print :
	    opt->stream			? &executor_stream :
	    opt->batch > 0		? &executor_batch :
					  &executor_fork;
	x->way = x->table->way;
	x->way.files = x->way.files && opt->layout->attachments != NULL;
	if (opt->command != NULL)
		return;
	x->way.names = opt->framing == MQ_FRAME_JSONL;
	if (opt->at_most_once)
		x->way.acks = ACKS_FIRST;
}

struct executor *
executor_new(struct ev_loop *loop, const struct options *opt, struct hand *hand,
    struct facts *facts, struct mq_children *children, struct process *process,
    struct duplicates *duplicates, struct mq_server *server)
{
	struct executor *x = mq_xcalloc(1, sizeof(*x));
	int most = opt->given.slots;

	*x = (struct executor){.loop = loop,
	    .opt = opt,
	    .hand = hand,
	    .facts = facts,
	    .children = children,
	    .process = process,
	    .command = &process->command,
	    .duplicates = duplicates,
	    .server = server,
	    .batch = opt->batch > 0 ? opt->batch : 1};
	TAILQ_INIT(&x->free);
	TAILQ_INIT(&x->printer.printed);
	mq_timer_init(&x->batch_timer, loop, executor_wake, x);
	init_way(x);
	if (opt->command == NULL) {
		print_init(x);
		return x;
	}
	/* Zeroed pages of slots that are never initialised take no memory. */
	x->all = mq_xcalloc(
	    (size_t)(most != -1 ? most : MQ_SLOTS_MAX), sizeof(*x->all));
	x->runs = mq_xcalloc((size_t)opt->queue_count, sizeof(*x->runs));
	executor_resize(x);
	return x;
}

void
executor_free(struct executor *x)
{
	free(x->all);
	free(x->runs);
	mq_buf_free(&x->input);
	mq_buf_free(&x->printer.out);
	free(x);
}
