/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "redis/connection.h"

#include "unit.h"

#include <fcntl.h>

#include <hiredis/sds.h>

#include "queue/layout.h"
#include "queue/queue.h"
#include "redis/ask.h"
#include "redis/command.h"

/* A server that says this to whatever it is sent, and then hangs up. */
struct says {
	struct mq_server server;
	struct mq_redis r;
};

int
redisBufferWrite(redisContext *c, int *done)
{
	sdsclear(c->obuf);
	*done = 1;
	return c->err == 0 ? REDIS_OK : REDIS_ERR;
}

static void
says(struct says *s, const char *text)
{
	*s = (struct says){.server = {.name = "server"}};
	s->r.server = &s->server;
	s->r.only.link = (struct mq_link){.state = MQ_LINK_OPEN,
	    .server = &s->server,
	    .context = redisConnectFd(open("/dev/null", O_RDWR))};
	assert_non_null(s->r.only.link.context);
	assert_int_equal(
	    redisReaderFeed(s->r.only.link.context->reader, text, strlen(text)),
	    REDIS_OK);
}

#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define TIME	 "*2\r\n$10\r\n1795207725\r\n$6\r\n123456\r\n"

static int
stats(const struct mq_layout *l, struct mq_redis *r)
{
	struct mq_stats out;
	int rv = l->stats(r, NULL, 0, MQ_STATS_CONNECTIONS, &out);

	if (rv == 0)
		mq_stats_free(&out);
	return rv;
}

static int
clean(const struct mq_layout *l, struct mq_redis *r)
{
	const struct mq_clean how = {.limit = 3, .all = true};
	struct mq_cleaned out;

	return l->clean(r, &how, &out);
}

static int
running(const struct mq_layout *l, struct mq_redis *r)
{
	struct mq_runs out;
	int rv = l->running(r, &out);

	if (rv == 0)
		mq_runs_free(&out);
	return rv;
}

/* Only a call of a script can be made again with its text. */
static int
ping(const struct mq_layout *l, struct mq_redis *r)
{
	struct mq_command c = {0};

	mq_command_plain(&c, "PING");
	assert_null(mq_call(r, &c, -1));
	return strstr(r->error, "NOSCRIPT") != NULL ? -1 : 0;
}

/* A name that is no string, a clock that has no time, too few fields. */
TEST(wrong_forms)
{
	static const struct {
		const struct mq_layout *layout;
		int (*fn)(const struct mq_layout *, struct mq_redis *);
		const char *says;
	} cases[] = {
	    {NULL, ping, NOSCRIPT},
	    {&mq_layout_rmq, clean, "*1\r\n$1\r\nc\r\n" NOSCRIPT},
	    {&mq_layout_rmq, stats, "*2\r\n:1\r\n$-1\r\n"},
	    {&mq_layout_rmq, stats,
		"*2\r\n$20\r\n99999999999999999999\r\n$1\r\n0\r\n"},
	    {&mq_layout_rmq, stats, TIME "*1\r\n$-1\r\n"},
	    {&mq_layout_rmq, stats, TIME "*0\r\n*1\r\n:1\r\n"},
	    {&mq_layout_rmq, running, "*1\r\n$-1\r\n"},
	    {&mq_layout_rmq, clean, "+OK\r\n"},
	    {&mq_layout_rmq, clean, "*1\r\n:1\r\n"},
	    {&mq_layout_rmq, clean, "*0\r\n*1\r\n$-1\r\n*0\r\n"},
	    {&mq_layout_rmq, clean,
		"*1\r\n$1\r\nc\r\n:-2\r\n*1\r\n$1\r\n3\r\n*0\r\n"},
	    {&mq_layout_rsmq, stats, TIME "*1\r\n:7\r\n"},
	    {&mq_layout_rsmq, running, "*1\r\n$-1\r\n"},
	    {&mq_layout_rsmq, clean, TIME "*1\r\n$-1\r\n"},
	    {&mq_layout_rsmq, clean,
		TIME "*0\r\n*0\r\n*2\r\n:0\r\n*1\r\n$-1\r\n"},
	    {&mq_layout_rsmq, clean,
		TIME
		"*0\r\n*0\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nx\r\n*1\r\n:1\r\n"},
	};
	struct says s;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		says(&s, cases[i].says);
		if (cases[i].fn(cases[i].layout, &s.r) != -1)
			fail_msg("%zu: %s", i, cases[i].says);
		assert_int_not_equal(s.r.status, 0);
		mq_redis_close(&s.r);
	}
}

#define SHA  "179c6f36ad7f43fcac574a1fb002cf72a03aadbd"
#define CALL "ERR Error running script (call to f_" SHA "): "

/* Errors of scripts, by Redis 6.2 and 7, and what people are to read. */
TEST(errors_of_scripts)
{
	static const struct {
		const char *says, *left;
	} cases[] = {
	    {CALL "@user_script:1: @user_script: 12: -OOM 'maxmemory'.  ",
		"OOM 'maxmemory'."},
	    {"@user_script: 1: -OOM 'maxmemory'. ", "OOM 'maxmemory'."},
	    {CALL "@user_script:9: WRONGTYPE Operation", "WRONGTYPE Operation"},
	    {"OOM 'maxmemory'. script: " SHA ", on @user_script:1.",
		"OOM 'maxmemory'."},
	    /* An error in the script itself is for who wrote it. */
	    {CALL "@user_script:1: user_script:1: no", NULL},
	    {"ERR user_script:1: no script: " SHA ", on @user_script:1.", NULL},
	    /* Others. */
	    {"ERR short script: a, on @user_script:1.", NULL},
	    {", on @user_script:1.", NULL},
	    {"ERR Error running script (call to f_", NULL},
	    {"@user_script:", NULL},
	    {"", NULL},
	};
	char text[256];
	redisReply e = {.type = REDIS_REPLY_ERROR, .str = text}, *in = &e;
	redisReply exec = {
	    .type = REDIS_REPLY_ARRAY, .elements = 1, .element = &in};
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		e.len =
		    (size_t)snprintf(text, sizeof(text), "%s", cases[i].says);
		mq_reply_strip_script(i % 2 == 0 ? &exec : &e);
		assert_string_equal(text,
		    cases[i].left != NULL ? cases[i].left : cases[i].says);
		assert_int_equal(e.len, strlen(text));
	}
}

/* Anybody may have put anything there: sums do not overflow. */
TEST(counts_without_end)
{
	static char most[] = "9223372036854775807";
	redisReply text = {
	    .type = REDIS_REPLY_STRING, .str = most, .len = sizeof(most) - 1};
	redisReply *fields[] = {&text, &text, &text, &text, &text, &text};
	const redisReply all = {
	    .type = REDIS_REPLY_ARRAY, .elements = 6, .element = fields};
	struct mq_queue_stats q = {0};

	assert_int_equal(mq_counts_parse(&all, 0, 1795207725000, &q), 0);
	assert_true(q.counts.done > 0 &&
	    q.counts.done <= INT64_MAX / 2 - q.counts.failed);
}
