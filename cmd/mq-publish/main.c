/*
 * mq-publish: put messages into a queue.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/frame.h"
#include "message/headers.h"
#include "publish.h"
#include "queue/queue.h"
#include "shared/options.h"

static const char help[] =
    "usage: mq-publish [options] QUEUE [PAYLOAD...]\n"
    "\n"
    "Publishes each PAYLOAD as a message, or stdin: all of it as one message,\n"
    "or as many as a framing says.  Exit status 0 means that the server has\n"
    "accepted all of them, 1 that some were duplicates, 75 that the queue is\n"
    "full; unless it is 0, it says how many were accepted.\n"
    "\n"
    "  mq-publish greetings hello world\n"
    "  find /data -print0 | mq-publish -0 files\n"
    "\n"
    "  -l, --lines            one message a line\n"
    "  -0, --null             messages end with NUL bytes\n"
    "      --netstring        messages are LEN:BYTES,\n"
    "      --jsonl            messages are JSON objects, one a line\n"
    "  -i, --ids              print the id of each accepted message\n"
    "  -d, --delay DUR        ready after DUR (500ms, 10s, 5m, 2h, 1d)\n"
    "      --at TIME          ready at TIME (RFC 3339, HH:MM, unix seconds, or\n"
    "                         words of date(1): tomorrow 9:00)\n"
    "  -e, --expires DUR      to be rejected when it has not run after DUR\n"
    "  -p, --priority N       -100 to 100, higher first (0)\n"
    "  -k, --key KEY          accepted only if no other message has that key...\n"
    "      --unique HOW       ...until it is started (queued), has ended (done,\n"
    "                         the default), or for so long (DUR)\n"
    "  -g, --group GROUP      one message of a group at a time, in order\n"
    "      --from-tick N      not before the queue's clock is at N\n"
    "      --until-tick N     to be rejected when the clock is beyond N\n"
    "      --tick N           publish nothing, set the queue's clock to N\n"
    "      --max-length N[:HIGH]\n"
    "                         only while fewer than N messages are ready; for a\n"
    "                         priority above 0, fewer than HIGH\n"
    "      --max-delayed N[:HIGH]\n"
    "                         the same for those that have to wait\n"
    "      --realtime         tell listeners how many are there, as node does\n"
    "      --vt DUR           if the queue is made: received ones come again\n"
    "                         after DUR (30s),\n"
    "      --maxsize N        and N units of UTF-16 are the most (65536; -1: any)\n"
    "      --set NAME=VALUE[,...]\n"
    "                         publish nothing, set vt, delay or maxsize\n"
    "  -H, --header 'N: V'    add a header; can be repeated\n"
    "  -P, --param N=VALUE    set parameter N (1 to 4), RQ_PARAMn for scripts\n"
    "      --durable          exit 0 only once they are on disk and on replicas\n"
    "      --wait[=DUR]       wait until they are done or rejected, print the\n"
    "                         last text of each\n"
    "      --raw              bare payloads, for consumers that know no headers\n"
    "      --existing         exit 1 if there is no such queue, make none\n" MQ_SHARED_HELP;

enum {
	OPT_AT = MQ_OPT_OWN,
	OPT_RAW,
	OPT_WAIT,
	OPT_UNIQUE,
	OPT_FROM_TICK,
	OPT_UNTIL_TICK,
	OPT_TICK,
	OPT_MAX_LENGTH,
	OPT_MAX_DELAYED,
	OPT_VT,
	OPT_MAXSIZE,
	OPT_SET,
	OPT_REALTIME,
	OPT_DURABLE,
	OPT_EXISTING
};

static const struct option long_options[] = {
    MQ_SHARED_LONG,
    MQ_FRAMING_LONG,
    {"ids", no_argument, NULL, 'i'},
    {"delay", required_argument, NULL, 'd'},
    {"at", required_argument, NULL, OPT_AT},
    {"expires", required_argument, NULL, 'e'},
    {"priority", required_argument, NULL, 'p'},
    {"key", required_argument, NULL, 'k'},
    {"unique", required_argument, NULL, OPT_UNIQUE},
    {"group", required_argument, NULL, 'g'},
    {"from-tick", required_argument, NULL, OPT_FROM_TICK},
    {"until-tick", required_argument, NULL, OPT_UNTIL_TICK},
    {"tick", required_argument, NULL, OPT_TICK},
    {"max-length", required_argument, NULL, OPT_MAX_LENGTH},
    {"max-delayed", required_argument, NULL, OPT_MAX_DELAYED},
    {"vt", required_argument, NULL, OPT_VT},
    {"maxsize", required_argument, NULL, OPT_MAXSIZE},
    {"set", required_argument, NULL, OPT_SET},
    {"realtime", no_argument, NULL, OPT_REALTIME},
    {"durable", no_argument, NULL, OPT_DURABLE},
    {"header", required_argument, NULL, 'H'},
    {"param", required_argument, NULL, 'P'},
    {"wait", optional_argument, NULL, OPT_WAIT},
    {"raw", no_argument, NULL, OPT_RAW},
    {"existing", no_argument, NULL, OPT_EXISTING},
    {NULL, 0, NULL, 0},
};

/* What not every layout has. */
static const struct mq_need needs[] = {
    {'k', "--key", MQ_HAS_KEYS},
    {OPT_UNIQUE, "--unique", MQ_HAS_KEYS},
    {'g', "--group", MQ_HAS_GROUPS},
    {OPT_FROM_TICK, "--from-tick", MQ_HAS_TICKS},
    {OPT_UNTIL_TICK, "--until-tick", MQ_HAS_TICKS},
    {OPT_TICK, "--tick", MQ_HAS_TICKS},
    {OPT_WAIT, "--wait", MQ_HAS_RESULTS},
    {OPT_VT, "--vt", MQ_HAS_ATTRIBUTES},
    {OPT_MAXSIZE, "--maxsize", MQ_HAS_ATTRIBUTES},
    {OPT_SET, "--set", MQ_HAS_ATTRIBUTES},
    {OPT_REALTIME, "--realtime", MQ_HAS_NEWS},
    {0, NULL, 0},
};

/* What is asked for the messages. */
static bool
set_ask(struct options *o, int ch)
{
	switch (ch) {
	case 'e':
		publish_option_expires(o, optarg);
		return true;
	case 'p':
		publish_option_priority(o, optarg);
		return true;
	case 'k':
		publish_option_key(o, optarg);
		return true;
	case OPT_UNIQUE:
		publish_option_unique(o, optarg);
		return true;
	case 'g':
		publish_option_group(o, optarg);
		return true;
	case OPT_FROM_TICK:
		publish_option_ticks(o, "--from-tick", optarg, false);
		return true;
	case OPT_UNTIL_TICK:
		publish_option_ticks(o, "--until-tick", optarg, true);
		return true;
	case OPT_MAX_LENGTH:
		publish_option_max("--max-length", optarg, &o->limits.ready,
		    &o->limits.ready_high);
		return true;
	case OPT_MAX_DELAYED:
		publish_option_max("--max-delayed", optarg, &o->limits.delayed,
		    &o->limits.delayed_high);
		return true;
	default:
		return false;
	}
}

static void
set_option(struct options *o, int ch)
{
	switch (ch) {
	case 'i':
		o->ids = true;
		break;
	case 'd':
		o->when.kind = MQ_WHEN_IN;
		o->when.ms = mq_option_duration("--delay", optarg);
		break;
	case OPT_AT:
		o->when.kind = MQ_WHEN_AT;
		o->at = optarg;
		break;
	case 'H':
		publish_option_header(o, optarg);
		break;
	case 'P':
		publish_option_param(o, optarg);
		break;
	case OPT_TICK:
		o->tick = publish_option_tick("--tick", optarg);
		break;
	case OPT_WAIT:
		o->wait = true;
		o->special = true;
		o->wait_ms =
		    optarg == NULL ? -1 : mq_option_duration("--wait", optarg);
		break;
	case OPT_RAW:
		o->raw = true;
		break;
	case OPT_VT:
		publish_option_vt(o, optarg);
		break;
	case OPT_MAXSIZE:
		publish_option_maxsize(o, optarg);
		break;
	case OPT_SET:
		publish_option_set(o, optarg);
		break;
	case OPT_REALTIME:
		o->realtime = true;
		break;
	case OPT_DURABLE:
		o->durable = true;
		break;
	case OPT_EXISTING:
		o->existing = true;
		break;
	}
}

static void
parse(struct options *o, struct mq_shared *shared, int argc, char *argv[])
{
	bool delay = false;
	int ch;

	opterr = 0;
	while ((ch = getopt_long(argc, argv,
		    ":" MQ_SHARED_SHORT MQ_FRAMING_SHORT "id:e:p:k:g:H:P:",
		    long_options, NULL)) != -1) {
		delay |= ch == 'd';
		mq_option_note(shared, needs, ch);
		if (ch == OPT_WAIT)
			mq_option_no_duration("--wait", argv);
		if (!mq_option_shared(shared, ch, argv) &&
		    !mq_option_framing(&o->framing, ch) && !set_ask(o, ch))
			set_option(o, ch);
	}
	mq_option_rights(shared,
	    MQ_PUBLISHES | (o->durable ? MQ_WAITS : 0) |
		(o->realtime ? MQ_TELLS : 0),
	    argv + optind, argc - optind);
	if (optind == argc)
		mq_die(MQ_EXIT_USAGE, "no queue given (try --help)");
	o->queue = argv[optind];
	o->shared = shared;
	o->quiet = shared->quiet;
	if (delay && o->at != NULL)
		mq_die(MQ_EXIT_USAGE, "--delay and --at exclude each other");
	publish_options_check(o, argv + optind + 1, argc - optind - 1);
}

/* Now that the layout is known. */
static void
use_layout(
    struct options *o, struct mq_shared *shared, const struct mq_server *server)
{
	o->queue = mq_option_queue(shared, server, o->queue);
	mq_option_check(shared, needs);
	publish_options_suit(o, shared);
}

/* Instead of publishing. */
static void
change_queue(struct publisher *p)
{
	if (p->opt->tick >= 0)
		publish_tick(p);
	else
		publish_set(p);
	exit(MQ_EXIT_OK);
}

static void
clean_up(struct publisher *p)
{
	size_t i;

	publish_forget(p);
	mq_redis_close(&p->redis);
	mq_buf_free(&p->header);
	mq_buf_free(&p->awaited);
	mq_buf_free(&p->durable.held);
	mq_command_free(&p->mark);
	for (i = 0; i < UNDER_WAY; i++) {
		mq_command_free(&p->ring[i].command);
		mq_buf_free(&p->ring[i].ids);
	}
}

int
main(int argc, char *argv[])
{
	struct options options = {.framing = MQ_FRAME_WHOLE,
	    .tick = -1,
	    .from_tick = -1,
	    .until_tick = -1,
	    .limits = {-1, -1, -1, -1},
	    .attributes = MQ_ATTRIBUTES_NONE};
	struct mq_shared shared = {.help = help, .options = long_options};
	struct mq_server server;
	struct publisher p = {
	    .opt = &options, .marks = true, .confirmed_last = -1};
	int i, status = MQ_EXIT_OK, waited;

	mq_option_begin();
	parse(&options, &shared, argc, argv);
	mq_option_prints(options.ids || options.wait);
	if (optind + 1 == argc && options.tick < 0 && !options.set)
		mq_option_reads();
	p.layout = mq_option_server(&shared, &server);
	use_layout(&options, &shared, &server);
	if (mq_redis_open(&p.redis, &server) == -1)
		mq_die(p.redis.status, "%s", p.redis.error);
	publish_catch_signals();
	if (options.set)
		change_queue(&p);
	if (options.durable)
		publish_durable_open(&p);
	publish_open(&p);
	publish_prepare_when(&p);
	p.how.special = options.special;
	p.how.alike = !options.wait && options.framing != MQ_FRAME_JSONL;
	p.how.limits = options.limits;
	p.how.realtime = options.realtime;
	if (options.tick >= 0)
		change_queue(&p);
	publish_prepare(&p);
	if (optind + 1 < argc) {
		for (i = optind + 1; i < argc; i++)
			publish_message(&p, argv[i], strlen(argv[i]));
	} else {
		if (isatty(STDIN_FILENO) && !shared.quiet)
			mq_say("reading from the terminal; end with ^D");
		publish_stream(&p, STDIN_FILENO);
	}
	publish_settle(&p);
	publish_verdict(&p, &shared);
	if (p.duplicates + p.stale > 0)
		status = MQ_EXIT_NO;
	if (p.too_long > 0)
		status = MQ_EXIT_DATA;
	if (options.wait && (waited = publish_await(&p)) > status)
		status = waited;
	clean_up(&p);
	mq_envelope_free(&options.headers);
	mq_server_free(&server);
	mq_option_free(&shared);
	mq_close_stdout();
	return status;
}
