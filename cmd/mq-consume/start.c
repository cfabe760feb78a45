/*
 * Starting the script of a message.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "consume.h"

/* Errors that may pass by themselves. */
static bool
passing(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* It is as if nobody had tried. */
static void
cannot_start(struct slot *s, int error)
{
	struct consumer *c = s->c;
	struct message *m = slot_on(s);
	bool later = passing(error);

	if (error == E2BIG && m != NULL && s->ones == NULL) {
		verdict_reject(m, "its headers do not fit into an environment");
		return;
	}
	if (!later)
		mq_say("%s: %s; stopping, %s returned", c->script,
		    strerror(error),
		    s->ones != NULL ? "the messages are" : "the message is");
	else if (!c->starving && !c->opt->quiet)
		mq_say("%s: %s; trying again", c->script, strerror(error));
	c->starved = c->starving = true;
	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL)
		message_unstart(m);
	if (!later)
		policy_stop(&c->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

/* The ends of its descriptors that the script gets. */
struct ends {
	int input, verbs, answers, errors;
};

static pid_t
spawn(struct slot *s, const char *dir, const struct ends *end)
{
	struct consumer *c = s->c;
	char real[PATH_MAX];
	struct mq_worker w = {.argv = c->opt->command,
	    .path = real,
	    .dir = dir,
	    .input = end->input,
	    .output = outputs_has_logs(&c->outputs) ? end->errors : -1,
	    .errors = end->errors,
	    .verbs = end->verbs,
	    .answers = end->answers};

	/* Anew for each run, so that a link to the script can be moved. */
	if (realpath(c->script_path, real) == NULL)
		return -1;
	w.envp = env_for(s, real, dir != NULL ? dir : c->here);
	return mq_worker_start(&c->setup, &w);
}

static void
close_ends(const struct ends *end)
{
	if (end->input != -1)
		close(end->input);
	if (end->verbs != -1)
		close(end->verbs);
	if (end->answers != -1)
		close(end->answers);
	if (end->errors != -1)
		close(end->errors);
}

/* Makes the two pipes of the verbs.  0, or -1 with errno and nothing open. */
static int
open_talk(struct slot *s, struct ends *end, int *answers)
{
	int verb[2], answer[2], error;

	if (pipe2(verb, O_CLOEXEC) == -1)
		return -1;
	if (pipe2(answer, O_CLOEXEC) == -1) {
		error = errno;
		close(verb[0]);
		close(verb[1]);
		errno = error;
		return -1;
	}
	/* Only our end: the script's must block. */
	fcntl(verb[0], F_SETFL, O_NONBLOCK);
	s->verbs_fd = verb[0];
	end->verbs = verb[1];
	end->answers = answer[0];
	*answers = answer[1];
	return 0;
}

/* Makes the pipes.  0, or -1 with errno and only the input open. */
static int
open_ends(struct slot *s, struct ends *end, int *answers)
{
	const struct message *m = slot_on(s);
	int error;

	s->output = run_output_open(
	    &s->c->outputs, m != NULL ? m->queue : 0, &end->errors);
	if (s->output == NULL)
		return -1;
	if (open_talk(s, end, answers) == 0)
		return 0;
	error = errno;
	(void)run_output_close(s->output);
	s->output = NULL;
	errno = error;
	return -1;
}

/* Returns 0, or the error that kept the script from being started. */
static int
start(struct slot *s, int input)
{
	struct consumer *c = s->c;
	struct ends end = {input, -1, -1, -1};
	char *dir = NULL;
	int error = 0, answers = -1;

	if (input == -1)
		return errno;
	if (c->opt->work_dir != NULL &&
	    (dir = command_work_dir(c, slot_on(s))) == NULL)
		error = passing(errno) ? errno : ENOTDIR;
	else if (open_ends(s, &end, &answers) == -1)
		error = errno;
	if (error != 0) {
		close_ends(&end);
		free(dir);
		return error;
	}
	command_log_start(s);
	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->pid = spawn(s, dir, &end);
	if (s->pid == -1)
		error = errno;
	close_ends(&end);
	free(dir);
	if (error != 0) {
		s->pid = 0;
		close(s->verbs_fd);
		close(answers);
		(void)run_output_close(s->output);
		s->output = NULL;
		return error;
	}
	requests_begin(&s->requests, answers);
	return 0;
}

bool
start_script(struct slot *s, int input)
{
	int error = start(s, input);

	if (error != 0)
		cannot_start(s, error);
	else
		s->c->starving = false;
	return error == 0;
}
