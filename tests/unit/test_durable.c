/*
 * common/redis/durable.c, with info.c; the test plays the server, its sentinels and the
 * time that goes by between two looks.
 */
#include "base/exit.h"
#include "record.h"
#include "redis/ask.h"
#include "redis/connection.h"
#include "redis/parts.h"

#define ONE   "slave0:ip=10.0.0.1,port=1,state=online,offset=1\r\n"
#define OTHER "slave0:ip=10.0.0.2,port=1,state=online,offset=1\r\n"
#define TWO   ONE "slave1:ip=10.0.0.2,port=2,state=online,offset=1\r\n"
#define AOF   "aof_enabled:1\r\n"

struct house {
	struct mq_redis redis;
	struct mq_server server;
	bool lost, knows_wait, knows_waitaof;
	struct mq_heirs heirs;
	const char *info, *then_info; /* from look number `then` on */
	const char *fsync, *lax, *config_error, *info_error;
	bool changes; /* at each look */
	int looks, then, waits;
	long long on_disk, on_replicas; /* -1: an error */
	char line[16][128];		/* sent, without a reply yet */
	int first, sent;
};

static struct house *house;

/* --- the neighbours --- */

/* The words of a command. */
static void
words_of(struct mq_command *c, char *out, size_t size)
{
	size_t n;
	const char *wire = mq_command_wire(c, &n), *at = wire, *end = wire + n;

	out[0] = '\0';
	while ((at = memchr(at, '$', (size_t)(end - at))) != NULL) {
		n = strtoul(at + 1, NULL, 10);
		at = strchr(at, '\n') + 1;
		snprintf(out + strlen(out), size - strlen(out), "%s%.*s",
		    out[0] != '\0' ? " " : "", (int)n, at);
		at += n;
	}
}

struct mq_command
mq_redis_command(const struct mq_redis *r)
{
	(void)r;
	return (struct mq_command){0};
}

int
mq_redis_append(struct mq_redis *r, struct mq_command *c)
{
	char *line = house->line[house->sent++ % COUNT(house->line)];

	(void)r;
	words_of(c, line, sizeof(house->line[0]));
	if (strncmp(line, "INFO", 4) != 0 && strncmp(line, "CONFIG", 6) != 0)
		record("%s", line);
	return 0;
}

int
mq_redis_send(struct mq_redis *r, struct mq_command *c)
{
	return mq_redis_append(r, c);
}

int
mq_redis_flush(struct mq_redis *r)
{
	(void)r;
	return house->lost ? -1 : 0;
}

static redisReply *
reply_of(int type, const char *text)
{
	redisReply *reply = calloc(1, sizeof(*reply));

	reply->type = type;
	if (text != NULL) {
		reply->str = strdup(text);
		reply->len = strlen(text);
	}
	return reply;
}

static redisReply *
array_of(size_t n, redisReply **elements)
{
	redisReply *reply = reply_of(REDIS_REPLY_ARRAY, NULL);

	reply->elements = n;
	reply->element = calloc(n, sizeof(*reply->element));
	memcpy(reply->element, elements, n * sizeof(*elements));
	return reply;
}

static redisReply *
number_of(long long n)
{
	redisReply *reply = n < 0 ? reply_of(REDIS_REPLY_ERROR, "ERR no") :
				    reply_of(REDIS_REPLY_INTEGER, NULL);

	reply->integer = n;
	return reply;
}

redisReply *
mq_redis_reply(struct mq_redis *r)
{
	const char *line = house->line[house->first++ % COUNT(house->line)];

	(void)r;
	assert_true(house->first <= house->sent);
	if (house->lost)
		return NULL;
	if (strcmp(line, "INFO") == 0) {
		if (house->then > 0 && ++house->looks >= house->then)
			house->info = house->then_info;
		if (house->changes)
			house->info = ++house->looks % 2 != 0 ? ONE : OTHER;
		return house->info == NULL ?
		    reply_of(REDIS_REPLY_ERROR, house->info_error) :
		    reply_of(REDIS_REPLY_STRING, house->info);
	}
	if (strncmp(line, "CONFIG", 6) == 0)
		return house->config_error != NULL ?
		    reply_of(REDIS_REPLY_ERROR, house->config_error) :
		    array_of(4,
			(redisReply *[]){
			    reply_of(REDIS_REPLY_STRING, "appendfsync"),
			    reply_of(REDIS_REPLY_STRING, house->fsync),
			    reply_of(REDIS_REPLY_STRING,
				"no-appendfsync-on-rewrite"),
			    reply_of(REDIS_REPLY_STRING, house->lax)});
	if (strncmp(line, "WAITAOF", 7) == 0)
		return house->on_disk < 0 ?
		    number_of(-1) :
		    array_of(2,
			(redisReply *[]){
			    number_of(house->on_disk), number_of(7)});
	return number_of(house->on_replicas);
}

bool
mq_redis_refused(struct mq_redis *r, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR)
		return false;
	r->status = strncmp(reply->str, "NOPERM", 6) == 0 ? MQ_EXIT_NOPERM :
							    MQ_EXIT_UNAVAILABLE;
	snprintf(r->error, sizeof(r->error), "%s", reply->str);
	return true;
}

int
mq_redis_fail(struct mq_redis *r, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	r->status = status;
	return -1;
}

bool
mq_redis_lost(const struct mq_redis *r)
{
	(void)r;
	return house->lost;
}

int
mq_call_done(struct mq_redis *r, struct mq_command *c)
{
	char line[64];

	(void)r;
	words_of(c, line, sizeof(line));
	mq_command_free(c);
	return (strcmp(line, "WAIT 0 1") == 0 && house->knows_wait) ||
		(strcmp(line, "WAITAOF 1 0 1") == 0 && house->knows_waitaof) ?
	    0 :
	    -1;
}

bool
mq_reply_strings(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY;
}

bool
mq_redis_visit(struct mq_redis *r, int i)
{
	(void)r;
	return i == 0;
}

int
mq_ask_each(
    struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg)
{
	(void)r;
	(void)n;
	(void)ask;
	(void)take;
	(void)arg;
	return -1;
}

const struct mq_sentinel_question mq_sentinel_heirs = {0};

int
mq_redis_ask_sentinels(struct mq_redis *r, double until,
    const struct mq_sentinel_question *q, void *answer)
{
	struct mq_heirs *heirs = answer;

	(void)r;
	(void)until;
	assert_ptr_equal(q, &mq_sentinel_heirs);
	heirs->moved = house->heirs.moved;
	heirs->connected = house->heirs.connected;
	heirs->missing = house->heirs.missing;
	heirs->silent = house->heirs.silent;
	return 0;
}

void
mq_redis_ask_each_sentinel(
    struct mq_redis *r, const struct mq_sentinel_question *q, void *answer)
{
	(void)r;
	(void)q;
	((struct mq_heirs *)answer)->missing++;
	record("each");
}

static bool
on_wait(void *arg, int fd, int64_t ms)
{
	assert_int_equal(fd, -1);
	assert_int_equal(ms, 100);
	((struct house *)arg)->waits++;
	return true;
}

/* --- what happens --- */

static int
setup(void **state)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	h->redis.server = &h->server;
	h->redis.wait = on_wait;
	h->redis.wait_arg = h;
	h->knows_wait = true;
	h->info = AOF;
	h->fsync = "always";
	h->lax = "no";
	*state = h;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	free(house);
	record_clear();
	return 0;
}

/* What the server promises; with a status, nothing, and why. */
static struct mq_durable
promise(struct house *h, int status, const char *why)
{
	struct mq_durable d = {0};

	h->waits = h->looks = 0;
	assert_int_equal(mq_durable_find(&h->redis, &d), status == 0 ? 0 : -1);
	if (status != 0) {
		assert_int_equal(h->redis.status, status);
		if (strstr(h->redis.error, why) == NULL)
			fail_msg(
			    "\"%s\" is not in \"%s\"", why, h->redis.error);
	}
	return d;
}

static void
keeps(struct house *h, const struct mq_durable *d, int status, const char *why)
{
	assert_int_equal(
	    mq_durable_wait(&h->redis, d, NULL), status == 0 ? 0 : -1);
	if (status != 0) {
		assert_int_equal(h->redis.status, status);
		assert_non_null(strstr(h->redis.error, why));
	}
	h->first = h->sent;
}

/* --- a promise --- */

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

TEST_OF(on_its_disk)
{
	struct mq_durable d = promise(h, 0, "");

	assert_true(d.disk && !d.waitaof && d.replicas == 0);
	h->knows_waitaof = true;
	h->fsync = "everysec";
	d = promise(h, 0, "");
	assert_true(d.disk && d.waitaof);
	h->lax = "yes";
	d = promise(h, 0, "");
	assert_true(d.disk && d.waitaof);
	h->fsync = "no";
	(void)promise(h, MQ_EXIT_CONFIG, "appendfsync is no: set it to always");
	h->knows_waitaof = false;
	h->fsync = "always";
	(void)promise(h, MQ_EXIT_CONFIG,
	    "no-appendfsync-on-rewrite is yes: set it to no");
	h->fsync = "everysec";
	(void)promise(h, MQ_EXIT_CONFIG,
	    "appendfsync is everysec: set it to always, or connect a replica, "
	    "or allow WAITAOF");
	h->info = "aof_enabled:0\r\n";
	(void)promise(h, MQ_EXIT_CONFIG, "it has no append-only file and no");
	assert_int_equal(h->waits, 0);
}

TEST_OF(on_its_replicas)
{
	struct mq_durable d;

	h->info = "run_id:x\r\n" TWO;
	d = promise(h, 0, "");
	assert_true(!d.disk && !d.waitaof && d.replicas == 2);
	assert_string_equal(d.run_id, "x");
	h->knows_wait = false;
	(void)promise(h, MQ_EXIT_CONFIG, "does not allow WAIT");
	h->info = TWO AOF;
	(void)promise(h, MQ_EXIT_CONFIG, "does not allow WAIT");
}

TEST_OF(not_where_messages_may_be_dropped)
{
	h->info = ONE AOF "maxmemory_policy:allkeys-lru\r\n";
	(void)promise(h, MQ_EXIT_CONFIG, "maxmemory-policy is allkeys-lru");
	h->info = ONE AOF "maxmemory_policy:noeviction\r\n";
	(void)promise(h, 0, "");
}

TEST_OF(where_it_may_not_be_asked)
{
	h->config_error = "ERR unknown";
	(void)promise(h, MQ_EXIT_CONFIG, "cannot be read: ERR unknown");
	h->info = ONE AOF;
	(void)promise(h, 0, "");
	h->info = NULL;
	h->info_error = "ERR no";
	(void)promise(h, MQ_EXIT_CONFIG, "ERR no; --durable needs +info");
	h->first = h->sent;
	h->info_error = "NOPERM no";
	(void)promise(h, MQ_EXIT_NOPERM, "NOPERM no; --durable needs +info");
	h->lost = true;
	assert_int_equal(
	    mq_durable_find(&h->redis, &(struct mq_durable){0}), -1);
}

TEST_OF(a_replica_promises_nothing)
{
	h->info = "role:slave\r\n" AOF;
	(void)promise(h, MQ_EXIT_AGAIN, "it is a replica");
	assert_false(h->redis.lost);
}

TEST_OF(its_first_file_is_waited_for)
{
	h->info = AOF "aof_base_size:0\r\naof_rewrite_scheduled:1\r\n";
	(void)promise(h, MQ_EXIT_AGAIN, "still writes its first append-only");
	assert_int_equal(h->waits, 301);
	h->first = h->sent;
	h->then = 4;
	h->then_info = AOF;
	(void)promise(h, 0, "");
	assert_int_equal(h->waits, 3);
	h->then = 0;
	h->info = AOF "aof_base_size:0\r\naof_rewrite_in_progress:1\r\n";
	h->knows_waitaof = true;
	(void)promise(h, 0, "");
	assert_int_equal(h->waits, 0);
}

TEST_OF(a_replica_that_it_had_is_waited_for)
{
	h->info = "repl_backlog_active:1\r\n";
	(void)promise(h, MQ_EXIT_AGAIN, "its replica is not connected");
	assert_int_equal(h->waits, 301);
	h->then = 3;
	h->then_info = ONE;
	assert_int_equal(promise(h, 0, "").replicas, 1);
	assert_int_equal(h->waits, 2);
	/* Not if its disk will do. */
	h->then = 0;
	h->info = AOF "repl_backlog_active:1\r\n";
	(void)promise(h, 0, "");
	assert_int_equal(h->waits, 0);
}

/* --- and whether it is kept --- */

TEST_OF(what_is_written_at_once_is_safe)
{
	struct mq_durable d = promise(h, 0, "");

	keeps(h, &d, 0, "");
	assert_string_equal(recorded(), "");
	h->info = "run_id:other\r\n" AOF;
	keeps(h, &d, 0, "");
	h->fsync = "everysec";
	keeps(h, &d, MQ_EXIT_AGAIN, "its appendfsync was changed");
	h->info = "role:slave\r\n" AOF;
	keeps(h, &d, MQ_EXIT_AGAIN, "it has become a replica");
}

TEST_OF(its_disk_is_waited_for)
{
	struct mq_durable d;

	h->knows_waitaof = true;
	h->info = "run_id:x\r\n" AOF;
	d = promise(h, 0, "");
	h->on_disk = 1;
	keeps(h, &d, 0, "");
	assert_string_equal(recorded(), "WAITAOF 1 0 30000");
	h->on_disk = 0;
	keeps(h, &d, MQ_EXIT_AGAIN, "not on disk after 30 seconds");
	h->on_disk = -1;
	keeps(h, &d, MQ_EXIT_UNAVAILABLE, "ERR no");
	h->on_disk = 1;
	h->info = "run_id:y\r\n" AOF;
	keeps(h, &d, MQ_EXIT_AGAIN, "it is not the same as before");
}

TEST_OF(its_replicas_are_waited_for)
{
	struct mq_durable d;

	h->info = TWO "run_id:x\r\n";
	d = promise(h, 0, "");
	h->on_replicas = 2;
	keeps(h, &d, 0, "");
	assert_string_equal(recorded(), "WAIT 2 30000");
	h->on_replicas = 1;
	keeps(h, &d, MQ_EXIT_AGAIN, "only on 1 of 2 replicas");
	d.replicas = 1;
	h->on_replicas = 0;
	keeps(h, &d, MQ_EXIT_AGAIN, "only on 0 of 1 replica");
	assert_null(strstr(h->redis.error, "replicas"));
	h->on_replicas = -1;
	keeps(h, &d, MQ_EXIT_UNAVAILABLE, "ERR no");
	h->on_replicas = 1;
	h->info = TWO "run_id:y\r\n";
	keeps(h, &d, MQ_EXIT_AGAIN, "it is not the same as before");
}

TEST_OF(a_write_goes_before_it)
{
	struct mq_command write = {0};
	struct mq_durable d;

	h->info = ONE;
	d = promise(h, 0, "");
	h->on_replicas = 1;
	mq_command_plain(&write, "PERSIST q");
	assert_int_equal(mq_durable_wait(&h->redis, &d, &write), 0);
	assert_string_equal(recorded(), "PERSIST q WAIT 1 30000");
	h->on_replicas = -1;
	assert_int_equal(mq_durable_wait(&h->redis, &d, &write), -1);
	assert_string_equal(recorded(), "PERSIST q");
	mq_command_free(&write);
}

/* --- with sentinels --- */

TEST_OF(sentinels_name_those_that_must_have_it)
{
	struct mq_durable d;

	h->server.url.kind = MQ_URL_SENTINEL;
	h->info = ONE;
	h->heirs.connected = 1;
	d = promise(h, 0, "");
	h->on_replicas = 1;
	keeps(h, &d, 0, "");
	assert_string_equal(recorded(), "WAIT 1 30000");
	/* The one that is silent for a sentinel may answer another. */
	h->heirs.silent = 1;
	keeps(h, &d, MQ_EXIT_AGAIN,
	    "a replica that could become the master is not connected");
	h->heirs.silent = h->heirs.connected = 0;
	(void)promise(h, MQ_EXIT_AGAIN,
	    "no replica that answers the sentinels is connected");
	assert_int_equal(h->waits, 301);
	assert_false(h->redis.lost);
	h->heirs.moved = true;
	(void)promise(h, MQ_EXIT_AGAIN, "there is another master");
	assert_true(h->redis.lost);
}

TEST_OF(other_replicas_are_waited_for_three_times)
{
	struct mq_durable d;

	h->server.url.kind = MQ_URL_SENTINEL;
	h->info = ONE;
	h->heirs.connected = h->on_replicas = 1;
	d = promise(h, 0, "");
	(void)recorded();
	/* Found as one, another one behind the wait, and so to the end. */
	h->looks = 0;
	h->then = 2;
	h->then_info = OTHER;
	keeps(h, &d, 0, "");
	assert_string_equal(recorded(), "WAIT 1 30000 WAIT 1 30000");
	h->then = h->looks = 0;
	h->changes = true;
	keeps(h, &d, MQ_EXIT_AGAIN, "its replicas keep changing");
	assert_string_equal(
	    recorded(), "WAIT 1 30000 WAIT 1 30000 WAIT 1 30000");
}
