/*
 * Standard descriptors and signals: what every tool sees to before anything else.
 */
#ifndef MQ_STARTUP_H
#define MQ_STARTUP_H

#include <stdbool.h>

/*
 * To be called first.  Memory that the libraries lack ends the program, as xalloc.h
 * says.  If one of the descriptors 0 to 2 is closed, /dev/null takes its place, so
 * that no connection ever gets its number; standard input cannot be read then, nor
 * standard output be written to.  A server or a reader that goes away is an error
 * like any other, and no signal; other signals end the first process of a
 * container, too.
 */
void mq_option_begin(void);

/* Payloads come from standard input: ends with exit 74 if it cannot be read. */
void mq_option_reads(void);

/*
 * Whether the tool prints results on standard output.  If it does, and cannot write
 * there, it ends with exit 74: to be called before anything is changed.  If it does
 * not, what its children write there goes to /dev/null.
 */
void mq_option_prints(bool results);

/* Prints a text, and ends the program with status 0. */
void mq_option_print(const char *text);

#endif
