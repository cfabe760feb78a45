/*
 * The attributes of a queue of RSMQ, as users write them.  Each function ends with exit 64
 * when the value is wrong; name is what the error calls it.
 */
#ifndef MQ_ATTRIBUTES_H
#define MQ_ATTRIBUTES_H

#include "queue/queue.h"

/* The longest time that node takes, for a delay of one message, too. */
#define MQ_ATTRIBUTE_SECONDS_MAX 9999999

/* Whole seconds, from a duration. */
long mq_attribute_seconds(const char *name, const char *arg);
/* A number of units of UTF-16, or -1: any. */
long mq_attribute_maxsize(const char *name, const char *arg);

#endif
