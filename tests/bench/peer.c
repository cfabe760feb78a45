/*
 * peer SOCKET return QUEUE | purge QUEUE | clean | stats
 *
 * Does an operator's work as a Go program on rmq does it: the same commands in
 * the same order, and a round trip for each.  (In C, so that what is measured
 * are the round trips and not the language.)
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#define QUEUE	   "rmq::queue::[%s]::"
#define CONNECTION "rmq::connection::%s::"
#define BOTH	   CONNECTION "queue::[%s]::"
/* How many messages one LTRIM removes. */
#define BATCH 100

/* One round trip. */
static redisReply *
ask(redisContext *redis, const char *format, ...)
{
	redisReply *reply;
	va_list ap;

	va_start(ap, format);
	reply = redisvCommand(redis, format, ap);
	va_end(ap);
	if (reply == NULL)
		errx(69, "%s: %s", format, redis->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		errx(1, "%s: %s", format, reply->str);
	return reply;
}

/* The number that it is, or 0. */
static long long
number(redisReply *reply)
{
	long long n = reply->integer;

	freeReplyObject(reply);
	return n;
}

/* Moves messages, one by one, to ready until there are none. */
static void
move_all(redisContext *redis, const char *from, const char *queue)
{
	redisReply *reply;
	int type;

	do {
		reply = ask(redis, "RPOPLPUSH %s " QUEUE "ready", from, queue);
		type = reply->type;
		freeReplyObject(reply);
	} while (type != REDIS_REPLY_NIL);
}

static void
return_rejected(redisContext *redis, const char *queue)
{
	char key[1024];

	snprintf(key, sizeof(key), QUEUE "rejected", queue);
	move_all(redis, key, queue);
}

static void
purge(redisContext *redis, const char *queue)
{
	long long left = number(ask(redis, "LLEN " QUEUE "ready", queue));

	for (; left > 0; left -= BATCH)
		number(
		    ask(redis, "LTRIM " QUEUE "ready 0 %d", queue, -1 - BATCH));
}

static void
clean_queue(redisContext *redis, const char *connection, const char *queue)
{
	char key[1024];

	number(ask(redis, "SADD rmq::queues %s", queue));
	snprintf(key, sizeof(key), BOTH "unacked", connection, queue);
	move_all(redis, key, queue);
	number(ask(redis, "DEL %s", key));
	number(ask(redis, "DEL " BOTH "consumers", connection, queue));
	number(ask(redis, "SREM " CONNECTION "queues %s", connection, queue));
}

static void
clean_connection(redisContext *redis, const char *connection)
{
	redisReply *queues;
	size_t i;

	if (number(ask(redis, "TTL " CONNECTION "heartbeat", connection)) > 0)
		return;
	queues = ask(redis, "SMEMBERS " CONNECTION "queues", connection);
	for (i = 0; i < queues->elements; i++)
		clean_queue(redis, connection, queues->element[i]->str);
	freeReplyObject(queues);
	number(ask(redis, "SREM rmq::connections %s", connection));
	number(ask(redis, "DEL " CONNECTION "queues", connection));
}

static void
count_queue(redisContext *redis, const char *queue)
{
	number(ask(redis, "LLEN " QUEUE "ready", queue));
	number(ask(redis, "LLEN " QUEUE "rejected", queue));
}

static void
count_connection(redisContext *redis, const char *connection)
{
	redisReply *queues;
	size_t i;

	number(ask(redis, "TTL " CONNECTION "heartbeat", connection));
	queues = ask(redis, "SMEMBERS " CONNECTION "queues", connection);
	for (i = 0; i < queues->elements; i++) {
		const char *queue = queues->element[i]->str;

		number(ask(
		    redis, "SMEMBERS " BOTH "consumers", connection, queue));
		number(ask(redis, "LLEN " BOTH "unacked", connection, queue));
	}
	freeReplyObject(queues);
}

static void
for_each(redisContext *redis, const char *set,
    void (*work)(redisContext *, const char *))
{
	redisReply *members = ask(redis, "SMEMBERS %s", set);
	size_t i;

	for (i = 0; i < members->elements; i++)
		work(redis, members->element[i]->str);
	freeReplyObject(members);
}

int
main(int argc, char *argv[])
{
	redisContext *redis;

	if (argc < 3)
		return 64;
	redis = redisConnectUnix(argv[1]);
	if (redis == NULL || redis->err != 0)
		errx(69, "%s: cannot connect", argv[1]);
	if (strcmp(argv[2], "return") == 0 && argc == 4)
		return_rejected(redis, argv[3]);
	else if (strcmp(argv[2], "purge") == 0 && argc == 4)
		purge(redis, argv[3]);
	else if (strcmp(argv[2], "clean") == 0 && argc == 3)
		for_each(redis, "rmq::connections", clean_connection);
	else if (strcmp(argv[2], "stats") == 0 && argc == 3) {
		for_each(redis, "rmq::queues", count_queue);
		for_each(redis, "rmq::connections", count_connection);
	} else
		return 64;
	redisFree(redis);
	return 0;
}
