/*
 * Printing, in place of a command.  Payloads are written to stdout.  A message is
 * acked when its last byte is written or, if stdout is a pipe, when the reader
 * has taken that byte.  With --at-most-once, a message is acked first, and its
 * payload is written when the ack is confirmed.
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
	/* A message goes back: unwritten, or not arrived. */
	void (*returned)(void *arg, struct message *);
	/* Messages are about to be done. */
	void (*judging)(void *arg);
	/* Whether any message is done, and not confirmed. */
	bool (*settling)(void *arg);
	/* Acks are wanted at once. */
	void (*flush)(void *arg);
	/* The engine may print, claim or end now. */
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
	bool terminal;		 /* stdout is one: control bytes are escaped */
	bool lost;		 /* stdout cannot be written any more */
	struct messages printed; /* not done, in order */
	int running;		 /* count of printed */
	long arrived;		 /* count of messages */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* active while there is output */
};

void printer_free(struct printer *);

/* Bytes of output that are not written yet. */
size_t printer_unwritten(const struct printer *);
/* Appends a framed message to the output. */
void printer_frame(struct printer *, const struct message *);
/* Appends a message to printed; or removes it. */
void printer_add(struct printer *, struct message *);
void printer_remove(struct printer *, struct message *);
/* Gives a message back. */
void printer_return(struct printer *, struct message *);
/* Reports completely arrived messages as done. */
void printer_ack_arrived(struct printer *);
/* Looks later for arrived messages, if no event will tell. */
void printer_watch(struct printer *);
/* Drops unwritten output, but for the rest of a begun message; all: that, too. */
void printer_cut(struct printer *, bool all);
/* Gives unbegun messages back; all: the others, too. */
void printer_return_unwritten(struct printer *, bool all);
/* Moves the unwritten rest of a message to another buffer. */
void printer_move_rest(struct printer *, struct message *, struct mq_buf *to);

#endif
