/*
 * The time limits of a worker that stays, and the ways to its end.
 */
#ifndef MQ_CONSUME_WORKER_TIME_H
#define MQ_CONSUME_WORKER_TIME_H

#include "slots.h"

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
