/*
 * INT and TERM for work that goes step by step: they end the program between two
 * steps.
 */
#ifndef MQ_INTERRUPT_H
#define MQ_INTERRUPT_H

/* From now on, the first INT or TERM is only noted; the second ends the program. */
void interrupt_catch(void);

/* The signal that has come, or 0. */
int interrupt_signal(void);

/* Sleeps unless a signal has come, or comes. */
void interrupt_sleep(double seconds);

#endif
