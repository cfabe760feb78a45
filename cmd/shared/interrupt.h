/*
 * INT and TERM for work that goes step by step: they do not end the program at once,
 * so that it can say how far it has come.
 */
#ifndef MQ_INTERRUPT_H
#define MQ_INTERRUPT_H

#include <stdint.h>

/* From now on, the first INT or TERM is only noted; the second ends the program.
 * flags: as of sigaction(2), SA_RESTART or 0. */
void interrupt_catch(int flags);

/* The signal that has come, or 0. */
int interrupt_signal(void);

/*
 * Waits for input on a descriptor (-1: none), for so long at most (-1: for ever).
 * Returns 1, 0 when the time is over, or -1 when a signal has come first.
 */
int interrupt_wait(int fd, int64_t ms);

#endif
