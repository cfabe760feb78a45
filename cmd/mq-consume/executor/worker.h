/*
 * The life of a worker that stays.  When a worker ends, its verdicts stand.  Its
 * exit status decides the message that it was on; the messages behind go back,
 * as if they had not been started.  Another worker takes its place; after a bad
 * end, after a while.
 */
#ifndef MQ_CONSUME_WORKER_H
#define MQ_CONSUME_WORKER_H

#include "slots.h"

/* slots: struct slots. */
void worker_init(void *slots);
/* False: the worker could not be started. */
bool worker_start(struct slot *);

#endif
