/*
 * mq-consume: run a command for each message of one or more queues, or print
 * the payloads.  This file parses the command line; engine.h describes the rest.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "engine.h"
#include "redis/connection.h"
#include "rules.h"
#include "shared/options.h"

#define PREFETCH_MAX 100000
#define BATCH_MAX    100000
#define WINDOW_MAX   100000

static const char help[] =
    "usage: mq-consume [options] QUEUE... [-- COMMAND [ARG...]]\n"
    "\n"
    "Runs COMMAND once for each message, with the payload on its stdin.  Exit\n"
    "status 0 means done, 75 try again later, anything else rejects the\n"
    "message; verbs on descriptor 3 say more.  Without COMMAND, prints the\n"
    "payloads.  Several queues: earlier ones come first.\n"
    "\n"
    "  mq-consume -j4 thumbnails -- ./make-thumbnail\n"
    "  mq-consume --drain -l urls | sort -u\n"
    "\n"
    "+ -j, --slots N          run up to N messages at once (1)\n"
    "  -I, --replace TOKEN    put the payload in place of TOKEN in arguments\n"
    "      --prefetch N       hold N more messages ready (default: by pace)\n"
    "+ -n, --limit N          stop after N messages\n"
    "+     --drain            stop when nothing is ready, due or in flight\n"
    "      --idle DUR         stop after nothing has happened for DUR\n"
    "+     --timeout DUR      end a run that takes longer (TERM, then KILL)\n"
    "+     --attempts N       reject a message after N runs (15)\n"
    "+     --backoff MIN..MAX delay of a retry, doubling (1s..10m)\n"
    "      --retry-on err     what failed runs again like 75, up to --attempts\n"
    "      --push QUEUE       where the verb push moves messages to\n"
    "      --notify QUEUE     publish there how each message has ended\n"
    "      --rate N/s[:BURST] start at most N messages a second (/m, /h)\n"
    "      --rate-shared N/s[:BURST]\n"
    "                         the same for all consumers of a queue together\n"
    "      --rest MIN..MAX    how long a slot rests after failures in a row\n"
    "+     --batch N          run COMMAND for up to N messages at once\n"
    "      --batch-wait DUR   wait so long for a batch to become full (0)\n"
    "+     --stream           keep COMMAND running, and feed it messages\n"
    "      --window N         up to N before the first is judged (by pace)\n"
    "      --strict           exit 0 without a final verb has failed, as in RQ\n"
    "      --rq               for scripts of RQ: --strict, and what mq-rq(7) says\n"
    "      --grace DUR        on TERM, wait so long for running scripts (25s)\n"
    "      --tag NAME         name of the connection (mq-consume)\n"
    "      --log-dir DIR      output of the scripts to DIR/QUEUE.log\n"
    "      --joblog FILE      add a line to FILE for each run that ended\n"
    "      --output FORM      of runs at a time: live, lines with the id, or whole\n"
    "                         runs (live)\n"
    "      --keep DUR         what became of a message can be read so long\n"
    "      --work-dir DIR     run each message in its own DIR/ID\n"
    "      --no-clean         leave dead consumers' messages to others\n" MQ_MAKES_HELP
    "      --at-most-once     ack before printing; a crash loses up to 250\n"
    "  -l, --lines, -0, --null, --netstring, --jsonl\n"
    "                         how to print (default: the payloads alone, or -l\n"
    "                         on a terminal), and how to feed batches and\n"
    "                         streams (default: -l)\n" MQ_SHARED_HELP;

enum {
	OPT_PREFETCH = MQ_OPT_OWN,
	OPT_DRAIN,
	OPT_IDLE,
	OPT_TIMEOUT,
	OPT_ATTEMPTS,
	OPT_BACKOFF,
	OPT_RETRY_ON,
	OPT_PUSH,
	OPT_NOTIFY,
	OPT_RATE,
	OPT_RATE_SHARED,
	OPT_REST,
	OPT_STRICT,
	OPT_RQ,
	OPT_BATCH,
	OPT_BATCH_WAIT,
	OPT_STREAM,
	OPT_AT_MOST_ONCE,
	OPT_WINDOW,
	OPT_GRACE,
	OPT_TAG,
	OPT_KEEP,
	OPT_LOG_DIR,
	OPT_OUTPUT,
	OPT_JOBLOG,
	OPT_WORK_DIR,
	OPT_NO_CLEAN
};

static const struct option long_options[] = {
    MQ_SHARED_LONG,
    {"slots", required_argument, NULL, 'j'},
    {"replace", required_argument, NULL, 'I'},
    {"prefetch", required_argument, NULL, OPT_PREFETCH},
    {"limit", required_argument, NULL, 'n'},
    {"drain", no_argument, NULL, OPT_DRAIN},
    {"idle", required_argument, NULL, OPT_IDLE},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"attempts", required_argument, NULL, OPT_ATTEMPTS},
    {"backoff", required_argument, NULL, OPT_BACKOFF},
    {"retry-on", required_argument, NULL, OPT_RETRY_ON},
    {"push", required_argument, NULL, OPT_PUSH},
    {"notify", required_argument, NULL, OPT_NOTIFY},
    {"rate", required_argument, NULL, OPT_RATE},
    {"rate-shared", required_argument, NULL, OPT_RATE_SHARED},
    {"rest", required_argument, NULL, OPT_REST},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"rq", no_argument, NULL, OPT_RQ},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"batch-wait", required_argument, NULL, OPT_BATCH_WAIT},
    {"stream", no_argument, NULL, OPT_STREAM},
    {"at-most-once", no_argument, NULL, OPT_AT_MOST_ONCE},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"tag", required_argument, NULL, OPT_TAG},
    {"keep", required_argument, NULL, OPT_KEEP},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"log-dir", required_argument, NULL, OPT_LOG_DIR},
    {"joblog", required_argument, NULL, OPT_JOBLOG},
    {"work-dir", required_argument, NULL, OPT_WORK_DIR},
    {"no-clean", no_argument, NULL, OPT_NO_CLEAN},
    MQ_MAKES_LONG,
    MQ_FRAMING_LONG,
    {NULL, 0, NULL, 0},
};

static void
set_option(struct options *o, int ch)
{
	switch (ch) {
	case 'j':
		o->given.slots =
		    (int)mq_option_number("--slots", optarg, 1, MQ_SLOTS_MAX);
		break;
	case 'n':
		o->limit = mq_option_number("--limit", optarg, 1, LONG_MAX);
		break;
	case 'I':
		o->replace = optarg;
		break;
	case OPT_PREFETCH:
		o->prefetch = (int)mq_option_number(
		    "--prefetch", optarg, 0, PREFETCH_MAX);
		break;
	case OPT_DRAIN:
		o->drain = true;
		break;
	case OPT_IDLE:
		o->idle_ms = mq_option_duration("--idle", optarg);
		break;
	case OPT_TIMEOUT:
		o->given.timeout_ms = mq_option_duration("--timeout", optarg);
		break;
	case OPT_ATTEMPTS:
		o->given.attempts = (int)mq_option_number(
		    "--attempts", optarg, 1, MQ_ATTEMPTS_MAX);
		break;
	case OPT_BACKOFF:
		option_range("--backoff", optarg, &o->given.backoff_min_ms,
		    &o->given.backoff_max_ms);
		break;
	case OPT_RETRY_ON:
		if (strcmp(optarg, "err") != 0)
			mq_die(MQ_EXIT_USAGE, "--retry-on: %s: must be err",
			    optarg);
		o->given.retry_err = 1;
		break;
	case OPT_RATE:
		mq_option_rate("--rate", optarg, &o->rate);
		break;
	case OPT_RATE_SHARED:
		mq_option_rate("--rate-shared", optarg, &o->given.rate);
		break;
	case OPT_REST:
		option_range(
		    "--rest", optarg, &o->rest_min_ms, &o->rest_max_ms);
		break;
	case OPT_PUSH:
		o->given.push = optarg;
		break;
	case OPT_NOTIFY:
		o->given.notify = optarg;
		break;
	case OPT_RQ:
		o->rq = true;
		o->strict = MQ_STRICT_RQ;
		break;
	case OPT_STRICT:
		if (!o->rq)
			o->strict = MQ_STRICT;
		break;
	case OPT_BATCH:
		o->batch =
		    (int)mq_option_number("--batch", optarg, 1, BATCH_MAX);
		break;
	case OPT_BATCH_WAIT:
		o->batch_wait_ms = mq_option_duration("--batch-wait", optarg);
		break;
	case OPT_STREAM:
		o->stream = true;
		break;
	case OPT_AT_MOST_ONCE:
		o->at_most_once = true;
		break;
	case OPT_WINDOW:
		o->window =
		    (int)mq_option_number("--window", optarg, 1, WINDOW_MAX);
		break;
	case OPT_GRACE:
		o->grace_ms = mq_option_duration("--grace", optarg);
		break;
	case OPT_TAG:
		o->tag = option_tag(optarg);
		break;
	case OPT_KEEP:
		o->given.keep_ms = mq_option_duration("--keep", optarg);
		break;
	case OPT_OUTPUT:
		o->output = option_output(optarg);
		break;
	case OPT_LOG_DIR:
		o->log_dir = optarg;
		break;
	case OPT_JOBLOG:
		o->joblog = optarg;
		break;
	case OPT_WORK_DIR:
		o->work_dir = optarg;
		break;
	case OPT_NO_CLEAN:
		o->clean = false;
		break;
	}
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

/* Checks names, which needs the layout. */
static void
take_queues(struct options *o, struct mq_shared *shared,
    const struct mq_server *server, char *operands[])
{
	const char *why = shared->layout->queue_error(o->tag);

	/* A connection's name stands in keys, like a queue's name. */
	if (why != NULL)
		mq_die(MQ_EXIT_USAGE, "--tag: %s: %s", o->tag, why);
	operands_check(o, server->url.ns);
	mq_option_queues(shared, server, operands, o->queue_count);
	o->queues = (const char *const *)operands;
	if (o->given.push != NULL)
		o->given.push = mq_option_queue(shared, server, o->given.push);
	if (o->given.notify != NULL) {
		mq_option_needs(shared, "--notify", MQ_HAS_RESULTS);
		o->given.notify =
		    mq_option_queue(shared, server, o->given.notify);
	}
	if (o->given.keep_ms > 0)
		mq_option_needs(shared, "--keep", MQ_HAS_RESULTS);
	operands_differ(o);
}

/* getopt_long(3) sorts the words, and queue names get a namespace. */
static char **
copy_words(char *const words[], int n)
{
	char **copy = mq_xcalloc((size_t)n + 1, sizeof(*copy));

	memcpy(copy, words, (size_t)n * sizeof(*copy));
	return copy;
}

/* Returns the queues among the arguments. */
static char **
parse_arguments(
    struct options *o, struct mq_shared *shared, int argc, char *argv[])
{
	int ch, count = split_command(o, argc, argv);
	char *behind = argv[count];

	o->words = copy_words(argv, argc);
	/* getopt_long(3) would mix the command's arguments with ours. */
	argv[count] = NULL;
	opterr = 0;
	while ((ch = mq_option_next(shared, count, argv,
		    ":" MQ_SHARED_SHORT MQ_FRAMING_SHORT "I:j:n:")) != -1) {
		if (ch == '?' && o->command == NULL)
			operands_forgotten(o);
		if (!mq_option_shared(shared, ch, argv) &&
		    !mq_option_framing(&o->framing, ch))
			set_option(o, ch);
	}
	mq_option_target(shared, o->given.push);
	mq_option_target(shared, o->given.notify);
	mq_option_rights(shared, MQ_CONSUMES, argv + optind, count - optind);
	option_check_command(o);
	option_check_many(o);
	option_check_print(o);
	if (optind == count)
		mq_die(MQ_EXIT_USAGE, "no queue given (try --help)");
	o->queue_count = count - optind;
	o->typed = copy_words(argv + optind, o->queue_count);
	argv[count] = behind;
	o->existing = shared->existing;
	o->fresh = shared->fresh;
	o->quiet = shared->quiet;
	o->verbose = shared->verbose;
	o->log_dir = option_directory(o->log_dir);
	o->work_dir = option_directory(o->work_dir);
	return argv + optind;
}

/* The first connection blocks, and its errors are final.  Returns whether missing
 * queues are to be made. */
static bool
try_server(const struct options *o, struct mq_server *server)
{
	struct mq_redis r;
	bool make;

	if (mq_redis_open(&r, server) == -1)
		mq_die(r.status, "%s", r.error);
	make = operands_look(o, &r);
	mq_redis_close(&r);
	return make;
}

static void
free_options(struct options *o)
{
	rules_free(o);
	free(o->words);
	free(o->typed);
	free((void *)(uintptr_t)o->log_dir);
	free((void *)(uintptr_t)o->work_dir);
}

int
main(int argc, char *argv[])
{
	struct options options = {.framing = MQ_FRAME_WHOLE,
	    .given = MQ_SETTINGS_NONE,
	    .prefetch = -1,
	    .batch_wait_ms = -1,
	    .idle_ms = -1,
	    .grace_ms = 25000,
	    .clean = true,
	    .tag = "mq-consume"};
	struct mq_shared shared = {.help = help, .options = long_options};
	struct mq_worker_setup setup = {0};
	struct mq_server server = {0};
	struct service service;
	char **queues;
	int status;
	bool make;

	mq_option_begin();
	if (mq_worker_prepare(&setup) == -1)
		mq_die(MQ_EXIT_AGAIN, "descriptors: %s", strerror(errno));
	service_take(&service);
	queues = parse_arguments(&options, &shared, argc, argv);
	mq_option_prints(options.command == NULL);
	options.layout = mq_option_server(&shared, &server);
	take_queues(&options, &shared, &server, queues);
	rules_init(&options);
	make = try_server(&options, &server);
	server.waits = true;
	status = engine_run(&options, &server, &setup, &service, make);
	service_end(&service);
	mq_server_free(&server);
	free_options(&options);
	mq_option_free(&shared);
	return status;
}
