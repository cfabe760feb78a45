/*
 * --log-dir: a log file for each queue.
 */
#ifndef MQ_CONSUME_LOGS_H
#define MQ_CONSUME_LOGS_H

#include "mq-consume/options.h"
#include "outputs.h"

/* Opens the files, or opens them anew; nothing without --log-dir.  Ends the program
 * if a file cannot be opened the first time. */
void logs_open(struct outputs *, const struct options *);

/* The line with which the output of a run begins in log i. */
void logs_begin(struct outputs *, int i, const char *what, const char *script);

#endif
