/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * spawn TIMES SLOTS COMMAND [ARG...]
 *
 * What starting that many processes costs at the least: posix_spawn(3) and
 * waitpid(2), SLOTS of them at a time, and nothing else.
 */
#include <sys/wait.h>

#include <err.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static void
reap(void)
{
	int status;

	if (waitpid(-1, &status, 0) == -1)
		err(70, "waitpid");
	if (status != 0)
		errx(1, "wait status %#x", (unsigned)status);
}

int
main(int argc, char *argv[])
{
	long times, slots, running = 0;
	int error;
	pid_t pid;

	if (argc < 4)
		return 64;
	times = atol(argv[1]);
	slots = atol(argv[2]);
	for (; times > 0; times--) {
		if (running == slots)
			reap();
		else
			running++;
		error =
		    posix_spawn(&pid, argv[3], NULL, NULL, argv + 3, environ);
		if (error != 0)
			errx(70, "%s: %s", argv[3], strerror(error));
	}
	for (; running > 0; running--)
		reap();
	return 0;
}
