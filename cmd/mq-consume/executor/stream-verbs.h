/*
 * What a worker that stays says.  Its verbs are taken apart as they come, and
 * each final one is about the message that the worker is on.  A verb about one
 * that the worker cannot have read breaks the protocol.
 */
#ifndef MQ_CONSUME_STREAM_VERBS_H
#define MQ_CONSUME_STREAM_VERBS_H

#include "slots.h"

/* Listens from now on. */
void stream_verbs_watch(struct slot *);
/* Goes on with that, if it was stopped. */
void stream_verbs_resume(struct slot *);
/* Takes apart what was read, as far as it can be. */
void stream_verbs_hear(struct slot *);
/* The worker is dead: reads what it has said. */
void stream_verbs_last(struct slot *);
/* Once a second: says once of a silence that is long. */
void stream_verbs_tick(struct slot *);
/* What follows from a verdict on a message that has left its hand. */
void stream_verbs_judged(
    struct slot *, struct message *, const struct mq_verdict *);

#endif
