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
	bool used;	      /* there was an answer */
	struct mq_buf unread; /* what the pipe did not take */
	ev_io room; /* the pipe takes more; active while unread has some */
};

/* Takes our end of the pipe. */
void mq_answers_open(struct mq_answers *, struct ev_loop *, int fd);

void mq_answers_close(struct mq_answers *);

/* Sends a line; control characters become '?'. */
void mq_answers_say(struct mq_answers *, const char *text);

#endif
