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

#include "clock.h"
#include "duration.h"
#include "exit.h"
#include "frame.h"
#include "layout.h"
#include "message.h"
#include "options.h"
#include "publish.h"
#include "say.h"
#include "xalloc.h"

/* Redis takes 512 MiB as one value, headers included (proto-max-bulk-len). */
#define MESSAGE_MAX ((size_t)511 * 1024 * 1024)
/* The scores of ticks have to be exact. */
#define TICK_MAX (1LL << 48)

static const char help[] =
    "usage: mq-publish [options] QUEUE [PAYLOAD...]\n"
    "\n"
    "Publishes each PAYLOAD as a message, or stdin: all of it as one message,\n"
    "or as many as a framing says.  Exit status 0 means that the server has\n"
    "accepted all of them; on an error it says how many.\n"
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
    "      --at TIME          ready at TIME (RFC 3339, HH:MM, unix seconds)\n"
    "  -e, --expires DUR      to be rejected when it has not run after DUR\n"
    "  -p, --priority N       -100 to 100, higher first (0)\n"
    "  -k, --key KEY          accepted only if no other message has that key...\n"
    "      --unique HOW       ...until it is started (queued), has ended (done,\n"
    "                         the default), or for so long (DUR)\n"
    "  -g, --group GROUP      one message of a group at a time, in order\n"
    "      --from-tick N      not before the queue's clock is at N\n"
    "      --until-tick N     to be rejected when the clock is beyond N\n"
    "      --tick N           publish nothing, set the queue's clock to N\n"
    "  -H, --header 'N: V'    add a header; can be repeated\n"
    "  -P, --param N=VALUE    set parameter N (1 to 4), RQ_PARAMn for scripts\n"
    "      --raw              bare payloads, for consumers that know no headers\n" MQ_SHARED_HELP;

enum {
	OPT_AT = MQ_OPT_OWN,
	OPT_RAW,
	OPT_UNIQUE,
	OPT_FROM_TICK,
	OPT_UNTIL_TICK,
	OPT_TICK
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
    {"header", required_argument, NULL, 'H'},
    {"param", required_argument, NULL, 'P'},
    {"raw", no_argument, NULL, OPT_RAW},
    {NULL, 0, NULL, 0},
};

/* Returns 0, or -1 with *why. */
static int
publish_json(struct publisher *p, const char *line, size_t n,
    struct mq_buf *payload, const char **why)
{
	json_t *headers;

	mq_buf_clear(payload);
	if (mq_frame_decode_json(line, n, payload, &headers, why) == -1)
		return -1;
	if (payload->len > MESSAGE_MAX) {
		json_decref(headers);
		*why = "its payload is longer than 511 MiB";
		return -1;
	}
	if (headers == NULL) {
		publish_message(p, payload->data, payload->len);
	} else if (p->opt->raw) {
		json_decref(headers);
		*why = "it has headers, which --raw cannot carry";
		return -1;
	} else {
		publish_with_headers(p, headers, payload->data, payload->len);
		json_decref(headers);
	}
	return 0;
}

static void
bad_record(struct publisher *p, unsigned long record, const char *why)
{
	publish_flush(p);
	mq_say("record %lu: %s", record, why);
	publish_report(p, 0);
	exit(MQ_EXIT_DATA);
}

/* The next record, after sending what is there if it has to be waited for. */
static enum mq_frame_result
next_record(struct publisher *p, struct mq_frame_reader *reader,
    const char **record, size_t *n)
{
	enum mq_frame_result result;

	for (;;) {
		result = mq_frame_read(reader, record, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		publish_flush(p);
		(void)publish_wait(p, reader->fd, NULL);
		/* That may have taken long. */
		p->made = 0;
	}
}

static void
publish_stream(struct publisher *p, int fd)
{
	struct mq_frame_reader reader;
	struct mq_buf payload = {0};
	enum mq_frame_result result;
	const char *record, *why;
	size_t n;

	/* A line of JSON may be longer than what it stands for. */
	mq_frame_reader_init(&reader, fd, p->opt->framing,
	    p->opt->framing == MQ_FRAME_JSONL ? 2 * MESSAGE_MAX : MESSAGE_MAX);
	while ((result = next_record(p, &reader, &record, &n)) ==
	    MQ_FRAME_RECORD) {
		publish_check(p);
		if (p->opt->framing != MQ_FRAME_JSONL)
			publish_message(p, record, n);
		else if (publish_json(p, record, n, &payload, &why) == -1)
			bad_record(p, reader.records, why);
	}
	if (result == MQ_FRAME_BAD)
		bad_record(p, reader.records + 1, reader.error);
	if (result == MQ_FRAME_FAILED) {
		why = strerror(errno);
		publish_flush(p);
		mq_say("standard input: %s", why);
		publish_report(p, 0);
		exit(MQ_EXIT_IO);
	}
	mq_frame_reader_free(&reader);
	mq_buf_free(&payload);
}

static void
read_clock(struct publisher *p, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		p->clock_us =
		    strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
		    strtoll(reply->element[1]->str, NULL, 10) -
		    mq_clock_unix_us();
}

/*
 * One round: the queue is known from now on, which also tells whether we may
 * write at all, and we know the server's time.
 */
static void
open_queue(struct publisher *p)
{
	struct mq_command time = {0}, open = {0};
	redisReply *reply = NULL;

	mq_command_plain(&time, "TIME");
	p->layout->open(&open, p->opt->queue);
	if (mq_redis_send(&p->redis, &time) == 0 &&
	    (reply = mq_redis_reply(&p->redis)) != NULL) {
		read_clock(p, reply);
		freeReplyObject(reply);
		reply = mq_redis_call(&p->redis, &open);
	}
	if (reply == NULL)
		mq_die(p->redis.status, "%s", p->redis.error);
	freeReplyObject(reply);
	mq_command_free(&time);
	mq_command_free(&open);
}

/* What is due already is published as such: any consumer then sees it. */
static void
prepare_when(struct publisher *p)
{
	int64_t now_ms = (mq_clock_unix_us() + p->clock_us) / 1000;

	p->how.when = p->opt->when;
	if (p->opt->at != NULL &&
	    mq_time_parse(p->opt->at, now_ms, &p->how.when.ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--at: %s: not a time (RFC 3339, HH:MM, unix seconds)",
		    p->opt->at);
	if ((p->how.when.kind == MQ_WHEN_IN && p->how.when.ms == 0) ||
	    (p->how.when.kind == MQ_WHEN_AT && p->how.when.ms <= now_ms))
		p->how.when.kind = MQ_WHEN_NOW;
}

/* Instead of publishing: the queue's clock goes on. */
static void
set_tick(struct publisher *p)
{
	struct mq_command c = {0};
	redisReply *reply;

	p->layout->tick(&c, p->opt->queue, p->opt->tick);
	reply = mq_redis_call(&p->redis, &c);
	if (reply == NULL)
		mq_die(p->redis.status, "%s", p->redis.error);
	if (reply->integer > p->opt->tick)
		mq_die(MQ_EXIT_NO, "%s: --tick %jd: it is at %lld already",
		    p->opt->queue, (intmax_t)p->opt->tick, reply->integer);
	freeReplyObject(reply);
	mq_command_free(&c);
	exit(MQ_EXIT_OK);
}

static void
add_header_option(struct options *o, const char *arg)
{
	char *name, *value;
	const char *why;

	if (mq_header_split(arg, &name, &value, &why) == -1)
		mq_die(MQ_EXIT_USAGE, "--header: %s: %s", arg, why);
	if (strncmp(name, "Mq-", 3) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "--header: %s: names that begin with Mq- are ours", name);
	mq_envelope_add(&o->headers, name, value);
	free(name);
	free(value);
}

static void
add_param_option(struct options *o, const char *arg)
{
	char name[sizeof(MQ_HEADER_PARAM) + 1];

	if (arg[0] < '1' || arg[0] > '4' || arg[1] != '=')
		mq_die(MQ_EXIT_USAGE,
		    "--param: %s: not of the form N=VALUE, N from 1 to 4", arg);
	snprintf(name, sizeof(name), "%s%c", MQ_HEADER_PARAM, arg[0]);
	mq_envelope_set(&o->headers, name, arg + 2);
}

/* What all messages ask for, as a header. */
static void
ask(struct options *o, const char *header, long long n)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", n);
	mq_envelope_set(&o->headers, header, number);
	o->special = true;
}

static void
set_unique(struct options *o, const char *arg)
{
	if (strcmp(arg, "queued") == 0 || strcmp(arg, "done") == 0)
		mq_envelope_set(&o->headers, MQ_HEADER_UNIQUE, arg);
	else
		ask(o, MQ_HEADER_UNIQUE, mq_option_duration("--unique", arg));
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
		add_header_option(o, optarg);
		break;
	case 'P':
		add_param_option(o, optarg);
		break;
	case 'e':
		o->expires_ms = mq_option_duration("--expires", optarg);
		break;
	case 'p':
		ask(o, MQ_HEADER_PRIORITY,
		    mq_option_number("--priority", optarg, -100, 100));
		break;
	case 'k':
		o->special = true;
		mq_envelope_set(&o->headers, MQ_HEADER_KEY, optarg);
		break;
	case OPT_UNIQUE:
		set_unique(o, optarg);
		break;
	case 'g':
		o->special = true;
		mq_envelope_set(&o->headers, MQ_HEADER_GROUP, optarg);
		break;
	case OPT_FROM_TICK:
		ask(o, MQ_HEADER_FROM_TICK,
		    mq_option_number("--from-tick", optarg, 0, TICK_MAX));
		break;
	case OPT_UNTIL_TICK:
		ask(o, MQ_HEADER_UNTIL_TICK,
		    mq_option_number("--until-tick", optarg, 0, TICK_MAX));
		break;
	case OPT_TICK:
		o->tick = mq_option_number("--tick", optarg, 0, TICK_MAX);
		break;
	case OPT_RAW:
		o->raw = true;
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
		if (!mq_option_shared(shared, ch, argv) &&
		    !mq_option_framing(&o->framing, ch))
			set_option(o, ch);
	}
	if (optind == argc)
		mq_die(MQ_EXIT_USAGE, "no queue given (try --help)");
	o->queue = argv[optind];
	mq_option_queue(o->queue);
	if (delay && o->at != NULL)
		mq_die(MQ_EXIT_USAGE, "--delay and --at exclude each other");
	if (o->raw && (o->headers.headers != NULL || o->ids))
		mq_die(
		    MQ_EXIT_USAGE, "--raw messages have no headers and no ids");
	if (optind + 1 < argc && o->framing != MQ_FRAME_WHOLE)
		mq_die(MQ_EXIT_USAGE,
		    "a framing is for stdin; %s is an operand",
		    argv[optind + 1]);
}

static void
clean_up(struct publisher *p)
{
	size_t i;

	mq_redis_close(&p->redis);
	mq_buf_free(&p->header);
	mq_command_free(&p->count);
	for (i = 0; i < UNDER_WAY; i++) {
		mq_command_free(&p->ring[i].command);
		mq_buf_free(&p->ring[i].ids);
	}
}

int
main(int argc, char *argv[])
{
	struct options options = {
	    .framing = MQ_FRAME_WHOLE, .tick = -1, .limits = {-1, -1, -1, -1}};
	struct mq_shared shared = {.help = help};
	struct mq_server server;
	struct publisher p = {.opt = &options, .layout = &mq_layout_rmq};
	int i;

	mq_option_descriptors();
	parse(&options, &shared, argc, argv);
	publish_catch_signals();
	mq_option_server(&shared, &server);
	if (mq_redis_open(&p.redis, &server) == -1)
		mq_die(p.redis.status, "%s", p.redis.error);
	open_queue(&p);
	prepare_when(&p);
	p.how.special = options.special;
	p.how.limits = options.limits;
	if (options.tick >= 0)
		set_tick(&p);
	publish_prepare(&p);
	if (optind + 1 < argc) {
		for (i = optind + 1; i < argc; i++)
			publish_message(&p, argv[i], strlen(argv[i]));
	} else {
		if (isatty(STDIN_FILENO) && !shared.quiet)
			mq_say("reading from the terminal; end with ^D");
		publish_stream(&p, STDIN_FILENO);
	}
	publish_flush(&p);
	if (shared.verbose)
		publish_report(&p, 0);
	clean_up(&p);
	mq_envelope_free(&options.headers);
	mq_server_free(&server);
	free(shared.url);
	mq_close_stdout();
	return MQ_EXIT_OK;
}
