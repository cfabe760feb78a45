/*
 * The executor runs messages, in one of four ways, each with a table:
 *
 *	run.c		one process a message, or for several messages
 *	stream.c	workers that stay
 *	print.c		printing, without a command
 *
 * An executor starts processes, and tells how the runs of messages end.  It never claims or
 * settles a message.
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

/* --- its way of running messages ------------------------------------------------ */

/* When the acks leave that wait for others; in any case after a while, or if they are many. */
enum executor_acks {
	ACKS_AT_ONCE,	 /* when nothing is held: each run has one message */
	ACKS_AT_REST,	 /* when nothing is held or runs: many end at a time */
	ACKS_FOR_OTHERS, /* then, if one of them holds a key or a group */
	ACKS_FIRST	 /* in each turn: what is done begins with the ack */
};

struct executor_way {
	bool flows; /* claims before it starts what it has */
	enum executor_acks acks;
	bool runs;	 /* commands: a crash in a run is the message's */
	bool names;	 /* messages have names: one without an id gets one */
	bool files;	 /* a message may have attachments */
	bool takes_back; /* a running one can go back, until it is printed */
};
const struct executor_way *executor_way(const struct executor *);
/* How many messages may run at once: 0 while they are printed. */
int executor_capacity(const struct executor *);

/* --- starts: once per turn ------------------------------------------------------ */

struct start_terms {
	bool may;  /* a run may start */
	bool last; /* no more messages come, but for those that are held */
	/* Queues from which messages come at once, -1: none. */
	int coming[2];
};

/* Whether another run can start, or go on to be filled: then *queue is where its next
 * message is to come from, -1: from any.  False: nothing more can start in this turn. */
bool executor_wants(struct executor *, const struct start_terms *, int *queue);
/* Why no run can take the message; NULL: one can. */
const char *executor_refuses(const struct executor *, const struct message *);
/* The run takes the message, which is running.  True: it wants another one of that queue. */
bool executor_take(struct executor *, struct message *);
/* How many held messages would have a run at once, if this one began. */
int executor_spare(const struct executor *);
/* Begins the run with what it has taken, if that is anything. */
void executor_begin(struct executor *);
/* All that can start in this turn has. */
void executor_started(struct executor *, const struct start_terms *);

/* How many more messages of a queue are worth claiming; may be below 0.  careful: none
 * ahead. */
long executor_room(const struct executor *, int queue, bool careful);
/* Whether a claim of fewer messages than are held is worth a round. */
bool executor_wants_few(const struct executor *, int queue);

/* --- from outside ---------------------------------------------------------------- */

/* Once a second. */
void executor_tick(struct executor *);
/* The rules of a queue have changed. */
void executor_resize(struct executor *);
/* Returns messages that are printed, of a queue or of all (-1), to the hand; begun: also
 * those whose output has begun.  What is acked first does not go back. */
void executor_take_back(struct executor *, int queue, bool begun);
/* Another consumer has the running message now.  True: its run is killed, and the executor
 * tells its end; false: the executor has nothing of it any more. */
bool executor_take_away(struct executor *, struct message *);
/* Ends the run of a message for an operator: TERM, and KILL after the grace time; its
 * others go back.  False: no command runs on it. */
bool executor_stop_run(struct executor *, struct message *, enum mq_stop how);
/* The ack of a message that is not done yet is confirmed. */
void executor_acked(struct executor *, const struct message *);
/* A request of slot n for a duplicate is answered; all: the last that it waits for. */
void executor_answered(struct executor *, int n, bool all);
/* Whether acked messages are not done yet. */
bool executor_owes(const struct executor *);
/* Slots that run or wait for answers. */
int executor_busy(const struct executor *);
/* Whether all slots rest after failures. */
bool executor_rests(const struct executor *);
/* Appends the long runs, as of queue/stats.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to the process groups of all commands; but for STOP and CONT, messages
 * that are not done go back. */
void executor_kill(struct executor *, int sig);
/* The consumer is to end: workers that stay end with what they have. */
void executor_stop(struct executor *);

#endif
