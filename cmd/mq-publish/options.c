#include "options.h"

#include <string.h>

#include "attributes.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "message/headers.h"
#include "shared/attributes.h"
#include "when.h"

static const char help[] =
    "usage: mq-publish [options] QUEUE [PAYLOAD...]\n"
    "\n"
    "Publishes each PAYLOAD as a message.  Without one, standard input is one\n"
    "message, with its newline (use printf %s), or several, as with -l or --jsonl.\n"
    "Exit status: 0: the server has accepted all; 1: some are duplicates;\n"
    "75: the queue is full.  Unless it is 0, a line has the number accepted.\n"
    "\n"
    "  mq-publish greetings hello world\n"
    "  find /data -print0 | mq-publish -0 files\n"
    "\n"
    "+ -l, --lines            each line is a message\n"
    "+ -0, --null             each message ends with a NUL byte\n"
    "      --netstring        each message is LENGTH:BYTES,\n"
    "      --jsonl            each line is a message as a JSON object\n"
    "+ -i, --ids              print the id of each accepted message\n"
    "+ -d, --delay DUR        ready after DUR (500ms, 10s, 5m, 2h, 1d)\n"
    "      --at TIME          ready at TIME (RFC 3339, HH:MM, @SECONDS, or\n"
    "                         words of date(1): tomorrow 9:00)\n"
    "  -e, --expires DUR      reject if not started within DUR\n"
    "+ -p, --priority N       -100 to 100, higher first (0)\n"
    "+ -k, --key KEY          refuse if another message has this key\n"
    "      --unique HOW       hold the key until the message is claimed (queued),\n"
    "                         until it has ended (done, the default), or for DUR\n"
    "      --coalesce         with --unique queued: instead of being refused, join\n"
    "                         the waiting message, and print its id with -i\n"
    "+ -g, --group GROUP      one message of a group at a time, in order\n"
    "      --max-length N[:HIGH]\n"
    "                         refuse if N messages are ready; for a priority\n"
    "                         above 0, if HIGH are\n"
    "      --max-delayed N[:HIGH]\n"
    "                         the same for delayed messages\n"
    "+ -H, --header 'N: V'    add a header; can be repeated\n"
    "  -P, --param N=VALUE    set parameter N (1 to 4), $MQ_PARAMn of a worker\n"
    "      --attach NAME=FILE attach FILE, $MQ_ATTACH_DIR/NAME of a worker; can be\n"
    "                         repeated\n"
    "+     --durable          exit 0 only once all are on disk and on replicas\n"
    "      --wait[=DUR]       wait until all have ended, and print their last texts\n"
    "      --raw              bare payloads, for consumers that know no headers\n" MQ_MAKES_HELP
    "      --http             publish the body of one HTTP request; see man mq-http\n"
    "      --host NAME        with --http: answer requests for NAME, too\n"
    "      --from-tick N      not before the clock of the queue is at N\n"
    "      --until-tick N     reject if not started when the clock is beyond N\n"
    "      --tick N           publish nothing, set the clock of the queue to N\n"
    "      --realtime         report the length of the queue on its channel (rsmq)\n"
    "      --vt DUR           of a new queue: how long a received message is\n"
    "                         hidden (30s; rsmq)\n"
    "      --maxsize N        of a new queue: longest message, in UTF-16 units\n"
    "                         (65536; -1: any; rsmq)\n" MQ_SHARED_HELP;

enum {
	OPT_AT = MQ_OPT_OWN,
	OPT_RAW,
	OPT_WAIT,
	OPT_UNIQUE,
	OPT_COALESCE,
	OPT_FROM_TICK,
	OPT_UNTIL_TICK,
	OPT_TICK,
	OPT_MAX_LENGTH,
	OPT_MAX_DELAYED,
	OPT_VT,
	OPT_MAXSIZE,
	OPT_REALTIME,
	OPT_DURABLE,
	OPT_ATTACH,
	OPT_HTTP,
	OPT_HOST
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
    {"coalesce", no_argument, NULL, OPT_COALESCE},
    {"group", required_argument, NULL, 'g'},
    {"from-tick", required_argument, NULL, OPT_FROM_TICK},
    {"until-tick", required_argument, NULL, OPT_UNTIL_TICK},
    {"tick", required_argument, NULL, OPT_TICK},
    {"max-length", required_argument, NULL, OPT_MAX_LENGTH},
    {"max-delayed", required_argument, NULL, OPT_MAX_DELAYED},
    {"vt", required_argument, NULL, OPT_VT},
    {"maxsize", required_argument, NULL, OPT_MAXSIZE},
    {"realtime", no_argument, NULL, OPT_REALTIME},
    {"durable", no_argument, NULL, OPT_DURABLE},
    {"header", required_argument, NULL, 'H'},
    {"param", required_argument, NULL, 'P'},
    {"attach", required_argument, NULL, OPT_ATTACH},
    {"wait", optional_argument, NULL, OPT_WAIT},
    {"raw", no_argument, NULL, OPT_RAW},
    MQ_MAKES_LONG,
    {"http", no_argument, NULL, OPT_HTTP},
    {"host", required_argument, NULL, OPT_HOST},
    {NULL, 0, NULL, 0},
};

/* Not every layout has all of these. */
static const struct mq_need needs[] = {
    {'k', "--key", MQ_HAS_KEYS},
    {OPT_UNIQUE, "--unique", MQ_HAS_KEYS},
    {OPT_COALESCE, "--coalesce", MQ_HAS_KEYS},
    {'g', "--group", MQ_HAS_GROUPS},
    {OPT_FROM_TICK, "--from-tick", MQ_HAS_TICKS},
    {OPT_UNTIL_TICK, "--until-tick", MQ_HAS_TICKS},
    {OPT_TICK, "--tick", MQ_HAS_TICKS},
    {OPT_WAIT, "--wait", MQ_HAS_RESULTS},
    {OPT_VT, "--vt", MQ_HAS_ATTRIBUTES},
    {OPT_MAXSIZE, "--maxsize", MQ_HAS_ATTRIBUTES},
    {OPT_REALTIME, "--realtime", MQ_HAS_NEWS},
    {0, NULL, 0},
};

/* Options that make messages special: they need more than a place in line. */
static bool
set_attribute(struct options *o, int ch)
{
	struct given *given = &o->given;
	struct mq_envelope *headers = &o->message.headers;
	struct mq_limits *limits = &o->how.limits;
	long n;

	switch (ch) {
	case 'e':
		o->message.expires_ms = attribute_duration("--expires", optarg);
		break;
	case 'p':
		n = mq_option_number("--priority", optarg, -100, 100);
		attribute_number(headers, MQ_HEADER_PRIORITY, n);
		o->low = n < 0;
		o->how.priority = (int)n;
		break;
	case 'k':
		attribute_name(headers, "--key", MQ_HEADER_KEY, optarg);
		given->key = true;
		break;
	case OPT_UNIQUE:
		attribute_unique(headers, optarg);
		given->unique = true;
		given->queued = strcmp(optarg, "queued") == 0;
		break;
	case OPT_COALESCE:
		o->how.join = o->message.awaited = true;
		break;
	case 'g':
		attribute_name(headers, "--group", MQ_HEADER_GROUP, optarg);
		break;
	case OPT_FROM_TICK:
		given->from_tick = attribute_tick("--from-tick", optarg);
		attribute_number(
		    headers, MQ_HEADER_FROM_TICK, given->from_tick);
		break;
	case OPT_UNTIL_TICK:
		given->until_tick = attribute_tick("--until-tick", optarg);
		attribute_number(
		    headers, MQ_HEADER_UNTIL_TICK, given->until_tick);
		break;
	case OPT_MAX_LENGTH:
		attribute_max("--max-length", optarg, &limits->ready,
		    &limits->ready_high);
		break;
	case OPT_MAX_DELAYED:
		attribute_max("--max-delayed", optarg, &limits->delayed,
		    &limits->delayed_high);
		break;
	case OPT_WAIT:
		o->message.wait = o->message.awaited = true;
		o->wait_ms =
		    optarg == NULL ? -1 : mq_option_duration("--wait", optarg);
		break;
	default:
		return false;
	}
	o->how.special = true;
	given->more |=
	    ch != 'p' && !(ch == OPT_FROM_TICK && given->from_tick == 0);
	return true;
}

static void
set_option(struct options *o, int ch)
{
	switch (ch) {
	case 'i':
		o->message.ids = true;
		break;
	case 'd':
		o->message.when.kind = MQ_WHEN_IN;
		o->message.when.ms = mq_option_duration("--delay", optarg);
		o->given.delay = true;
		break;
	case OPT_AT:
		o->message.when.kind = MQ_WHEN_AT;
		o->at = optarg;
		break;
	case 'H':
		attribute_header(&o->message.headers, optarg);
		break;
	case 'P':
		attribute_param(&o->message.headers, optarg);
		break;
	case OPT_TICK:
		o->tick = attribute_tick("--tick", optarg);
		break;
	case OPT_RAW:
		o->message.raw = true;
		break;
	case OPT_VT:
		o->attributes.vt_s = mq_attribute_seconds("--vt", optarg);
		break;
	case OPT_MAXSIZE:
		o->attributes.maxsize =
		    mq_attribute_maxsize("--maxsize", optarg);
		break;
	case OPT_REALTIME:
		o->how.realtime = true;
		break;
	case OPT_ATTACH:
		attachments_note(&o->attachments, optarg);
		o->message.attachments = &o->attachments;
		break;
	case OPT_DURABLE:
		o->durable = true;
		break;
	case OPT_HTTP:
		o->http = true;
		break;
	case OPT_HOST:
		http_add_host(&o->hosts, optarg);
		break;
	}
}

/* --tick publishes nothing. */
static void
check_alone(const struct options *o, int payloads)
{
	const struct message_options *m = &o->message;

	if (payloads > 0 || o->framing != MQ_FRAME_WHOLE || m->raw || m->ids ||
	    m->wait || m->headers.headers != NULL || m->expires_ms > 0 ||
	    m->attachments != NULL || m->when.kind != MQ_WHEN_NOW ||
	    o->how.limits.ready >= 0 || o->how.limits.delayed >= 0 ||
	    o->how.realtime || o->durable)
		mq_die(MQ_EXIT_USAGE,
		    "--tick publishes nothing; remove the messages and their "
		    "options");
}

static void
check_together(const struct options *o, char *const payloads[], int count)
{
	const struct given *given = &o->given;
	const struct message_options *m = &o->message;

	if (given->delay && o->at != NULL)
		mq_die(
		    MQ_EXIT_USAGE, "--delay and --at cannot be used together");
	if (m->raw &&
	    (m->headers.headers != NULL || m->wait || m->expires_ms > 0 ||
		m->attachments != NULL))
		mq_die(MQ_EXIT_USAGE,
		    "--raw cannot be used with options that set headers");
	if (m->attachments != NULL &&
	    (count > 1 || o->framing != MQ_FRAME_WHOLE))
		mq_die(MQ_EXIT_USAGE, "--attach needs exactly one message");
	if (given->unique && !given->key)
		mq_die(MQ_EXIT_USAGE, "--unique needs --key");
	if (o->how.join && !given->queued && o->framing != MQ_FRAME_JSONL)
		mq_die(MQ_EXIT_USAGE, "--coalesce needs --unique queued");
	if (given->from_tick >= 0 && given->until_tick >= 0 &&
	    given->from_tick > given->until_tick)
		mq_die(MQ_EXIT_USAGE,
		    "--from-tick %jd is greater than --until-tick %jd",
		    (intmax_t)given->from_tick, (intmax_t)given->until_tick);
	if (o->tick >= 0)
		check_alone(o, count);
	if (o->http &&
	    (count > 0 || o->framing != MQ_FRAME_WHOLE || m->wait ||
		o->tick >= 0))
		mq_die(MQ_EXIT_USAGE,
		    "--http publishes the request body; remove the payload, "
		    "the framing, --wait and --tick");
	if (o->hosts.count > 0 && !o->http)
		mq_die(MQ_EXIT_USAGE, "--host needs --http");
	if (count > 0 && o->framing != MQ_FRAME_WHOLE)
		mq_die(MQ_EXIT_USAGE,
		    "%s reads standard input; remove the operand %s",
		    mq_option_framing_name(o->framing), payloads[0]);
	if (o->at != NULL)
		(void)when_parse(o->at, mq_clock_unix_us() / 1000);
}

static void
read_options(struct options *o, int argc, char *argv[])
{
	int ch;

	opterr = 0;
	optind = 0;
	while ((ch = mq_option_next(&o->shared, argc, argv,
		    ":" MQ_SHARED_SHORT MQ_FRAMING_SHORT "id:e:p:k:g:H:P:")) !=
	    -1) {
		mq_option_note(&o->shared, needs, ch);
		if (ch == OPT_WAIT)
			optarg = mq_option_next_duration(argv);
		if (!mq_option_shared(&o->shared, ch, argv) &&
		    !mq_option_framing(&o->framing, ch) &&
		    !set_attribute(o, ch))
			set_option(o, ch);
	}
}

static void
check_options(struct options *o, char *const payloads[], int count)
{
	check_together(o, payloads, count);
	o->how.alike = !o->message.awaited && o->framing != MQ_FRAME_JSONL;
	o->how.ordered = o->how.alike && o->how.special && !o->given.more;
	o->how.in_tick = o->given.from_tick == 0;
	o->message.quiet = o->shared.quiet;
	o->message.notes = !o->shared.quiet && isatty(STDERR_FILENO);
}

void
options_parse(
    struct options *o, int argc, char *argv[], char ***payloads, int *count)
{
	*o = (struct options){.shared = {.help = help, .options = long_options},
	    .framing = MQ_FRAME_WHOLE,
	    .tick = -1,
	    .attributes = MQ_ATTRIBUTES_NONE,
	    .how.limits = {-1, -1, -1, -1},
	    .given = {.from_tick = -1, .until_tick = -1}};
	read_options(o, argc, argv);
	mq_option_rights(
	    &o->shared, options_rights(o), argv + optind, argc - optind);
	if (optind == argc)
		mq_die(MQ_EXIT_USAGE, "no queue given (try --help)");
	o->queue = argv[optind];
	*payloads = argv + optind + 1;
	*count = argc - optind - 1;
	check_options(o, *payloads, *count);
}

void
options_add(struct options *o, int argc, char *argv[])
{
	read_options(o, argc, argv);
	check_options(o, NULL, 0);
}

/* RSMQ's own programs delay no message for longer. */
static void
check_delay(const struct options *o)
{
	const struct mq_when *when = &o->message.when;
	int64_t ms = when->kind == MQ_WHEN_IN ? when->ms : 0;
	int64_t now_ms = mq_clock_unix_us() / 1000;

	if (o->at != NULL)
		ms = when_parse(o->at, now_ms) - now_ms;
	if (o->shared.layout->has & MQ_HAS_ATTRIBUTES &&
	    ms / 1000 > MQ_ATTRIBUTE_SECONDS_MAX)
		mq_die(MQ_EXIT_USAGE,
		    "%s: at most %d seconds (115 days) with the layout %s",
		    o->at != NULL ? "--at" : "--delay",
		    MQ_ATTRIBUTE_SECONDS_MAX, o->shared.layout->name);
}

void
options_use_layout(struct options *o, const struct mq_server *server)
{
	o->queue = mq_option_queue(&o->shared, server, o->queue);
	mq_option_check(&o->shared, needs);
	if (o->message.attachments != NULL &&
	    o->shared.layout->attachments == NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--attach: the layout %s has no attachments",
		    o->shared.layout->name);
	check_delay(o);
	if (o->low)
		mq_option_needs(&o->shared, "--priority", MQ_HAS_LOW_PRIORITY);
	if (o->message.raw && o->message.ids)
		mq_option_needs(&o->shared, "--raw --ids", MQ_HAS_IDS);
}

void
options_free(struct options *o)
{
	free(o->hosts.names);
	attachments_free(&o->attachments);
	mq_envelope_free(&o->message.headers);
	mq_option_free(&o->shared);
}
