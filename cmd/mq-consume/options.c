#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/process/process.h"
#include "options.h"
#include "shared/options.h"

#define PREFETCH_MAX 100000
#define BATCH_MAX    100000
#define WINDOW_MAX   100000

static const char usage[] =
    "usage: mq-consume [options] QUEUE... [-- COMMAND [ARG...]]\n"
    "\n"
    "Runs COMMAND once for each message, with the payload on its stdin.  Exit\n"
    "status 0 means done, 75 try again later, anything else rejects the\n"
    "message; verbs on descriptor 3 say more.  Without COMMAND, prints the\n"
    "payloads.  Several queues: earlier ones come first.\n"
    "\n"
    "  mq-consume -j4 thumbnails -- ./make-thumbnail\n"
    "  mq-consume --drain -l urls | sort -u\n"
    "\n";

static void
read_range(const struct mq_given *given, int64_t *min, int64_t *max)
{
	const char *name = given->name, *arg = given->arg;
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

static void
take_backoff(void *into, const struct mq_given *given)
{
	struct options *o = into;

	read_range(given, &o->given.backoff_min_ms, &o->given.backoff_max_ms);
}

static void
take_rest(void *into, const struct mq_given *given)
{
	struct options *o = into;

	read_range(given, &o->rest_min_ms, &o->rest_max_ms);
}

static void
take_retry_on(void *into, const struct mq_given *given)
{
	struct options *o = into;

	if (strcmp(given->arg, "err") != 0)
		mq_die(MQ_EXIT_USAGE, "%s: %s: must be err", given->name,
		    given->arg);
	o->given.retry_err = 1;
}

static void
take_rq(void *into, const struct mq_given *given)
{
	struct options *o = into;

	(void)given;
	o->rq = true;
	o->strict = MQ_STRICT_RQ;
}

static void
take_strict(void *into, const struct mq_given *given)
{
	struct options *o = into;

	(void)given;
	if (!o->rq)
		o->strict = MQ_STRICT;
}

static void
take_output(void *into, const struct mq_given *given)
{
	static const char *const names[] = {"live", "lines", "runs"};
	struct options *o = into;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(given->arg, names[i]) == 0)
			break;
	if (i == sizeof(names) / sizeof(names[0]))
		mq_die(MQ_EXIT_USAGE, "%s: %s: must be live, lines or runs",
		    given->name, given->arg);
	o->output = (enum output_form)i;
}

static void
take_tag(void *into, const struct mq_given *given)
{
	struct options *o = into;

	if (strlen(given->arg) > TAG_MAX)
		mq_die(MQ_EXIT_USAGE, "%s: longer than %d bytes", given->name,
		    TAG_MAX);
	o->tag = given->arg;
}

static const struct mq_option runs[] = {
    {'j', "--slots", "N", "+run up to N messages at once (1)",
	MQ_INT(struct options, given.slots, 1, MQ_SLOTS_MAX)},
    {'I', "--replace", "TOKEN",
	"put the payload in place of TOKEN in arguments",
	MQ_TEXT(struct options, replace)},
    {0, "--prefetch", "N", "hold N more messages ready (default: by pace)",
	MQ_INT(struct options, prefetch, 0, PREFETCH_MAX)},
    {'n', "--limit", "N", "+stop after N messages",
	MQ_LONG(struct options, limit, 1, LONG_MAX)},
    {0, "--drain", NULL, "+stop when nothing is ready, due or in flight",
	MQ_FLAG(struct options, drain)},
    {0, "--idle", "DUR", "stop after nothing has happened for DUR",
	MQ_DURATION(struct options, idle_ms, 0)},
    {0, "--timeout", "DUR", "+end a run that takes longer (TERM, then KILL)",
	MQ_DURATION(struct options, given.timeout_ms, 0)},
    {0, "--attempts", "N", "+reject a message after N runs (15)",
	MQ_INT(struct options, given.attempts, 1, MQ_ATTEMPTS_MAX)},
    {0, "--backoff", "MIN..MAX", "+delay of a retry, doubling (1s..10m)",
	.take = take_backoff},
    {0, "--retry-on", "err", "what failed runs again like 75, up to --attempts",
	.take = take_retry_on},
    {0, "--push", "QUEUE", "where the verb push moves messages to",
	MQ_TEXT(struct options, given.push)},
    {0, "--notify", "QUEUE", "publish there how each message has ended",
	MQ_TEXT(struct options, given.notify)},
    {0, "--rate", "N/s[:BURST]", "start at most N messages a second (/m, /h)",
	MQ_RATE(struct options, rate)},
    {0, "--rate-shared", "N/s[:BURST]",
	"the same for all consumers of a queue together",
	MQ_RATE(struct options, given.rate)},
    {0, "--rest", "MIN..MAX", "how long a slot rests after failures in a row",
	.take = take_rest},
    {0, "--batch", "N", "+run COMMAND for up to N messages at once",
	MQ_INT(struct options, batch, 1, BATCH_MAX)},
    {0, "--batch-wait", "DUR", "wait so long for a batch to become full (0)",
	MQ_DURATION(struct options, batch_wait_ms, 0)},
    {0, "--stream", NULL, "+keep COMMAND running, and feed it messages",
	MQ_FLAG(struct options, stream)},
    {0, "--window", "N", "up to N before the first is judged (by pace)",
	MQ_INT(struct options, window, 1, WINDOW_MAX)},
    {0, "--strict", NULL, "exit 0 without a final verb has failed, as in RQ",
	.take = take_strict},
    {0, "--rq", NULL, "for scripts of RQ: --strict, and what mq-rq(7) says",
	.take = take_rq},
    {0, "--grace", "DUR", "on TERM, wait so long for running scripts (25s)",
	MQ_DURATION(struct options, grace_ms, 0)},
    {0, "--tag", "NAME", "name of the connection (mq-consume)",
	.take = take_tag},
    {0, "--log-dir", "DIR", "output of the scripts to DIR/QUEUE.log",
	MQ_TEXT(struct options, log_dir)},
    {0, "--joblog", "FILE", "add a line to FILE for each run that ended",
	MQ_TEXT(struct options, joblog)},
    {0, "--output", "FORM",
	"of runs at a time: live, lines with the id, or whole\n"
	"runs (live)",
	.take = take_output},
    {0, "--keep", "DUR", "what became of a message can be read so long",
	MQ_DURATION(struct options, given.keep_ms, 0)},
    {0, "--work-dir", "DIR", "run each message in its own DIR/ID",
	MQ_TEXT(struct options, work_dir)},
    {0, "--no-clean", NULL, "leave dead consumers' messages to others",
	MQ_FLAG(struct options, no_clean)},
    {0},
};
static const struct mq_option printing[] = {
    {0, "--at-most-once", NULL, "ack before printing; a crash loses up to 250",
	MQ_FLAG(struct options, at_most_once)},
    {0},
};
static const struct mq_option framings[] = {
    {.help = "  -l, --lines, -0, --null, --netstring, --jsonl\n"
	     "how to print (default: the payloads alone, or -l\n"
	     "on a terminal), and how to feed batches and\n"
	     "streams (default: -l)"},
    {'l', "--lines", NULL, NULL, .take = mq_option_framing,
	.which = MQ_FRAME_LINES},
    {'0', "--null", NULL, NULL, .take = mq_option_framing,
	.which = MQ_FRAME_NULL},
    {0, "--netstring", NULL, NULL, .take = mq_option_framing,
	.which = MQ_FRAME_NETSTRING},
    {0, "--jsonl", NULL, NULL, .take = mq_option_framing,
	.which = MQ_FRAME_JSONL},
    {0},
};

/* The first message needs the directories: check them before. */
static const char *
directory(const char *dir)
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

static void
check_command(const struct options *o)
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

static void
check_print(struct options *o)
{
	if (o->at_most_once && o->command != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--at-most-once cannot be used with a COMMAND");
	/* On a terminal, unframed messages would run into each other. */
	if (o->command == NULL && o->framing == MQ_FRAME_WHOLE &&
	    isatty(STDOUT_FILENO))
		o->framing = MQ_FRAME_LINES;
}

static void
check_many(struct options *o)
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

/* Sets the command behind the first "--"; returns how many words are before. */
static int
split_command(struct options *o, int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		if (argv[i + 1] == NULL)
			mq_die(MQ_EXIT_USAGE, "--: needs a command after it");
		o->command = argv + i + 1;
		return i;
	}
	return argc;
}

/* getopt_long(3) sorts the words, and queue names get a namespace. */
static char **
copy_words(char *const words[], int n)
{
	char **copy = mq_xcalloc((size_t)n + 1, sizeof(*copy));

	memcpy(copy, words, (size_t)n * sizeof(*copy));
	return copy;
}

char **
options_parse(
    struct options *o, struct mq_shared *shared, int argc, char *argv[])
{
	const struct mq_options tables[] = {{runs, o},
	    {mq_makes_options, shared}, {printing, o}, {framings, &o->framing},
	    {mq_shared_options, shared}, {0}};
	int count = split_command(o, argc, argv);
	char *behind = argv[count];

	shared->usage = usage;
	o->words = copy_words(argv, argc);
	/* getopt_long(3) would mix the command's arguments with ours. */
	argv[count] = NULL;
	if (!mq_option_try(shared, tables, count, argv)) {
		if (o->command == NULL)
			operands_forgotten(o);
		mq_option_refuse(tables, argv);
	}
	mq_option_target(shared, o->given.push);
	mq_option_target(shared, o->given.notify);
	mq_option_rights(shared, MQ_CONSUMES, argv + optind, count - optind);
	check_command(o);
	check_many(o);
	check_print(o);
	if (optind == count)
		mq_die(MQ_EXIT_USAGE, "no queue given (try --help)");
	o->queue_count = count - optind;
	o->typed = copy_words(argv + optind, o->queue_count);
	argv[count] = behind;
	o->existing = shared->existing;
	o->fresh = shared->fresh;
	o->quiet = shared->quiet;
	o->verbose = shared->verbose;
	o->log_dir = directory(o->log_dir);
	o->work_dir = directory(o->work_dir);
	return argv + optind;
}
