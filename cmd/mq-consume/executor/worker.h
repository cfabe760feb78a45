/*
 * The life of a worker that stays.  When it ends, what it has judged stands.
 * The message that it was on follows from how it ended, and those behind that
 * are held again, as if nobody had had them.  Another worker takes its place,
 * after a while if it ended badly.
 */
#ifndef MQ_CONSUME_WORKER_H
#define MQ_CONSUME_WORKER_H

#include "slots.h"

void worker_init(struct slots *);
/* False: it could not be started. */
bool worker_start(struct slot *);

#endif
