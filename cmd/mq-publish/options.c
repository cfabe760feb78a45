/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publish.h"

#include "shared/spool.h"

#define NO_WAIT (-2)

static const char usage[] =
    "usage: mq-publish [options] QUEUE [PAYLOAD...]\n"
    "\n"
    "Publishes each PAYLOAD as a message.  Without one, standard input is one\n"
    "message, with its newline (use printf %s), or several, as with -l or --jsonl.\n"
    "Exit status: 0: the server has accepted all; 1: some are duplicates;\n"
    "75: the queue is full.  Unless it is 0, a line has the number accepted.\n"
    "\n"
    "  mq-publish greetings hello world\n"
    "  find /data -print0 | mq-publish -0 files\n"
    "\n";

struct mq_when
options_when(const struct options *o, int64_t now_ms)
{
	struct mq_when when = o->how.when;

	when.said = when.kind != MQ_WHEN_NOW;
	if (o->at != NULL)
		when.ms = mq_option_at(o->at, now_ms,
		    o->shared.quiet ? NULL : "published at once");
	if ((when.kind == MQ_WHEN_IN && when.ms == 0) ||
	    (when.kind == MQ_WHEN_AT && when.ms <= now_ms))
		when.kind = MQ_WHEN_NOW;
	return when;
}

/* --- the rows ------------------------------------------------------------------ */

enum {
	KEY,
	GROUP,
	PRIORITY,
	FROM,
	UNTIL,
	BATCH,
	AFTER,
	TO,
	ATTEMPTS,
	READY,
	DELAYED,
	VT,
	MAXSIZE
};

static const char *const headers[] = {[KEY] = MQ_HEADER_KEY,
    [GROUP] = MQ_HEADER_GROUP,
    [PRIORITY] = MQ_HEADER_PRIORITY,
    [FROM] = MQ_HEADER_FROM_TICK,
    [UNTIL] = MQ_HEADER_UNTIL_TICK,
    [BATCH] = MQ_HEADER_BATCH,
    [AFTER] = MQ_HEADER_AFTER,
    [TO] = MQ_HEADER_TO,
    [ATTEMPTS] = MQ_HEADER_ATTEMPTS};

static void
take_number(void *into, const struct mq_given *given)
{
	struct options *o = into;
	const struct mq_option *row = given->option;
	long n = mq_option_number(given->name, given->arg, row->low, row->high);

	mq_envelope_set_number(&o->headers, headers[row->which], n);
	if (row->which == PRIORITY)
		o->how.priority = (int)n;
}

static void
take_timeout(void *into, const struct mq_given *given)
{
	int64_t ms = mq_option_duration(given->name, given->arg);

	forbid(
	    ms == 0, "%s: %s: must be greater than 0", given->name, given->arg);
	mq_envelope_set_number(
	    &((struct options *)into)->headers, MQ_HEADER_TIMEOUT, ms);
}

/* Takes a name in UTF-8: '?' for other bytes could make two names equal. */
static void
take_name(void *into, const struct mq_given *given)
{
	struct options *o = into;

	forbid(!mq_utf8(given->arg, strlen(given->arg)), "%s: %s: not UTF-8",
	    given->name, given->arg);
	forbid(*given->arg == '\0', "%s: must not be empty", given->name);
	mq_envelope_set(&o->headers, headers[given->option->which], given->arg);
}

/* Takes the name of a batch, or several, with commas between them. */
static void
take_batch(void *into, const struct mq_given *given)
{
	const char *why =
	    mq_message_batches_error(given->arg, given->option->which == AFTER);

	forbid(why != NULL, "%s: %s: %s", given->name, given->arg, why);
	take_name(into, given);
}

static void
take_after_ok(void *into, const struct mq_given *given)
{
	(void)given;
	mq_envelope_set(
	    &((struct options *)into)->headers, MQ_HEADER_AFTER_OK, "1");
}

static void
take_unique(void *into, const struct mq_given *given)
{
	struct options *o = into;
	int64_t ms;

	if (strcmp(given->arg, "queued") == 0 ||
	    strcmp(given->arg, "done") == 0) {
		mq_envelope_set(&o->headers, MQ_HEADER_UNIQUE, given->arg);
		return;
	}
	ms = mq_option_duration(given->name, given->arg);
	forbid(
	    ms == 0, "%s: %s: must be greater than 0", given->name, given->arg);
	mq_envelope_set_number(&o->headers, MQ_HEADER_UNIQUE, ms);
}

/* Stores N or N:HIGH. */
static void
take_max(void *into, const struct mq_given *given)
{
	struct mq_limits *l = &((struct options *)into)->how.limits;
	bool ready = given->option->which == READY;
	char *colon = strchr(given->arg, ':');
	long max, high;

	if (colon != NULL)
		*colon = '\0';
	max = high = mq_option_number(given->name, given->arg, 0, LONG_MAX);
	if (colon != NULL)
		high = mq_option_number(given->name, colon + 1, max, LONG_MAX);
	*(ready ? &l->ready : &l->delayed) = max;
	*(ready ? &l->ready_high : &l->delayed_high) = high;
}

static void
take_header(void *into, const struct mq_given *given)
{
	struct options *o = into;
	char *name, *value;
	const char *why;

	if (mq_header_split(given->arg, &name, &value, &why) == -1)
		mq_die(
		    MQ_EXIT_USAGE, "%s: %s: %s", given->name, given->arg, why);
	forbid(strncmp(name, "Mq-", 3) == 0,
	    "%s: %s: names that begin with Mq- are reserved", given->name,
	    name);
	mq_envelope_add(&o->headers, name, value);
	free(name);
	free(value);
}

static void
take_param(void *into, const struct mq_given *given)
{
	struct options *o = into;
	const char *arg = given->arg;
	char name[sizeof(MQ_HEADER_PARAM) + 1];

	forbid(arg[0] < '1' || arg[0] > '4' || arg[1] != '=',
	    "%s: %s: not of the form N=VALUE, N from 1 to 4", given->name, arg);
	forbid(
	    !mq_utf8(arg, strlen(arg)), "%s: %s: not UTF-8", given->name, arg);
	snprintf(name, sizeof(name), "%s%c", MQ_HEADER_PARAM, arg[0]);
	mq_envelope_set(&o->headers, name, arg + 2);
}

/* Stores NAME=FILE. */
static void
take_attach(void *into, const struct mq_given *given)
{
	struct options *o = into;
	struct attachments *a = &o->attachments;
	char *path = strchr(given->arg, '=');
	const char *why;
	struct attachment *new;
	size_t i;

	forbid(path == NULL, "--attach: %s: not of the form NAME=FILE",
	    given->arg);
	a->list = mq_xreallocarray(a->list, a->n + 1, sizeof(*a->list));
	*path++ = '\0';
	new = &a->list[a->n];
	*new = (struct attachment){given->arg, path};
	why = mq_attach_name_error(new->name);
	for (i = 0; i < a->n && why == NULL; i++)
		if (strcmp(a->list[i].name, new->name) == 0)
			why = "given twice";
	forbid(why != NULL, "--attach: %s: %s", new->name, why);
	a->n++;
	o->how.files = &a->set;
}

static void
take_spool(void *into, const struct mq_given *given)
{
	struct options *o = into;
	const char *rest = "";

	o->spool_max = SPOOL_USUAL;
	if (given->arg != NULL)
		o->spool_max = mq_option_size(given->arg, &rest);
	forbid(o->spool_max == 0 || *rest != '\0',
	    "%s: %s: not a size (64K, 10M)", given->name, given->arg);
}

static void
take_attribute(void *into, const struct mq_given *given)
{
	struct mq_attributes *a = &((struct options *)into)->attributes;
	bool maxsize = given->option->which == MAXSIZE;

	*(maxsize ? &a->maxsize : &a->vt_s) =
	    mq_option_attribute(given->name, given->arg, maxsize);
}

static const struct mq_option framings[] = {
    {'l', "--lines", NULL, "+each line is a message", MQ_FRAMING(LINES)},
    {'0', "--null", NULL, "+each message ends with a NUL byte",
	MQ_FRAMING(NULL)},
    {0, "--netstring", NULL, "each message is LENGTH:BYTES,",
	MQ_FRAMING(NETSTRING)},
    {0, "--jsonl", NULL, "each line is a message as a JSON object",
	MQ_FRAMING(JSONL)},
    {0},
};
static const struct mq_option messages[] = {
    {'i', "--ids", NULL, "+print the id of each accepted message",
	MQ_FLAG(struct options, ids)},
    {'d', "--delay", "DUR", "+ready after DUR (500ms, 10s, 5m, 2h, 1d)",
	MQ_DURATION(struct options, delay_ms, 0)},
    {0, "--at", "TIME",
	"ready at TIME (RFC 3339, HH:MM, @SECONDS, or\n"
	"words of date(1): tomorrow 9:00)",
	MQ_TEXT(struct options, at)},
    {'e', "--expires", "DUR", "reject if not started within DUR",
	MQ_DURATION(struct options, expires_ms, 1)},
    {0, "--timeout", "DUR",
	"end a run that takes longer, if its consumer does not",
	.take = take_timeout},
    {0, "--attempts", "N", "reject after N runs, if its consumer does not",
	.take = take_number, .which = ATTEMPTS, .low = 1,
	.high = MQ_ATTEMPTS_MAX},
    {'p', "--priority", "N", "+-100 to 100, higher first (0)",
	.take = take_number, .which = PRIORITY, .low = -100, .high = 100},
    {'k', "--key", "KEY", "+refuse if another message has this key",
	.take = take_name, .which = KEY, .needs = MQ_HAS_KEYS},
    {0, "--unique", "HOW",
	"hold the key until the message is claimed (queued),\n"
	"until it has ended (done, the default), or for DUR",
	.take = take_unique, .needs = MQ_HAS_KEYS},
    {0, "--coalesce", NULL,
	"with --unique queued: instead of being refused, join\n"
	"the waiting message, and print its id with -i",
	MQ_FLAG(struct options, how.join), .needs = MQ_HAS_KEYS},
    {0, "--replace", NULL,
	"replace the waiting message with this key; the key is\n"
	"held until the message is claimed",
	MQ_FLAG(struct options, how.replace), .needs = MQ_HAS_KEYS},
    {'g', "--group", "GROUP", "+one message of a group at a time, in order",
	.take = take_name, .which = GROUP, .needs = MQ_HAS_GROUPS},
    {0, "--batch", "NAME", "count the end of the message in this batch",
	.take = take_batch, .which = BATCH, .needs = MQ_HAS_BATCHES},
    {0, "--after", "NAME[,NAME]",
	"ready when all messages of these batches have ended",
	.take = take_batch, .which = AFTER, .needs = MQ_HAS_BATCHES},
    {0, "--after-ok", NULL, "with --after: reject if one of those messages was",
	.take = take_after_ok, .needs = MQ_HAS_BATCHES},
    {0, "--to", "QUEUE", "with --after: go on to QUEUE then", .take = take_name,
	.which = TO, .needs = MQ_HAS_BATCHES},
    {0, "--max-length", "N[:HIGH]",
	"refuse if N messages are ready; for a priority\n"
	"above 0, if HIGH are",
	.take = take_max, .which = READY},
    {0, "--max-delayed", "N[:HIGH]", "the same for delayed messages",
	.take = take_max, .which = DELAYED},
    {'H', "--header", "'N: V'", "+add a header; can be repeated",
	.take = take_header},
    {'P', "--param", "N=VALUE",
	"set parameter N (1 to 4), $MQ_PARAMn of a worker", .take = take_param},
    {0, "--attach", "NAME=FILE",
	"attach FILE, $MQ_ATTACH_DIR/NAME of a worker; can be\n"
	"repeated",
	.take = take_attach},
    {0, "--durable", NULL, "+exit 0 only once all are on disk and on replicas",
	MQ_FLAG(struct options, durable)},
    {0, "--spool", "[=SIZE]",
	"while the server is away, put messages on this host's\n"
	"disk, at most SIZE (64M)",
	.take = take_spool},
    {0, "--wait", "[=DUR]",
	"wait until all have ended, and print their last texts",
	MQ_DURATION(struct options, wait_ms, 0), .high = -1,
	.needs = MQ_HAS_RESULTS},
    {0, "--raw", NULL, "bare payloads, for consumers that know no headers",
	MQ_FLAG(struct options, raw)},
    {0},
};
static const struct mq_option request[] = {
    {0, "--http", NULL, "publish the body of one HTTP request; see man mq-http",
	MQ_FLAG(struct options, http)},
    {0},
};
static const struct mq_option queue[] = {
    {0, "--flush", NULL, "publish what --spool has put on this host's disk",
	MQ_FLAG(struct options, flush)},
    {0, "--from-tick", "N", "not before the clock of the queue is at N",
	.take = take_number, .which = FROM, .high = MQ_TICK_MAX,
	.needs = MQ_HAS_TICKS},
    {0, "--until-tick", "N", "reject if not started when the clock is beyond N",
	.take = take_number, .which = UNTIL, .high = MQ_TICK_MAX,
	.needs = MQ_HAS_TICKS},
    {0, "--tick", "N", "publish nothing, set the clock of the queue to N",
	MQ_LONG(struct options, tick, 0, MQ_TICK_MAX), .needs = MQ_HAS_TICKS},
    {0, "--realtime", NULL,
	"report the length of the queue on its channel (rsmq)",
	MQ_FLAG(struct options, how.realtime), .needs = MQ_HAS_NEWS},
    {0, "--vt", "DUR",
	"of a new queue: how long a received message is\n"
	"hidden (30s; rsmq)",
	.take = take_attribute, .which = VT, .needs = MQ_HAS_ATTRIBUTES},
    {0, "--maxsize", "N",
	"of a new queue: longest message, in UTF-16 units\n"
	"(65536; -1: any; rsmq)",
	.take = take_attribute, .which = MAXSIZE, .needs = MQ_HAS_ATTRIBUTES},
    {0},
};

static bool
has_header(const struct options *o, const char *name)
{
	return mq_envelope_get(&o->headers, name) != NULL;
}

/* Reads all options of the command line.  A first tick of 0 counts as order_only. */
static void
read_options(struct options *o, int argc, char *argv[])
{
	const struct mq_options tables[] = {{framings, &o->framing},
	    {messages, o}, {mq_makes_options, &o->shared}, {request, o},
	    {http_options, &o->hosts}, {queue, o},
	    {mq_shared_options, &o->shared}, {0}};
	struct mq_publishing *how = &o->how;
	long from, until; /* ticks; -1: any */
	bool more;	  /* options or limits beside those of the order */

	mq_option_read(&o->shared, tables, argc, argv);
	if (o->at != NULL)
		how->when.kind = MQ_WHEN_AT;
	else if (o->delay_ms >= 0)
		how->when =
		    (struct mq_when){.kind = MQ_WHEN_IN, .ms = o->delay_ms};
	o->wait = o->wait_ms != NO_WAIT;
	if (how->replace && has_header(o, MQ_HEADER_KEY) &&
	    !has_header(o, MQ_HEADER_UNIQUE))
		mq_envelope_set(&o->headers, MQ_HEADER_UNIQUE, "queued");
	o->awaited = o->wait || how->join;
	o->notes = !o->shared.quiet && isatty(STDERR_FILENO);
	from = mq_envelope_get_long(&o->headers, MQ_HEADER_FROM_TICK, -1);
	until = mq_envelope_get_long(&o->headers, MQ_HEADER_UNTIL_TICK, -1);
	forbid(until >= 0 && from > until,
	    "--from-tick %ld is greater than --until-tick %ld", from, until);
	more = mq_message_has(&o->headers, MQ_TRAIT_OBEYED) || from > 0 ||
	    o->expires_ms > 0 || o->awaited || how->limits.ready >= 0 ||
	    how->limits.delayed >= 0;
	how->in_tick = from == 0;
	how->has_options = more || mq_message_has(&o->headers, MQ_TRAIT_ORDER);
	how->same_header = !o->awaited && o->framing != MQ_FRAME_JSONL;
	how->order_only = how->same_header && how->has_options && !more;
}

static void
check_options(const struct options *o)
{
	const char *unique = mq_envelope_get(&o->headers, MQ_HEADER_UNIQUE);
	bool framed = o->framing != MQ_FRAME_WHOLE,
	     files = o->attachments.n > 0;
	bool headed =
	    o->headers.headers != NULL || o->wait || o->expires_ms > 0 || files;

	forbid(o->delay_ms >= 0 && o->at != NULL,
	    "--delay and --at cannot be used together");
	forbid(o->raw && headed,
	    "--raw cannot be used with options that set headers");
	forbid(files && (o->count > 1 || framed),
	    "--attach needs exactly one message");
	forbid(unique != NULL && !has_header(o, MQ_HEADER_KEY),
	    "--unique needs --key");
	forbid(has_header(o, MQ_HEADER_AFTER_OK) &&
		!has_header(o, MQ_HEADER_AFTER) && o->framing != MQ_FRAME_JSONL,
	    "--after-ok needs --after");
	forbid(has_header(o, MQ_HEADER_TO) && !has_header(o, MQ_HEADER_AFTER) &&
		o->framing != MQ_FRAME_JSONL,
	    "--to needs --after");
	forbid(o->how.join && o->how.replace,
	    "--coalesce and --replace cannot be used together");
	forbid((o->how.join || o->how.replace) &&
		o->framing != MQ_FRAME_JSONL &&
		(unique == NULL || strcmp(unique, "queued") != 0),
	    o->how.join	       ? "--coalesce needs --unique queued" :
		unique != NULL ? "--replace needs --unique queued" :
				 "--replace needs --key");
	forbid(o->tick >= 0 &&
		(o->count > 0 || framed || headed || o->raw || o->ids ||
		    o->how.when.kind != MQ_WHEN_NOW ||
		    o->how.limits.ready >= 0 || o->how.limits.delayed >= 0 ||
		    o->how.realtime || o->durable),
	    "--tick publishes nothing; remove the messages and their options");
	forbid(o->http && (o->count > 0 || framed || o->wait || o->tick >= 0),
	    "--http publishes the request body; remove the payload, the "
	    "framing, --wait and --tick");
	forbid(o->spool_max > 0 &&
		(o->wait || o->durable || o->http || o->tick >= 0 || o->raw ||
		    files || o->how.join || o->shared.existing),
	    "--spool cannot be used with --wait, --durable, --http, --tick, "
	    "--raw, --attach, --coalesce or --existing");
	forbid(
	    o->spool_max > 0 && has_header(o, MQ_HEADER_KEY) && !o->how.replace,
	    "--spool with --key needs --replace: nobody can tell whether "
	    "another message has the key");
	forbid(o->hosts.n > 0 && !o->http, "--host needs --http");
	forbid(o->count > 0 && framed,
	    "%s reads standard input; remove the operand %s",
	    mq_option_framing_name(o->framing), o->payloads[0]);
	if (o->at != NULL)
		(void)mq_option_time(o->at, mq_clock_unix_us() / 1000);
}

void
options_parse(struct options *o, int argc, char *argv[])
{
	bool holds;

	*o = (struct options){.shared = {.usage = usage},
	    .framing = MQ_FRAME_WHOLE,
	    .tick = -1,
	    .attributes = MQ_ATTRIBUTES_NONE,
	    .how.limits = {-1, -1, -1, -1},
	    .delay_ms = -1,
	    .wait_ms = NO_WAIT};
	read_options(o, argc, argv);
	/* Keys, groups and results need rights; lines of JSON and requests may ask for
	 * them. */
	holds = o->framing == MQ_FRAME_JSONL || o->http || o->awaited ||
	    mq_message_has(&o->headers, MQ_TRAIT_LOCK) ||
	    has_header(o, MQ_HEADER_AFTER);
	mq_option_rights(&o->shared,
	    MQ_PUBLISHES | (o->durable ? MQ_WAITS : 0) |
		(o->how.realtime ? MQ_TELLS : 0) |
		(o->attachments.n > 0 ? MQ_ATTACHES : 0) |
		(o->wait ? MQ_AWAITS : 0) | (holds ? MQ_HOLDS : 0) |
		(o->how.replace ? MQ_REPLACES : 0) |
		(o->tick >= 0 ? MQ_TICKS : 0),
	    argv + optind, argc - optind);
	if (o->flush) {
		forbid(optind < argc || o->spool_max > 0,
		    "--flush publishes what waits; remove the queue and --spool");
		return;
	}
	forbid(optind == argc, "no queue given (try --help)");
	o->queue = argv[optind];
	o->payloads = argv + optind + 1;
	o->count = argc - optind - 1;
	check_options(o);
}

void
options_use_layout(struct options *o, const struct mq_server *server)
{
	const struct mq_layout *layout = o->shared.layout;
	const struct mq_when *when = &o->how.when;
	const char *to = mq_envelope_get(&o->headers, MQ_HEADER_TO);
	int64_t ms = when->kind == MQ_WHEN_IN ? when->ms : 0;
	int64_t now_ms = mq_clock_unix_us() / 1000;
	size_t i;

	o->queue = mq_option_queue(&o->shared, server, o->queue);
	for (i = 0; i < MQ_NEEDS; i++)
		if (o->shared.needing[i] != NULL)
			mq_option_needs(
			    &o->shared, o->shared.needing[i], 1U << i);
	if (to != NULL)
		mq_envelope_set(&o->headers, MQ_HEADER_TO,
		    mq_option_queue(&o->shared, server, to));
	forbid(o->attachments.n > 0 && layout->attachments == NULL,
	    "--attach: the layout %s has no attachments", layout->name);
	if (o->at != NULL)
		ms = mq_option_time(o->at, now_ms) - now_ms;
	/* RSMQ's own programs delay no message for longer. */
	forbid(layout->has & MQ_HAS_ATTRIBUTES &&
		ms / 1000 > MQ_ATTRIBUTE_SECONDS_MAX,
	    "%s: at most %d seconds (115 days) with the layout %s",
	    o->at != NULL ? "--at" : "--delay", MQ_ATTRIBUTE_SECONDS_MAX,
	    layout->name);
	if (o->how.priority < 0)
		mq_option_needs(&o->shared, "--priority", MQ_HAS_LOW_PRIORITY);
	if (o->raw && o->ids)
		mq_option_needs(&o->shared, "--raw --ids", MQ_HAS_IDS);
}

void
options_free(struct options *o)
{
	mq_names_free(&o->hosts);
	free(o->attachments.list);
	mq_envelope_free(&o->headers);
	mq_option_free(&o->shared);
}

/* --- request --------------------------------------------------------------------- */

/* The headers of a request that become options; no others do. */
static const struct {
	const char *header, *option;
} attributes[] = {
    {"Mq-Delay", "--delay="},
    {"Mq-Expires", "--expires="},
    {"Mq-Timeout", "--timeout="},
    {"Mq-Attempts", "--attempts="},
    {"Mq-Priority", "--priority="},
    {"Mq-Key", "--key="},
    {"Mq-Unique", "--unique="},
    {"Mq-Group", "--group="},
    {"Mq-Batch", "--batch="},
    {"Mq-After", "--after="},
    {"Mq-To", "--to="},
    {"Mq-Param1", "--param=1="},
    {"Mq-Param2", "--param=2="},
    {"Mq-Param3", "--param=3="},
    {"Mq-Param4", "--param=4="},
    {"Traceparent", "--header=Traceparent: "},
    {"Tracestate", "--header=Tracestate: "},
};

#define OURS "Mq-"
#define USER "Mq-Header-"

/* The option of a header, which the caller frees; NULL: none.  *why: the reason to refuse the
 * request, or NULL. */
static char *
option_of(
    const struct http_request *r, const struct http_header *h, const char **why)
{
	bool ours = strncasecmp(h->name, OURS, strlen(OURS)) == 0;
	size_t i;

	*why = NULL;
	if (strncasecmp(h->name, USER, strlen(USER)) == 0)
		return mq_xasprintf(
		    "--header=%s: %s", h->name + strlen(USER), h->value);
	/* Only a message's own headers have several values. */
	if (ours && http_request_get(r, h->name) != h->value)
		*why = "given twice";
	if (strcasecmp(h->name, MQ_HEADER_AFTER_OK) == 0) {
		if (strcmp(h->value, "1") != 0)
			*why = "must be 1";
		return mq_xstrdup("--after-ok");
	}
	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (strcasecmp(h->name, attributes[i].header) == 0)
			return mq_xasprintf(
			    "%s%s", attributes[i].option, h->value);
	/* A name that begins like ours is a slip. */
	if (ours)
		*why = "not a header of these tools";
	return NULL;
}

void
options_serve(struct options *o)
{
	static const struct http_answer created = {
	    .status = 201, .type = "text/plain; charset=utf-8"};
	struct http h;
	const struct http_request *r = &h.request;
	const char *why;
	char **argv;
	int argc = 1;
	size_t i;

	http_receive(&h, &o->hosts);
	if (r->method != METHOD_POST)
		http_refuse(&h, 405, "Allow: POST\r\n", NULL);
	/* A page of another site could post here through a browser. */
	if (http_request_get(r, "Origin") != NULL)
		http_refuse(&h, 403, NULL, "not from a browser");
	argv = mq_xcalloc(r->header_count + 2, sizeof(*argv));
	argv[0] = mq_xstrdup("mq-publish");
	for (i = 0; i < r->header_count; i++) {
		argv[argc] = option_of(r, &r->headers[i], &why);
		if (why != NULL)
			http_refuse(&h, 400, NULL,
			    mq_xasprintf("%s: %s", r->headers[i].name, why));
		argc += argv[argc] != NULL;
	}
	http_receive_body(&h);
	http_work(&h, &created);
	/* Options of the request come after the command line, and win. */
	o->ids = !o->raw;
	read_options(o, argc, argv);
	check_options(o);
	while (argc > 0)
		free(argv[--argc]);
	free(argv);
	http_request_free(&h.request);
}
