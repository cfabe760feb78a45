/*
 * The meaning of an error reply, whose text differs between servers and their
 * versions.
 */
#ifndef MQ_ERROR_H
#define MQ_ERROR_H

#include <stdbool.h>

/* The mq_exit status that fits it. */
int mq_error_status(const char *error);

/* Without the words before the cause of a transaction that failed as a whole; what a
 * server says that has become a replica is MQ_REDIS_REPLICA. */
const char *mq_error_cause(const char *error);

/* Whether the server runs a long script, or loads its data. */
bool mq_error_busy(const char *error);

/* Whether the user may come in, but may not do this. */
bool mq_error_noperm(const char *error);

/* The words to add for people if something is not permitted; else "".  Constant
 * text. */
const char *mq_error_hint(const char *error);

#endif
