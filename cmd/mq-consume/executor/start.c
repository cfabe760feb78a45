/*
 * Starting the command of a slot.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "executor.h"
#include "mq-consume/rules.h"

/* Errors that may pass by themselves. */
static bool
is_temporary(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* Returns the messages, as if no start had been tried. */
static void
report_failed_start(struct slot *s, int error)
{
	struct executor *x = s->executor;
	struct message *m = TAILQ_FIRST(&s->hand);
	const char *script = process_script(x->process);

	if (error == E2BIG && m != NULL && s->ones == NULL) {
		slot_release(s, m);
		tell(x, FACT_REJECTED, .message = m,
		    .text = x->opt->replace == NULL ?
			"its headers are too long for the environment" :
			"its payload and headers are too long for a command");
		return;
	}
	if (!is_temporary(error))
		mq_say("%s: %s; stopping, %s returned", script, strerror(error),
		    s->ones != NULL ? "the messages are" : "the message is");
	else if (!x->starving && !x->opt->quiet)
		mq_say("%s: %s; trying again", script, strerror(error));
	x->starved = x->starving = true;
	slot_return_all(s);
	if (!is_temporary(error))
		policy_stop(x->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

static struct run_info
describe_run(const struct slot *s)
{
	const struct options *opt = s->executor->opt;
	const struct message *m = TAILQ_FIRST(&s->hand);
	struct run_info info = {
	    .attempts_max = rules_of(opt, m != NULL ? m->queue : 0)->attempts};

	if (m != NULL) {
		info.log = m->queue;
		info.queue = m->queue_name;
		info.first = m->id;
	} else if (opt->queue_count == 1) {
		info.queue = opt->queues[0];
	}
	if (s->ones != NULL) {
		info.batch = s->count;
	} else if (m != NULL) {
		info.id = m->id;
		info.attempts = m->attempts;
		info.envelope = &m->envelope;
		info.stamped = message_is_stamped(m);
	}
	return info;
}

/* Starts the process of a run.  Returns 0, or an errno. */
static int
start_process(
    struct slot *s, const struct run_info *info, int input, char **dir)
{
	int answers = input != -1 ? mq_answers_open(&s->answers) : -1;

	return process_start(
	    s->executor->process, info, input, answers, &s->run, dir);
}

/* The same with the message's files. */
static int
start_with_files(
    struct slot *s, const struct run_info *info, int input, char **dir)
{
	struct run_info with = *info;
	struct attached a;
	int error = attachments_begin(
	    s->executor->attachments, TAILQ_FIRST(&s->hand), &a);

	if (error != 0) {
		if (input != -1)
			close(input);
		return error;
	}
	with.files = a.dir;
	with.before = attachments_fetch;
	with.before_arg = &a;
	error = start_process(s, &with, input, dir);
	attachments_begun(&a, error == 0);
	return error;
}

/* Returns 0, or an errno. */
static int
start_command(struct slot *s, int input)
{
	const struct run_info info = describe_run(s);
	bool files =
	    info.id != NULL && attachments_wanted(TAILQ_FIRST(&s->hand));
	char *dir = NULL;
	int error = files ? start_with_files(s, &info, input, &dir) :
			    start_process(s, &info, input, &dir);

	if (dir == NULL)
		return error;
	if (!s->executor->starving)
		mq_say("%s: %s", dir, strerror(error));
	free(dir);
	return is_temporary(error) ? error : ENOTDIR;
}

bool
slot_start(struct slot *s, int input)
{
	int error;

	s->started = s->born = mq_clock_s(CLOCK_MONOTONIC);
	error = start_command(s, input);
	if (error != 0)
		report_failed_start(s, error);
	else
		s->executor->starving = false;
	return error == 0;
}

bool
slot_was_started(struct slot *s)
{
	int error = 0;

	if (s->run.failure == -1)
		return true;
	if (read(s->run.failure, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(s->run.failure);
	s->run.failure = -1;
	if (error != 0)
		report_failed_start(s, error);
	return error == 0;
}

const char *
slot_close_output(struct slot *s)
{
	char end[48], how[96];
	const char *errors;

	if (s->run.label[0] != '\0') {
		mq_verdict_end(s->status, end, sizeof(end));
		snprintf(how, sizeof(how), "%s%s after %.3f s",
		    s->timed_out ? "timed out, " : "", end,
		    mq_clock_s(CLOCK_MONOTONIC) - s->born);
		process_log_end(s->executor->process, &s->run, how);
	}
	errors = run_output_close(s->run.output);
	s->run.output = NULL;
	return errors;
}
