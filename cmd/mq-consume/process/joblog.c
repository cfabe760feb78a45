#include "joblog.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/signame.h"

static const char titles[] =
    "Endtime\tQueue\tId\tAttempt\tSlot\tHost\tJobRuntime\tExitval\tVerdict\t"
    "Text\n";

/* --- writing ---------------------------------------------------------------- */

static void
note_failure(struct joblog *j, int error)
{
	if (j->error != error)
		mq_say("%s: %s; lines of the job log are lost", j->path,
		    strerror(error));
	j->error = error;
}

/* One line.  The rest of a line that was cut, as on a full disk, is lost. */
static void
write_line(struct joblog *j, const char *line, size_t n)
{
	ssize_t wrote = write(j->fd, line, n);

	if (wrote == (ssize_t)n)
		j->error = 0;
	else
		note_failure(j, wrote == -1 ? errno : ENOSPC);
	if (wrote > 0)
		j->torn = wrote < (ssize_t)n;
}

static void
add_text(struct mq_buf *line, const char *text)
{
	char *shown = text[0] != '\0' ? mq_visible(text, strlen(text)) : NULL;

	mq_buf_addstr(line, shown != NULL ? shown : "-");
	free(shown);
}

static void
add_status(struct mq_buf *line, int status)
{
	const char *name;

	if (status == -1)
		mq_buf_addstr(line, "-");
	else if (!WIFSIGNALED(status))
		mq_buf_printf(line, "%d", WEXITSTATUS(status));
	else if ((name = mq_signal_name(WTERMSIG(status))) != NULL)
		mq_buf_addstr(line, name);
	else
		mq_buf_printf(line, "SIG%d", WTERMSIG(status));
}

void
joblog_write(struct joblog *j, const struct job *job)
{
	int64_t now_ms = mq_clock_unix_us() / 1000;
	struct mq_buf line = {0};

	if (j->path == NULL)
		return;
	/* Otherwise this line would end the one that was cut. */
	if (j->torn)
		mq_buf_addstr(&line, "\n");
	mq_buf_printf(
	    &line, "%" PRId64 ".%03d\t", now_ms / 1000, (int)(now_ms % 1000));
	add_text(&line, job->queue);
	mq_buf_addstr(&line, "\t");
	add_text(&line, job->id);
	mq_buf_printf(&line, "\t%ld\t%d\t", job->attempt, job->slot);
	add_text(&line, j->host);
	mq_buf_printf(&line, "\t%.3f\t", job->seconds);
	add_status(&line, job->status);
	mq_buf_printf(&line, "\t%s\t", job->verdict);
	add_text(&line, job->text);
	mq_buf_addstr(&line, "\n");
	write_line(j, line.data, line.len);
	mq_buf_free(&line);
}

/* --- opening ---------------------------------------------------------------- */

static bool
is_new(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == 0;
}

/* Of several consumers that open a new file, one writes the titles, before any
 * line.  Nobody who opens an older file waits for the lock. */
static void
begin_file(struct joblog *j)
{
	j->torn = false;
	if (!is_new(j->fd))
		return;
	(void)flock(j->fd, LOCK_EX);
	if (is_new(j->fd))
		write_line(j, titles, sizeof(titles) - 1);
	(void)flock(j->fd, LOCK_UN);
}

/* A terminal that is stopped, or a pipe that is full, loses lines: it does not stop
 * the consumer. */
static int
open_file(const char *path)
{
	return open(path,
	    O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    0640);
}

void
joblog_init(struct joblog *j, const char *path, const char *host)
{
	*j = (struct joblog){.path = path, .host = host, .fd = -1};
	if (path == NULL)
		return;
	j->fd = open_file(path);
	if (j->fd == -1)
		mq_die(MQ_EXIT_IO, "--joblog: %s: %s", path, strerror(errno));
	begin_file(j);
}

void
joblog_reopen(struct joblog *j)
{
	int fd;

	if (j->path == NULL)
		return;
	fd = open_file(j->path);
	if (fd == -1) {
		mq_say("%s: %s; going on with the old file", j->path,
		    strerror(errno));
		return;
	}
	close(j->fd);
	j->fd = fd;
	begin_file(j);
}

void
joblog_end(struct joblog *j)
{
	if (j->fd != -1)
		close(j->fd);
}
