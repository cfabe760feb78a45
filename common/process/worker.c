/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "process.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/syscall.h"

int
mq_worker_prepare(struct mq_worker_setup *setup)
{
	struct sigaction sa;
	int fd, sig;

	/* Our parent may have left 3 and 4 open. */
	close(MQ_WORKER_WRITE);
	close(MQ_WORKER_READ);
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == -1)
			return -1;
	} while (fd <= MQ_WORKER_READ);
	close(fd);
	if (mq_close_from(3, CLOSE_RANGE_CLOEXEC) == -1)
		return -1;
	/* Our parent may have left signals blocked, too. */
	sigemptyset(&setup->reset);
	sigprocmask(SIG_SETMASK, &setup->reset, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* If SIGCHLD were ignored, the end of a worker would go unnoticed. */
	signal(SIGCHLD, SIG_DFL);
	/* execve(2) itself resets caught signals. */
	for (sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			sigaddset(&setup->reset, sig);
	setup->self = getpid();
	getrlimit(RLIMIT_NOFILE, &setup->files);
	getrlimit(RLIMIT_CORE, &setup->core);
	return 0;
}

int
mq_worker_payload(const void *p, size_t n)
{
	const char *from = p;
	size_t done = 0;
	ssize_t wrote;
	int fd = memfd_create("payload", MFD_CLOEXEC);

	/* pwrite(2) leaves the offset where the worker begins to read. */
	while (fd != -1 && done < n) {
		wrote = pwrite(fd, from + done, n - done, (off_t)done);
		if (wrote == -1 && errno == EINTR)
			continue;
		if (wrote == -1) {
			close(fd);
			return -1;
		}
		done += (size_t)wrote;
	}
	return fd;
}

/* Executes the command, or a script without "#!" by the shell.  Returns the errno. */
static int
exec_worker(const struct mq_worker *w, const char **shell)
{
	execve(w->path, w->argv, w->envp);
	if (errno == ENOEXEC)
		execve(shell[0], (char *const *)shell, w->envp);
	return errno;
}

/* Runs in the child of vfork(2), which shares our memory: only system calls.  Signals are
 * blocked nearly to the end, and the child has no pending ones, so that no handler runs. */
static int
become_worker(const struct mq_worker_setup *setup, const struct mq_worker *w,
    const char **shell)
{
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t all;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		if (sigismember(&setup->reset, sig))
			sigaction(sig, &dfl, NULL);
	if (setpgid(0, 0) == -1 || prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		return errno;
	/* Our parent may have died before prctl(2). */
	if (getppid() != setup->self)
		_exit(127);
	if (w->dir != NULL && chdir(w->dir) == -1)
		return errno;
	if (dup2(w->input, 0) == -1 ||
	    (w->output != -1 && dup2(w->output, 1) == -1) ||
	    (w->errors != -1 && dup2(w->errors, 2) == -1) ||
	    dup2(w->verbs, MQ_WORKER_WRITE) == -1 ||
	    dup2(w->answers, MQ_WORKER_READ) == -1)
		return errno;
	setrlimit(RLIMIT_NOFILE, &setup->files);
	setrlimit(RLIMIT_CORE, &setup->core);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	return w->before != NULL ? 0 : exec_worker(w, shell);
}

/* Runs in the child of fork(2), which has memory of its own, and may wait.  libev's handlers
 * would write to a pipe shared with the parent. */
static _Noreturn void
prepare_and_become(const struct mq_worker_setup *setup,
    const struct mq_worker *w, const char **shell)
{
	struct sigaction sa;
	int sig, status, error;

	for (sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			signal(sig, SIG_DFL);
	error = become_worker(setup, w, shell);
	if (error == 0) {
		signal(SIGPIPE, SIG_IGN);
		status = w->before(w->arg);
		if (status != -1)
			_exit(status);
		signal(SIGPIPE, SIG_DFL);
		error = exec_worker(w, shell);
	}
	/* The write fails if the parent has died. */
	(void)!write(w->failure, &error, sizeof(error));
	_exit(126);
}

pid_t
mq_worker_start(const struct mq_worker_setup *setup, const struct mq_worker *w)
{
	volatile int failure = 0;
	sigset_t all, old;
	const char **shell;
	size_t n = 0;
	pid_t pid;

	while (w->argv[n] != NULL)
		n++;
	shell = mq_xcalloc(n + 2, sizeof(*shell));
	shell[0] = "/bin/sh";
	shell[1] = w->path;
	if (n > 1)
		memcpy(shell + 2, w->argv + 1, (n - 1) * sizeof(*shell));
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	if (w->before != NULL) {
		/* An error of execve(2) comes too late for the caller. */
		pid = access(w->path, X_OK) == -1 ? -1 : fork();
		if (pid == 0)
			prepare_and_become(setup, w, shell);
	} else {
		pid = vfork();
	}
	if (pid == 0) {
		failure = become_worker(setup, w, shell);
		_exit(127);
	}
	if (pid == -1)
		failure = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	free(shell);
	if (failure == 0)
		return pid;
	while (pid != -1 && waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	errno = failure;
	return -1;
}

/* --- answers ------------------------------------------------------------------ */

#define UNREAD_MAX 65536 /* bytes of answers that are kept */

void
mq_answers_close(struct mq_answers *a)
{
	if (a->fd == -1)
		return;
	ev_io_stop(a->loop, &a->room);
	close(a->fd);
	close(a->worker_fd);
	a->fd = -1;
	mq_buf_free(&a->unread);
}

static void
write_unread(struct ev_loop *loop, ev_io *w, int events)
{
	struct mq_answers *a = w->data;
	ssize_t n;

	(void)events;
	while (a->unread.len > 0) {
		n = write(a->fd, a->unread.data, a->unread.len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n == -1) {
			mq_answers_close(a);
			return;
		}
		mq_buf_drop(&a->unread, (size_t)n);
	}
	/* Dropping some answers would mismatch the others: a worker that reads after all
	 * finds the end of the pipe. */
	if (a->unread.len > UNREAD_MAX)
		mq_answers_close(a);
	else if (a->unread.len > 0)
		ev_io_start(loop, w);
	else
		ev_io_stop(loop, w);
}

void
mq_answers_say(struct mq_answers *a, const char *text)
{
	size_t start = a->unread.len, i;

	if (a->fd == -1)
		return;
	/* The worker's end must block. */
	if (!a->used)
		fcntl(a->fd, F_SETFL, O_NONBLOCK);
	a->used = true;
	mq_buf_addstr(&a->unread, text);
	for (i = start; i < a->unread.len; i++)
		if ((unsigned char)a->unread.data[i] < ' ' ||
		    a->unread.data[i] == '\x7f')
			a->unread.data[i] = '?';
	mq_buf_add(&a->unread, "\n", 1);
	write_unread(a->loop, &a->room, EV_WRITE);
}

int
mq_answers_open(struct mq_answers *a)
{
	int fds[2];

	if (a->fd != -1)
		return a->worker_fd;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	a->worker_fd = fds[0];
	a->fd = fds[1];
	a->used = false;
	ev_io_init(&a->room, write_unread, a->fd, EV_WRITE);
	a->room.data = a;
	return a->worker_fd;
}

/* The worker may have changed flags, or written to its end through /proc. */
void
mq_answers_keep(struct mq_answers *a)
{
	int bytes;

	if (a->used || a->fd == -1 ||
	    ioctl(a->worker_fd, FIONREAD, &bytes) == -1 || bytes > 0 ||
	    fcntl(a->worker_fd, F_SETFL, 0) == -1)
		mq_answers_close(a);
}
