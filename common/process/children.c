/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "process.h"

/* One signal may stand for several children.  Finding that none of 1,000 has ended takes
 * the kernel less time than starting one. */
static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct mq_children *c = w->data;
	struct mq_child *child;
	int status;
	pid_t pid;

	(void)loop;
	(void)events;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 ||
	    (pid == -1 && errno == EINTR)) {
		LIST_FOREACH(child, &c->list, link)
			if (child->pid == pid)
				break;
		/* A killed helper, or an orphan, if we are process 1. */
		if (child == NULL)
			continue;
		LIST_REMOVE(child, link);
		child->ended(child->arg, status);
	}
}

void
mq_child_watch(struct mq_children *c, struct mq_child *child, pid_t pid,
    mq_child_ended *ended, void *arg)
{
	child->pid = pid;
	child->ended = ended;
	child->arg = arg;
	LIST_INSERT_HEAD(&c->list, child, link);
}

void
mq_children_init(struct mq_children *c, struct ev_loop *loop)
{
	LIST_INIT(&c->list);
	ev_signal_init(&c->signal, on_signal, SIGCHLD);
	c->signal.data = c;
	ev_signal_start(loop, &c->signal);
	/* Children may have ended before. */
	ev_feed_event(loop, &c->signal, EV_SIGNAL);
}

/* --- helper ------------------------------------------------------------------- */

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

int
mq_helper_start(struct mq_helper *h, struct mq_children *children, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg)
{
	const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
	sigset_t all, old;
	int fds[2], error;
	void *result;
	size_t i;
	pid_t pid;

	if (h->pid != 0)
		return 0;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		result = mq_xcalloc(1, size);
		/* libev's handlers would write to a pipe shared with the parent. */
		for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
			signal(caught[i], SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Ctrl-C must reach only the parent, which kills its helpers. */
		setpgid(0, 0);
		work(arg, result);
		_exit(write(fds[1], result, size) == -1);
	}
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
	return 0;
}

void
mq_helper_kill(struct mq_helper *h)
{
	if (h->pid == 0)
		return;
	LIST_REMOVE(&h->child, link);
	kill(h->pid, SIGKILL);
	close(h->fd);
	h->pid = 0;
}
