/*
 * mq-publish: put messages into a queue.
 *
 * Messages go out in batches, one command each, several of which are under
 * way at a time; a batch is kept until the server has confirmed it.  So
 * memory is bounded by the longest message, and the count of what was
 * accepted is exact whatever goes wrong.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "duration.h"
#include "exit.h"
#include "frame.h"
#include "layout.h"
#include "message.h"
#include "options.h"
#include "say.h"
#include "xalloc.h"

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536
/* So many batches, or about so many bytes, are under way at most. */
#define UNDER_WAY	16
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024)
/* What Redis takes as one value (proto-max-bulk-len). */
#define MESSAGE_MAX ((size_t)512 * 1024 * 1024)

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
    "  -H, --header 'N: V'    add a header; can be repeated\n"
    "  -P, --param N=VALUE    set parameter N (1 to 4), RQ_PARAMn for scripts\n"
    "      --raw              bare payloads, for consumers that know no headers\n" MQ_SHARED_HELP;

enum { OPT_AT = 256, OPT_RAW, OPT_NETSTRING, OPT_JSONL };

static const struct option long_options[] = {
    MQ_SHARED_LONG,
    {"lines", no_argument, NULL, 'l'},
    {"null", no_argument, NULL, '0'},
    {"netstring", no_argument, NULL, OPT_NETSTRING},
    {"jsonl", no_argument, NULL, OPT_JSONL},
    {"ids", no_argument, NULL, 'i'},
    {"delay", required_argument, NULL, 'd'},
    {"at", required_argument, NULL, OPT_AT},
    {"header", required_argument, NULL, 'H'},
    {"param", required_argument, NULL, 'P'},
    {"raw", no_argument, NULL, OPT_RAW},
    {NULL, 0, NULL, 0},
};

struct options {
	const char *queue;
	enum mq_framing framing;
	struct mq_when when;
	const char *at; /* --at as it was given */
	bool ids, raw;
	struct mq_envelope headers; /* those of -H and -P */
};

/* Messages that go out, or are on their way, in one command. */
struct batch {
	struct mq_command command;
	int count;
	struct mq_buf ids; /* MQ_ID_LEN each; with -i only */
};

struct publisher {
	const struct options *opt;
	const struct mq_layout *layout;
	struct mq_redis redis;
	struct mq_idgen idgen;
	uint64_t last_us;   /* the time in the last id */
	unsigned long made; /* ids made */
	struct mq_when when;
	int64_t clock_us;     /* the server's clock minus ours */
	struct mq_buf header; /* of a message without headers of its own */
	size_t id_at;	      /* where its id goes */
	struct batch ring[UNDER_WAY];
	unsigned first, used; /* batches under way; the next one is filled */
	size_t bytes;	      /* in those under way */
	unsigned long accepted;
};

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	interrupted = sig;
}

static int64_t
local_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* --- batches ------------------------------------------------------------------ */

static struct batch *
filling(struct publisher *p)
{
	return &p->ring[(p->first + p->used) % UNDER_WAY];
}

static void
report(const struct publisher *p, unsigned long unknown)
{
	char more[64] = "";

	if (unknown > 0)
		snprintf(more, sizeof(more), ", and up to %lu more", unknown);
	mq_say("%lu message%s accepted%s", p->accepted,
	    p->accepted == 1 ? "" : "s", more);
}

/* How many messages are under way, so that nobody knows about them. */
static unsigned long
unknown(const struct publisher *p)
{
	unsigned long n = 0;
	unsigned i;

	for (i = 0; i < p->used; i++)
		n += (unsigned long)p->ring[(p->first + i) % UNDER_WAY].count;
	return n;
}

/* The connection is gone, and with it the answers about what was under way. */
static void
lost(struct publisher *p)
{
	mq_say("%s", p->redis.error);
	report(p, unknown(p));
	exit(p->redis.status);
}

static void
end_by_signal(struct publisher *p)
{
	fflush(stdout);
	mq_say("interrupted");
	report(p, unknown(p));
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}

/*
 * Waits for input, and ends the program when a signal comes before it.  False
 * when nothing came for so long; NULL waits for ever.
 */
static bool
wait_for(struct publisher *p, int fd, const struct timespec *timeout)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	sigset_t ours, before;
	int n;

	/* Blocked, so that none can come between the look and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	n = interrupted ? -1 : ppoll(&pfd, 1, timeout, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (n == -1 && interrupted)
		end_by_signal(p);
	return n != 0;
}

static redisReply *
next_reply(struct publisher *p)
{
	const struct timespec patience = {.tv_sec = 60};
	redisReply *reply = NULL;
	bool readable = false;

	for (;;) {
		if (mq_redis_reply_so_far(&p->redis, readable, &reply) == -1)
			lost(p);
		if (reply != NULL)
			return reply;
		if (!wait_for(p, p->redis.context->fd, &patience)) {
			mq_say("%s: no answer for too long",
			    p->redis.server->name);
			report(p, unknown(p));
			exit(MQ_EXIT_UNAVAILABLE);
		}
		readable = true;
	}
}

static void
print_ids(const struct batch *b)
{
	size_t i;

	for (i = 0; i < b->ids.len; i += MQ_ID_LEN) {
		fwrite(b->ids.data + i, 1, MQ_ID_LEN, stdout);
		putchar('\n');
	}
}

static void
empty(struct batch *b)
{
	b->count = 0;
	mq_buf_clear(&b->ids);
	/* One huge message must not keep its memory for ever. */
	if (b->command.wire.cap > 4 * (size_t)BATCH_BYTES)
		mq_command_free(&b->command);
}

/* The server knows the script no more: the batch goes out again, last. */
static void
send_again(struct publisher *p, struct batch *b)
{
	struct batch copy = *b;

	if (mq_redis_send_eval(&p->redis, &b->command) == -1)
		lost(p);
	*b = (struct batch){0};
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	empty(filling(p));
	*filling(p) = copy;
	p->used++;
}

/*
 * Takes the answer for the oldest batch under way.  Returns false when the
 * server refused it.
 */
static bool
collect(struct publisher *p)
{
	struct batch *b = &p->ring[p->first];
	redisReply *reply = next_reply(p);
	bool ok;

	if (mq_reply_noscript(reply)) {
		freeReplyObject(reply);
		send_again(p, b);
		return true;
	}
	ok = !mq_redis_refused(&p->redis, reply);
	freeReplyObject(reply);
	if (ok) {
		p->accepted += (unsigned long)b->count;
		print_ids(b);
	}
	p->bytes -= b->command.wire.len;
	empty(b);
	p->first = (p->first + 1) % UNDER_WAY;
	p->used--;
	return ok;
}

/* Waits for all that is under way, then ends with what the server said. */
static void
refused(struct publisher *p)
{
	int status = p->redis.status;
	char *error = mq_xstrdup(p->redis.error);

	while (p->used > 0)
		(void)collect(p);
	mq_say("%s", error);
	report(p, 0);
	exit(status);
}

static void
collect_or_end(struct publisher *p)
{
	if (!collect(p))
		refused(p);
}

static void
send_batch(struct publisher *p)
{
	struct batch *b = filling(p);

	if (b->count == 0)
		return;
	p->used++;
	p->bytes += b->command.wire.len;
	if (mq_redis_send(&p->redis, &b->command) == -1)
		lost(p);
	/* One place stays free: the batch that is filled next. */
	while (
	    p->used == UNDER_WAY || (p->used > 0 && p->bytes > UNDER_WAY_BYTES))
		collect_or_end(p);
}

static void
flush(struct publisher *p)
{
	send_batch(p);
	while (p->used > 0)
		collect_or_end(p);
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		report(p, 0);
		exit(MQ_EXIT_IO);
	}
}

/* --- messages ----------------------------------------------------------------- */

/*
 * unique makes it one of its own among the delayed, even when its id, which
 * -i prints, came with it and may come again.
 */
static void
add(struct publisher *p, const char *unique, const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct batch *b = filling(p);

	if (b->count > 0 && b->command.wire.len + n > BATCH_BYTES) {
		send_batch(p);
		b = filling(p);
	}
	if (b->count == 0)
		p->layout->publish(&b->command, p->opt->queue, &p->when);
	p->layout->publish_add(
	    &b->command, &p->when, unique, header, payload, n);
	if (p->opt->ids)
		mq_buf_add(&b->ids, id, MQ_ID_LEN);
	if (++b->count == BATCH_COUNT || b->command.wire.len > BATCH_BYTES)
		send_batch(p);
}

/*
 * The server's time for the next id, a microsecond after the last one at the
 * least, so that ids sort in the order of publishing.  The clock is asked for
 * every 64th only, since that is a system call on some machines.
 */
static uint64_t
next_us(struct publisher *p)
{
	uint64_t now;

	p->last_us++;
	if (p->made++ % 64 == 0) {
		now = (uint64_t)(local_us() + p->clock_us);
		if (now > p->last_us)
			p->last_us = now;
	}
	return p->last_us;
}

static void
publish(struct publisher *p, const char *payload, size_t n)
{
	static const struct mq_buf none;
	char id[MQ_ID_LEN + 1] = "";

	if (!p->opt->raw || p->when.kind != MQ_WHEN_NOW)
		mq_id_make(&p->idgen, next_us(p), id);
	if (!p->opt->raw)
		memcpy(p->header.data + p->id_at, id, MQ_ID_LEN);
	add(p, id, id, p->opt->raw ? &none : &p->header, payload, n);
}

/*
 * Headers from the command line join those that the message has; ours, of
 * which there can be only one, take their place.
 */
static void
add_headers(struct mq_envelope *e, const json_t *headers)
{
	const char *name;
	json_t *values, *value;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)headers, name, values)
		json_array_foreach(values, i, value)
			if (strncmp(name, "Mq-", 3) == 0)
				mq_envelope_set(
				    e, name, json_string_value(value));
			else
				mq_envelope_add(
				    e, name, json_string_value(value));
}

static void
publish_with_headers(
    struct publisher *p, json_t *headers, const char *payload, size_t n)
{
	struct mq_envelope e = {.headers = headers};
	struct mq_buf header = {0};
	char unique[MQ_ID_LEN + 1];

	mq_id_make(&p->idgen, next_us(p), unique);
	if (mq_message_id(&e) == NULL)
		mq_envelope_set(&e, MQ_HEADER_ID, unique);
	add_headers(&e, p->opt->headers.headers);
	mq_envelope_write_header(&e, &header);
	add(p, unique, mq_message_id(&e), &header, payload, n);
	mq_buf_free(&header);
}

/* Returns 0, or -1 with *why. */
static int
publish_json(struct publisher *p, const char *line, size_t n,
    struct mq_buf *payload, const char **why)
{
	json_t *headers;

	mq_buf_clear(payload);
	if (mq_frame_decode_json(line, n, payload, &headers, why) == -1)
		return -1;
	if (headers == NULL) {
		publish(p, payload->data, payload->len);
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
	flush(p);
	mq_say("record %lu: %s", record, why);
	report(p, 0);
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
		flush(p);
		(void)wait_for(p, reader->fd, NULL);
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

	mq_frame_reader_init(&reader, fd, p->opt->framing,
	    MESSAGE_MAX - p->header.len - MQ_ID_LEN);
	while ((result = next_record(p, &reader, &record, &n)) ==
	    MQ_FRAME_RECORD) {
		if (interrupted) {
			flush(p);
			end_by_signal(p);
		}
		if (p->opt->framing != MQ_FRAME_JSONL)
			publish(p, record, n);
		else if (publish_json(p, record, n, &payload, &why) == -1)
			bad_record(p, reader.records, why);
	}
	if (result == MQ_FRAME_BAD)
		bad_record(p, reader.records + 1, reader.error);
	if (result == MQ_FRAME_FAILED) {
		why = strerror(errno);
		flush(p);
		mq_say("standard input: %s", why);
		report(p, 0);
		exit(MQ_EXIT_IO);
	}
	mq_frame_reader_free(&reader);
	mq_buf_free(&payload);
}

/* --- setting up --------------------------------------------------------------- */

/* The header of messages that have none of their own, with a gap for the id. */
static void
prepare_header(struct publisher *p)
{
	static const char gap[] = "--------------------------------";
	struct mq_envelope e = {0};

	if (p->opt->raw)
		return;
	mq_envelope_set(&e, MQ_HEADER_ID, gap);
	if (p->opt->headers.headers != NULL)
		add_headers(&e, p->opt->headers.headers);
	mq_envelope_write_header(&e, &p->header);
	mq_envelope_free(&e);
	p->id_at = (size_t)((char *)memmem(
				p->header.data, p->header.len, gap, MQ_ID_LEN) -
	    p->header.data);
}

static void
read_clock(struct publisher *p, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		p->clock_us =
		    strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
		    strtoll(reply->element[1]->str, NULL, 10) - local_us();
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
	int64_t now_ms = (local_us() + p->clock_us) / 1000;

	p->when = p->opt->when;
	if (p->opt->at != NULL &&
	    mq_time_parse(p->opt->at, now_ms, &p->when.ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--at: %s: not a time (RFC 3339, HH:MM, unix seconds)",
		    p->opt->at);
	if ((p->when.kind == MQ_WHEN_IN && p->when.ms == 0) ||
	    (p->when.kind == MQ_WHEN_AT && p->when.ms <= now_ms))
		p->when.kind = MQ_WHEN_NOW;
}

static void
catch_signals(void)
{
	/* The second one ends us in any case. */
	struct sigaction sa = {
	    .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
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

static void
set_option(struct options *o, int ch)
{
	switch (ch) {
	case 'l':
		o->framing = MQ_FRAME_LINES;
		break;
	case '0':
		o->framing = MQ_FRAME_NULL;
		break;
	case OPT_NETSTRING:
		o->framing = MQ_FRAME_NETSTRING;
		break;
	case OPT_JSONL:
		o->framing = MQ_FRAME_JSONL;
		break;
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
	while ((ch = getopt_long(argc, argv, ":" MQ_SHARED_SHORT "l0id:H:P:",
		    long_options, NULL)) != -1) {
		delay |= ch == 'd';
		if (!mq_option_shared(shared, ch, argv))
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
	for (i = 0; i < UNDER_WAY; i++) {
		mq_command_free(&p->ring[i].command);
		mq_buf_free(&p->ring[i].ids);
	}
}

int
main(int argc, char *argv[])
{
	struct options options = {.framing = MQ_FRAME_WHOLE};
	struct mq_shared shared = {.help = help};
	struct mq_server server;
	struct publisher p = {.opt = &options, .layout = &mq_layout_rmq};
	int i;

	mq_option_descriptors();
	parse(&options, &shared, argc, argv);
	catch_signals();
	mq_option_server(&shared, &server);
	if (mq_redis_open(&p.redis, &server) == -1)
		mq_die(p.redis.status, "%s", p.redis.error);
	open_queue(&p);
	prepare_when(&p);
	prepare_header(&p);
	if (optind + 1 < argc) {
		for (i = optind + 1; i < argc; i++)
			publish(&p, argv[i], strlen(argv[i]));
	} else {
		if (isatty(STDIN_FILENO) && !shared.quiet)
			mq_say("reading from the terminal; end with ^D");
		publish_stream(&p, STDIN_FILENO);
	}
	flush(&p);
	if (shared.verbose)
		report(&p, 0);
	clean_up(&p);
	mq_envelope_free(&options.headers);
	mq_server_free(&server);
	free(shared.url);
	mq_close_stdout();
	return MQ_EXIT_OK;
}
