/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * measure [-i FILE] COMMAND [ARG...]
 *
 * Runs COMMAND once, with FILE (or nothing) on stdin and its output thrown
 * away, and prints how many nanoseconds it took and its peak memory in KiB.
 * This program stays small: on Linux, the peak of a child begins with what
 * its parent had.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int
main(int argc, char *argv[])
{
	posix_spawn_file_actions_t actions;
	const char *input = "/dev/null";
	struct rusage usage;
	int64_t start, end;
	int ch, error, status;
	pid_t pid;

	while ((ch = getopt(argc, argv, "+i:")) != -1) {
		if (ch != 'i')
			return 64;
		input = optarg;
	}
	argv += optind;
	argc -= optind;
	if (argc == 0)
		errx(64, "no command");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	start = now_ns();
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (error != 0)
		errx(70, "%s: %s", argv[0], strerror(error));
	if (wait4(pid, &status, 0, &usage) == -1)
		err(70, "wait4");
	end = now_ns();
	posix_spawn_file_actions_destroy(&actions);
	if (status != 0)
		errx(1, "%s: wait status %#x", argv[0], (unsigned)status);
	printf("%lld %ld\n", (long long)(end - start), usage.ru_maxrss);
	return 0;
}
