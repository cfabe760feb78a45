/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "process.h"

#include <sys/file.h>

static const char titles[] =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\t"
    "Command\t#\tQueue\tId\tAttempt\tSlot\tVerdict\tText\n";

/* Consumers that share a file wait for each other, up to 0.1 s: one may be stopped. */
#define LOCK_TRIES  100
#define LOCK_NAP_NS 1000000

/* --- writing ---------------------------------------------------------------- */

/* If a line is cut, as on a full disk, its end is lost. */
static void
write_line(struct joblog *j, const char *line, size_t n)
{
	ssize_t wrote = write(j->fd, line, n);
	int error = wrote == (ssize_t)n ? 0 : wrote == -1 ? errno : ENOSPC;

	if (error != 0 && error != j->error)
		mq_say("%s: %s; lines of the job log are lost", j->path,
		    strerror(error));
	j->error = error;
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
add_columns(struct mq_buf *line, const struct joblog *j,
    const struct message *m, int status, const char *verdict, const char *text)
{
	double now = (double)mq_clock_unix_us() / 1e6;
	bool good =
	    strcmp(verdict, "done") == 0 || strcmp(verdict, "pushed") == 0;
	int value = 0, signal = 0;

	/* By Exitval and Signal, parallel decides what to repeat: the verdict counts, not the
	 * status of the process. */
	if (!good && status != -1 && WIFEXITED(status))
		value = WEXITSTATUS(status);
	if (!good && status != -1 && WIFSIGNALED(status))
		signal = WTERMSIG(status);
	if (!good && value == 0 && signal == 0)
		value = strcmp(verdict, "rejected") == 0 ? 1 : MQ_EXIT_AGAIN;
	/* After a cut line, this one needs a newline in front. */
	if (j->torn)
		mq_buf_addstr(line, "\n");
	/* Seq is the number of lines before, of which one has the titles. */
	mq_buf_printf(line, "%ld\t", j->lines + j->torn);
	add_text(line, j->host);
	mq_buf_printf(line, "\t%.3f\t%.3f\t0\t0\t%d\t%d\t%s\t#\t",
	    now - m->ran_s, m->ran_s, value, signal, j->command);
	add_text(line, m->queue_name);
	mq_buf_addstr(line, "\t");
	add_text(line, m->id);
	mq_buf_printf(
	    line, "\t%ld\t%d\t%s\t", m->attempts + 1, m->slot_number, verdict);
	add_text(line, text);
	mq_buf_addstr(line, "\n");
}

void
joblog_write(struct joblog *j, const struct message *m, int status,
    const char *verdict, const char *text)
{
	const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
	struct mq_buf line = {0};
	char block[65536], *p;
	int tries = LOCK_TRIES;
	ssize_t n;

	while (flock(j->fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK &&
	    --tries > 0)
		nanosleep(&nap, NULL);
	/* Other consumers may have added lines; the first call counts all lines of the file. */
	while (j->in != -1 &&
	    (n = pread(j->in, block, sizeof(block), j->counted)) > 0) {
		for (p = block; p < block + n; p++)
			j->lines += *p == '\n';
		j->counted += n;
	}
	add_columns(&line, j, m, status, verdict, text);
	write_line(j, line.data, line.len);
	if (j->in == -1)
		j->lines++;
	(void)flock(j->fd, LOCK_UN);
	mq_buf_free(&line);
}

/* --- opening ---------------------------------------------------------------- */

void
joblog_close(struct joblog *j)
{
	if (j->fd != -1)
		close(j->fd);
	if (j->in != -1)
		close(j->in);
	j->fd = j->in = -1;
}

/* A stopped terminal, or a full pipe, loses lines, but does not stop the consumer.  If several
 * consumers open a new file, one of them writes the titles before any line; for an old file,
 * nobody waits for the lock. */
void
joblog_open(struct joblog *j)
{
	/* Links are refused, but not those of /dev, which only we can change. */
	bool ours = strncmp(j->path, "/dev/std", 8) == 0 ||
	    strncmp(j->path, "/dev/fd/", 8) == 0;
	int fd = open(j->path,
	    O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
		(ours ? 0 : O_NOFOLLOW),
	    0640);
	struct stat st = {.st_size = 0};
	char self[32];

	if (fd == -1 && j->fd == -1)
		mq_die(
		    MQ_EXIT_IO, "--joblog: %s: %s", j->path, strerror(errno));
	if (fd == -1) {
		mq_say("%s: %s; going on with the old file", j->path,
		    strerror(errno));
		return;
	}
	joblog_close(j);
	j->fd = fd;
	j->torn = false;
	j->counted = 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		j->in = open(self, O_RDONLY | O_CLOEXEC);
	j->lines = j->in == -1;
	if (st.st_size != 0)
		return;
	(void)flock(fd, LOCK_EX);
	if (fstat(fd, &st) == 0 && st.st_size == 0)
		write_line(j, titles, sizeof(titles) - 1);
	(void)flock(fd, LOCK_UN);
}
