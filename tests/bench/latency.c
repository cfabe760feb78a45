/*
 * latency SOCKET KEY TIMES CONSUMER [ARG...] MARK
 *
 * Starts a consumer whose last argument is the program MARK (see mark.c), and
 * pushes TIMES messages to the list KEY, each when the consumer is idle.  In
 * turn with these it starts MARK itself.  Prints four numbers, nanoseconds
 * from the push to the start of MARK and from posix_spawn(3) to the start of
 * MARK, the 50th and the 99th percentile of each.
 */
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

/* These are not counted: the consumer has to come up, the caches to fill. */
#define WARM_UP 10
/* After this time the consumer is idle again. */
#define PAUSE_NS 5000000
#define WAIT_MS	 10000

extern char **environ;

static pid_t consumer;

static void
stop_consumer(void)
{
	if (consumer > 0) {
		kill(consumer, SIGTERM);
		waitpid(consumer, NULL, 0);
	}
}

static void
on_signal(int sig)
{
	(void)sig;
	kill(consumer, SIGTERM);
	_exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
rest(void)
{
	const struct timespec ts = {.tv_nsec = PAUSE_NS};

	nanosleep(&ts, NULL);
}

/* Starts a program with its stdout in a pipe. */
static pid_t
start(char *argv[], int out)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0)
		errx(70, "%s: %s", argv[0], strerror(error));
	return pid;
}

static int64_t
read_mark(int fd)
{
	struct pollfd marks = {.fd = fd, .events = POLLIN};
	int64_t ns;

	if (poll(&marks, 1, WAIT_MS) != 1 ||
	    read(fd, &ns, sizeof(ns)) != sizeof(ns))
		errx(1, "no message was picked up in %d ms", WAIT_MS);
	return ns;
}

static int64_t
pick_up(redisContext *redis, const char *key, int fd)
{
	redisReply *reply;
	int64_t pushed, started;

	rest();
	pushed = now_ns();
	reply = redisCommand(redis, "LPUSH %s x", key);
	if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
		errx(
		    1, "LPUSH: %s", reply != NULL ? reply->str : redis->errstr);
	freeReplyObject(reply);
	started = read_mark(fd);
	return started - pushed;
}

static int64_t
bare(char *mark, int pipe_fds[2])
{
	char *argv[] = {mark, NULL};
	int64_t spawned, started;
	pid_t pid;

	rest();
	spawned = now_ns();
	pid = start(argv, pipe_fds[1]);
	started = read_mark(pipe_fds[0]);
	waitpid(pid, NULL, 0);
	return started - spawned;
}

static int
by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
print(int64_t *ns, int n)
{
	qsort(ns, (size_t)n, sizeof(*ns), by_value);
	printf("%lld %lld\n", (long long)ns[n / 2],
	    (long long)ns[(n - 1) * 99 / 100]);
}

int
main(int argc, char *argv[])
{
	redisContext *redis;
	int64_t *pushed, *spawned, us, them;
	int pipe_fds[2], i, n;

	if (argc < 5 || (n = atoi(argv[3])) < 1)
		return 64;
	redis = redisConnectUnix(argv[1]);
	if (redis == NULL || redis->err != 0)
		errx(69, "%s: cannot connect", argv[1]);
	pushed = calloc((size_t)n, sizeof(*pushed));
	spawned = calloc((size_t)n, sizeof(*spawned));
	if (pushed == NULL || spawned == NULL ||
	    pipe2(pipe_fds, O_CLOEXEC) == -1)
		err(70, "setup");
	consumer = start(argv + 4, pipe_fds[1]);
	atexit(stop_consumer);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	for (i = -WARM_UP; i < n; i++) {
		us = pick_up(redis, argv[2], pipe_fds[0]);
		them = bare(argv[argc - 1], pipe_fds);
		if (i >= 0) {
			pushed[i] = us;
			spawned[i] = them;
		}
	}
	print(pushed, n);
	print(spawned, n);
	free(pushed);
	free(spawned);
	redisFree(redis);
	return 0;
}
