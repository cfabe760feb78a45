/*
 * Child processes of an event loop, and when they have ended.
 */
#ifndef MQ_CHILDREN_H
#define MQ_CHILDREN_H

#include <sys/queue.h>
#include <sys/types.h>

#include <ev.h>

TAILQ_HEAD(mq_child_list, mq_child);

struct mq_children {
	struct ev_loop *loop;
	struct mq_child_list new, polled;
	ev_signal signal;
};

/* Has the status of waitpid(2); SIGKILL if somebody else has reaped the child. */
typedef void mq_child_ended(void *arg, int status);

struct mq_child {
	TAILQ_ENTRY(mq_child) link;
	struct mq_children *children;
	pid_t pid;
	int fd; /* polled: readable when it has ended; -1: new */
	mq_child_ended *ended;
	void *arg;
	ev_io io;
};

/* Takes SIGCHLD. */
void mq_children_init(struct mq_children *, struct ev_loop *);

/* Once a second: reaps the children that nobody watches, as an init has them. */
void mq_children_reap_others(struct mq_children *);

/* Calls ended() when the child has, and has been reaped. */
void mq_child_watch(struct mq_children *, struct mq_child *, pid_t,
    mq_child_ended *ended, void *arg);

/* The child did not end soon: from now on it costs nothing to have it. */
void mq_child_poll(struct mq_child *);

/* Ignores the end of a child. */
void mq_child_forget(struct mq_child *);

#endif
