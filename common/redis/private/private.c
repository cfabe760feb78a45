#include "private.h"

#include <sys/file.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "place.h"

/*
 * How two servers on one directory are kept impossible: whoever starts one
 * holds an flock(2) on DIR/lock and passes that very descriptor on, so the
 * kernel keeps the lock until the last process of the server is gone, however
 * it ended.  Nothing depends on the pid file, on the socket file or on the
 * starter staying alive.  A free lock together with a refused connection is
 * the only state in which a server is started.
 */

#define PATIENCE_S   30.0 /* for a server that says nothing at all */
#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100

enum answer {
	GONE,	/* nobody listens */
	SILENT, /* somebody listens, but did not answer yet */
	LOADING,
	UP
};

int
private_fail(struct place *p, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error, p->error_size, fmt, ap);
	va_end(ap);
	return status;
}

/* --- the directory ------------------------------------------------------- */

/* The XDG rules say that a relative value is to be ignored. */
static char *
default_dir(void)
{
	const char *s;
	struct passwd *pw;

	s = getenv("XDG_STATE_HOME");
	if (s != NULL && *s == '/')
		return mq_xasprintf("%s/mq", s);
	s = getenv("HOME");
	if (s == NULL || *s == '\0') {
		pw = getpwuid(geteuid());
		s = pw != NULL ? pw->pw_dir : NULL;
	}
	if (s == NULL || *s == '\0')
		return NULL;
	return mq_xasprintf("%s/.local/state/mq", s);
}

static char *
wanted_dir(const char *dir)
{
	char *d;
	size_t n;

	if (dir == NULL || *dir == '\0')
		return default_dir();
	d = mq_xstrdup(dir);
	for (n = strlen(d); n > 1 && d[n - 1] == '/'; n--)
		d[n - 1] = '\0';
	return d;
}

static int
make_dir(char *path, mode_t mode)
{
	char *slash;
	int r;

	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	slash = strrchr(path, '/');
	if (errno != ENOENT || slash == NULL || slash == path)
		return -1;
	*slash = '\0';
	r = make_dir(path, 0755);
	*slash = '/';
	if (r == -1)
		return -1;
	return mkdir(path, mode) == 0 || errno == EEXIST ? 0 : -1;
}

/*
 * A directory that others can write to is refused, not repaired: they may
 * have put a socket of their own there already.
 */
static int
check_dir(struct place *p)
{
	struct stat st;

	if (stat(p->dir, &st) == -1 &&
	    (errno != ENOENT || make_dir(p->dir, 0700) == -1 ||
		stat(p->dir, &st) == -1))
		return private_fail(
		    p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return private_fail(
		    p, MQ_EXIT_CONFIG, "%s: is not a directory", p->dir);
	if (st.st_uid != geteuid())
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: belongs to user %lu, not to you", p->dir,
		    (unsigned long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: others can write to it (chmod 700 %s)", p->dir,
		    p->dir);
	return 0;
}

static int
name_socket(struct place *p, char *path, size_t size)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	int n;

	n = snprintf(path, size, "%s/redis.sock", p->dir);
	if (n < 0 || (size_t)n >= size || (size_t)n > most)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: too long for a unix socket (at most %zu bytes); "
		    "choose a shorter directory",
		    p->dir, most - strlen("/redis.sock"));
	p->socket = path;
	return 0;
}

static int
find_place(struct place *p, const char *dir, char *path, size_t size)
{
	char *absolute;
	int status;

	p->dir = wanted_dir(dir);
	if (p->dir == NULL)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "no home directory: set HOME or XDG_STATE_HOME");
	/* Before anything is made, too. */
	status = name_socket(p, path, size);
	if (status == 0)
		status = check_dir(p);
	if (status != 0 || *p->dir == '/')
		return status;

	absolute = realpath(p->dir, NULL);
	if (absolute == NULL)
		return private_fail(
		    p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	free(p->dir);
	p->dir = absolute;
	return name_socket(p, path, size);
}

/* --- is it there? -------------------------------------------------------- */

/*
 * Any answer but one means that the server is up; what a refusal is about
 * (a password, too many clients) the real connection will hear and tell.
 */
static enum answer
ask(int fd)
{
	static const char question[] = "PING\r\n", loading[] = "-LOADING";
	char reply[128];
	ssize_t n;

	/* Whether we got it out does not matter: a refusal may have come. */
	(void)send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL);
	n = recv(fd, reply, sizeof(reply), 0);
	if (n <= 0)
		return SILENT;
	if ((size_t)n >= sizeof(loading) - 1 &&
	    memcmp(reply, loading, sizeof(loading) - 1) == 0)
		return LOADING;
	return UP;
}

static enum answer
ping(const char *path)
{
	/* It bounds connect(2), too, which waits while the backlog is full. */
	const struct timeval limit = {.tv_sec = 1};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	enum answer answer = GONE;
	int fd;

	strlcpy(to.sun_path, path, sizeof(to.sun_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return GONE;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		answer = ask(fd);
	else if (errno == EAGAIN || errno == EINTR)
		answer = SILENT;
	close(fd);
	return answer;
}

/* *fd is the locked file, or -1 when a server has it. */
static int
take_lock(struct place *p, int *fd)
{
	char *path = mq_xasprintf("%s/lock", p->dir);
	int status = 0;

	*fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd == -1) {
		status = private_fail(
		    p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
	} else if (flock(*fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			status = private_fail(
			    p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
		close(*fd);
		*fd = -1;
	}
	free(path);
	return status;
}

/* --- starting it --------------------------------------------------------- */

/*
 * Nobody listens: start a server if there is none.  A lock that is free again
 * after our own start means that the server has ended.
 */
static int
start_if_free(struct place *p, bool *started)
{
	int lock, status;

	status = take_lock(p, &lock);
	if (status != 0 || lock == -1)
		return status;
	if (*started)
		status = private_did_not_start(p);
	else if ((status = private_may_start(p, lock)) == 0)
		status = private_start(p, lock);
	*started = true;
	close(lock);
	return status;
}

static int
bring_up(struct place *p)
{
	double deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
	struct timespec pause = {0};
	bool started = false;
	int status = 0, ms;

	for (ms = PAUSE_MIN_MS;; ms = MIN(ms * 2, PAUSE_MAX_MS)) {
		switch (ping(p->socket)) {
		case UP:
			return 0;
		case LOADING:
			deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
			break;
		case SILENT:
			break;
		case GONE:
			status = start_if_free(p, &started);
			break;
		}
		if (status != 0)
			return status;
		if (mq_clock_s(CLOCK_MONOTONIC) > deadline)
			return private_fail(p, MQ_EXIT_UNAVAILABLE,
			    "the private server in %s does not answer; "
			    "see %s/redis.log",
			    p->dir, p->dir);
		pause.tv_nsec = ms * 1000000L;
		nanosleep(&pause, NULL);
	}
}

int
mq_private_ensure(const char *dir, char *socket_path, size_t path_size,
    char *error, size_t error_size)
{
	struct place p = {.error = error, .error_size = error_size};
	int status;

	status = find_place(&p, dir, socket_path, path_size);
	if (status == 0 && ping(p.socket) != UP)
		status = bring_up(&p);
	free(p.dir);
	return status;
}
