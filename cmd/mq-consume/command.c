/*
 * What a command needs around it: where it is, where it runs, where its output
 * goes.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"

char *
command_find(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char *candidate;

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0 ? mq_xstrdup(name) : NULL;
	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		candidate = mq_xasprintf("%.*s%s%s", (int)(end - path), path,
		    end == path ? "./" : "/", name);
		if (access(candidate, X_OK) == 0)
			return candidate;
		free(candidate);
		if (*end == '\0')
			return NULL;
	}
}

/* RQ_SCRIPT: absolute, since scripts go to its directory, but not resolved. */
char *
command_absolute(const char *path)
{
	char here[PATH_MAX];

	if (*path == '/' || getcwd(here, sizeof(here)) == NULL)
		return mq_xstrdup(path);
	return mq_xasprintf("%s/%s", here, path);
}

/*
 * The script's own directory, made when it is not there.  It is kept over
 * attempts, and removed after the last when the script left nothing in it.
 */
char *
command_work_dir(struct consumer *c, const struct message *m)
{
	char *dir = mq_xasprintf("%s/%s", c->opt->work_dir, m->id);

	int error;

	if (mkdir(dir, 0700) == -1 && errno != EEXIST) {
		error = errno;
		if (!c->starving)
			mq_say("%s: %s", dir, strerror(error));
		free(dir);
		errno = error;
		return NULL;
	}
	return dir;
}

void
command_remove_work_dir(struct consumer *c, const struct message *m)
{
	char *dir;

	if (c->opt->work_dir == NULL)
		return;
	dir = mq_xasprintf("%s/%s", c->opt->work_dir, m->id);
	(void)rmdir(dir);
	free(dir);
}

/* A queue's name as that of a file: no '/', and no leading dot. */
static char *
log_name(const char *dir, const char *queue)
{
	struct mq_buf name = {0};
	char *path;

	for (; *queue != '\0'; queue++)
		if (*queue == '/' || *queue == '%' ||
		    (*queue == '.' && name.len == 0))
			mq_buf_printf(&name, "%%%02X", (unsigned char)*queue);
		else
			mq_buf_add(&name, queue, 1);
	path = mq_xasprintf("%s/%s.log", dir, mq_buf_str(&name));
	mq_buf_free(&name);
	return path;
}

/* Not a pipe: without a reader, that would hold us up, here or later. */
static int
open_log(const char *path)
{
	int fd = open(path,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0640);
	struct stat st;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode) &&
	    fcntl(fd, F_SETFL, O_APPEND) == 0)
		return fd;
	close(fd);
	errno = ENOTSUP;
	return -1;
}

void
command_open_logs(struct consumer *c)
{
	bool first = c->outputs.logs == NULL;
	char *path;
	int i, fd;

	if (c->opt->log_dir == NULL)
		return;
	for (i = 0; i < c->opt->queue_count; i++) {
		path = log_name(c->opt->log_dir, c->opt->queues[i]);
		fd = open_log(path);
		if (fd == -1 && first)
			mq_die(MQ_EXIT_IO, "%s: %s", path, strerror(errno));
		if (fd == -1)
			mq_say("%s: %s; going on with the old file", path,
			    strerror(errno));
		if (fd != -1)
			errors_log(c, i, fd, path);
		free(path);
	}
}

void
command_log_start(const struct slot *s)
{
	struct consumer *c = s->c;
	const struct message *m = slot_on(s);
	char stamp[32], what[MQ_ID_MAX + 32], *line;
	time_t now = time(NULL);
	struct tm tm;

	if (c->outputs.logs == NULL)
		return;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z",
	    localtime_r(&now, &tm));
	if (m == NULL)
		snprintf(what, sizeof(what), "worker");
	else if (s->ones != NULL)
		snprintf(what, sizeof(what), "batch of %d", s->count);
	else
		snprintf(what, sizeof(what), "%s attempt %ld", m->id,
		    m->attempts + 1);
	line = mq_xasprintf("--- %s %s: %s\n", stamp, what, c->script);
	sink_put(
	    &c->outputs.logs[m != NULL ? m->queue : 0], line, strlen(line));
	free(line);
}
