#include "options.h"

#include <limits.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/say.h"

static const char help[] =
    "usage: mq-stats [options] [QUEUE...]\n"
    "\n"
    "Prints a table of the named queues, or of all: messages that are ready,\n"
    "delayed, unacked and rejected, consumers, the age of the oldest claimable\n"
    "message, and messages in and out per second.\n"
    "Exit status 1: a named queue does not exist.\n"
    "\n"
    "+     --connections      a table of connections, and their queues\n"
    "+     --json             everything, as one JSON object\n"
    "      --prometheus       metrics, as text for Prometheus\n"
    "      --check LIMITS     be a monitoring plugin (exit status 0 to 3):\n"
    "                         KEY=CRITICAL or KEY=WARNING:CRITICAL, KEY one of\n"
    "                         ready, delayed, unacked, rejected, age, consumers\n"
    "      --sort KEY         by name, ready, delayed, unacked, rejected,\n"
    "                         consumers, age, in or out; highest first\n"
    "      --reverse          reverse the order\n"
    "      --nonempty         only queues that have messages\n"
    "  -n, --limit N          N queues at most, the others as one line;\n"
    "                         or N messages or reasons\n"
    "+     --watch[=DUR]      show the table again every 2 s, or DUR\n"
    "+     --html             everything, as one page for a browser\n"
    "      --refresh N        the page reads itself again every N seconds\n"
    "      --http             answer one HTTP request on stdin and stdout: /,\n"
    "                         /metrics, /queues.json, /queue/NAME, /message/ID,\n"
    "                         /healthz (503 by --check); see man mq-http\n"
    "      --host NAME        with --http: answer requests for NAME, too\n"
    "      --payloads         with --http: show payloads, too\n"
    "      --running          running scripts, and their last texts\n"
    "      --server           the state of the server, with warnings\n"
    "+     --id ID            one message, wherever it is, and its history\n"
    "+     --list STATE       the ready, delayed, unacked or rejected messages\n"
    "                         of a queue, the next one first\n"
    "+     --reasons          why messages of a queue were rejected, in groups\n"
    "                         with --list or --reasons, only:\n" MQ_FILTER_HELP_BUT_ID
	MQ_FILTER_HELP_NOT "                         with --list:\n"
    "      --newest           the newest first; 20, or N\n"
    "      --offset N         skip the first N\n"
    "                         with --list, whole payloads:\n"
    "  -l, --lines            one a line\n"
    "  -0, --null             a NUL byte behind each\n"
    "      --netstring        as netstrings\n"
    "      --jsonl            a JSON object a line, with all that is known\n"
    "\n" MQ_SHARED_HELP;

enum {
	OPT_CONNECTIONS = MQ_OPT_OWN,
	OPT_JSON,
	OPT_PROMETHEUS,
	OPT_CHECK,
	OPT_WATCH,
	OPT_LIST,
	OPT_OFFSET,
	OPT_REASONS,
	OPT_RUNNING,
	OPT_HTML,
	OPT_REFRESH,
	OPT_SORT,
	OPT_REVERSE,
	OPT_NONEMPTY,
	OPT_NEWEST,
	OPT_SERVER,
	OPT_HTTP,
	OPT_HOST,
	OPT_PAYLOADS
};

static const struct option long_options[] = {
    {"connections", no_argument, NULL, OPT_CONNECTIONS},
    {"json", no_argument, NULL, OPT_JSON},
    {"prometheus", no_argument, NULL, OPT_PROMETHEUS},
    {"check", required_argument, NULL, OPT_CHECK},
    {"watch", optional_argument, NULL, OPT_WATCH},
    {"html", no_argument, NULL, OPT_HTML},
    {"refresh", required_argument, NULL, OPT_REFRESH},
    {"running", no_argument, NULL, OPT_RUNNING},
    {"list", required_argument, NULL, OPT_LIST},
    {"reasons", no_argument, NULL, OPT_REASONS},
    {"limit", required_argument, NULL, 'n'},
    {"server", no_argument, NULL, OPT_SERVER},
    {"sort", required_argument, NULL, OPT_SORT},
    {"reverse", no_argument, NULL, OPT_REVERSE},
    {"nonempty", no_argument, NULL, OPT_NONEMPTY},
    {"newest", no_argument, NULL, OPT_NEWEST},
    {"offset", required_argument, NULL, OPT_OFFSET},
    {"http", no_argument, NULL, OPT_HTTP},
    {"host", required_argument, NULL, OPT_HOST},
    {"payloads", no_argument, NULL, OPT_PAYLOADS},
    MQ_FILTER_LONG,
    MQ_FRAMING_LONG,
    MQ_SHARED_LONG,
    {NULL, 0, NULL, 0},
};

#define WATCH_MS     2000
#define WATCH_MIN_MS 100

static const char *const format_names[FORMATS] = {
    [FORMAT_JSON] = "--json",
    [FORMAT_PROMETHEUS] = "--prometheus",
    [FORMAT_CHECK] = "--check",
};

static const char *const subject_names[SUBJECTS] = {
    [SUBJECT_LIST] = "--list",
    [SUBJECT_REASONS] = "--reasons",
    [SUBJECT_RUNNING] = "--running",
    [SUBJECT_ONE] = "--id",
    [SUBJECT_HTML] = "--html",
    [SUBJECT_SERVER] = "--server",
    [SUBJECT_HTTP] = "--http",
};

static void
refuse_both(const char *one, const char *other)
{
	mq_die(MQ_EXIT_USAGE, "%s and %s cannot be used together", one, other);
}

static void
set_format(struct stats_options *o, enum format format)
{
	if (o->format != FORMAT_TABLE && o->format != format)
		refuse_both(format_names[o->format], format_names[format]);
	o->format = format;
}

static void
set_subject(struct stats_options *o, enum subject subject)
{
	if (o->subject != SUBJECT_QUEUES && o->subject != subject)
		refuse_both(subject_names[o->subject], subject_names[subject]);
	o->subject = subject;
}

static void
set_state(struct stats_options *o, const char *arg)
{
	set_subject(o, SUBJECT_LIST);
	if (mq_state_parse(arg, &o->list.state) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--list: %s: must be ready, delayed, unacked or rejected",
		    arg);
}

static void
set_watch(struct stats_options *o, char *argv[])
{
	const char *arg = mq_option_next_duration(argv);

	o->watch.interval_ms = WATCH_MS;
	if (arg == NULL)
		return;
	o->watch.interval_ms = mq_option_duration("--watch", arg);
	if (o->watch.interval_ms < WATCH_MIN_MS)
		mq_die(MQ_EXIT_USAGE, "--watch: %s: must be at least %d ms",
		    arg, WATCH_MIN_MS);
}

/* A framing, a filter, or an option of all tools. */
static void
set_common(struct stats_options *o, int ch, char *argv[])
{
	if (!mq_option_framing(&o->list.framing, ch) &&
	    !mq_filter_option(&o->list.filter, ch, optarg))
		(void)mq_option_shared(&o->shared, ch, argv);
}

static void
set_order(struct stats_options *o, int ch)
{
	if (ch == OPT_SORT && !order_key_parse(optarg, &o->order.key))
		mq_die(MQ_EXIT_USAGE,
		    "--sort: %s: must be name, ready, delayed, unacked, "
		    "rejected, consumers, age, in or out",
		    optarg);
	o->order.reverse |= ch == OPT_REVERSE;
	o->order.nonempty |= ch == OPT_NONEMPTY;
}

static void
set_option(struct stats_options *o, int ch, char *argv[])
{
	switch (ch) {
	case OPT_CONNECTIONS:
		o->watch.connections = true;
		break;
	case OPT_JSON:
		set_format(o, FORMAT_JSON);
		break;
	case OPT_PROMETHEUS:
		set_format(o, FORMAT_PROMETHEUS);
		break;
	case OPT_CHECK:
		set_format(o, FORMAT_CHECK);
		o->checks = optarg;
		break;
	case OPT_WATCH:
		set_watch(o, argv);
		break;
	case 'n':
		o->list.limit =
		    mq_option_number("--limit", optarg, 1, LONG_MAX);
		break;
	case OPT_OFFSET:
		o->list.offset =
		    mq_option_number("--offset", optarg, 0, LONG_MAX);
		o->offset = true;
		break;
	case OPT_LIST:
		set_state(o, optarg);
		break;
	case OPT_REASONS:
		set_subject(o, SUBJECT_REASONS);
		break;
	case OPT_RUNNING:
		set_subject(o, SUBJECT_RUNNING);
		break;
	case OPT_SERVER:
		set_subject(o, SUBJECT_SERVER);
		break;
	case OPT_HTML:
		set_subject(o, SUBJECT_HTML);
		break;
	case OPT_HTTP:
		set_subject(o, SUBJECT_HTTP);
		break;
	case OPT_HOST:
		http_add_host(&o->hosts, optarg);
		break;
	case OPT_PAYLOADS:
		o->payloads = true;
		break;
	case OPT_SORT:
	case OPT_REVERSE:
	case OPT_NONEMPTY:
		set_order(o, ch);
		break;
	case OPT_NEWEST:
		o->list.newest = true;
		break;
	case OPT_REFRESH:
		o->refresh = mq_option_number("--refresh", optarg, 1, 86400);
		break;
	default:
		set_common(o, ch, argv);
	}
}

/* An option that belongs to --list only; NULL: none. */
static const char *
list_option(const struct stats_options *o)
{
	if (o->offset)
		return "--offset";
	if (o->list.newest)
		return "--newest";
	return o->list.framing != MQ_FRAME_WHOLE ?
	    mq_option_framing_name(o->list.framing) :
	    NULL;
}

/* An option of the table of queues only; NULL: none. */
static const char *
order_option(const struct stats_options *o)
{
	if (o->order.key != ORDER_NONE)
		return "--sort";
	if (o->order.reverse)
		return "--reverse";
	return o->order.nonempty ? "--nonempty" : NULL;
}

/* Whether queues have a line each, in a table or on the page. */
static bool
has_rows(const struct stats_options *o)
{
	if (o->subject == SUBJECT_HTML || o->subject == SUBJECT_HTTP)
		return true;
	return o->subject == SUBJECT_QUEUES && o->format == FORMAT_TABLE &&
	    !o->watch.connections;
}

static void
check_order(const struct stats_options *o, bool of_one)
{
	if (has_rows(o))
		return;
	if (order_option(o) != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "%s needs the table of queues, --watch, --html or --http",
		    order_option(o));
	if (o->list.limit != -1 && !of_one)
		mq_die(MQ_EXIT_USAGE,
		    "--limit needs the table of queues, --watch, --html, "
		    "--http, --list or --reasons");
}

static void
check_messages(const struct stats_options *o, bool json)
{
	bool of_one =
	    o->subject == SUBJECT_LIST || o->subject == SUBJECT_REASONS;

	if (o->subject != SUBJECT_LIST && list_option(o) != NULL)
		mq_die(MQ_EXIT_USAGE, "%s needs --list", list_option(o));
	if (!of_one && mq_filter_option_given(&o->list.filter) != NULL)
		mq_die(MQ_EXIT_USAGE, "%s needs --list or --reasons",
		    mq_filter_option_given(&o->list.filter));
	check_order(o, of_one);
	if (o->refresh > 0 && o->subject != SUBJECT_HTML &&
	    o->subject != SUBJECT_HTTP)
		mq_die(MQ_EXIT_USAGE, "--refresh needs --html or --http");
	if ((o->payloads || o->hosts.count > 0) && o->subject != SUBJECT_HTTP)
		mq_die(MQ_EXIT_USAGE, "%s needs --http",
		    o->payloads ? "--payloads" : "--host");
	if (o->subject == SUBJECT_HTML && json)
		refuse_both("--html", "--json");
	if (o->subject == SUBJECT_SERVER && o->count > 0)
		mq_die(MQ_EXIT_USAGE, "--server: takes no queue; remove %s",
		    o->queues[0]);
	if (of_one && o->count != 1)
		mq_die(MQ_EXIT_USAGE, "%s needs one queue (try --help)",
		    subject_names[o->subject]);
	if (json && o->list.framing != MQ_FRAME_WHOLE)
		refuse_both("--json", mq_option_framing_name(o->list.framing));
}

static void
check_options(const struct stats_options *o)
{
	const char *subject = subject_names[o->subject];
	const char *format = format_names[o->format];
	bool json = o->format == FORMAT_JSON;
	bool of_machine = o->format != FORMAT_TABLE;

	if (o->watch.interval_ms > 0 && of_machine)
		refuse_both("--watch", format);
	if (o->watch.connections && of_machine && !json)
		refuse_both("--connections", format);
	check_messages(o, json);
	if (subject == NULL)
		return;
	if (o->subject == SUBJECT_HTTP ?
		of_machine && o->format != FORMAT_CHECK :
		of_machine && !json)
		refuse_both(subject, format);
	if (o->watch.interval_ms > 0)
		refuse_both(subject, "--watch");
	if (o->watch.connections)
		refuse_both(subject, "--connections");
}

void
options_parse(struct stats_options *o, int argc, char *argv[])
{
	int ch;

	*o = (struct stats_options){.shared = {.help = help,
					.options = long_options,
					.names_server = true},
	    .list.limit = -1};
	opterr = 0;
	while ((ch = mq_option_next(&o->shared, argc, argv,
		    ":n:" MQ_SHARED_SHORT MQ_FRAMING_SHORT)) != -1)
		set_option(o, ch, argv);
	mq_option_rights(&o->shared,
	    MQ_LOOKS | (o->subject == SUBJECT_SERVER ? MQ_DESCRIBES : 0),
	    argv + optind, argc - optind);
	o->queues = argv + optind;
	o->count = argc - optind;
	/* With --list and --reasons, an id is a filter as any other. */
	if (o->list.filter.id != NULL && o->subject != SUBJECT_LIST &&
	    o->subject != SUBJECT_REASONS)
		set_subject(o, SUBJECT_ONE);
	check_options(o);
	if (has_rows(o) && o->list.limit != -1)
		o->order.limit = o->list.limit;
}

void
options_free(struct stats_options *o)
{
	mq_filter_free(&o->list.filter);
	free(o->hosts.names);
	free(o->name);
	mq_option_free(&o->shared);
}
