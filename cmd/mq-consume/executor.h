/*
 * The four ways to work, each a table: one process a message (fork), one for
 * several (batch), workers that stay (stream), and printing.  Exactly one of
 * them is in use.
 */
#ifndef MQ_CONSUME_EXECUTOR_H
#define MQ_CONSUME_EXECUTOR_H

#include <stdbool.h>

struct consumer;
struct message;
struct request_events;

struct executor {
	bool runs;  /* a command; without, messages are printed */
	bool stays; /* its workers are to end before the connection leaves */
	bool flows; /* the next claim goes out before the last is started */
	bool many;  /* messages end many at a time */
	bool bulk;  /* those that end together are acked together at any time */

	/* What the requests of its runs report; NULL: it has none. */
	const struct request_events *requests;

	/* How many more messages of a queue are worth claiming; may be below
	 * 0. */
	long (*room)(const struct consumer *, int queue);
	/* Whether fewer than it holds are worth a claim. */
	bool (*wants_few)(const struct consumer *, int queue);
	/* Starts what it can of what is held. */
	void (*start)(struct consumer *);
	/* What has not begun of a queue that is paused is held again. */
	void (*take_back)(struct consumer *, int queue);
	/* A message was acked first, and is to be done now; NULL: never. */
	void (*acked)(const struct message *);
	/* Whether there are such that are not done yet. */
	bool (*owes)(const struct consumer *);
	/* Once a second. */
	void (*tick)(struct consumer *);
	/* Nothing more is started. */
	void (*stop)(struct consumer *);
	/* What has not begun goes back. */
	void (*give_back)(struct consumer *);
};

extern const struct executor executor_fork, executor_batch, executor_stream,
    executor_print, executor_print_once;

#endif
