/*
 * How long a worker that stays may take, and how it comes to its end.
 */
#ifndef MQ_CONSUME_WORKER_TIME_H
#define MQ_CONSUME_WORKER_TIME_H

#include "slots.h"

/* Whether it gets no more, and is to end soon. */
bool worker_is_leaving(const struct slot *);
/* The time for the message that it is on begins now. */
void worker_next(struct slot *);
/* Its time does not count, but that of its requests does. */
void worker_pause_time(struct slot *);
/* It gets no more, and is to end when it has done what it has. */
void worker_last(struct slot *);
/* What it cannot have read goes back. */
void worker_return_unread(struct slot *);
/* It is killed for what it did. */
void worker_broke(struct slot *, const char *protocol_error);
/* Its descriptor 3 has ended; nobody reads its standard input any more. */
void worker_verbs_closed(struct slot *);
void worker_input_closed(void *slot);
/* It has been started: its timers. */
void worker_init_time(struct slot *);

#endif
