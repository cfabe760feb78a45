/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The executor runs messages, in one of four ways, each with a table:
 *
 *	run.c		one process a message, or for several messages
 *	stream.c	workers that run many messages, one after the other
 *	print.c		printing, without a command
 *
 * The executor tells how the runs of messages end.  It never claims or settles a message.
 */
#ifndef MQ_CONSUME_EXECUTOR_H
#define MQ_CONSUME_EXECUTOR_H

#include "mq-consume/fact.h"
#include "mq-consume/hand.h"
#include "process/process.h"

struct duplicates;
struct executor;
struct process;

/* The pointers stay the caller's. */
struct executor *executor_new(struct ev_loop *, const struct options *,
    struct hand *, struct facts *, struct mq_children *, struct process *,
    struct duplicates *, struct mq_server *);
void executor_free(struct executor *);

/* --- the way of running messages ------------------------------------------------ */

/* When acks leave that wait for others; at the latest after a while, or when there are many. */
enum executor_acks {
	ACKS_AT_ONCE, /* when no message is unstarted: each run has one message */
	ACKS_AT_REST, /* when none is unstarted or runs: many end at a time */
	ACKS_FOR_OTHERS, /* at rest, if a message holds a key or a group */
	ACKS_FIRST /* in each turn: the ack comes before the message is printed */
};

struct executor_way {
	bool flows; /* claims come before starts */
	enum executor_acks acks;
	bool runs;	 /* a crash counts as an attempt of the message */
	bool names;	 /* a message without an id gets one */
	bool files;	 /* a message may have attachments */
	bool takes_back; /* an unprinted message can go back */
};
const struct executor_way *executor_way(const struct executor *);
/* How many messages may run at once; 0: messages are printed. */
int executor_capacity(const struct executor *);

/* --- starts: once per turn ------------------------------------------------------ */

struct start_terms {
	bool may;  /* a run may start */
	bool last; /* no more messages will be claimed */
	/* Queues from which messages are about to come; -1: none. */
	int coming[2];
};

/* Whether another run can start, or take more messages: of queue *queue, or (-1) of any.
 * False: nothing more can start in this turn. */
bool executor_wants(struct executor *, const struct start_terms *, int *queue);
/* Why no run can take the message; NULL: a run can. */
const char *executor_refuses(const struct executor *, const struct message *);
/* Adds a running message to the run.  Returns whether the run wants another one of that
 * queue. */
bool executor_take(struct executor *, struct message *);
/* How many unstarted messages could start at once, after the run being filled. */
int executor_spare(const struct executor *);
/* Begins the run, unless it has no message. */
void executor_begin(struct executor *);
/* No more runs start in this turn. */
void executor_started(struct executor *, const struct start_terms *);

/* How many more messages of a queue are worth claiming; may be below 0.  careful: claims
 * nothing ahead. */
long executor_room(const struct executor *, int queue, bool careful);
/* Whether a claim is worth a round even if it brings fewer messages than are unstarted. */
bool executor_wants_few(const struct executor *, int queue);

/* --- events ---------------------------------------------------------------------- */

/* Once a second. */
void executor_tick(struct executor *);
/* The rules of a queue have changed. */
void executor_resize(struct executor *);
/* Puts messages of a queue, or of all (-1), that are to be printed back into the hand; begun:
 * also those whose output has begun.  With --at-most-once, acked messages stay. */
void executor_take_back(struct executor *, int queue, bool begun);
/* Another consumer has a running message now.  True: the run is killed, and its end will be
 * told; false: the executor has forgotten the message. */
bool executor_take_away(struct executor *, struct message *);
/* Ends the run of a message for an operator: TERM, and KILL after the grace time; other
 * messages of the run go back.  False: no command is at work on the message. */
bool executor_stop_run(struct executor *, struct message *, enum mq_stop how);
/* An ack is confirmed; with --at-most-once, the message is printed now. */
void executor_acked(struct executor *, const struct message *);
/* A request of slot n for a duplicate is answered; all: no request is pending. */
void executor_answered(struct executor *, int n, bool all);
/* Whether acked messages are still to be printed. */
bool executor_owes(const struct executor *);
/* Slots that run or wait for answers. */
int executor_busy(const struct executor *);
/* Whether all slots rest after failures. */
bool executor_rests(const struct executor *);
/* Appends the long runs, as of queue/stats.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to the process groups of all commands.  After other signals than STOP and
 * CONT, messages that are not done go back. */
void executor_kill(struct executor *, int sig);
/* The consumer is to end: stream workers get no more messages. */
void executor_stop(struct executor *);

#endif
