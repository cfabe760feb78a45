/*
 * The executor runs messages, in one of four ways, each with a table:
 *
 *	fork.c		one process a message
 *	batch.c		one process for several messages
 *	stream.c	workers that stay
 *	print.c		printing, without a command
 *
 * An executor takes messages from the inbox, asks the policy, starts processes,
 * and reports ends.  An executor never claims or settles a message.
 */
#ifndef MQ_CONSUME_EXECUTOR_H
#define MQ_CONSUME_EXECUTOR_H

#include <stdbool.h>

#include "base/buf.h"
#include "mq-consume/message.h"
#include "mq-consume/options.h"

/* work: struct slots, or struct printer.  Functions that may be NULL are marked. */
struct executor_table {
	bool runs;  /* runs a command; else messages are printed */
	bool stays; /* its workers must end before the connection leaves */
	bool flows; /* claims before it starts what it has */
	bool many;  /* messages end many at a time */
	bool bulk;  /* a run has several messages of one queue */

	void (*init)(void *work);
	long (*room)(const void *work, int queue);
	bool (*wants_few)(const void *work, int queue); /* NULL: no */
	void (*start)(void *work);
	void (*resize)(void *work);			   /* NULL */
	void (*take_back)(void *work, int queue);	   /* NULL */
	void (*take_back_all)(void *work, bool now);	   /* NULL */
	bool (*take_away)(void *work, struct message *);   /* NULL: false */
	void (*acked)(void *work, const struct message *); /* NULL */
	bool (*owes)(const void *work);			   /* NULL: no */
	int (*running)(const void *work);
	int (*busy)(const void *work);			     /* NULL: 0 */
	bool (*rests)(const void *work);		     /* NULL: no */
	void (*describe)(const void *work, struct mq_buf *); /* NULL */
	void (*kill)(void *work, int sig);		     /* NULL */
	void (*tick)(void *work);
	void (*stop)(void *work); /* NULL */
};

extern const struct executor_table executor_fork, executor_batch,
    executor_stream, executor_print, executor_print_once;

struct executor {
	const struct executor_table *table;
	void *work;
};

/* The table for these options. */
const struct executor_table *executor_for(const struct options *);
/* How many messages one run has at most. */
int executor_batch_size(const struct options *);

/* How many more messages of a queue are worth claiming; may be below 0. */
long executor_room(const struct executor *, int queue);
/* Whether a claim of fewer messages than are held is worth a round. */
bool executor_wants_few(const struct executor *, int queue);
/* The rules of a queue have changed. */
void executor_resize(const struct executor *);
/* Starts as many messages of the inbox as it can. */
void executor_start(const struct executor *);
/* Returns unbegun messages of a paused queue to the inbox; or of all queues, and
 * with `now` also begun ones. */
void executor_take_back(const struct executor *, int queue);
void executor_take_back_all(const struct executor *, bool now);
/* Another consumer has the message now.  True: the executor will report its end;
 * false: the executor has forgotten the message. */
bool executor_take_away(const struct executor *, struct message *);
/* The ack of a message that is not done yet is confirmed. */
void executor_acked(const struct executor *, const struct message *);
/* Whether acked messages are not done yet. */
bool executor_owes(const struct executor *);
/* How many messages it has; how many commands run or wait for answers. */
int executor_running(const struct executor *);
int executor_busy(const struct executor *);
/* Whether all slots rest after failures. */
bool executor_rests(const struct executor *);
/* Appends the long runs, as of queue/running.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to all commands; but for STOP and CONT, messages that are not done go
 * back. */
void executor_kill(const struct executor *, int sig);
/* Once a second. */
void executor_tick(const struct executor *);
/* Ends workers that stay. */
void executor_stop(const struct executor *);

#endif
