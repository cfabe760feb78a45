/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * common/redis/durable.c; the test plays the server, its sentinels and the
 * time that goes by between two looks.
 */
#include "base/exit.h"
#include "redis/ask.h"
#include "redis/connection.h"
#include "redis/parts.h"
#include "record.h"

#include <fcntl.h>

#include <hiredis/sds.h>

#define ONE    "slave0:ip=10.0.0.1,port=1,state=online,offset=1\r\n"
#define OTHER  "slave0:ip=10.0.0.2,port=1,state=online,offset=1\r\n"
#define TWO    ONE "slave1:ip=10.0.0.2,port=2,state=online,offset=1\r\n"
#define AOF    "aof_enabled:1\r\n"
#define BEGINS AOF "aof_base_size:0\r\naof_rewrite_in_progress:1\r\n"

struct house {
	struct mq_redis redis;
	struct mq_server server;
	redisReader *commands; /* what is sent to the server */
	struct mq_durable promise;
	struct mq_candidates candidates;
	char info[256], then_info[256]; /* from look number `then` on */
	char fsync[16], lax[8], config_error[32], info_error[32];
	bool lost, knows_wait, knows_waitaof;
	bool changes; /* at each look */
	int looks, then, waits;
	long long on_disk, on_replicas; /* -1: an error */
};

static struct house *house;

/* --- a test a row --------------------------------------------------------- */

static const struct row promise_rows[] = {
    {"on its disk",
	{"find -> disk", "has waitaof", "fsync everysec",
	    "find -> disk waitaof", "lax yes", "find -> disk waitaof",
	    "fsync no", "refuses 78 appendfsync is no: set it to always",
	    "has wait", "fsync always",
	    "refuses 78 no-appendfsync-on-rewrite is yes: set it to no",
	    "fsync everysec",
	    "refuses 78 appendfsync is everysec: set it to always, or connect "
	    "a replica, or allow WAITAOF",
	    "info aof_enabled:0\r\n",
	    "refuses 78 it has no append-only file and no", "waited -> 0"}},
    {"on its replicas",
	{"info run_id:x\r\n" TWO, "find -> replicas:2", "run-id -> x", "has",
	    "refuses 78 does not allow WAIT", "info " TWO AOF,
	    "refuses 78 does not allow WAIT"}},
    {"not where messages may be dropped",
	{"info " ONE AOF "maxmemory_policy:allkeys-lru\r\n",
	    "refuses 78 maxmemory-policy is allkeys-lru",
	    "info " ONE AOF "maxmemory_policy:noeviction\r\n",
	    "find -> disk replicas:1"}},
    {"where it may not be asked",
	{"config-error ERR unknown", "refuses 78 cannot be read: ERR unknown",
	    "info " ONE AOF, "find -> replicas:1", "info-error ERR no",
	    "refuses 78 ERR no; --durable needs +info", "info-error NOPERM no",
	    "refuses 77 NOPERM no", "error --durable needs +info", "lost",
	    "refuses 69 "}},
    {"a replica promises nothing",
	{"info role:slave\r\n" AOF, "refuses 75 it is a replica",
	    "gives-up -> no"}},
    {"its first file is waited for",
	{"info " AOF "aof_base_size:0\r\naof_rewrite_scheduled:1\r\n",
	    "refuses 75 still writes its first append-only", "waited -> 301",
	    "then 4 " AOF, "find -> disk", "waited -> 3", "info " BEGINS,
	    "has waitaof", "find -> disk waitaof", "waited -> 0"}},
    {"a replica that it had is waited for",
	{"info repl_backlog_active:1\r\n",
	    "refuses 75 its replica is not connected", "waited -> 301",
	    "then 3 " ONE, "find -> replicas:1", "waited -> 2",
	    /* Not if its disk will do. */
	    "info " AOF "repl_backlog_active:1\r\n", "find -> disk",
	    "waited -> 0"}},
};

static const struct row kept_rows[] = {
    {"what is written at once is safe",
	{"find -> disk", "keeps", "info run_id:other\r\n" AOF, "keeps",
	    "fsync everysec", "breaks 75 its appendfsync was changed",
	    "info role:slave\r\n" AOF, "breaks 75 it has become a replica"}},
    {"its disk is waited for",
	{"has waitaof", "info run_id:x\r\n" AOF, "find -> disk waitaof",
	    "on-disk 1", "keeps -> WAITAOF 1 0 30000", "on-disk 0",
	    "breaks 75 not on disk after 30 seconds -> WAITAOF 1 0 30000",
	    "on-disk -1", "breaks 69 ERR no -> WAITAOF 1 0 30000"}},
    {"and is the same disk",
	{"has waitaof", "info run_id:x\r\n" AOF, "find -> disk waitaof",
	    "on-disk 1", "info run_id:y\r\n" AOF,
	    "breaks 75 it is not the same as before -> WAITAOF 1 0 30000"}},
    {"its replicas are waited for",
	{"info " TWO "run_id:x\r\n", "find -> replicas:2", "on-replicas 2",
	    "keeps -> WAIT 2 30000", "on-replicas 1",
	    "breaks 75 only on 1 of 2 replicas -> WAIT 2 30000",
	    "info " TWO "run_id:y\r\n", "on-replicas 2",
	    "breaks 75 it is not the same as before -> WAIT 2 30000"}},
    {"its only replica is waited for",
	{"info " ONE, "find -> replicas:1",
	    "breaks 75 only on 0 of 1 replica -> WAIT 1 30000",
	    "error-ends replica", "on-replicas -1",
	    "breaks 69 ERR no -> WAIT 1 30000", "on-replicas 1",
	    "info run_id:y\r\n" ONE,
	    "breaks 75 it is not the same as before -> WAIT 1 30000"}},
    {"a write goes before it",
	{"info " ONE, "find -> replicas:1", "on-replicas 1",
	    "writes -> PERSIST q WAIT 1 30000", "on-replicas -1",
	    "writes -> PERSIST q failed"}},
};

static const struct row sentinel_rows[] = {
    {"sentinels name those that must have it",
	{"sentinel", "info " ONE, "candidates 1", "find -> replicas:1",
	    "on-replicas 1", "keeps -> WAIT 1 30000",
	    /* The one that is silent for a sentinel may answer another. */
	    "candidates 1 1",
	    "breaks 75 a replica that could become the master is not "
	    "connected -> each:301",
	    "candidates 0",
	    "refuses 75 no replica that answers the sentinels is connected",
	    "gives-up -> no", "candidates moved",
	    "refuses 75 there is another master", "gives-up -> yes"}},
    {"other replicas are waited for three times",
	{"sentinel", "info " ONE, "candidates 1", "on-replicas 1",
	    "find -> replicas:1",
	    /* Found as one, another one behind the wait, and so to the end. */
	    "then 2 " OTHER, "keeps -> WAIT 1 30000 WAIT 1 30000", "changes",
	    "breaks 75 its replicas keep changing"
	    " -> WAIT 1 30000 WAIT 1 30000 WAIT 1 30000"}},
};

/* --- the server ----------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
say(struct house *h, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	redisReaderFeed(h->redis.only.link.context->reader, text, strlen(text));
}

static void
say_info(struct house *h)
{
	const char *info = h->info;

	h->looks++;
	if (h->then > 0 && h->looks >= h->then)
		info = h->then_info;
	if (h->changes)
		info = h->looks % 2 != 0 ? ONE : OTHER;
	if (h->info_error[0] != '\0')
		say(h, "-%s\r\n", h->info_error);
	else
		say(h, "$%zu\r\n%s\r\n", strlen(info), info);
}

static void
say_config(struct house *h)
{
	if (h->config_error[0] != '\0')
		say(h, "-%s\r\n", h->config_error);
	else
		say(h,
		    "*4\r\n$11\r\nappendfsync\r\n$%zu\r\n%s\r\n"
		    "$25\r\nno-appendfsync-on-rewrite\r\n$%zu\r\n%s\r\n",
		    strlen(h->fsync), h->fsync, strlen(h->lax), h->lax);
}

/* A number, or an error for -1. */
static void
say_number(struct house *h, const char *before, long long n)
{
	if (n < 0)
		say(h, "-ERR no\r\n");
	else
		say(h, "%s:%lld\r\n", before, n);
}

static void
obey(struct house *h, const char *line)
{
	if (is(line, "INFO"))
		say_info(h);
	else if (strncmp(line, "CONFIG", 6) == 0)
		say_config(h);
	else if (is(line, "WAIT 0 1"))
		say_number(h, "", h->knows_wait ? 0 : -1);
	else if (is(line, "WAITAOF 1 0 1"))
		say_number(h, "*2\r\n:0\r\n", h->knows_waitaof ? 0 : -1);
	else {
		record("%s", line);
		if (strncmp(line, "WAITAOF", 7) == 0)
			say_number(h, "*2\r\n", h->on_disk);
		else
			say_number(h, "", h->on_replicas);
		if (strncmp(line, "WAITAOF", 7) == 0 && h->on_disk >= 0)
			say(h, ":7\r\n");
	}
}

static void
take_command(struct house *h, const redisReply *words)
{
	struct mq_buf line = {0};
	size_t i;

	for (i = 0; i < words->elements; i++)
		mq_buf_printf(
		    &line, "%s%s", i > 0 ? " " : "", words->element[i]->str);
	obey(h, mq_buf_str(&line));
	mq_buf_free(&line);
}

int
redisBufferWrite(redisContext *c, int *done)
{
	struct house *h = house;
	void *words;

	redisReaderFeed(h->commands, c->obuf, strlen(c->obuf));
	sdsclear(c->obuf);
	while (!h->lost &&
	    redisReaderGetReply(h->commands, &words) == REDIS_OK &&
	    words != NULL) {
		take_command(h, words);
		freeReplyObject(words);
	}
	*done = 1;
	return REDIS_OK;
}

int
mq_redis_ask_candidates(
    struct mq_redis *r, struct mq_candidates *candidates, bool each)
{
	if (each) {
		candidates->missing++;
		house->candidates.missing++;
		return 0;
	}
	candidates->new_master = house->candidates.new_master;
	candidates->connected = house->candidates.connected;
	candidates->silent = house->candidates.silent;
	return 0;
}

static bool
on_wait(void *arg, int fd, int64_t ms)
{
	struct house *h = arg;

	if (!h->lost) {
		assert_int_equal(fd, -1);
		assert_int_equal(ms, 100);
	}
	h->waits++;
	return true;
}

/* --- what happens --------------------------------------------------------- */

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	strlcpy(h->server.socket, "/s", sizeof(h->server.socket));
	h->redis.server = &h->server;
	mq_redis_wait_with(&h->redis, on_wait, h);
	h->commands = redisReaderCreate();
	h->knows_wait = true;
	strlcpy(h->info, AOF, sizeof(h->info));
	strlcpy(h->fsync, "always", sizeof(h->fsync));
	strlcpy(h->lax, "no", sizeof(h->lax));
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	mq_redis_close(&h->redis);
	redisReaderFree(h->commands);
	free(h);
	record_clear();
}

/* With no reply left of what failed before. */
static void
connect_anew(struct house *h)
{
	mq_redis_close(&h->redis);
	h->redis.only.link = (struct mq_link){.state = MQ_LINK_OPEN,
	    .server = &h->server,
	    .context = redisConnectFd(open("/dev/null", O_RDWR))};
	h->redis.lost = false;
	h->waits = h->looks = 0;
}

static void
find(struct house *h)
{
	struct mq_durable *d = &h->promise;

	connect_anew(h);
	if (mq_durable_find(&h->redis, d) != 0)
		fail_msg("%s", h->redis.error);
	if (d->disk)
		record("disk");
	if (d->waitaof)
		record("waitaof");
	if (d->info.replicas > 0)
		record("replicas:%d", d->info.replicas);
}

/* As the error says: a status, and a part of the text. */
static void
expect_error(struct house *h, const char *about)
{
	assert_int_equal(h->redis.status, atoi(about));
	if (strstr(h->redis.error, about + strlen("75 ")) == NULL)
		fail_msg("\"%s\", not \"%s\"", h->redis.error, about);
}

static void
refuse(struct house *h, const char *about)
{
	struct mq_durable none;

	connect_anew(h);
	assert_int_equal(mq_durable_find(&h->redis, &none), -1);
	expect_error(h, about);
}

static void
wait_for(struct house *h, int rv, const char *about)
{
	connect_anew(h);
	assert_int_equal(mq_durable_wait(&h->redis, &h->promise, NULL), rv);
	if (rv == -1)
		expect_error(h, about);
	if (h->candidates.missing > 0)
		record("each:%d", h->candidates.missing);
}

static void
write_first(struct house *h)
{
	struct mq_command write = {0};

	connect_anew(h);
	mq_command_plain(&write, "PERSIST q");
	if (mq_durable_wait(&h->redis, &h->promise, &write) == -1)
		record("failed");
	mq_command_free(&write);
}

static void
appoint(struct house *h, const char *about)
{
	h->candidates =
	    (struct mq_candidates){.new_master = is(about, "moved")};
	(void)sscanf(
	    about, "%d %d", &h->candidates.connected, &h->candidates.silent);
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;

	WORD("find", find(h));
	WORD("refuses", refuse(h, about));
	WORD("keeps", wait_for(h, 0, about));
	WORD("breaks", wait_for(h, -1, about));
	WORD("writes", write_first(h));
	WORD("waited", record("%d", h->waits));
	WORD("run-id", record("%s", h->promise.info.run_id));
	WORD("gives-up", answers(h->redis.lost));
	WORD("error", assert_non_null(strstr(h->redis.error, about)));
	WORD("error-ends",
	    assert_string_equal(strrchr(h->redis.error, ' ') + 1, about));
	/* What the server, or a sentinel, is from now on. */
	WORD("info", h->then = 0, strlcpy(h->info, about, sizeof(h->info)));
	WORD("then", h->then = atoi(about),
	    strlcpy(h->then_info, about + 2, sizeof(h->then_info)));
	WORD("has", h->knows_waitaof = is(about, "waitaof"),
	    h->knows_wait = *about != '\0');
	WORD("fsync", strlcpy(h->fsync, about, sizeof(h->fsync)));
	WORD("lax", strlcpy(h->lax, about, sizeof(h->lax)));
	WORD("config-error",
	    strlcpy(h->config_error, about, sizeof(h->config_error)));
	WORD(
	    "info-error", strlcpy(h->info_error, about, sizeof(h->info_error)));
	WORD("on-disk", h->on_disk = atoi(about));
	WORD("on-replicas", h->on_replicas = atoi(about));
	WORD("candidates", appoint(h, about));
	WORD("sentinel", h->server.url.kind = MQ_URL_SENTINEL);
	WORD("changes", h->changes = true);
	WORD("lost", h->lost = true);
	return false;
}

TEST_ROWS(promise)
TEST_ROWS(kept)
TEST_ROWS(sentinel)
