/*
 * A look at queues before anything is done with them.
 */
#ifndef MQ_KNOWN_H
#define MQ_KNOWN_H

#include "queue.h"

/* The answers. */
struct mq_known {
	/* Whether there is such a queue: those of the session, then the one that
	 * it may push to, if it may, and the one that it notifies; allocated. */
	bool *there;
	int status; /* 0, or the exit status of a consumer that was refused... */
	char error[1024]; /* ...and why */
};

/*
 * Looks at all queues of a session, once the server has loaded its data, and
 * changes nothing.  The connection of the session stands for any other one with its
 * tag.  Returns 0, or -1 with the error in struct mq_redis; free(there) after both.
 */
int mq_known_ask(struct mq_redis *, const struct mq_layout *,
    const struct mq_session *, struct mq_known *);

/*
 * Text to add when a queue does not exist: the other layout, if that has a queue of
 * this name on the same server; or a queue whose name is one slip away, if all names
 * may be read; or "".  free() it.  Waits.
 */
char *mq_known_hint(
    struct mq_redis *, const struct mq_layout *, const char *queue);

#endif
