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

/* Begins to read verbs. */
void stream_verbs_watch(struct slot *);
/* Goes on reading, after requests were answered. */
void stream_verbs_resume(struct slot *);
/* Parses what was read, up to a verb that has to wait. */
void stream_verbs_hear(struct slot *);
/* The worker is dead: reads its last verbs. */
void stream_verbs_last(struct slot *);
/* Once a second: says once that a worker is silent for long. */
void stream_verbs_tick(struct slot *);
/* Reports the verdict on a message that has left the hand. */
void stream_verbs_judged(
    struct slot *, struct message *, const struct mq_verdict *);

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
/* Stops that time, while requests are answered. */
void worker_pause_time(struct slot *);
/* Closes the input: the worker is to end after its messages. */
void worker_last(struct slot *);
/* Returns messages that the worker cannot have read. */
void worker_return_unread(struct slot *);
/* Kills a worker that broke the protocol. */
void worker_fail_protocol(struct slot *, const char *protocol_error);
/* Descriptor 3 has ended. */
void worker_verbs_closed(struct slot *);
/* Nobody reads the standard input any more. */
void worker_input_closed(void *slot);
/* Prepares the timers of a started worker. */
void worker_init_time(struct slot *);

#endif
