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
	mq_die(MQ_EXIT_USAGE, "--output: %s: must be live, lines or runs", arg);
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
		mq_die(MQ_EXIT_USAGE,
		    "-I cannot be used with --batch or --stream");
	if (*o->replace == '\0')
		mq_die(MQ_EXIT_USAGE, "-I: must not be empty");
	if (!arguments_have(o->command, o->replace))
		mq_die(MQ_EXIT_USAGE,
		    "-I: %s: not in any argument of the COMMAND", o->replace);
}

/* The first option given that is about a command; NULL: none. */
static const char *
command_option(const struct options *o)
{
	const struct {
		const char *name;
		bool given;
	} table[] = {
	    {"--batch", o->batch > 0},
	    {"--stream", o->stream},
	    {"--rq", o->rq},
	    {"--log-dir", o->log_dir != NULL},
	    {"--joblog", o->joblog != NULL},
	    {"--work-dir", o->work_dir != NULL},
	    {"--strict", o->strict},
	    {"--timeout", o->given.timeout_ms > 0},
	    {"--retry-on", o->given.retry_err == 1},
	    {"--push", o->given.push != NULL},
	    {"--rest", o->rest_max_ms > 0},
	    {"-I", o->replace != NULL},
	    {"--output", o->output != OUTPUT_LIVE},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].given)
			return table[i].name;
	return NULL;
}

void
option_check_command(const struct options *o)
{
	if (o->command == NULL && command_option(o) != NULL)
		mq_die(MQ_EXIT_USAGE, "%s needs a COMMAND; add -- COMMAND",
		    command_option(o));
	if (o->replace != NULL)
		check_replace(o);
	if (o->rq && (o->batch > 0 || o->stream))
		mq_die(MQ_EXIT_USAGE,
		    "--rq cannot be used with --batch or --stream");
	if (o->rq && o->work_dir == NULL)
		mq_die(MQ_EXIT_USAGE, "--rq needs --work-dir");
}

void
option_check_print(struct options *o)
{
	if (o->at_most_once && o->command != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--at-most-once cannot be used with a COMMAND");
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
		mq_die(MQ_EXIT_USAGE, "--batch-wait needs --batch");
	if (o->window > 0 && !o->stream)
		mq_die(MQ_EXIT_USAGE, "--window needs --stream");
	if (o->batch > 0 && o->stream)
		mq_die(MQ_EXIT_USAGE,
		    "--batch and --stream cannot be used together");
	if (o->stream && o->output == OUTPUT_RUNS)
		mq_die(MQ_EXIT_USAGE,
		    "--output=runs cannot be used with --stream; use "
		    "--output=lines");
	if (many && o->work_dir != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--work-dir cannot be used with --batch or --stream");
	if (o->command != NULL && !many && o->framing != MQ_FRAME_WHOLE)
		mq_die(MQ_EXIT_USAGE,
		    "%s cannot be used with a COMMAND, except with --batch or "
		    "--stream",
		    mq_option_framing_name(o->framing));
	if (many && o->framing == MQ_FRAME_WHOLE)
		o->framing = MQ_FRAME_LINES;
}
