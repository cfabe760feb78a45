/*
 * Option values, and options that exclude each other.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "options.h"
#include "process/arguments.h"
#include "shared/options.h"

void
option_range(const char *name, const char *arg, int64_t *min, int64_t *max)
{
	const char *dots = strstr(arg, "..");
	char *first;

	if (dots == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s: not of the form MIN..MAX", name,
		    arg);
	first = mq_xstrndup(arg, (size_t)(dots - arg));
	*min = mq_option_duration(name, first);
	*max = mq_option_duration(name, dots + 2);
	free(first);
	if (*min > *max)
		mq_die(MQ_EXIT_USAGE, "%s: %s: MIN is above MAX", name, arg);
}

enum output_form
option_output(const char *arg)
{
	static const char *const names[] = {"live", "lines", "runs"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(arg, names[i]) == 0)
			return (enum output_form)i;
	mq_die(MQ_EXIT_USAGE, "--output: %s: not live, lines or runs", arg);
}

const char *
option_tag(const char *arg)
{
	if (strlen(arg) > TAG_MAX)
		mq_die(MQ_EXIT_USAGE, "--tag: longer than %d bytes", TAG_MAX);
	return arg;
}

/* The first message needs the directories: check them before. */
const char *
option_directory(const char *dir)
{
	char *real;

	if (dir == NULL)
		return NULL;
	if (mkdir(dir, 0700) == -1 && errno != EEXIST)
		mq_die(MQ_EXIT_CONFIG, "%s: %s", dir, strerror(errno));
	real = realpath(dir, NULL);
	if (real == NULL || access(real, W_OK | X_OK) == -1)
		mq_die(MQ_EXIT_CONFIG, "%s: %s", dir, strerror(errno));
	return real;
}

static void
check_replace(const struct options *o)
{
	if (o->batch > 0 || o->stream)
		mq_die(MQ_EXIT_USAGE, "-I is for one message at a time");
	if (*o->replace == '\0')
		mq_die(MQ_EXIT_USAGE, "-I: empty");
	if (!arguments_have(o->command, o->replace))
		mq_die(MQ_EXIT_USAGE, "-I: %s: in no argument of the COMMAND",
		    o->replace);
}

void
option_check_command(const struct options *o)
{
	if (o->command == NULL &&
	    (o->log_dir != NULL || o->joblog != NULL || o->work_dir != NULL ||
		o->strict || o->given.timeout_ms > 0 ||
		o->given.retry_err == 1 || o->given.push != NULL ||
		o->rest_max_ms > 0 || o->replace != NULL ||
		o->output != OUTPUT_LIVE))
		mq_die(MQ_EXIT_USAGE,
		    "--log-dir, --joblog, --work-dir, --strict, --timeout, --retry-on, "
		    "--push, --rest, --output and -I need a COMMAND");
	if (o->replace != NULL)
		check_replace(o);
	if (o->rq && (o->work_dir == NULL || o->batch > 0 || o->stream))
		mq_die(MQ_EXIT_USAGE,
		    "--rq needs a COMMAND for each message, and --work-dir");
}

void
option_check_print(struct options *o)
{
	if (o->at_most_once && o->command != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--at-most-once is for printing, without a COMMAND");
	/* On a terminal, unframed messages would run into each other. */
	if (o->command == NULL && o->framing == MQ_FRAME_WHOLE &&
	    isatty(STDOUT_FILENO))
		o->framing = MQ_FRAME_LINES;
}

void
option_check_many(struct options *o)
{
	bool many = o->batch > 0 || o->stream;

	if (o->batch_wait_ms >= 0 && o->batch == 0)
		mq_die(MQ_EXIT_USAGE, "--batch-wait is for --batch");
	if (o->window > 0 && !o->stream)
		mq_die(MQ_EXIT_USAGE, "--window is for --stream");
	if (o->batch > 0 && o->stream)
		mq_die(
		    MQ_EXIT_USAGE, "--batch and --stream exclude each other");
	if (o->stream && o->output == OUTPUT_RUNS)
		mq_die(MQ_EXIT_USAGE,
		    "--output runs is not for --stream, whose workers stay; "
		    "use lines");
	if (many && o->command == NULL)
		mq_die(MQ_EXIT_USAGE, "--batch and --stream need a COMMAND");
	if (many && o->work_dir != NULL)
		mq_die(
		    MQ_EXIT_USAGE, "--work-dir is for one message at a time");
	if (o->command != NULL && !many && o->framing != MQ_FRAME_WHOLE)
		mq_die(MQ_EXIT_USAGE,
		    "a framing is for printing, without a COMMAND, or for "
		    "--batch and --stream");
	if (many && o->framing == MQ_FRAME_WHOLE)
		o->framing = MQ_FRAME_LINES;
}
