/*
 * INT and TERM do not end the program at once, so that it can say how many messages
 * were accepted.  A second signal does.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <stdint.h>

void interrupt_catch(void);
/* The signal that has come; 0: none. */
int interrupt_signal(void);
/*
 * Waits for input on a descriptor (-1: none), for so long at most (-1: for ever).
 * Returns 1, 0 when the time is over, or -1 when a signal has come first.
 */
int interrupt_wait(int fd, int64_t ms);

#endif
