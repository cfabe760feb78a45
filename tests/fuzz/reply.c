/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What a server may answer: the operations of both layouts that wait come to
 * their end, whatever it says, and so do the readers of single replies.
 *
 * An input is a line of two letters and a digit, which layout (r or s), which
 * operation and which place; then what the server says, a value a line:
 *
 *	:12	$text	_	+OK	-ERR why	*2
 *
 * an integer, a string (with \n and \\ in it), nil, a status, an error, and an
 * array of the next 2 values.  When there is no more, it hangs up.
 */
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "message/headers.h"
#include "queue/layout.h"
#include "queue/lease.h"
#include "queue/queue.h"

#define QUEUES 2
static const char *const queues[QUEUES] = {"one", "two"};

/* What is sent goes nowhere. */
int
redisBufferWrite(redisContext *c, int *done)
{
	*done = 1;
	return c->err == 0 ? REDIS_OK : REDIS_ERR;
}

static void
say_string(struct mq_buf *out, const char *p, size_t n)
{
	struct mq_buf s = {0};
	size_t i;

	for (i = 0; i < n; i++) {
		if (p[i] == '\\' && i + 1 < n && p[++i] == 'n')
			mq_buf_add(&s, "\n", 1);
		else
			mq_buf_add(&s, p + i, 1);
	}
	mq_buf_printf(out, "$%zu\r\n", s.len);
	mq_buf_add(out, s.data, s.len);
	mq_buf_addstr(out, "\r\n");
	mq_buf_free(&s);
}

static void
say_line(struct mq_buf *out, const char *p, size_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*s", n > 1 ? (int)n - 1 : 0, p + 1);
	/* Scripts, which say most of it, have no longer numbers. */
	if (*p == ':')
		mq_buf_printf(
		    out, ":%lld\r\n", strtoll(text, NULL, 10) % (1LL << 53));
	else if (*p == '*')
		mq_buf_printf(out, "*%lu\r\n", strtoul(text, NULL, 10) % 1000);
	else if (*p == '$')
		say_string(out, p + 1, n - 1);
	else if (*p == '_')
		mq_buf_addstr(out, "$-1\r\n");
	else if (*p == '+' || *p == '-') {
		mq_buf_add(out, p, n);
		mq_buf_addstr(out, "\r\n");
	}
}

static void
say_all(struct mq_buf *out, const char *p, size_t n)
{
	const char *end;
	size_t line;

	for (; n > 0; p += line, n -= line) {
		end = memchr(p, '\n', n);
		line = end != NULL ? (size_t)(end - p) : n;
		/* A reader ends a status there, and we wait for "loading". */
		if (line > 0 && memchr(p, '\r', line) == NULL &&
		    memmem(p, line, "LOADING", 7) == NULL)
			say_line(out, p, line);
		line += end != NULL;
	}
}

/* One that can be read from, and has nothing more behind what it says. */
static void
connect_to(
    struct mq_redis *r, struct mq_server *server, const char *p, size_t n)
{
	struct mq_buf out = {0};

	*r = (struct mq_redis){.server = server};
	r->only.link = (struct mq_link){.state = MQ_LINK_OPEN,
	    .server = server,
	    .context = redisConnectFd(open("/dev/null", O_RDWR | O_CLOEXEC))};
	assert(r->only.link.context != NULL);
	say_all(&out, p, n);
	if (out.len > 0)
		redisReaderFeed(
		    r->only.link.context->reader, out.data, out.len);
	mq_buf_free(&out);
}

static void
check_string(const redisReply *reply)
{
	struct mq_envelope e;
	struct mq_ending end;
	struct mq_buf text = {0};
	const char *why;

	assert(reply->type == REDIS_REPLY_STRING);
	if (mq_envelope_parse(reply->str, (size_t)reply->len, &e, &why) == 0) {
		mq_envelope_write(&e, &text);
		mq_envelope_free(&e);
	}
	if (mq_ending_read(reply->str, (size_t)reply->len, &end) == 0)
		mq_ending_free(&end);
	mq_buf_free(&text);
}

static redisReply *
ask(struct mq_redis *r)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, "PING");
	rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv == 0 ? mq_redis_reply(r) : NULL;
}

/* Readers of replies to whatever was asked. */
static void
read_single(const struct mq_layout *l, struct mq_redis *r)
{
	redisReply *reply;
	struct mq_claimed claimed;
	struct mq_queue_stats row;
	int i, n;

	while ((reply = ask(r)) != NULL) {
		n = mq_layout_claimed(reply, &claimed);
		for (i = 0; i < n; i++)
			check_string(
			    reply->element[reply->elements - (size_t)(n - i)]);
		if (!mq_redis_refused(r, reply))
			for (i = 0; i < 3; i++)
				(void)mq_layout_published(reply, i);
		assert(mq_layout_lease(l, reply, false) >= 0);
		row = (struct mq_queue_stats){.name = NULL};
		(void)mq_counts_parse(reply, 0, 1795207725000, &row);
		freeReplyObject(reply);
	}
}

static void
stats(const struct mq_layout *l, struct mq_redis *r, int count, int wanted)
{
	struct mq_stats s;
	int i;

	if (l->stats(r, queues, count, wanted, &s) == -1)
		return;
	assert(count == 0 || s.count == count);
	for (i = 0; i < count; i++)
		assert(strcmp(s.queues[i].name, queues[i]) == 0);
	mq_stats_free(&s);
}

static void
clean(const struct mq_layout *l, struct mq_redis *r, bool dry_run)
{
	const struct mq_clean how = {
	    .limit = 3, .all = true, .dry_run = dry_run};
	struct mq_cleaned out = {0};

	(void)l->clean(r, &how, &out);
}

/* All slices of a place, and maybe every other message of them. */
static void
walk(const struct mq_layout *l, struct mq_redis *r,
    const struct mq_place *place, bool taking)
{
	struct mq_scan scan = {.place = *place};
	bool *chosen;
	long taken;
	int i;

	while (!scan.end && l->scan(r, &scan) == 0) {
		chosen = mq_xcalloc((size_t)scan.count + 1, sizeof(*chosen));
		for (i = 0; i < scan.count; i += 2)
			chosen[i] = scan.items[i].len > 0;
		if (taking)
			(void)l->take(r, &scan, chosen, "two", &taken);
		free(chosen);
	}
	scan.over = true;
	if (taking)
		(void)l->scan(r, &scan);
	mq_scan_free(&scan);
}

static void
receipt(const struct mq_layout *l, struct mq_redis *r)
{
	struct mq_lease q = {.redis = r, .layout = l, .queue = "one"};

	(void)mq_receipt_use(
	    &q, "a-B3xK9q.1", MQ_RECEIPT_REJECT, "no such user");
	(void)mq_receipt_use(
	    &q, "0123456789abcdefghijklmnopqrstuv", MQ_RECEIPT_ACK, NULL);
}

static void
running(const struct mq_layout *l, struct mq_redis *r)
{
	struct mq_runs runs = {0};

	(void)l->running(r, &runs);
	mq_runs_free(&runs);
}

static void
operate(const struct mq_layout *l, struct mq_redis *r, char what,
    const struct mq_place *place)
{
	struct mq_deletion deletion = {0};
	bool yes;
	long n;

	switch (what) {
	case 'c':
		clean(l, r, false);
		break;
	case 'C':
		clean(l, r, true);
		break;
	case 'd':
		(void)l->drained(r, queues, QUEUES, &yes);
		break;
	case 's':
		stats(l, r, QUEUES, MQ_STATS_CONNECTIONS);
		break;
	case 'S':
		stats(l, r, 0, MQ_STATS_CONNECTIONS | MQ_STATS_COUNTS);
		break;
	case 'l':
		walk(l, r, place, false);
		break;
	case 't':
		walk(l, r, place, true);
		break;
	case 'm':
		(void)l->move(r, place, 10, "two", &n);
		break;
	case 'p':
		if (place->state != MQ_UNACKED)
			(void)l->move(r, place, LONG_MAX, NULL, &n);
		break;
	case 'x':
		(void)l->delete_queue(r, "one", &deletion);
		break;
	case 'i':
		receipt(l, r);
		break;
	case 'r':
		running(l, r);
		break;
	default:
		read_single(l, r);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct mq_server server = {.name = "server"};
	struct mq_place place = {.queue = "one"};
	struct mq_redis r;
	uint8_t layout = fuzz_byte(&in), what = fuzz_byte(&in);
	uint8_t where = fuzz_byte(&in);

	place.state = (enum mq_state)(where % MQ_STATES);
	/* Nothing is moved away from all of them. */
	if (place.state == MQ_UNACKED && (where >= '4' || what == 'm'))
		place.connection = where >= '8' ? "-" : "conn";
	place.drop_all = where >= '8';
	connect_to(&r, &server, (const char *)in.p, in.n);
	operate(layout == 's' ? &mq_layout_rsmq : &mq_layout_rmq, &r,
	    (char)what, &place);
	mq_redis_close(&r);
	return 0;
}
