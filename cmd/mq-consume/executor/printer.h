/*
 * Printing, in place of a command: payloads are written to stdout, and a message
 * is acked when the last byte of it has been; if that is a pipe, when its reader
 * has taken that byte.  With --at-most-once it is the other way round: a message
 * is acked, and when that is confirmed its payload is written.
 */
#ifndef MQ_CONSUME_PRINTER_H
#define MQ_CONSUME_PRINTER_H

#include <ev.h>

#include "mq-consume/inbox/inbox.h"
#include "mq-consume/policy.h"
#include "out-pipe.h"

struct printer_events {
	/* A message is done. */
	void (*done)(void *arg, struct message *);
	/* A message has not begun to be written, or has not arrived. */
	void (*returned)(void *arg, struct message *);
	/* Messages are about to be done. */
	void (*judging)(void *arg);
	/* Whether any message is done, and not confirmed. */
	bool (*settling)(void *arg);
	/* What is done is to be confirmed soon. */
	void (*flush)(void *arg);
	/* Something may be printed, claimed or ended now. */
	void (*wake)(void *arg);
};

struct printer {
	struct ev_loop *loop;
	const struct options *opt;
	struct inbox *inbox;
	struct policy *policy;
	const struct printer_events *events;
	void *arg;
	struct out_pipe pipe;
	bool terminal;		 /* it must not be driven by what it shows */
	bool lost;		 /* nothing more can be written */
	struct messages printed; /* those that it has, in order */
	int running;		 /* of them */
	long arrived;		 /* messages that have */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* more can be written; while there is something */
};

void printer_free(struct printer *);

/* Bytes that are not written yet. */
size_t printer_unwritten(const struct printer *);
/* Appends a message to the output, as the framing wants it. */
void printer_frame(struct printer *, const struct message *);
/* Has a message, behind the others; or no more. */
void printer_add(struct printer *, struct message *);
void printer_remove(struct printer *, struct message *);
/* A message goes back. */
void printer_return(struct printer *, struct message *);
/* Messages that have arrived completely are done. */
void printer_ack_arrived(struct printer *);
/* Looks later whether any have, if nothing else tells. */
void printer_watch(struct printer *);
/* Forgets what is to be written, but for the rest of a message that has begun;
 * all: and even that. */
void printer_cut(struct printer *, bool all);
/* The messages that have not begun go back; all: and the others. */
void printer_return_unwritten(struct printer *, bool all);
/* Moves to another buffer what is left to write of a message. */
void printer_move_rest(struct printer *, struct message *, struct mq_buf *to);

#endif
