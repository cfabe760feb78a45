/*
 * Most children are new when they end: after a SIGCHLD, each new one is asked
 * for, which are few, since it takes time to start them.  A child that lasts
 * gets a descriptor that tells of its end.  To wait for any child at all would
 * be simpler, but the kernel then looks through all there are, and with
 * hundreds of long runs that takes longer than to start a short one.
 */
#include "process.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/xalloc.h"

/* Ignores the end of a child. */
static void
forget_child(struct mq_child *child)
{
	struct mq_children *c = child->children;

	if (child->fd == -1) {
		TAILQ_REMOVE(&c->new, child, link);
		return;
	}
	TAILQ_REMOVE(&c->polled, child, link);
	ev_io_stop(c->loop, &child->io);
	close(child->fd);
}

/* True: the child has ended, and what follows from that has been done. */
static bool
reap_child(struct mq_child *child)
{
	int status = SIGKILL;
	pid_t pid;

	do
		pid = waitpid(child->pid, &status, WNOHANG);
	while (pid == -1 && errno == EINTR);
	if (pid == 0)
		return false;
	forget_child(child);
	child->ended(child->arg, status);
	return true;
}

static void
on_end(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	(void)reap_child(w->data);
}

static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct mq_children *c = w->data;
	struct mq_child *child = TAILQ_FIRST(&c->new);

	(void)loop;
	(void)events;
	/* The consequences of an end may change the list. */
	while (child != NULL)
		child = reap_child(child) ? TAILQ_FIRST(&c->new) :
					    TAILQ_NEXT(child, link);
}

void
mq_child_watch(struct mq_children *c, struct mq_child *child, pid_t pid,
    mq_child_ended *ended, void *arg)
{
	*child = (struct mq_child){
	    .children = c, .pid = pid, .fd = -1, .ended = ended, .arg = arg};
	TAILQ_INSERT_TAIL(&c->new, child, link);
}

void
mq_child_poll(struct mq_child *child)
{
	struct mq_children *c = child->children;

	child->fd = mq_pidfd_open(child->pid);
	/* Without a descriptor it stays new. */
	if (child->fd == -1)
		return;
	TAILQ_REMOVE(&c->new, child, link);
	TAILQ_INSERT_TAIL(&c->polled, child, link);
	ev_io_init(&child->io, on_end, child->fd, EV_READ);
	child->io.data = child;
	ev_io_start(c->loop, &child->io);
}

static bool
is_listed(const struct mq_child_list *list, pid_t pid)
{
	const struct mq_child *child;

	TAILQ_FOREACH(child, list, link)
		if (child->pid == pid)
			return true;
	return false;
}

/* If the first that has ended is watched, the others wait. */
void
mq_children_reap_others(struct mq_children *c)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid != 0 && !is_listed(&c->new, info.si_pid) &&
	    !is_listed(&c->polled, info.si_pid))
		(void)waitpid(info.si_pid, NULL, WNOHANG);
}

void
mq_children_init(struct mq_children *c, struct ev_loop *loop)
{
	c->loop = loop;
	TAILQ_INIT(&c->new);
	TAILQ_INIT(&c->polled);
	ev_signal_init(&c->signal, on_signal, SIGCHLD);
	c->signal.data = c;
	ev_signal_start(loop, &c->signal);
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

int
mq_helper_start(struct mq_helper *h, struct mq_children *children, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg)
{
	sigset_t all, old;
	int fds[2], error;
	void *result;
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
		leave_parent();
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
	mq_child_poll(&h->child);
	return 0;
}

void
mq_helper_kill(struct mq_helper *h)
{
	if (h->pid == 0)
		return;
	forget_child(&h->child);
	kill(h->pid, SIGKILL);
	close(h->fd);
	h->pid = 0;
}
