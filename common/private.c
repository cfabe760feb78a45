#include "private.h"

#include <sys/file.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exit.h"
#include "xalloc.h"

/*
 * How two servers on one directory are kept impossible: whoever starts one
 * holds an flock(2) on DIR/lock and passes that very descriptor on, so the
 * kernel keeps the lock until the last process of the server is gone, however
 * it ended.  Nothing depends on the pid file, on the socket file or on the
 * starter staying alive.  A free lock together with a refused connection is
 * the only state in which a server is started.
 */

#define PATIENCE_MS  30000 /* for a server that says nothing at all */
#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100
#define LOCK_FD	     3 /* in the server */

enum answer {
	GONE,	/* nobody listens */
	SILENT, /* somebody listens, but did not answer yet */
	LOADING,
	UP
};

struct place {
	char *dir;	    /* absolute */
	const char *socket; /* the caller's buffer */
	off_t log_start;    /* where the log of our own start begins */
	char *error;
	size_t error_size;
};

static int fail(struct place *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int
fail(struct place *p, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error, p->error_size, fmt, ap);
	va_end(ap);
	return status;
}

static long long
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
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
		return fail(p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(
		    p, MQ_EXIT_CONFIG, "%s: is not a directory", p->dir);
	if (st.st_uid != geteuid())
		return fail(p, MQ_EXIT_CONFIG,
		    "%s: belongs to user %lu, not to you", p->dir,
		    (unsigned long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return fail(p, MQ_EXIT_CONFIG,
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
		return fail(p, MQ_EXIT_CONFIG,
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
		return fail(p, MQ_EXIT_CONFIG,
		    "no home directory: set HOME or XDG_STATE_HOME");
	/* Before anything is made, too. */
	status = name_socket(p, path, size);
	if (status == 0)
		status = check_dir(p);
	if (status != 0 || *p->dir == '/')
		return status;

	absolute = realpath(p->dir, NULL);
	if (absolute == NULL)
		return fail(p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
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
		status = fail(p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
	} else if (flock(*fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			status = fail(
			    p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
		close(*fd);
		*fd = -1;
	}
	free(path);
	return status;
}

/* --- why did it not start? ----------------------------------------------- */

static size_t
read_tail(struct place *p, char *text, size_t size)
{
	char *path = mq_xasprintf("%s/redis.log", p->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;
	off_t from;

	free(path);
	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == 0) {
		from = st.st_size - (off_t)size;
		if (from < p->log_start)
			from = p->log_start;
		n = pread(fd, text, size, from);
	}
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* "123:M 01 Jan 2024 10:00:00.000 # Reason" becomes "Reason". */
static char *
without_stamp(char *line)
{
	int n = 0;

	(void)sscanf(
	    line, "%*d:%*c %*d %*s %*d %*d:%*d:%*d.%*d %*1[-.*#] %n", &n);
	return line + n;
}

/* The last line that the server logged since log_start; "" if none. */
static char *
last_words(struct place *p, char *text, size_t size)
{
	size_t n = read_tail(p, text, size - 1);
	char *line;

	while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	return without_stamp(line != NULL ? line + 1 : text);
}

/* The server speaks English whatever our locale is. */
static bool
is_about_the_disk(const char *reason)
{
	static const char *const texts[] = {"No space left on device",
	    "Disk quota exceeded", "Read-only file system",
	    "Input/output error", "File too large"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strstr(reason, texts[i]) != NULL)
			return true;
	return false;
}

/* A full disk has no room for the log line that would say so. */
static bool
is_disk_full(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) == 0 && fs.f_bavail == 0;
}

static int
did_not_start(struct place *p)
{
	char text[4096];
	const char *reason = last_words(p, text, sizeof(text));
	int status = MQ_EXIT_CONFIG;

	if (is_about_the_disk(reason)) {
		status = MQ_EXIT_IO;
	} else if (is_disk_full(p->dir)) {
		reason = strerror(ENOSPC);
		status = MQ_EXIT_IO;
	} else if (*reason == '\0') {
		reason = "it ended without a word";
	}
	return fail(p, status,
	    "private server in %s: did not start: %s; see %s/redis.log", p->dir,
	    reason, p->dir);
}

/* --- starting it --------------------------------------------------------- */

/* Also finds out early, with errno, that nothing can be written. */
static int
open_log(struct place *p, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st;

	if (fd == -1)
		return fail(p, MQ_EXIT_IO, "%s: %s", path, strerror(errno));
	p->log_start = fstat(fd, &st) == 0 ? st.st_size : 0;
	close(fd);
	return 0;
}

/*
 * The lock comes first, since it may sit on any number, 0 to 2 included.
 * Standard error goes to the log, for what the server says before it has
 * opened that itself.  A descriptor that leaked into the server, say the end
 * of somebody's pipe, would stay open for ever: hence the last line.
 */
static int
set_files(posix_spawn_file_actions_t *files, int lock, const char *log)
{
	int e;

	e = posix_spawn_file_actions_adddup2(files, lock, LOCK_FD);
	if (e == 0)
		e = posix_spawn_file_actions_addopen(
		    files, 0, "/dev/null", O_RDWR, 0);
	if (e == 0)
		e = posix_spawn_file_actions_adddup2(files, 0, 1);
	if (e == 0)
		e = posix_spawn_file_actions_addopen(
		    files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (e == 0)
		e = posix_spawn_file_actions_addclosefrom_np(
		    files, LOCK_FD + 1);
	return e;
}

/* A session of its own at once: ^C at the starter is not for the server. */
static int
set_signals(posix_spawnattr_t *attr)
{
	const short flags =
	    POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID;
	sigset_t all, none;
	int e;

	sigfillset(&all);
	sigemptyset(&none);
	e = posix_spawnattr_setsigdefault(attr, &all);
	if (e == 0)
		e = posix_spawnattr_setsigmask(attr, &none);
	if (e == 0)
		e = posix_spawnattr_setflags(attr, flags);
	return e;
}

/* Returns an errno value. */
static int
spawn(pid_t *pid, const char **argv, int lock, const char *log)
{
	static const char *const names[] = {"redis-server", "valkey-server"};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	mode_t mask;
	size_t i;
	int e;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	e = set_files(&files, lock, log);
	if (e == 0)
		e = set_signals(&attr);
	if (e == 0) {
		mask = umask(077);
		e = ENOENT;
		for (i = 0; e == ENOENT && i < 2; i++) {
			argv[0] = names[i];
			e = posix_spawnp(pid, names[i], &files, &attr,
			    (char *const *)argv, environ);
		}
		umask(mask);
	}
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return e;
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
	int e = spawn(pid, argv, lock, log);

	free(pidfile);
	if (e == ENOENT)
		return fail(p, MQ_EXIT_CONFIG,
		    "redis-server: not found; install it (apt-get install "
		    "redis-server) or say where a server is with -u or MQ_URL");
	if (e != 0)
		return fail(p, MQ_EXIT_CONFIG, "redis-server: %s", strerror(e));
	return 0;
}

/*
 * The process we spawned ends as soon as it has forked the real server.  Where
 * SIGCHLD is ignored its status is lost; then the lock will tell.
 */
static int
start(struct place *p, int lock)
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
	return r == pid && how != 0 ? did_not_start(p) : 0;
}

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
	status = *started ? did_not_start(p) : start(p, lock);
	*started = true;
	close(lock);
	return status;
}

static int
bring_up(struct place *p)
{
	long long deadline = now_ms() + PATIENCE_MS;
	struct timespec pause = {0};
	bool started = false;
	int status = 0, ms;

	for (ms = PAUSE_MIN_MS;; ms = MIN(ms * 2, PAUSE_MAX_MS)) {
		switch (ping(p->socket)) {
		case UP:
			return 0;
		case LOADING:
			deadline = now_ms() + PATIENCE_MS;
			break;
		case SILENT:
			break;
		case GONE:
			status = start_if_free(p, &started);
			break;
		}
		if (status != 0)
			return status;
		if (now_ms() > deadline)
			return fail(p, MQ_EXIT_UNAVAILABLE,
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
