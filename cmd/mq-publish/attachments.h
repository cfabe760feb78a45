/*
 * The files of --attach, which go to the server before their message does.
 */
#ifndef PUBLISH_ATTACHMENTS_H
#define PUBLISH_ATTACHMENTS_H

#include "message/envelope.h"
#include "outcome.h"
#include "queue/attach.h"

struct attachment {
	char *name;
	const char *path;
};

/* Starts zeroed. */
struct attachments {
	struct attachment *list;
	size_t n;
	const struct mq_attachments *how; /* of the layout */
	const struct outcome *outcome;	  /* of the message */
	struct mq_attach set;
	char id[MQ_ID_LEN + 1]; /* of the message; empty: not known yet */
};
void attachments_free(struct attachments *);

/* Takes NAME=FILE; ends with exit 64 if it is wrong. */
void attachments_note(struct attachments *, const char *arg);
/* Brings all to the server, for a message of this queue, and sets the header; ends the
 * program if that fails. */
void attachments_send(struct attachments *, struct mq_redis *,
    const char *queue, struct mq_envelope *headers);
/* This message is about to be published with them; ends the program if that fails. */
void attachments_close(struct attachments *, const char *id);
/* There is no such message after all: removes them. */
void attachments_drop(const struct attachments *);

#endif
