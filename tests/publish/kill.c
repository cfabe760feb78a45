/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Preloaded: the program is killed at the call with number $KILL_AT, from 1, of those that write,
 * send, or change a folder: before it, or behind it if $KILL_HOW is so. */
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long calls;

static void
stand(const char *where)
{
	const char *at = getenv("KILL_AT"), *how = getenv("KILL_HOW");

	if (at != NULL && how != NULL && calls == atol(at) &&
	    strcmp(how, where) == 0)
		kill(getpid(), SIGKILL);
}

#define CALL(type, name, parameters, arguments)                                \
	type name parameters                                                   \
	{                                                                      \
		static type(*next) parameters;                                 \
		type result;                                                   \
                                                                               \
		if (next == NULL)                                              \
			*(void **)&next = dlsym(RTLD_NEXT, #name);             \
		calls++;                                                       \
		stand("before");                                               \
		result = next arguments;                                       \
		stand("behind");                                               \
		return result;                                                 \
	}

CALL(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t at),
    (fd, p, n, at))
CALL(ssize_t, send, (int fd, const void *p, size_t n, int flags),
    (fd, p, n, flags))
CALL(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags),
    (fd, m, flags))
CALL(int, fsync, (int fd), (fd))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, fflush, (FILE * f), (f))
