/*
 * Attachments: the files that a run finds in MQ_ATTACH_DIR.
 *
 * The process of a run fetches them before it becomes the command, so the event loop
 * does not wait.  That process starts a keeper, in a session of its own, which
 * outlives the run and this consumer: when the message is forgotten, or the consumer
 * has died, the keeper removes the directory.  Only if the message is done, the keeper
 * also takes its id from the set, and the last one takes the files from the server.
 *
 * The room calls queue/queue.h and the message, and reports to nobody.
 */
#ifndef MQ_CONSUME_ATTACHMENTS_H
#define MQ_CONSUME_ATTACHMENTS_H

#include <stdbool.h>

struct message;
struct mq_layout;
struct mq_server;

/* The attachments of a run that is about to start. */
struct attached {
	/* Set by the caller, but for these zeroed. */
	struct mq_server *server;
	const struct mq_layout *layout;

	const char *set, *id;
	char *dir;  /* free(); NULL: there are none */
	int keeper; /* read end of the pipe of the keeper; close(2) */
};

/* Makes the directory of a message that has any, and the pipe, whose other end the message
 * has; else dir is NULL.  0, or an errno, and there is nothing to free. */
int attachments_begin(struct message *, struct attached *);
/* In the process of the run: see before() in process/process.h. */
int attachments_fetch(void *attached);
/* The process has started, or not: frees what attachments_begin() has made. */
void attachments_begun(struct attached *, bool started);

#endif
