/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Preloaded into a tool, makes calls of it fail: FAIL=NAME:N the Nth one of
 * that name, FAIL=NAME:N+ the Nth and all behind it, FAIL=NAME:*N each Nth.
 * What it starts has neither the library nor the variable.
 *
 *	memory		malloc, calloc, realloc
 *	process		vfork, fork, posix_spawnp
 *	descriptor	whatever returns a new one
 *	signal		whatever can be interrupted
 *	file		mkdir
 *	payload		memfd_create alone, which has no memory
 */
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static char what[16];
static long first, calls;
static enum { ONCE, FROM, EACH } mode;

__attribute__((constructor)) static void
begin(void)
{
	const char *s = getenv("FAIL");
	const char *n = s != NULL ? strchr(s, ':') : NULL;

	if (n == NULL)
		return;
	mode = n[1] == '*' ? EACH : strchr(n, '+') != NULL ? FROM : ONCE;
	first = strtol(n + (mode == EACH ? 2 : 1), NULL, 10);
	unsetenv("FAIL");
	unsetenv("LD_PRELOAD");
	snprintf(what, sizeof(what), "%.*s", (int)(n - s), s);
	calls = 0;
}

static bool
fails(const char *name, int error)
{
	bool now;

	if (strcmp(what, name) != 0)
		return false;
	calls++;
	now = mode == EACH ? calls % first == 0 :
			     calls == first || (mode == FROM && calls > first);
	if (now)
		errno = error;
	return now;
}

/* The function that this library hides. */
#define NEXT(fn) ((__typeof__(&(fn)))dlsym(RTLD_NEXT, #fn))

/* A call that fails as this does, or is made. */
#define FAILING(what, error, type, name, parameters, call)                     \
	type name parameters                                                   \
	{                                                                      \
		return fails(what, error) ? (type)-1 : (type)(call);           \
	}

#define WITHOUT_MEMORY(name, parameters, call)                                 \
	void *name parameters                                                  \
	{                                                                      \
		return fails("memory", ENOMEM) ? NULL : (call);                \
	}

WITHOUT_MEMORY(malloc, (size_t n), __libc_malloc(n))
WITHOUT_MEMORY(calloc, (size_t n, size_t size), __libc_calloc(n, size))
WITHOUT_MEMORY(realloc, (void *p, size_t n), __libc_realloc(p, n))
/* Not vfork(2): this function returns before the child ends. */
FAILING("process", EAGAIN, pid_t, vfork, (void), syscall(SYS_fork))
FAILING("descriptor", EMFILE, int, pipe2, (int fds[2], int flags),
    syscall(SYS_pipe2, fds, flags))
FAILING(
    "descriptor", EMFILE, int, pipe, (int fds[2]), syscall(SYS_pipe2, fds, 0))
FAILING("descriptor", EMFILE, int, socket, (int domain, int type, int protocol),
    syscall(SYS_socket, domain, type, protocol))
FAILING("descriptor", EMFILE, int, epoll_create1, (int flags),
    syscall(SYS_epoll_create1, flags))
FAILING("descriptor", EMFILE, int, epoll_create,
    (__attribute__((unused)) int n), syscall(SYS_epoll_create1, 0))
FAILING("descriptor", EMFILE, int, eventfd, (unsigned int n, int flags),
    syscall(SYS_eventfd2, n, flags))
FAILING("file", ENOSPC, int, mkdir, (const char *path, mode_t mode_of_dir),
    syscall(SYS_mkdir, path, mode_of_dir))
FAILING("signal", EINTR, ssize_t, read, (int fd, void *p, size_t n),
    syscall(SYS_read, fd, p, n))
FAILING("signal", EINTR, ssize_t, write, (int fd, const void *p, size_t n),
    syscall(SYS_write, fd, p, n))
FAILING("signal", EINTR, ssize_t, pwrite,
    (int fd, const void *p, size_t n, off_t at),
    syscall(SYS_pwrite64, fd, p, n, at))
FAILING("signal", EINTR, ssize_t, recv, (int fd, void *p, size_t n, int flags),
    syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL))
FAILING("signal", EINTR, ssize_t, send,
    (int fd, const void *p, size_t n, int flags),
    syscall(SYS_sendto, fd, p, n, flags, NULL, 0))
FAILING("signal", EINTR, pid_t, waitpid, (pid_t pid, int *status, int options),
    syscall(SYS_wait4, pid, status, options, NULL))
FAILING("signal", EINTR, int, nanosleep,
    (const struct timespec *t, struct timespec *left),
    syscall(SYS_nanosleep, t, left))

int
posix_spawnp(pid_t *pid, const char *name,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
    char *const argv[], char *const envp[])
{
	return fails("process", EAGAIN) ?
	    EAGAIN :
	    NEXT(posix_spawnp)(pid, name, actions, attr, argv, envp);
}

int
memfd_create(const char *name, unsigned int flags)
{
	if (fails("payload", ENOMEM) || fails("descriptor", EMFILE))
		return -1;
	return (int)syscall(SYS_memfd_create, name, flags);
}

int
signalfd(int fd, const sigset_t *mask, int flags)
{
	return fd == -1 && fails("descriptor", EMFILE) ?
	    -1 :
	    NEXT(signalfd)(fd, mask, flags);
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode_of_file;

	va_start(ap, flags);
	mode_of_file = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return fails("descriptor", EMFILE) ?
	    -1 :
	    (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode_of_file);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
    __attribute__((alias("pwrite")));

FAILING("signal", EINTR, int, poll, (struct pollfd * fds, nfds_t n, int ms),
    NEXT(poll)(fds, n, ms))
FAILING("signal", EINTR, int, __poll_chk,
    (struct pollfd * fds, nfds_t n, int ms,
	__attribute__((unused)) size_t size),
    NEXT(poll)(fds, n, ms))
FAILING("signal", EINTR, int, epoll_wait,
    (int fd, struct epoll_event *events, int n, int ms),
    NEXT(epoll_wait)(fd, events, n, ms))
