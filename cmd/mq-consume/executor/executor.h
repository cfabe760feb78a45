/*
 * Executor: one of the four ways to work, each a table: one process a message
 * (fork), one for several (batch), workers that stay (stream), and printing.
 * Exactly one of them is in use.
 */
#ifndef MQ_CONSUME_EXECUTOR_H
#define MQ_CONSUME_EXECUTOR_H

#include <stdbool.h>

#include "base/buf.h"
#include "mq-consume/message.h"
#include "mq-consume/options.h"

/* work: struct slots, or struct printer.  What may be NULL is marked. */
struct executor_table {
	bool runs;  /* a command; without, messages are printed */
	bool stays; /* its workers are to end before the connection leaves */
	bool flows; /* the next claim goes out before the last is started */
	bool many;  /* messages end many at a time */
	bool bulk;  /* a run has several messages of one queue */

	void (*init)(void *work);
	long (*room)(const void *work, int queue);
	bool (*wants_few)(const void *work, int queue); /* NULL: no */
	void (*start)(void *work);
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

/* How many more messages of a queue are worth claiming; may be below 0. */
long executor_room(const struct executor *, int queue);
/* Whether fewer than are held are worth a claim. */
bool executor_wants_few(const struct executor *, int queue);
/* Starts what it can of what the inbox has. */
void executor_start(const struct executor *);
/* What has not begun of a queue that is paused goes back to the inbox; or all,
 * and if `now` even what has. */
void executor_take_back(const struct executor *, int queue);
void executor_take_back_all(const struct executor *, bool now);
/* A message that it has is somebody else's now.  True: it still has it, and
 * will report its end; else it has forgotten it. */
bool executor_take_away(const struct executor *, struct message *);
/* A message was acked before it is done. */
void executor_acked(const struct executor *, const struct message *);
/* Whether there are such that are not done yet. */
bool executor_owes(const struct executor *);
/* How many messages it has; and how many commands keep it busy. */
int executor_running(const struct executor *);
int executor_busy(const struct executor *);
/* Whether it can start nothing for a while, however much there is. */
bool executor_rests(const struct executor *);
/* Appends what runs for long, as of running.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to all commands; what is not done goes back. */
void executor_kill(const struct executor *, int sig);
/* Once a second. */
void executor_tick(const struct executor *);
/* Nothing more is started. */
void executor_stop(const struct executor *);

#endif
