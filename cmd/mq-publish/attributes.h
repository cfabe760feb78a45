/*
 * Options that say what is to become of the messages, or of the queue.  Each takes
 * option and argument as they were given, and ends with exit 64 when it is wrong.
 */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include "message/envelope.h"
#include "queue/queue.h"

/* Headers of all messages. */
void attribute_header(
    struct mq_envelope *, const char *option, const char *arg);
void attribute_param(struct mq_envelope *, const char *option, const char *arg);
void attribute_unique(
    struct mq_envelope *, const char *option, const char *arg);
void attribute_number(struct mq_envelope *, const char *header, int64_t);
/* Sets a name, which must be UTF-8: no two names may become the same. */
void attribute_name(struct mq_envelope *, const char *option,
    const char *header, const char *name);

int64_t attribute_tick(const char *option, const char *arg);
/* N or N:HIGH, which is taken apart. */
void attribute_max(const char *option, char *arg, long *max, long *high);

#endif
