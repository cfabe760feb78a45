/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Attachments: the files that a run finds in MQ_ATTACH_DIR.
 *
 * The process of a run fetches the files before it becomes the command, so the event loop
 * does not wait.  That process starts a cleanup process, in a session of its own, which
 * outlives the run and this consumer: when the message is forgotten, or the consumer has
 * died, the cleanup process removes the directory.  If the message is done, the cleanup
 * process also takes the message's id from the set of attachments, and with the last id
 * the files from the server.
 */
#ifndef MQ_CONSUME_ATTACHMENTS_H
#define MQ_CONSUME_ATTACHMENTS_H

#include <stdbool.h>

struct message;
struct mq_layout;
struct mq_server;

/* The attachments of a run that is about to start. */
struct attached {
	/* Set by the caller; all else begins zeroed. */
	struct mq_server *server;
	const struct mq_layout *layout;

	const char *set, *id;
	char *dir;	/* free(); NULL: no attachments */
	int cleanup_fd; /* read end of the cleanup process's pipe; close(2) */
};

/* If the message has attachments, makes the directory and the pipe, whose write end is the
 * message's.  Returns 0; or an errno, with nothing to free. */
int attachments_begin(struct message *, struct attached *);
/* In the process of the run: see before() in process/process.h. */
int attachments_fetch(void *attached);
/* After the start of the process, or its failure: frees what attachments_begin() made. */
void attachments_begun(struct attached *, bool started);

#endif
