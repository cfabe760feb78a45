/*
 * Starting the private server, and finding out from its log why it did not
 * start.
 */
#include "private-place.h"

#include <sys/param.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exit.h"
#include "xalloc.h"

#define LOCK_FD 3 /* in the server */

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

int
private_did_not_start(struct place *p)
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
	return private_fail(p, status,
	    "private server in %s: did not start: %s; see %s/redis.log", p->dir,
	    reason, p->dir);
}

/* Also finds out early, with errno, that nothing can be written. */
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
		return private_fail(p, MQ_EXIT_CONFIG,
		    "redis-server: not found; install it (apt-get install "
		    "redis-server) or say where a server is with -u or MQ_URL");
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
int
private_start(struct place *p, int lock)
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
