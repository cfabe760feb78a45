#include "process.h"

#include <sys/prctl.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"

static void
on_exit_of_helper(void *arg, int status)
{
	struct mq_helper *h = arg;
	void *result = mq_xcalloc(1, h->size);
	ssize_t n;

	(void)status;
	do
		n = read(h->fd, result, h->size);
	while (n == -1 && errno == EINTR);
	close(h->fd);
	h->pid = 0;
	h->done(h->arg, n == (ssize_t)h->size ? result : NULL);
	free(result);
}

static void
leave_parent(void)
{
	const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
	size_t i;
	sigset_t none;

	/* The handlers would write into the loop that is shared. */
	for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		signal(caught[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ctrl-C is for the parent, which then kills its helpers. */
	setpgid(0, 0);
}

static _Noreturn void
run_helper(int fd, size_t size, mq_helper_work *work, void *arg)
{
	void *result = mq_xcalloc(1, size);

	leave_parent();
	work(arg, result);
	_exit(write(fd, result, size) == -1);
}

int
mq_helper_start(struct mq_helper *h, struct mq_children *children, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg)
{
	sigset_t all, old;
	int fds[2], error;
	pid_t pid;

	if (h->pid != 0)
		return 0;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		run_helper(fds[1], size, work, arg);
	error = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fds[1]);
	if (pid == -1) {
		close(fds[0]);
		errno = error;
		return -1;
	}
	h->pid = pid;
	h->fd = fds[0];
	h->size = size;
	h->done = done;
	h->arg = arg;
	mq_child_watch(children, &h->child, pid, on_exit_of_helper, h);
	mq_child_poll(&h->child);
	return 0;
}

bool
mq_helper_runs(const struct mq_helper *h)
{
	return h->pid != 0;
}

void
mq_helper_kill(struct mq_helper *h)
{
	if (h->pid == 0)
		return;
	mq_child_forget(&h->child);
	kill(h->pid, SIGKILL);
	close(h->fd);
	h->pid = 0;
}
