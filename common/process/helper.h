/*
 * A helper process: work that must wait is done the plain way in a forked
 * child, so that an event loop is never blocked and the code is the same as in
 * programs that wait.
 */
#ifndef MQ_HELPER_H
#define MQ_HELPER_H

#include <stdbool.h>
#include <stddef.h>

#include "children.h"

/* In the child: fills in the result, which is zeroed before. */
typedef void mq_helper_work(void *arg, void *result);

/* Back in the parent; NULL: the child died without a result. */
typedef void mq_helper_done(void *arg, const void *result);

/* Zeroed, no helper runs. */
struct mq_helper {
	pid_t pid; /* 0: none */
	int fd;
	size_t size;
	mq_helper_done *done;
	void *arg;
	struct mq_child child;
};

/*
 * Starts a child whose result has so many bytes, at most PIPE_BUF.  If one runs
 * already, nothing is done.  Returns 0, or -1 with errno.
 */
int mq_helper_start(struct mq_helper *, struct mq_children *, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg);

bool mq_helper_runs(const struct mq_helper *);

/* Kills the child, if one runs: done() is not called. */
void mq_helper_kill(struct mq_helper *);

#endif
