/*
 * Child processes, and when they have ended.
 *
 * Most are young when they do: after a SIGCHLD, each of the young is asked for,
 * which are few, since it takes time to start them.  Whoever lasts gets a
 * descriptor that tells of its end.  To wait for any child at all would be
 * simpler, but the kernel then looks through all there are, and with hundreds
 * of long runs that takes longer than to start a short one.
 */
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/syscall.h"
#include "consume.h"

/* True: it has ended, and what follows from that has been done. */
static bool
reap(struct consumer *c, struct child *child)
{
	pid_t pid;

	do
		pid = waitpid(child->pid, &child->status, WNOHANG);
	while (pid == -1 && errno == EINTR);
	if (pid == 0)
		return false;
	child_forget(c, child);
	child->ended(child);
	return true;
}

static void
on_end(struct ev_loop *loop, ev_io *w, int events)
{
	(void)events;
	(void)reap(ev_userdata(loop), w->data);
}

static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct consumer *c = w->data;
	struct child *child = TAILQ_FIRST(&c->young);

	(void)loop;
	(void)events;
	/* What follows from an end may change the list. */
	while (child != NULL)
		child = reap(c, child) ? TAILQ_FIRST(&c->young) :
					 TAILQ_NEXT(child, link);
}

void
child_watch(struct consumer *c, struct child *child, pid_t pid,
    void (*ended)(struct child *), void *owner)
{
	*child = (struct child){.pid = pid,
	    .fd = -1,
	    .status = SIGKILL,
	    .ended = ended,
	    .owner = owner};
	TAILQ_INSERT_TAIL(&c->young, child, link);
}

void
child_lasts(struct consumer *c, struct child *child)
{
	child->fd = mq_pidfd_open(child->pid);
	/* Without one it stays young. */
	if (child->fd == -1)
		return;
	TAILQ_REMOVE(&c->young, child, link);
	TAILQ_INSERT_TAIL(&c->grown, child, link);
	ev_io_init(&child->io, on_end, child->fd, EV_READ);
	child->io.data = child;
	ev_io_start(c->loop, &child->io);
}

void
child_forget(struct consumer *c, struct child *child)
{
	if (child->fd == -1) {
		TAILQ_REMOVE(&c->young, child, link);
		return;
	}
	TAILQ_REMOVE(&c->grown, child, link);
	ev_io_stop(c->loop, &child->io);
	close(child->fd);
}

static bool
listed(const struct children *children, pid_t pid)
{
	const struct child *child;

	TAILQ_FOREACH(child, children, link)
		if (child->pid == pid)
			return true;
	return false;
}

/* The first that has ended may be one that is watched: then the others wait. */
void
child_reap_others(struct consumer *c)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid != 0 && !listed(&c->young, info.si_pid) &&
	    !listed(&c->grown, info.si_pid))
		(void)waitpid(info.si_pid, NULL, WNOHANG);
}

void
child_init(struct consumer *c)
{
	TAILQ_INIT(&c->young);
	TAILQ_INIT(&c->grown);
	ev_set_userdata(c->loop, c);
	ev_signal_init(&c->child_signal, on_signal, SIGCHLD);
	c->child_signal.data = c;
	ev_signal_start(c->loop, &c->child_signal);
}
