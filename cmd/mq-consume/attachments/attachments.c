/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "attachments.h"

#include <ftw.h>
#include <stdio.h>

#include "base/syscall.h"
#include "mq-consume/message.h"
#include "process/process.h"

int
attachments_begin(struct message *m, struct attached *a)
{
	const char *tmp = getenv("TMPDIR");
	int fds[2], error;

	a->set = mq_envelope_get(&m->envelope, MQ_HEADER_ATTACH);
	a->id = m->id;
	if (a->set == NULL)
		return 0;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return errno;
	a->dir = mq_xasprintf(
	    "%s/mq-attach.XXXXXX", tmp != NULL && *tmp == '/' ? tmp : "/tmp");
	if (mkdtemp(a->dir) == NULL) {
		error = errno;
		close(fds[0]);
		close(fds[1]);
		free(a->dir);
		return error;
	}
	message_let_go(m, false);
	a->cleanup_fd = fds[0];
	m->cleanup_fd = fds[1];
	return 0;
}

void
attachments_begun(struct attached *a, bool started)
{
	if (a->dir == NULL)
		return;
	if (!started)
		(void)rmdir(a->dir);
	close(a->cleanup_fd);
	free(a->dir);
}

/* --- the cleanup process ------------------------------------------------------ */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	(void)remove(path);
	return 0;
}

/* No descriptor of the consumer may stay open here: its other pipes would not end. */
static _Noreturn void
run_cleanup(const struct attached *a)
{
	const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	int null = open("/dev/null", O_RDWR);
	struct mq_redis r;
	bool done = false;
	char word;
	ssize_t n;
	size_t i;

	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	(void)dup2(a->cleanup_fd, 0);
	for (i = 1; i < 5; i++)
		(void)dup2(null, (int)i);
	for (; mq_close_from(5, 0) == -1 && i < 65536; i++)
		close((int)i);
	if (chdir("/") == -1)
		_exit(1);
	/* The pipe ends when the consumer has forgotten the message, or has died. */
	while ((n = read(0, &word, 1)) != 0)
		done |= n == 1;
	(void)nftw(a->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (!done)
		_exit(0);
	/* If the release fails, mq-clean makes up for it. */
	if (mq_redis_open(&r, a->server) == 0)
		(void)a->layout->attachments->release(&r, a->set, a->id);
	mq_redis_close(&r);
	_exit(0);
}

/* --- fetching --------------------------------------------------------------- */

static void
write_line(int fd, const char *verb, const char *text)
{
	char *line = mq_xasprintf("%sattachments: %s\n", verb, text), *p;

	for (p = line; p[1] != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	/* If the consumer has died, nobody reads the line. */
	if (write(fd, line, strlen(line)) == -1)
		_exit(MQ_EXIT_AGAIN);
	free(line);
}

int
attachments_fetch(void *attached)
{
	const struct attached *a = attached;
	struct mq_buf why = {0};
	struct mq_redis r;
	int dir, status = -1, rv = -1;
	pid_t cleanup = fork();

	/* The cleanup process is orphaned: the command must have no child that it does not
	 * know of. */
	if (cleanup == 0) {
		setsid();
		cleanup = fork();
		if (cleanup == 0)
			run_cleanup(a);
		_exit(cleanup == -1);
	}
	while (cleanup != -1 && waitpid(cleanup, &status, 0) == -1 &&
	    errno == EINTR)
		;
	if (status != 0) {
		mq_buf_addstr(&why, "no process to keep them");
	} else if ((dir = open(a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) ==
	    -1) {
		mq_buf_printf(&why, "%s: %s", a->dir, strerror(errno));
	} else {
		rv = mq_redis_open(&r, a->server);
		if (rv == 0)
			rv = a->layout->attachments->fetch(
			    &r, a->set, a->id, dir, &why);
		if (rv == -1)
			mq_buf_addstr(&why, r.error);
		mq_redis_close(&r);
		close(dir);
	}
	/* Missing files will be missing in the next run, too; other errors may pass. */
	if (rv == 1)
		write_line(MQ_WORKER_WRITE, "err ", mq_buf_str(&why));
	else if (rv == -1)
		write_line(STDERR_FILENO, "mq-consume: ", mq_buf_str(&why));
	mq_buf_free(&why);
	return rv == 0 ? -1 : rv == 1 ? 0 : MQ_EXIT_AGAIN;
}
