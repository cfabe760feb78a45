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

static redisContext *redis;

/* One round trip: the number that the server says, 0 for anything else that is,
 * -1 for nothing. */
static long long
ask(const char *format, ...)
{
	redisReply *reply;
	long long n;
	va_list ap;

	va_start(ap, format);
	reply = redisvCommand(redis, format, ap);
	va_end(ap);
	if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
		errx(1, "%s: %s", format,
		    reply != NULL ? reply->str : redis->errstr);
	n = reply->type == REDIS_REPLY_NIL ? -1 : reply->integer;
	freeReplyObject(reply);
	return n;
}

/* Each member of a set, beside what the set belongs to. */
static void
for_each(void (*work)(const char *, const char *), const char *format,
    const char *of)
{
	redisReply *members = redisCommand(redis, format, of);
	size_t i;

	if (members == NULL || members->type != REDIS_REPLY_ARRAY)
		errx(1, "%s: no set", format);
	for (i = 0; i < members->elements; i++)
		work(of, members->element[i]->str);
	freeReplyObject(members);
}

static void
return_rejected(const char *queue)
{
	while (ask("RPOPLPUSH " QUEUE "rejected " QUEUE "ready", queue,
		   queue) != -1)
		;
}

static void
purge(const char *queue)
{
	long long left = ask("LLEN " QUEUE "ready", queue);

	for (; left > 0; left -= BATCH)
		ask("LTRIM " QUEUE "ready 0 %d", queue, -1 - BATCH);
}

static void
clean_queue(const char *connection, const char *queue)
{
	ask("SADD rmq::queues %s", queue);
	while (ask("RPOPLPUSH " BOTH "unacked " QUEUE "ready", connection,
		   queue, queue) != -1)
		;
	ask("DEL " BOTH "unacked", connection, queue);
	ask("DEL " BOTH "consumers", connection, queue);
	ask("SREM " CONNECTION "queues %s", connection, queue);
}

static void
clean_connection(const char *unused, const char *connection)
{
	(void)unused;
	if (ask("TTL " CONNECTION "heartbeat", connection) > 0)
		return;
	for_each(clean_queue, "SMEMBERS " CONNECTION "queues", connection);
	ask("SREM rmq::connections %s", connection);
	ask("DEL " CONNECTION "queues", connection);
}

static void
count_queue(const char *unused, const char *queue)
{
	(void)unused;
	ask("LLEN " QUEUE "ready", queue);
	ask("LLEN " QUEUE "rejected", queue);
}

static void
count_both(const char *connection, const char *queue)
{
	ask("SMEMBERS " BOTH "consumers", connection, queue);
	ask("LLEN " BOTH "unacked", connection, queue);
}

static void
count_connection(const char *unused, const char *connection)
{
	(void)unused;
	ask("TTL " CONNECTION "heartbeat", connection);
	for_each(count_both, "SMEMBERS " CONNECTION "queues", connection);
}

int
main(int argc, char *argv[])
{
	if (argc < 3)
		return 64;
	redis = redisConnectUnix(argv[1]);
	if (redis == NULL || redis->err != 0)
		errx(69, "%s: cannot connect", argv[1]);
	if (strcmp(argv[2], "return") == 0 && argc == 4)
		return_rejected(argv[3]);
	else if (strcmp(argv[2], "purge") == 0 && argc == 4)
		purge(argv[3]);
	else if (strcmp(argv[2], "clean") == 0)
		for_each(clean_connection, "SMEMBERS rmq::connections", "");
	else if (strcmp(argv[2], "stats") == 0) {
		for_each(count_queue, "SMEMBERS rmq::queues", "");
		for_each(count_connection, "SMEMBERS rmq::connections", "");
	} else
		return 64;
	redisFree(redis);
	return 0;
}
