/*
 * One run: a process for the messages in a slot's hand, from start to verdicts.
 */
#ifndef MQ_CONSUME_RUN_H
#define MQ_CONSUME_RUN_H

#include "slots.h"

/* slots: struct slots. */
void run_init(void *slots);
/* Starts a run with n bytes as its input. */
void run_begin(struct slot *, const char *input, size_t n);

#endif
