/*
 * mq-stats: what is in the queues.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/say.h"
#include "queue/queue.h"
#include "shared/options.h"
#include "stats.h"

static const char help[] =
    "usage: mq-stats [options] [QUEUE...]\n"
    "\n"
    "Prints a table of the named queues, or of all: how many messages are\n"
    "ready, delayed, unacked and rejected, how many consumers there are, how\n"
    "long the oldest claimable message has been so, and how many messages came\n"
    "and went a second.  Exit status 1: a queue that was named does not exist.\n"
    "\n"
    "      --connections      who has the queues: a table of connections\n"
    "      --json             everything, as one JSON object\n"
    "      --prometheus       metrics, as text for Prometheus\n"
    "      --check LIMITS     be a monitoring plugin (exit status 0 to 3):\n"
    "                         KEY=CRITICAL or KEY=WARNING:CRITICAL, KEY one of\n"
    "                         ready, delayed, unacked, rejected, age, consumers\n"
    "      --watch[=DUR]      show the table again every 2 s, or DUR\n"
    "      --html             everything, as one page for a browser\n"
    "      --refresh N        the page reads itself again every N seconds\n"
    "      --running          scripts that run, and what they said last\n"
    "      --id ID            one message, wherever it is, and its history\n"
    "      --list STATE       the ready, delayed, unacked or rejected messages\n"
    "                         of a queue, the next one first\n"
    "      --reasons          why messages of a queue were rejected, in groups\n"
    "                         with --list or --reasons, only:\n"
    "  -n, --limit N          N messages or reasons at most\n"
    "      --match RE         whose payload matches the regular expression\n"
    "      --reason RE        whose last reason (Mq-Error) matches\n"
    "      --stderr RE        whose last run wrote a line that matches\n"
    "      --since DUR        that failed, or became ready, in the last DUR\n"
    "                         with --list:\n"
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
	OPT_WATCH
};

static const struct option long_options[] = {
    {"connections", no_argument, NULL, OPT_CONNECTIONS},
    {"json", no_argument, NULL, OPT_JSON},
    {"prometheus", no_argument, NULL, OPT_PROMETHEUS},
    {"check", required_argument, NULL, OPT_CHECK},
    {"watch", optional_argument, NULL, OPT_WATCH},
    {"html", no_argument, NULL, LOOK_OPT_HTML},
    {"refresh", required_argument, NULL, LOOK_OPT_REFRESH},
    {"running", no_argument, NULL, LOOK_OPT_RUNNING},
    {"list", required_argument, NULL, LOOK_OPT_LIST},
    {"reasons", no_argument, NULL, LOOK_OPT_REASONS},
    {"limit", required_argument, NULL, 'n'},
    {"offset", required_argument, NULL, LOOK_OPT_OFFSET},
    {"match", required_argument, NULL, MQ_OPT_MATCH},
    {"reason", required_argument, NULL, MQ_OPT_REASON},
    {"stderr", required_argument, NULL, MQ_OPT_STDERR},
    {"since", required_argument, NULL, MQ_OPT_SINCE},
    {"id", required_argument, NULL, MQ_OPT_ID},
    MQ_FRAMING_LONG,
    MQ_SHARED_LONG,
    {NULL, 0, NULL, 0},
};

#define WATCH_MS     2000
#define WATCH_MIN_MS 100

/* --- options ------------------------------------------------------------------- */

static const char *const output_names[STATS_OUTPUTS] = {
    [STATS_JSON] = "--json",
    [STATS_PROMETHEUS] = "--prometheus",
    [STATS_CHECK] = "--check",
};

static void
exclusive(const char *one, const char *other)
{
	mq_die(MQ_EXIT_USAGE, "%s and %s cannot be used together", one, other);
}

static void
set_output(struct stats_options *o, enum stats_output output)
{
	if (o->output != STATS_TABLE && o->output != output)
		exclusive(output_names[o->output], output_names[output]);
	o->output = output;
}

/* "--watch=5", or "--watch 5": the word behind it, if it is a time. */
static void
set_watch(struct stats_options *o, int argc, char *argv[])
{
	const char *arg = optarg;
	int64_t ms;

	o->watch_ms = WATCH_MS;
	if (arg == NULL && optind < argc &&
	    mq_duration_parse(argv[optind], &ms) == 0)
		arg = argv[optind++];
	if (arg == NULL)
		return;
	o->watch_ms = mq_option_duration("--watch", arg);
	if (o->watch_ms < WATCH_MIN_MS)
		mq_die(MQ_EXIT_USAGE, "--watch: %s: less than %d ms", arg,
		    WATCH_MIN_MS);
}

static void
take_option(struct stats_options *o, int ch, int argc, char *argv[])
{
	switch (ch) {
	case OPT_CONNECTIONS:
		o->connections = true;
		break;
	case OPT_JSON:
		set_output(o, STATS_JSON);
		break;
	case OPT_PROMETHEUS:
		set_output(o, STATS_PROMETHEUS);
		break;
	case OPT_CHECK:
		set_output(o, STATS_CHECK);
		o->checks = optarg;
		break;
	case OPT_WATCH:
		set_watch(o, argc, argv);
		break;
	default:
		if (!look_option(&o->look, ch, optarg))
			(void)mq_option_shared(&o->shared, ch, argv);
		break;
	}
}

static void
check_look(const struct stats_options *o)
{
	const char *name = look_name(&o->look);

	look_check(&o->look, o->output == STATS_JSON, o->count);
	if (name == NULL)
		return;
	if (o->output != STATS_TABLE && o->output != STATS_JSON)
		exclusive(name, output_names[o->output]);
	if (o->watch_ms > 0)
		exclusive(name, "--watch");
	if (o->connections)
		exclusive(name, "--connections");
}

static void
check_options(const struct stats_options *o)
{
	if (o->watch_ms > 0 && o->output != STATS_TABLE)
		exclusive("--watch", output_names[o->output]);
	if (o->connections && o->output != STATS_TABLE &&
	    o->output != STATS_JSON)
		exclusive("--connections", output_names[o->output]);
	check_look(o);
}

static void
parse_options(struct stats_options *o, int argc, char *argv[])
{
	int ch;

	opterr = 0;
	while ((ch = getopt_long(argc, argv,
		    ":n:" MQ_SHARED_SHORT MQ_FRAMING_SHORT, long_options,
		    NULL)) != -1)
		take_option(o, ch, argc, argv);
	mq_option_rights(&o->shared, MQ_LOOKS, argv + optind, argc - optind);
	o->queues = argv + optind;
	o->count = argc - optind;
	check_options(o);
}

/* --- asking -------------------------------------------------------------------- */

int
stats_fetch(struct stats_source *s, int wanted, struct mq_stats *out)
{
	const struct stats_options *o = s->options;

	if (!s->open && mq_redis_open(&s->redis, &s->server) == -1)
		return -1;
	s->open = true;
	if (s->layout->stats(&s->redis, (const char *const *)o->queues,
		o->count, wanted | MQ_STATS_UNLISTED, out) == 0)
		return 0;
	stats_close(s);
	return -1;
}

void
stats_close(struct stats_source *s)
{
	if (s->open)
		mq_redis_close(&s->redis);
	s->open = false;
}

/* --- printing ------------------------------------------------------------------ */

int
stats_check_known(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_stats *stats)
{
	int i, status = MQ_EXIT_OK;

	for (i = 0; i < stats->count; i++)
		if (!stats->queues[i].known) {
			mq_option_unknown(r, layout, stats->queues[i].name);
			status = MQ_EXIT_NO;
		}
	return status;
}

/* Below the table of one queue. */
static void
print_attributes(const struct mq_queue_stats *q)
{
	const struct mq_attributes *a = &q->attributes;

	printf("vt %ld s, delay %ld s, ", a->vt_s, a->delay_s);
	if (a->maxsize == -1)
		printf("any size");
	else
		printf("maxsize %ld", a->maxsize);
	printf("; %lld sent, %lld received\n", q->sent, q->received);
}

/* Queues of that layout only have the same names. */
static void
say_left_alone(const struct stats_options *o, const struct mq_stats *stats)
{
	size_t n = stats->cluster.n;

	if (n > 0 && !o->shared.quiet)
		mq_say("%zu %s rmq's cluster layout; %s messages are not "
		       "counted",
		    n, n == 1 ? "connection uses" : "connections use",
		    n == 1 ? "its" : "their");
}

static void
print_table(const struct stats_options *o, const struct mq_stats *stats)
{
	struct stats_view view = stats_view_stdout();
	struct mq_buf out = {0};
	struct stats_table table;

	if (o->connections)
		stats_connections_table(stats, &table);
	else
		stats_queues_table(stats, &table);
	stats_table_write(&table, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	if (!o->connections && o->count == 1 && stats->queues[0].attributed)
		print_attributes(&stats->queues[0]);
	stats_table_free(&table);
	mq_buf_free(&out);
	say_left_alone(o, stats);
}

static void
print_policy(const struct mq_info *info)
{
	char *policy;

	if (!mq_info_evicts(info))
		return;
	policy = show_visible(info->policy, strlen(info->policy));
	printf("maxmemory-policy is %s: the server may drop queues or leases\n",
	    policy);
	free(policy);
}

static int
print_once(struct stats_source *source)
{
	const struct stats_options *o = source->options;
	int wanted = o->connections ? MQ_STATS_CONNECTIONS : 0, status;
	struct mq_stats stats;
	struct mq_info info;

	if (o->output == STATS_JSON)
		wanted |= MQ_STATS_COUNTS;
	if (o->output == STATS_PROMETHEUS)
		wanted |= MQ_STATS_COUNTS | MQ_STATS_CONNECTIONS;
	if (stats_fetch(source, wanted, &stats) == -1 ||
	    mq_info_ask_policy(&source->redis, &info) == -1)
		mq_die(source->redis.status, "%s", source->redis.error);
	if (o->output == STATS_JSON)
		stats_json(&stats, &info, o->connections);
	else if (o->output == STATS_PROMETHEUS)
		stats_prometheus(&stats, &info);
	else
		print_table(o, &stats);
	if (o->output == STATS_TABLE)
		print_policy(&info);
	status = stats_check_known(&source->redis, source->layout, &stats);
	mq_stats_free(&stats);
	return status;
}

static void
use_layout(struct stats_source *source, struct stats_options *o)
{
	source->layout = o->shared.layout;
	mq_option_queues(&o->shared, &source->server, o->queues, o->count);
}

/* For a plugin, everything that goes wrong is a line on stdout. */
static int
check(struct stats_source *source, struct stats_options *o)
{
	struct stats_checks *checks = stats_checks_parse(o->checks);
	int status;

	if (mq_option_find(&o->shared, &source->server, source->redis.error,
		sizeof(source->redis.error)) == 0) {
		use_layout(source, o);
		status = stats_check(source, checks);
	} else {
		status = stats_check_failed(source->redis.error);
	}
	stats_checks_free(checks);
	return status;
}

/* Single messages, runs, and the page. */
static int
look(struct stats_source *source)
{
	const struct stats_options *o = source->options;
	struct look look = {.layout = source->layout,
	    .redis = &source->redis,
	    .queues = (const char *const *)o->queues,
	    .count = o->count,
	    .json = o->output == STATS_JSON,
	    .quiet = o->shared.quiet};

	if (mq_redis_open(&source->redis, &source->server) == -1)
		mq_die(source->redis.status, "%s", source->redis.error);
	source->open = true;
	return look_run(&look, &o->look);
}

static int
run(struct stats_source *source, struct stats_options *o)
{
	if (o->output == STATS_CHECK)
		return check(source, o);
	(void)mq_option_server(&o->shared, &source->server);
	use_layout(source, o);
	mq_filter_check(&o->look.list.filter, source->layout);
	if (look_name(&o->look) != NULL)
		return look(source);
	if (o->watch_ms == 0)
		return print_once(source);
	stats_watch(source);
	return MQ_EXIT_OK;
}

int
main(int argc, char *argv[])
{
	struct stats_options options = {
	    .shared = {.help = help, .options = long_options},
	    .look.list.limit = -1};
	struct stats_source source = {.options = &options};
	int status;

	mq_option_begin();
	parse_options(&options, argc, argv);
	mq_option_prints(true);
	status = run(&source, &options);
	stats_close(&source);
	mq_server_free(&source.server);
	mq_filter_free(&options.look.list.filter);
	mq_option_free(&options.shared);
	mq_close_stdout();
	return status;
}
