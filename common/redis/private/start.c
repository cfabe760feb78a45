/*
 * Starting the private server, and finding out from its log why it did not
 * start.
 */
#include "place.h"

#include <sys/param.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/xalloc.h"

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

char *
private_last_words(struct place *p, char *text, size_t size)
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

int
private_did_not_start(struct place *p)
{
	char text[4096];
	const char *reason = private_last_words(p, text, sizeof(text));
	int status = MQ_EXIT_CONFIG;

	if (is_about_the_disk(reason)) {
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
		    "redis-server) or say where a server is with -u or MQ_URL");
	if (e == EMFILE)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "private server in %s: not started: the limit of open "
		    "files here would hold for all its clients; at least %d "
		    "are needed (ulimit -n)",
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
