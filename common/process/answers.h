/*
 * Answers to a worker, on its descriptor 4.  The worker may never read, or have
 * closed it: nothing here waits for that, and nothing grows without an end.
 */
#ifndef MQ_ANSWERS_H
#define MQ_ANSWERS_H

#include <stdbool.h>

#include <ev.h>

#include "base/buf.h"

struct mq_answers {
	struct ev_loop *loop;
	int fd;		      /* -1: nobody reads */
	int worker_fd;	      /* the worker's end; open as long as fd */
	bool used;	      /* there was an answer */
	struct mq_buf unread; /* what the pipe did not take */
	ev_io room; /* the pipe takes more; active while unread has some */
};

void mq_answers_init(struct mq_answers *, struct ev_loop *);

/* Makes the pipe for the next worker, or takes the one that was kept.  Returns the
 * worker's end, which stays ours; -1 with errno. */
int mq_answers_open(struct mq_answers *);

void mq_answers_close(struct mq_answers *);

/* The worker has left no process behind: keeps the pipe for the next one, if it is
 * as new.  Most workers ask for nothing, and this saves them a pipe. */
void mq_answers_keep(struct mq_answers *);

/* Sends a line; control characters become '?'. */
void mq_answers_say(struct mq_answers *, const char *text);

#endif
