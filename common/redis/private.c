/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "parts.h"

#include <sys/file.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/state.h"
#include "base/syscall.h"
#include "base/xalloc.h"

/*
 * Two servers on one directory are impossible: a tool that starts one holds an flock(2) on
 * DIR/lock and passes that descriptor on, so the kernel keeps the lock until the last
 * process of the server is gone, however it ended.  A server is started only if the lock
 * is free and the connection refused; pid file, socket file and the starter do not
 * matter.
 */

/* The directory of the private server, and the log in it. */
struct place {
	struct mq_server *server; /* with the path of its socket */
	char *dir;		  /* absolute */
	char *log, *pid;	  /* files in it */
	off_t log_start;	  /* size of the log before our start */
	bool started;		  /* a server, by us */
	bool crashed;		  /* the server before was killed */
};

/* --- directory ----------------------------------------------------------- */

/* NULL: no home is known. */
static char *
wanted_dir(const char *dir)
{
	char *d;
	size_t n;

	if (dir == NULL || *dir == '\0')
		return mq_state_dir();
	d = mq_xstrdup(dir);
	for (n = strlen(d); n > 1 && d[n - 1] == '/'; n--)
		d[n - 1] = '\0';
	return d;
}

/* Refuses a directory that others can write to: another user may have put a socket there
 * already, so repair would come too late. */
static int
check_dir(struct place *p)
{
	struct stat st;

	if (mq_make_dirs(p->dir, 0700) == -1 || stat(p->dir, &st) == -1)
		return mq_server_fail(
		    p->server, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return mq_server_fail(
		    p->server, MQ_EXIT_CONFIG, "%s: not a directory", p->dir);
	if (st.st_uid != geteuid())
		return mq_server_fail(p->server, MQ_EXIT_CONFIG,
		    "%s: belongs to user %lu, not to you", p->dir,
		    (unsigned long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return mq_server_fail(p->server, MQ_EXIT_CONFIG,
		    "%s: others can write to it (chmod 700 %s)", p->dir,
		    p->dir);
	return 0;
}

static int
name_socket(struct place *p)
{
	const size_t most = sizeof(p->server->socket) - 1;
	int n = snprintf(p->server->socket, most + 1, "%s/redis.sock", p->dir);

	if ((size_t)n <= most)
		return 0;
	return mq_server_fail(p->server, MQ_EXIT_CONFIG,
	    "%s: too long for a unix socket (at most %zu bytes); "
	    "choose a shorter directory",
	    p->dir, most - strlen("/redis.sock"));
}

/* --- the log -------------------------------------------------------------------- */

/* The last line of the log since log_start, or "", without its stamp: "Reason" of
 * "123:M 01 Jan 2024 10:00:00.000 # Reason". */
static char *
last_words(struct place *p, char *text, size_t size)
{
	int fd = open(p->log, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), stamp = 0;
	struct stat st;
	ssize_t n = 0;
	off_t from;
	char *line;

	if (fd != -1 && fstat(fd, &st) == 0) {
		from = st.st_size - (off_t)(size - 1);
		n = pread(fd, text, size - 1, MAX(from, p->log_start));
	}
	if (fd != -1)
		close(fd);
	while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
		n--;
	text[MAX(n, 0)] = '\0';
	line = strrchr(text, '\n');
	line = line != NULL ? line + 1 : text;
	(void)sscanf(
	    line, "%*d:%*c %*d %*s %*d %*d:%*d:%*d.%*d %*1[-.*#] %n", &stamp);
	return line + stamp;
}

/* The server ended before it answered: the status, with the reason from its log, which is in
 * English in every locale. */
static int
did_not_start(struct place *p)
{
	static const char *const of_disk[] = {"No space left on device",
	    "Disk quota exceeded", "Read-only file system",
	    "Input/output error", "File too large"};
	char text[4096];
	const char *reason = last_words(p, text, sizeof(text));
	int status = MQ_EXIT_CONFIG;
	size_t i;

	for (i = 0; i < sizeof(of_disk) / sizeof(of_disk[0]); i++)
		if (strstr(reason, of_disk[i]) != NULL)
			status = MQ_EXIT_IO;
	return mq_server_fail(p->server, status,
	    "private server in %s: did not start: %s; see %s", p->dir,
	    *reason != '\0' ? reason : "it ended without a message", p->log);
}

/* --- disk ---------------------------------------------------------------- */

/* The server syncs each write to disk, and ends when it cannot write. */

/* Bytes that a server needs for small steps: to join, to reject, to leave. */
#define ROOM 1048576
/* Seconds before a server that could not write is started again. */
#define REST_S 10

/* Tests whether the disk allows a start: 0, or the status with the error.  lock is the open
 * lock file, which is empty before and after. */
static int
may_start(struct place *p, int lock)
{
	/* Allocating tests the quota, too. */
	int e = posix_fallocate(lock, 0, ROOM);
	time_t now = time(NULL);
	struct stat st;
	char text[4096];

	if (ftruncate(lock, 0) == -1)
		e = errno;
	if (e == ENOSPC || e == EDQUOT || e == EIO)
		return mq_server_fail(p->server, MQ_EXIT_IO,
		    "private server in %s: not started: %s: it needs %d KiB",
		    p->dir, strerror(e), ROOM / 1024);
	/* A new server could end at once, by the same write. */
	if (strstr(last_words(p, text, sizeof(text)), "AOF write error") !=
		NULL &&
	    stat(p->log, &st) == 0 && st.st_mtime <= now &&
	    now - st.st_mtime < REST_S)
		return mq_server_fail(p->server, MQ_EXIT_AGAIN,
		    "private server in %s: ended: it could not write "
		    "to its disk; it is started again in %d seconds; see %s",
		    p->dir, REST_S, p->log);
	return 0;
}

int
mq_server_room(const struct mq_server *server, size_t bytes, char *error,
    size_t error_size)
{
	unsigned long long free_bytes, needed = bytes + 1ULL * ROOM;
	char dir[sizeof(server->socket)];
	struct statvfs fs;

	if (server->url.kind != MQ_URL_PRIVATE)
		return 0;
	strlcpy(dir, server->socket, sizeof(dir));
	*strrchr(dir, '/') = '\0';
	if (statvfs(dir, &fs) == -1)
		return 0;
	free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
	if (free_bytes >= needed)
		return 0;
	snprintf(error, error_size,
	    "private server in %s: %s: %llu KiB are free, and %llu KiB are "
	    "needed",
	    dir, strerror(ENOSPC), free_bytes / 1024, (needed + 1023) / 1024);
	return MQ_EXIT_IO;
}

/* --- process ------------------------------------------------------------- */

/* The server outlives the cron job, the script under limits or the shell that starts it:
 * it inherits nothing but the lock. */

#define LOCK_FD	  3	/* in the server */
#define FILES	  10240 /* for the 10000 clients that Redis allows by default */
#define FILES_MIN 256	/* fewer may not do for the clients of the server */
#define STACK	  ((rlim_t)8 * 1024 * 1024)

/* The functions below run in the child of vfork(2), which shares our memory: only
 * system calls.  Changes that are not permitted are left out. */

static void
set_limits(void)
{
	static const struct {
		int resource;
		rlim_t wanted;
	} limits[] = {{RLIMIT_NOFILE, FILES}, {RLIMIT_STACK, STACK},
	    /* A core file would show the messages. */
	    {RLIMIT_CORE, 0}, {RLIMIT_CPU, RLIM_INFINITY},
	    {RLIMIT_FSIZE, RLIM_INFINITY}, {RLIMIT_DATA, RLIM_INFINITY},
	    {RLIMIT_AS, RLIM_INFINITY}, {RLIMIT_NPROC, RLIM_INFINITY}};
	struct rlimit now, new;
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		(void)getrlimit(limits[i].resource, &now);
		new.rlim_cur = limits[i].wanted;
		new.rlim_max = MAX(now.rlim_max, new.rlim_cur);
		now.rlim_cur = now.rlim_max;
		if (setrlimit(limits[i].resource, &new) == -1)
			(void)setrlimit(limits[i].resource, &now);
	}
}

/*
 * Descriptors 0 to 2 are open, as in all tools.  Standard error goes to the log, until the
 * server opens the log itself.  All other descriptors are closed: the end of a pipe, say,
 * would stay open for ever.
 */
static int
set_files(int lock, int log)
{
	int null = open("/dev/null", O_RDWR);

	if (null == -1 || dup2(null, 0) == -1 || dup2(null, 1) == -1 ||
	    dup2(log, 2) == -1 ||
	    (lock != LOCK_FD && dup2(lock, LOCK_FD) == -1) ||
	    fcntl(LOCK_FD, F_SETFD, 0) == -1)
		return -1;
	return mq_close_from(LOCK_FD + 1, 0);
}

/* Returns only after a failure, an errno value. */
static int
become_server(const char **argv, char *const *env, int lock, int log)
{
	static const char *const names[] = {"redis-server", "valkey-server"};
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY), sig;
	struct rlimit files;
	cpu_set_t all;
	sigset_t none;
	size_t i;

	/* In a session of its own, ^C at the starter does not reach the server. */
	(void)setsid();
	(void)umask(077);
	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	set_limits();
	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all);
	mq_schedule_usual();
	(void)setpriority(PRIO_PROCESS, 0, 0);
	(void)!write(fd, "0", 1);
	close(fd);
	if (set_files(lock, log) == -1)
		return errno;
	(void)getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < FILES_MIN)
		return EMFILE;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		argv[0] = names[i];
		execvpe(argv[0], (char *const *)argv, env);
		if (errno != ENOENT)
			break;
	}
	return errno;
}

/*
 * Executes redis-server, or valkey-server if there is none, with these arguments, whose
 * first is set here.  The server inherits the lock, but no limit that can be lifted, no
 * priority, descriptor or signal, and of the environment only PATH, HOME and TZ: in another
 * locale, scripts would compare strings in another order.  The process ends as soon as it
 * has forked the real server; *how is its status, unchanged if SIGCHLD is ignored.  Returns
 * 0, or an errno value: EMFILE if the limit of open files stays below FILES_MIN.
 */
static int
exec_server(const char **argv, int lock, int log, int *how)
{
	static const char *const kept[] = {"PATH", "HOME", "TZ"};
	char *env[sizeof(kept) / sizeof(kept[0]) + 1] = {NULL}, **e = env;
	volatile int failure = 0;
	sigset_t all, old;
	const char *value;
	size_t i;
	pid_t pid;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if ((value = getenv(kept[i])) != NULL)
			*e++ = mq_xasprintf("%s=%s", kept[i], value);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = vfork();
	if (pid == 0) {
		failure = become_server(argv, env, lock, log);
		_exit(127);
	}
	if (pid == -1)
		failure = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	while (e > env)
		free(*--e);
	while (pid != -1 && waitpid(pid, how, 0) == -1 && errno == EINTR)
		;
	return failure;
}

/* --- ping ---------------------------------------------------------------- */

#define PATIENCE_S   30.0 /* for a silent server */
#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100

enum answer {
	GONE,	/* no server listens */
	SILENT, /* a server listens, but did not answer */
	LOADING,
	UP
};

/* Any reply but -LOADING means that the server is up; reply becomes a string.  The real
 * connection will report a refusal (a password, too many clients). */
static enum answer
ask(const char *path, const char *question, char *reply, size_t size)
{
	/* Also for connect(2), which waits while the backlog is full. */
	const struct timeval limit = {.tv_sec = 1};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	enum answer answer = GONE;
	ssize_t n;
	int fd;

	strlcpy(to.sun_path, path, sizeof(to.sun_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return GONE;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
		/* A failure to send does not matter: a refusal may have come. */
		(void)send(fd, question, strlen(question), MSG_NOSIGNAL);
		n = recv(fd, reply, size - 1, 0);
		reply[MAX(n, 0)] = '\0';
		answer = n <= 0			       ? SILENT :
		    strncmp(reply, "-LOADING", 8) == 0 ? LOADING :
							 UP;
	} else if (errno == EAGAIN || errno == EINTR) {
		answer = SILENT;
	}
	close(fd);
	return answer;
}

/* *lock becomes the locked file, or -1 if a server has the lock. */
static int
take_lock(struct place *p, int *lock)
{
	char *path = mq_xasprintf("%s/lock", p->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int status = 0;

	*lock = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? fd : -1;
	if (fd == -1 || (*lock == -1 && errno != EWOULDBLOCK && errno != EINTR))
		status = mq_server_fail(
		    p->server, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
	if (*lock == -1 && fd != -1)
		close(fd);
	free(path);
	return status;
}

/* --- starting it --------------------------------------------------------- */

/* redis-server quotes its arguments itself: blanks in a path are safe. */
static int
start_private(struct place *p, int lock)
{
	const char *argv[] = {NULL, "--port", "0", "--unixsocket",
	    p->server->socket, "--unixsocketperm", "600", "--dir", p->dir,
	    "--appendonly", "yes", "--appendfsync", "always",
	    "--maxmemory-policy", "noeviction", "--save", "", "--daemonize",
	    "yes", "--logfile", p->log, "--pidfile", p->pid,
	    "--always-show-logo", "no", NULL};
	int log = open(p->log,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	int e, how = 0;

	if (log == -1)
		return mq_server_fail(
		    p->server, MQ_EXIT_IO, "%s: %s", p->log, strerror(errno));
	p->log_start = fstat(log, &st) == 0 ? st.st_size : 0;
	e = exec_server(argv, lock, log, &how);
	close(log);
	if (e == ENOENT)
		return mq_server_fail(p->server, MQ_EXIT_CONFIG,
		    "redis-server, valkey-server: not found; install one of "
		    "them, or name a server with -u or MQ_URL");
	if (e == EMFILE)
		return mq_server_fail(p->server, MQ_EXIT_CONFIG,
		    "private server in %s: not started: too few open files "
		    "allowed; set the limit to at least %d (ulimit -n)",
		    p->dir, FILES_MIN);
	if (e != 0)
		return mq_server_fail(p->server,
		    e == EAGAIN || e == ENOMEM ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
		    "redis-server: %s", strerror(e));
	return how != 0 ? did_not_start(p) : 0;
}

/* Redis removes its pid file when a command or TERM shuts it down; a crash leaves it. */
static bool
was_shut_down(const struct place *p)
{
	return access(p->pid, F_OK) == -1 && errno == ENOENT;
}

/* Starts a server if none runs.  If the lock is free after our own start, that server has
 * ended. */
static int
start_if_free(struct place *p)
{
	int lock, status;

	if (p->server->waits && !p->started && was_shut_down(p))
		return mq_server_fail(p->server, MQ_EXIT_UNAVAILABLE,
		    "private server in %s: it was shut down; the next tool "
		    "starts it",
		    p->dir);
	status = take_lock(p, &lock);
	if (status != 0 || lock == -1)
		return status;
	if (p->started)
		status = did_not_start(p);
	else if ((status = may_start(p, lock)) == 0) {
		p->crashed = !was_shut_down(p);
		status = start_private(p, lock);
	}
	p->started = true;
	close(lock);
	return status;
}

/*
 * A server that was killed while it wrote leaves part of a transaction at the end of its
 * file.  When it starts, Redis takes that back, but, if the last command was cut short,
 * leaves the MULTI in the file: the start after that would carry out the part, and
 * everything behind it in one transaction.  A rewritten file has no such end.
 */
static void
write_anew(const struct place *p)
{
	static const char field[] = "\naof_current_size:";
	char reply[4096], why[256];
	const char *size;

	if (ask(p->server->socket, "INFO persistence\r\n", reply,
		sizeof(reply)) != UP)
		return;
	size = strstr(reply, field);
	if (size != NULL &&
	    mq_server_room(p->server,
		strtoull(size + sizeof(field) - 1, NULL, 10), why,
		sizeof(why)) == 0)
		ask(p->server->socket, "BGREWRITEAOF\r\n", reply,
		    sizeof(reply));
}

static int
bring_up(struct place *p)
{
	double deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
	char reply[128];
	enum answer answer;
	int status = 0, ms;

	for (ms = PAUSE_MIN_MS;; ms = MIN(ms * 2, PAUSE_MAX_MS)) {
		answer =
		    ask(p->server->socket, "PING\r\n", reply, sizeof(reply));
		if (answer == UP && p->crashed)
			write_anew(p);
		if (answer == UP)
			return 0;
		if (answer == LOADING)
			deadline = mq_clock_s(CLOCK_MONOTONIC) + PATIENCE_S;
		if (answer == GONE)
			status = start_if_free(p);
		if (status != 0)
			return status;
		if (mq_clock_s(CLOCK_MONOTONIC) > deadline)
			return mq_server_fail(p->server, MQ_EXIT_UNAVAILABLE,
			    "the private server in %s does not answer; "
			    "see %s",
			    p->dir, p->log);
		(void)poll(NULL, 0, ms);
	}
}

int
mq_private_ensure(struct mq_server *server)
{
	struct place p = {.server = server};
	char *absolute;
	int status;

	p.dir = wanted_dir(server->url.path);
	if (p.dir == NULL)
		return mq_server_fail(server, MQ_EXIT_CONFIG,
		    "no home directory: set HOME or XDG_STATE_HOME to an "
		    "absolute path");
	/* A path that is too long fails before anything is made. */
	status = name_socket(&p);
	if (status == 0)
		status = check_dir(&p);
	if (status == 0 && *p.dir != '/') {
		absolute = realpath(p.dir, NULL);
		if (absolute == NULL) {
			status = mq_server_fail(server, MQ_EXIT_IO, "%s: %s",
			    p.dir, strerror(errno));
		} else {
			free(p.dir);
			p.dir = absolute;
			status = name_socket(&p);
		}
	}
	p.log = mq_xasprintf("%s/redis.log", p.dir);
	p.pid = mq_xasprintf("%s/redis.pid", p.dir);
	if (status == 0)
		status = bring_up(&p);
	free(p.dir);
	free(p.log);
	free(p.pid);
	return status;
}
