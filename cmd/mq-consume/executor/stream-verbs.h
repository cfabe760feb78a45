/*
 * The verbs of a worker that stays.  They are parsed as they come, and each final
 * verb is about the first message in hand.  A verb about a message that the
 * worker cannot have read breaks the protocol.
 */
#ifndef MQ_CONSUME_STREAM_VERBS_H
#define MQ_CONSUME_STREAM_VERBS_H

#include "slots.h"

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

#endif
