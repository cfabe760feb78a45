/*
 * waits SOCKET COMMAND [ARG...]
 *
 * How long a client of the server at SOCKET waits for the answer to a cheap
 * command while COMMAND runs (its output thrown away) and a little before and
 * after that.  It asks once a millisecond.  When an answer takes longer, those
 * that it could not ask for meanwhile count as well, as if each had been asked
 * for in time.  Prints the longest wait and the 99.9th percentile, in nanoseconds.
 */
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#define EVERY_NS 1000000
/* So often before COMMAND starts, and after it has ended: memory is freed in
 * the background. */
#define AROUND 100
/* Ten minutes of them. */
#define MOST 600000

extern char **environ;

struct waits {
	int count;
	int64_t ns[MOST];
};

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Rests, unless the last answer was late. */
static void
rest(int64_t asked)
{
	int64_t left = asked + EVERY_NS - now_ns();
	const struct timespec ts = {.tv_nsec = left};

	if (left > 0)
		nanosleep(&ts, NULL);
}

static void
ask(redisContext *redis, struct waits *waits)
{
	int64_t took, asked = now_ns();
	redisReply *reply = redisCommand(redis, "LLEN of-another-queue");

	if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
		errx(1, "LLEN: %s", reply != NULL ? reply->str : redis->errstr);
	freeReplyObject(reply);
	took = now_ns() - asked;
	do {
		if (waits->count == MOST)
			errx(1, "too long");
		waits->ns[waits->count++] = took;
		took -= EVERY_NS;
	} while (took > 0);
	rest(asked);
}

static pid_t
start(char *argv[])
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0)
		errx(70, "%s: %s", argv[0], strerror(error));
	return pid;
}

static int
by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
print(struct waits *waits)
{
	int64_t *ns = waits->ns;
	int last = waits->count - 1;

	qsort(ns, (size_t)waits->count, sizeof(*ns), by_value);
	printf("%lld %lld\n", (long long)ns[last],
	    (long long)ns[(int64_t)last * 999 / 1000]);
}

int
main(int argc, char *argv[])
{
	struct waits *waits;
	redisContext *redis;
	int i, status;
	pid_t pid;

	if (argc < 3)
		return 64;
	redis = redisConnectUnix(argv[1]);
	if (redis == NULL || redis->err != 0)
		errx(69, "%s: cannot connect", argv[1]);
	waits = calloc(1, sizeof(*waits));
	if (waits == NULL)
		err(70, "calloc");
	for (i = 0; i < AROUND; i++)
		ask(redis, waits);
	pid = start(argv + 2);
	while (waitpid(pid, &status, WNOHANG) == 0)
		ask(redis, waits);
	if (status != 0)
		errx(1, "%s: wait status %#x", argv[2], (unsigned)status);
	for (i = 0; i < AROUND; i++)
		ask(redis, waits);
	redisFree(redis);
	print(waits);
	free(waits);
	return 0;
}
