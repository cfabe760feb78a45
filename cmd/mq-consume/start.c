/*
 * Starting the script of a slot, and what follows when that fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "consume.h"

/* Errors that may pass by themselves. */
static bool
is_passing(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* Afterwards it is as if nobody had tried. */
static void
cannot_start(struct slot *s, int error)
{
	struct consumer *c = s->c;
	struct message *m = slot_on(s);
	bool later = is_passing(error);

	if (error == E2BIG && m != NULL && s->ones == NULL) {
		verdict_reject(m, "its headers do not fit into an environment");
		return;
	}
	if (!later)
		mq_say("%s: %s; stopping, %s returned",
		    process_script(&c->process), strerror(error),
		    s->ones != NULL ? "the messages are" : "the message is");
	else if (!c->starving && !c->opt->quiet)
		mq_say("%s: %s; trying again", process_script(&c->process),
		    strerror(error));
	c->starved = c->starving = true;
	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL)
		message_unstart(m);
	if (!later)
		policy_stop(&c->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

static struct run_info
info_of(const struct slot *s)
{
	const struct options *opt = s->c->opt;
	const struct message *m = slot_on(s);
	struct run_info info = {0};

	if (m != NULL) {
		info.log = m->queue;
		info.queue = opt->queues[m->queue];
	} else if (opt->queue_count == 1) {
		info.queue = opt->queues[0];
	}
	if (s->ones != NULL) {
		info.batch = s->count;
	} else if (m != NULL) {
		info.id = m->id;
		info.attempts = m->attempts;
		info.envelope = &m->envelope;
	}
	return info;
}

static int
start_run(struct slot *s, int input)
{
	struct consumer *c = s->c;
	const struct run_info info = info_of(s);
	struct run run;
	char *dir;
	int error = process_start(&c->process, &info, input, &run, &dir);

	if (dir != NULL) {
		if (!c->starving)
			mq_say("%s: %s", dir, strerror(error));
		free(dir);
		return is_passing(error) ? error : ENOTDIR;
	}
	if (error != 0)
		return error;
	s->pid = run.pid;
	s->verbs_fd = run.verbs;
	s->output = run.output;
	requests_begin(&s->requests, run.answers);
	return 0;
}

bool
start_script(struct slot *s, int input)
{
	int error;

	s->started = mq_clock_s(CLOCK_MONOTONIC);
	error = start_run(s, input);
	if (error != 0)
		cannot_start(s, error);
	else
		s->c->starving = false;
	return error == 0;
}
