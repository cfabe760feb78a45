/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The command line, and the checks of its queues.  A name may be new, or mistyped; or the name
 * of a command, before which "--" was forgotten. */
#include <sys/stat.h>

#include "mq-consume/process/process.h"
#include "options.h"
#include "shared/options.h"

/* The most messages of --prefetch, --batch and --window. */
#define MESSAGES_MAX 100000

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

/* --- options ------------------------------------------------------------------- */

enum { RANGE_BACKOFF, RANGE_REST };

static void
read_range(void *into, const struct mq_given *given)
{
	struct options *o = into;
	bool rest = given->option->which == RANGE_REST;
	int64_t *min = rest ? &o->rest_min_ms : &o->given.backoff_min_ms;
	int64_t *max = rest ? &o->rest_max_ms : &o->given.backoff_max_ms;
	const char *name = given->name, *arg = given->arg;
	const char *dots = strstr(arg, "..");
	char *first;

	forbid(dots == NULL, "%s: %s: not of the form MIN..MAX", name, arg);
	first = mq_xstrndup(arg, (size_t)(dots - arg));
	*min = mq_option_duration(name, first);
	*max = mq_option_duration(name, dots + 2);
	free(first);
	forbid(*min > *max, "%s: %s: MIN is above MAX", name, arg);
}

static void
read_retry_on(void *into, const struct mq_given *given)
{
	struct options *o = into;

	forbid(strcmp(given->arg, "err") != 0, "%s: %s: must be err",
	    given->name, given->arg);
	o->given.retry_err = 1;
}

static void
read_strict(void *into, const struct mq_given *given)
{
	struct options *o = into;

	o->rq |= given->option->which == MQ_STRICT_RQ;
	o->strict = o->rq ? MQ_STRICT_RQ : MQ_STRICT;
}

static void
read_output(void *into, const struct mq_given *given)
{
	static const char *const names[] = {"live", "lines", "runs"};
	struct options *o = into;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(given->arg, names[i]) == 0)
			break;
	forbid(i == sizeof(names) / sizeof(names[0]),
	    "%s: %s: must be live, lines or runs", given->name, given->arg);
	o->output = (enum output_form)i;
}

#define RESULT_USUAL ((size_t)64 << 10)
#define RESULT_MAX   ((size_t)1 << 20)

static void
read_result(void *into, const struct mq_given *given)
{
	struct options *o = into;
	const char *name = given->name, *arg = given->arg;
	const char *rest = arg + strcspn(arg, ":");

	o->result = RESULT_USUAL;
	if (*rest == ':')
		o->result = mq_option_size(rest + 1, &rest);
	forbid(strncmp(arg, "stdout", 6) != 0 || strchr(":", arg[6]) == NULL ||
		*rest != '\0',
	    "%s: %s: not of the form stdout[:SIZE], as in stdout:64K", name,
	    arg);
	forbid(o->result == 0 || o->result > RESULT_MAX,
	    "%s: %s: SIZE must be from 1 to 1M", name, arg);
}

#define KEEP_MIN    ((size_t)4 << 10)
#define KEEP_MAX    ((size_t)16 << 20)
#define KEEP_MS	    INT64_C(86400000)
#define KEEP_MS_MAX (30 * KEEP_MS)

static void
read_output_keep(void *into, const struct mq_given *given)
{
	struct options *o = into;
	const char *name = given->name, *arg = given->arg;
	const char *rest;

	o->output_keep = mq_option_size(arg, &rest);
	forbid(rest == arg || (*rest != '\0' && *rest != ':'),
	    "%s: %s: not of the form SIZE[:DUR], as in 64K:1d", name, arg);
	forbid(o->output_keep < KEEP_MIN || o->output_keep > KEEP_MAX,
	    "%s: %s: SIZE must be from 4K to 16M", name, arg);
	o->output_keep_ms =
	    *rest == ':' ? mq_option_duration(name, rest + 1) : KEEP_MS;
	forbid(o->output_keep_ms < 1000 || o->output_keep_ms > KEEP_MS_MAX,
	    "%s: %s: DUR must be from 1s to 30d", name, arg);
}

static const struct mq_option runs[] = {
    {'j', "--slots", "N", "+run up to N messages at once (1)",
	MQ_INT(struct options, given.slots, 1, MQ_SLOTS_MAX)},
    {'I', "--replace", "TOKEN",
	"put the payload in place of TOKEN in arguments",
	MQ_TEXT(struct options, replace)},
    {0, "--prefetch", "N", "hold N more messages ready (default: by pace)",
	MQ_INT(struct options, prefetch, 0, MESSAGES_MAX)},
    {'n', "--limit", "N", "+stop after N messages",
	MQ_LONG(struct options, limit, 1, LONG_MAX)},
    {0, "--halt", "N", "stop after N messages rejected in a row",
	MQ_LONG(struct options, halt, 1, LONG_MAX)},
    {0, "--drain", NULL, "+stop when nothing is ready, due or in flight",
	MQ_FLAG(struct options, drain)},
    {0, "--idle", "DUR", "stop after nothing has happened for DUR",
	MQ_DURATION(struct options, idle_ms, 0)},
    {0, "--timeout", "DUR", "+end a run that takes longer (TERM, then KILL)",
	MQ_DURATION(struct options, given.timeout_ms, 0)},
    {0, "--attempts", "N", "+reject a message after N runs (15)",
	MQ_INT(struct options, given.attempts, 1, MQ_ATTEMPTS_MAX)},
    {0, "--backoff", "MIN..MAX", "+delay of a retry, doubling (1s..10m)",
	.take = read_range, .which = RANGE_BACKOFF},
    {0, "--retry-on", "err", "what failed runs again like 75, up to --attempts",
	.take = read_retry_on},
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
	.take = read_range, .which = RANGE_REST},
    {0, "--batch", "N", "+run COMMAND for up to N messages at once",
	MQ_INT(struct options, batch, 1, MESSAGES_MAX)},
    {0, "--batch-wait", "DUR", "wait so long for a batch to become full (0)",
	MQ_DURATION(struct options, batch_wait_ms, 0)},
    {0, "--stream", NULL, "+keep COMMAND running, and feed it messages",
	MQ_FLAG(struct options, stream)},
    {0, "--window", "N", "up to N before the first is judged (by pace)",
	MQ_INT(struct options, window, 1, MESSAGES_MAX)},
    {0, "--strict", NULL, "exit 0 without a final verb has failed, as in RQ",
	.take = read_strict, .which = MQ_STRICT},
    {0, "--rq", NULL, "for scripts of RQ: --strict, and what mq-rq(7) says",
	.take = read_strict, .which = MQ_STRICT_RQ},
    {0, "--grace", "DUR", "on TERM, wait so long for running scripts (25s)",
	MQ_DURATION(struct options, grace_ms, 0)},
    {0, "--tag", "NAME", "name of the connection (mq-consume)",
	MQ_TEXT(struct options, tag), .high = TAG_MAX},
    {0, "--log-dir", "DIR", "output of the scripts to DIR/QUEUE.log",
	MQ_TEXT(struct options, log_dir)},
    {0, "--joblog", "FILE", "add a line to FILE for each run that ended",
	MQ_TEXT(struct options, joblog)},
    {0, "--output", "FORM",
	"of runs at a time: live, lines with the id, or whole\n"
	"runs (live)",
	.take = read_output},
    {0, "--output-keep", "SIZE[:DUR]",
	"keep the last SIZE of a run's output at the\n"
	"server, for DUR (1d): mq-stats --id ID --output",
	.take = read_output_keep},
    {0, "--result", "stdout[:SIZE]",
	"what a run prints is its result, up to SIZE (64K):\n"
	"mq-publish --wait, mq-stats --id ID --result",
	.take = read_result},
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
    {'l', "--lines", MQ_FRAMING(LINES)},
    {'0', "--null", MQ_FRAMING(NULL)},
    {0, "--netstring", MQ_FRAMING(NETSTRING)},
    {0, "--jsonl", MQ_FRAMING(JSONL)},
    {0},
};

/* --- a forgotten "--" --------------------------------------------------------- */

/* The path of the program that an operand names, or NULL; free().  The first word decides:
 * 'gzip -9' was meant for a shell.  A program of this directory counts even without "./". */
static char *
program_of(const char *operand)
{
	char *word = mq_xstrndup(operand, strcspn(operand, " \t"));
	char *here = mq_xasprintf("./%s", word);
	char *path = *word != '\0' ? command_find(word) : NULL;

	if (path == NULL && strchr(word, '/') == NULL)
		path = command_find(here);
	free(word);
	free(here);
	return path;
}

static bool
is_program(const char *operand)
{
	char *path = program_of(operand);

	free(path);
	return path != NULL;
}

static void __attribute__((noreturn))
refuse_operand(const struct options *o, const char *operand)
{
	/* A program of this directory needs "./" after the "--". */
	char *path = program_of(operand), *command, **word;
	bool here = path != NULL && strncmp(path, "./", 2) == 0 &&
	    strncmp(operand, "./", 2) != 0;
	struct mq_buf line = {0};

	forbid(o->typed != NULL && operand == o->typed[0],
	    "%s: a command, not a queue; write QUEUE -- COMMAND", operand);
	command = mq_xasprintf("%s%s", here ? "./" : "", operand);
	for (word = o->words; *word != NULL; word++) {
		if (*word == operand)
			mq_buf_add_word(&line, "--");
		mq_buf_add_word(&line, *word == operand ? command : *word);
	}
	mq_die(MQ_EXIT_USAGE,
	    "%s: a command, not a queue; put -- before it: %s", operand,
	    mq_buf_str(&line));
}

/* After an unknown option: ends the program if the option may be a command's, without "--"
 * before the command. */
static void
check_forgotten(const struct options *o)
{
	char **word = o->words;
	const char *found = NULL;

	/* The first operand is a queue; what follows an option may be its value. */
	for (word += *word != NULL; *word != NULL && found == NULL; word++)
		if (**word != '-' && word - o->words > 1 && *word[-1] != '-' &&
		    is_program(*word))
			found = *word;
	for (; found != NULL && *word != NULL; word++)
		if (**word == '-')
			refuse_operand(o, found);
}

/* --- the command line --------------------------------------------------------- */

/* The directories are needed with the first message; errors are better found at the start.
 * Returns the real path; free(). */
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

/* The first given option that needs a COMMAND; NULL: none. */
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
	    {"--halt", o->halt > 0},
	    {"-I", o->replace != NULL},
	    {"--output", o->output != OUTPUT_LIVE},
	    {"--output-keep", o->output_keep > 0},
	    {"--result", o->result > 0},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].given)
			return table[i].name;
	return NULL;
}

/* Refuses options that do not go together, and chooses the framing. */
static void
check_options(struct options *o)
{
	bool many = o->batch > 0 || o->stream;
	char *const *word = o->command;

	forbid(o->command == NULL && command_option(o) != NULL,
	    "%s needs a COMMAND; add -- COMMAND", command_option(o));
	if (o->replace != NULL) {
		forbid(many, "-I cannot be used with --batch or --stream");
		forbid(*o->replace == '\0', "-I: must not be empty");
		while (*++word != NULL && strstr(*word, o->replace) == NULL)
			;
		forbid(*word == NULL,
		    "-I: %s: not in any argument of the COMMAND", o->replace);
	}
	forbid(o->rq && many, "--rq cannot be used with --batch or --stream");
	forbid(o->rq && o->work_dir == NULL, "--rq needs --work-dir");
	forbid(o->batch_wait_ms >= 0 && o->batch == 0,
	    "--batch-wait needs --batch");
	forbid(o->window > 0 && !o->stream, "--window needs --stream");
	forbid(o->batch > 0 && o->stream,
	    "--batch and --stream cannot be used together");
	forbid(o->stream && o->output == OUTPUT_RUNS,
	    "--output=runs cannot be used with --stream; use "
	    "--output=lines");
	forbid(o->stream && o->output_keep > 0,
	    "--output-keep cannot be used with --stream");
	forbid(many && o->result > 0,
	    "--result cannot be used with --batch or --stream");
	forbid(many && o->work_dir != NULL,
	    "--work-dir cannot be used with --batch or --stream");
	forbid(o->command != NULL && !many && o->framing != MQ_FRAME_WHOLE,
	    "%s cannot be used with a COMMAND, except with --batch or "
	    "--stream",
	    mq_option_framing_name(o->framing));
	forbid(o->at_most_once && o->command != NULL,
	    "--at-most-once cannot be used with a COMMAND");
	/* The printer itself knows how many messages to claim ahead. */
	if (o->command == NULL)
		o->prefetch = -1;
	/* On a terminal, unframed messages would run into each other. */
	if (o->framing == MQ_FRAME_WHOLE &&
	    (many || (o->command == NULL && isatty(STDOUT_FILENO))))
		o->framing = MQ_FRAME_LINES;
}

/* The words as typed: getopt_long(3) sorts them, and queue names get a namespace. */
static char **
copy_words(char *const words[], int n)
{
	char **copy = mq_xcalloc((size_t)n + 1, sizeof(*copy));

	memcpy(copy, words, (size_t)n * sizeof(*copy));
	return copy;
}

/* Returns the operands. */
static char **
read_options(
    struct options *o, struct mq_shared *shared, int argc, char *argv[])
{
	const struct mq_options tables[] = {{runs, o},
	    {mq_makes_options, shared}, {printing, o}, {framings, &o->framing},
	    {mq_shared_options, shared}, {0}};
	int count = 1;
	char *behind;

	while (count < argc && strcmp(argv[count], "--") != 0)
		count++;
	behind = argv[count];
	if (behind != NULL)
		o->command = argv + count + 1;
	forbid(behind != NULL && *o->command == NULL,
	    "--: needs a command after it");
	shared->usage = usage;
	o->words = copy_words(argv, argc);
	/* getopt_long(3) would mix the command's arguments with ours. */
	argv[count] = NULL;
	if (!mq_option_try(shared, tables, count, argv)) {
		if (o->command == NULL)
			check_forgotten(o);
		mq_option_refuse(tables, argv);
	}
	mq_option_target(shared, o->given.push);
	mq_option_target(shared, o->given.notify);
	mq_option_rights(shared,
	    MQ_CONSUMES | (o->output_keep > 0 ? MQ_KEEPS_OUTPUT : 0),
	    argv + optind, count - optind);
	check_options(o);
	forbid(optind == count, "no queue given (try --help)");
	o->queue_count = count - optind;
	o->typed = copy_words(argv + optind, o->queue_count);
	argv[count] = behind;
	o->quiet = shared->quiet;
	o->verbose = shared->verbose;
	o->log_dir = directory(o->log_dir);
	o->work_dir = directory(o->work_dir);
	return argv + optind;
}

/* --- the queues ---------------------------------------------------------------- */

/* Refuses operands that are more likely a command.  A queue that exists, and the first operand,
 * may have the name of a program in PATH, but not the path of a program.  exists: of each
 * operand; NULL: unknown, some later operand is no queue name. */
static void
refuse_commands(const struct options *o, const bool *exists)
{
	const char *typed;
	bool path, program;
	int i;

	for (i = exists == NULL; i < o->queue_count && o->command == NULL;
	     i++) {
		typed = o->typed[i];
		path = *typed == '/' || strncmp(typed, "./", 2) == 0 ||
		    strncmp(typed, "../", 3) == 0;
		program = is_program(typed);
		if (exists != NULL && (i == 0 || exists[i]) ? path && program :
							      path || program)
			refuse_operand(o, typed);
	}
}

static void
check_target(const char *option, const char *queue, const char *target)
{
	forbid(target != NULL && strcmp(queue, target) == 0,
	    "%s: %s: this queue is being consumed; name another", option,
	    target);
}

/* Checks names, and adds the namespace to them. */
static void
name_queues(struct options *o, struct mq_shared *shared,
    const struct mq_server *server, char *operands[])
{
	const char *why = o->layout->queue_error(o->tag);
	bool good = true;
	char *name;
	int i, j;

	/* The tag stands in keys, like a queue's name. */
	forbid(why != NULL, "--tag: %s: %s", o->tag, why);
	for (i = 1; i < o->queue_count && o->command == NULL; i++) {
		name = mq_layout_queue(
		    o->layout, server->url.ns, o->typed[i], &why);
		good &= name != NULL;
		free(name);
	}
	if (!good)
		refuse_commands(o, NULL);
	mq_option_queues(shared, server, operands, o->queue_count);
	o->queues = (const char *const *)operands;
	if (o->given.push != NULL)
		o->given.push = mq_option_queue(shared, server, o->given.push);
	if (o->given.notify != NULL) {
		mq_option_needs(shared, "--notify", MQ_HAS_RESULTS);
		o->given.notify =
		    mq_option_queue(shared, server, o->given.notify);
	}
	if (o->result > 0)
		mq_option_needs(shared, "--result", MQ_HAS_RESULTS);
	if (o->given.keep_ms > 0)
		mq_option_needs(shared, "--keep", MQ_HAS_RESULTS);
	for (i = 0; i < o->queue_count; i++) {
		for (j = 0; j < i; j++)
			forbid(strcmp(o->queues[i], o->queues[j]) == 0,
			    "%s: given twice", o->queues[i]);
		/* A message pushed to a queue that is consumed here would come back, and
		 * never run out of attempts. */
		check_target("--push", o->queues[i], o->given.push);
		check_target("--notify", o->queues[i], o->given.notify);
	}
	/* A common queue would have two kinds of messages. */
	forbid(o->given.push != NULL && o->given.notify != NULL &&
		strcmp(o->given.push, o->given.notify) == 0,
	    "--push and --notify: both are %s; name two queues",
	    o->given.notify);
}

/* --- no such queue ------------------------------------------------------------- */

/* Queue number i is missing: refuses it, or says who will make it.  Behind the queues come the
 * targets of --push and --notify. */
static void
say_missing(const struct options *o, const struct mq_shared *shared,
    struct mq_redis *r, int i)
{
	bool push = i == o->queue_count && o->given.push != NULL;
	const char *name = i < o->queue_count ? o->queues[i] :
	    push			      ? o->given.push :
						o->given.notify;
	const char *what = push ? "--push creates it" :
	    i >= o->queue_count ? "--notify creates it" :
				  "waiting for it";
	char *hint;

	if (shared->existing || (o->drain && i < o->queue_count) ||
	    mq_queue_unlisted(r, o->layout, name) != NULL) {
		mq_option_unknown(r, o->layout, name);
		return;
	}
	if (shared->fresh)
		return;
	forbid(i < o->queue_count && strcmp(o->typed[i], "help") == 0,
	    "help: no such queue; try --help, or --new for a queue of that "
	    "name");
	hint = mq_known_hint(r, o->layout, name);
	if (o->verbose || *hint != '\0' || isatty(STDERR_FILENO))
		mq_say("%s: no such queue yet; %s%s", name, what, hint);
	free(hint);
}

/* Finds out which queues exist.  Returns whether all do. */
static bool
find_queues(
    const struct options *o, const struct mq_shared *shared, struct mq_redis *r)
{
	struct mq_idgen ids = {0};
	char connection[NAME_SIZE], random[7];
	const struct mq_session session = {.connection = connection,
	    .queues = o->queues,
	    .queue_count = o->queue_count,
	    .push = o->given.push,
	    .notify = o->given.notify};
	struct mq_known known = {0};
	int i,
	    n = o->queue_count + (o->given.push != NULL) +
	    (o->given.notify != NULL);
	bool all = true;

	mq_id_random(&ids, random, 6);
	snprintf(connection, sizeof(connection), "%s-%s", o->tag, random);
	mq_option_must(r, mq_known_ask(r, o->layout, &session, &known));
	refuse_commands(o, known.there);
	for (i = 0; i < n && (known.status == 0 || shared->existing); i++) {
		if (!known.there[i] && !o->quiet)
			say_missing(o, shared, r, i);
		all &= known.there[i];
	}
	if (shared->existing && !all)
		exit(mq_queue_unlisted(r, o->layout, o->queues[0]) != NULL ?
			MQ_EXIT_UNAVAILABLE :
			MQ_EXIT_NO);
	if (known.status != 0)
		mq_die(known.status, "%s", known.error);
	free(known.there);
	return all;
}

bool
options_take(struct options *o, struct mq_shared *shared,
    struct mq_server *server, int argc, char *argv[])
{
	char **operands = read_options(o, shared, argc, argv);
	struct mq_redis r;
	bool all;

	mq_option_prints(o->command == NULL);
	o->layout = mq_option_server(shared, server);
	name_queues(o, shared, server, operands);
	rules_init(o);
	/* The first connection blocks, and its errors are final. */
	mq_option_must(&r, mq_redis_open(&r, server));
	all = find_queues(o, shared, &r);
	mq_redis_close(&r);
	server->waits = true;
	return all || !o->drain;
}
