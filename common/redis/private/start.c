#include "start.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/xalloc.h"
#include "exec.h"
#include "log.h"

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
