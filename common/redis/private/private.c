#include "private.h"

#include <sys/file.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"

/*
 * Two servers on one directory are impossible: a tool that starts one holds an
 * flock(2) on DIR/lock and passes that very descriptor on, so the kernel keeps the
 * lock until the last process of the server is gone, however that ended.  Nothing depends on the pid file, on the socket file or on the
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

/* --- is it there? -------------------------------------------------------- */

/*
 * Any answer but -LOADING means that the server is up.  The real connection will
 * report a refusal (a password, too many clients).
 */
static enum answer
converse(int fd, const char *question, char *reply, size_t size)
{
	static const char loading[] = "-LOADING";
	ssize_t n;

	/* A failure to send does not matter: a refusal may have come. */
	(void)send(fd, question, strlen(question), MSG_NOSIGNAL);
	n = recv(fd, reply, size - 1, 0);
	if (n <= 0)
		return SILENT;
	reply[n] = '\0';
	return strncmp(reply, loading, strlen(loading)) == 0 ? LOADING : UP;
}

/* reply is a string if the server is up. */
static enum answer
ask(const char *path, const char *question, char *reply, size_t size)
{
	/* The limit holds for connect(2), too, which waits while the backlog is full. */
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
		answer = converse(fd, question, reply, size);
	else if (errno == EAGAIN || errno == EINTR)
		answer = SILENT;
	close(fd);
	return answer;
}

static enum answer
ping(const char *path)
{
	char reply[128];

	return ask(path, "PING\r\n", reply, sizeof(reply));
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

/* Creates the log, which fails early, with errno, if nothing can be written. */
static int
open_log(struct place *p, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st;

	if (fd == -1)
		return private_fail(
		    p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
	p->log_start = fstat(fd, &st) == 0 ? st.st_size : 0;
	close(fd);
	return 0;
}

/* redis-server quotes its arguments itself: blanks in a path are safe. */
static int
spawn_server(struct place *p, pid_t *pid, int lock, const char *log)
{
	char *pidfile = mq_xasprintf("%s/redis.pid", p->dir);
	const char *argv[] = {NULL, "--port", "0", "--unixsocket", p->socket,
	    "--unixsocketperm", "600", "--dir", p->dir, "--appendonly", "yes",
	    "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	    "--save", "", "--daemonize", "yes", "--logfile", log, "--pidfile",
	    pidfile, "--always-show-logo", "no", NULL};
	int e = private_exec(argv, lock, log, pid);

	free(pidfile);
	if (e == ENOENT)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "redis-server: not found; install it (apt-get install "
		    "redis-server) or name a server with -u or MQ_URL");
	if (e == EMFILE)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "private server in %s: not started: too few open files "
		    "allowed; set the limit to at least %d (ulimit -n)",
		    p->dir, PRIVATE_FILES_MIN);
	if (e != 0)
		return private_fail(p,
		    e == EAGAIN || e == ENOMEM ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
		    "redis-server: %s", strerror(e));
	return 0;
}

/*
 * The process we spawned ends as soon as it has forked the real server.  Where
 * SIGCHLD is ignored its status is lost; then the lock will tell.
 */
static int
start_private(struct place *p, int lock)
{
	char *log = mq_xasprintf("%s/redis.log", p->dir);
	int status, how = 0;
	pid_t pid = -1, r;

	status = open_log(p, log);
	if (status == 0)
		status = spawn_server(p, &pid, lock, log);
	free(log);
	if (status != 0)
		return status;
	do
		r = waitpid(pid, &how, 0);
	while (r == -1 && errno == EINTR);
	return r == pid && how != 0 ? private_did_not_start(p) : 0;
}

/* Redis removes its pid file when it is shut down, by a command or by TERM; a crash
 * leaves it. */
static bool
was_shut_down(const struct place *p)
{
	char *path = mq_xasprintf("%s/redis.pid", p->dir);
	bool rv = access(path, F_OK) == -1 && errno == ENOENT;

	free(path);
	return rv;
}

/*
 * Starts a server if none runs.  A lock that is free again after our own start means
 * that the server has ended.
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
	else if ((status = private_may_start(p, lock)) == 0) {
		p->crashed = !was_shut_down(p);
		status = start_private(p, lock);
	}
	*started = true;
	close(lock);
	return status;
}

/*
 * A server that was killed while it wrote leaves a part of a transaction at the end of
 * its file.  Redis takes that back when it starts, but leaves the MULTI in the file if
 * the last command is not whole: so the start after that one would carry out the part,
 * and what came behind it otherwise than it was.  A new file has nothing of it.
 */
static void
write_anew(const struct place *p)
{
	static const char field[] = "\naof_current_size:";
	char reply[4096], why[256];
	const char *size;

	if (ask(p->socket, "INFO persistence\r\n", reply, sizeof(reply)) != UP)
		return;
	size = strstr(reply, field);
	if (size != NULL &&
	    mq_private_room(p->socket,
		strtoull(size + sizeof(field) - 1, NULL, 10), why,
		sizeof(why)) == 0)
		ask(p->socket, "BGREWRITEAOF\r\n", reply, sizeof(reply));
}

static int
start_if_wanted(struct place *p, bool after_crash, bool *started)
{
	if (after_crash && !*started && was_shut_down(p))
		return private_fail(p, MQ_EXIT_UNAVAILABLE,
		    "private server in %s: it was shut down; the next tool "
		    "starts it",
		    p->dir);
	return start_if_free(p, started);
}

static int
bring_up(struct place *p, bool after_crash)
{
	double deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
	struct timespec pause = {0};
	bool started = false;
	int status = 0, ms;

	for (ms = PAUSE_MIN_MS;; ms = MIN(ms * 2, PAUSE_MAX_MS)) {
		switch (ping(p->socket)) {
		case UP:
			if (p->crashed)
				write_anew(p);
			return 0;
		case LOADING:
			deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
			break;
		case SILENT:
			break;
		case GONE:
			status = start_if_wanted(p, after_crash, &started);
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
mq_private_ensure(const char *dir, bool after_crash, char *socket_path,
    size_t path_size, char *error, size_t error_size)
{
	struct place p = {.error = error, .error_size = error_size};
	int status;

	status = private_find_place(&p, dir, socket_path, path_size);
	if (status == 0 && ping(p.socket) != UP)
		status = bring_up(&p, after_crash);
	free(p.dir);
	return status;
}
