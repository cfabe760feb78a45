/*
 * The inside of executor.h, for the files of this folder.
 */
#ifndef EXECUTOR_PARTS_H
#define EXECUTOR_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

#include "executor.h"
#include "mq-consume/message.h"

/* --- run ---------------------------------------------------------------- */

/*
 * One run: a process for the messages in a slot's hand, from start to verdicts.
 */

/* slots: struct slots. */
void run_init(void *slots);
/* Starts a run with n bytes as its input. */
void run_begin(struct slot *, const char *input, size_t n);

/* --- stream-verbs ------------------------------------------------------- */

/*
 * The verbs of a worker that stays.  They are parsed as they come, and each final
 * verb is about the first message in hand.  A verb about a message that the
 * worker cannot have read breaks the protocol.
 */

/* Once a second: says once that a worker is silent for long. */
void stream_verbs_tick(struct slot *);

/* --- worker ------------------------------------------------------------- */

/*
 * The life of a worker that stays.  When a worker ends, its verdicts stand.  Its
 * exit status decides the message that it was on; the messages behind go back,
 * as if they had not been started.  Another worker takes its place; after a bad
 * end, after a while.
 */

/* slots: struct slots. */
void worker_init(void *slots);
/* False: the worker could not be started. */
bool worker_start(struct slot *);

/* --- worker-time -------------------------------------------------------- */

/*
 * The time limits of a worker that stays, and the ways to its end.
 */

/* Whether the worker gets no more messages, and is to end soon. */
bool worker_is_leaving(const struct slot *);
/* Begins the time for the next message. */
void worker_next(struct slot *);
/* Closes the input: the worker is to end after its messages. */
void worker_last(struct slot *);
/* Returns messages that the worker cannot have read. */
void worker_return_unread(struct slot *);

#endif
