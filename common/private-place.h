/* What the two files of the private server share; for them only. */
#ifndef MQ_PRIVATE_PLACE_H
#define MQ_PRIVATE_PLACE_H

#include <sys/types.h>

#include <stddef.h>

struct place {
	char *dir;	    /* absolute */
	const char *socket; /* the caller's buffer */
	off_t log_start;    /* where the log of our own start begins */
	char *error;
	size_t error_size;
};

/* Writes the error and returns status. */
int private_fail(struct place *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Starts the server, which inherits the lock.  Returns 0 as soon as it is on its
 * way, or a status with the error.
 */
int private_start(struct place *, int lock);

/* It ended before it answered: a status, with the reason from its log. */
int private_did_not_start(struct place *);

#endif
