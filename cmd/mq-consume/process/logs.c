#include "logs.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

/* The log's path: the queue's name without '/' and leading dot. */
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

/* A pipe is refused: without a reader, it would block us. */
static int
open_log_file(const char *path)
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
logs_open(struct outputs *outputs, const struct options *opt)
{
	bool first = !outputs_has_logs(outputs);
	char *path;
	int i, fd;

	if (opt->log_dir == NULL)
		return;
	for (i = 0; i < opt->queue_count; i++) {
		path = log_name(opt->log_dir, opt->queues[i]);
		fd = open_log_file(path);
		if (fd == -1 && first)
			mq_die(MQ_EXIT_IO, "%s: %s", path, strerror(errno));
		if (fd == -1)
			mq_say("%s: %s; going on with the old file", path,
			    strerror(errno));
		if (fd != -1)
			outputs_log(outputs, i, opt->queue_count, fd, path);
		free(path);
	}
}

void
logs_begin(struct outputs *outputs, int i, const char *what, const char *script)
{
	char stamp[32], *line;
	time_t now = time(NULL);
	struct tm tm;

	if (!outputs_has_logs(outputs))
		return;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z",
	    localtime_r(&now, &tm));
	line = mq_xasprintf("--- %s %s: %s\n", stamp, what, script);
	outputs_log_line(outputs, i, line);
	free(line);
}
