/* What the files of the private server share; for them only. */
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

/* A lower limit of open files could be too low for the clients of the server. */
#define PRIVATE_FILES_MIN 256

/*
 * Executes redis-server, or valkey-server if there is none, with these arguments, of
 * which the first one is set here.  Of this process it gets the lock only: no limit
 * that can be lifted, no priority, no descriptor, no signal, no environment but
 * PATH, HOME and TZ.  Returns 0, or an errno value: EMFILE if the limit of open
 * files stays below PRIVATE_FILES_MIN.
 */
int private_exec(const char **argv, int lock, const char *log, pid_t *pid);

/* The server ended before it answered: a status, with the reason from its log. */
int private_did_not_start(struct place *);

/* The last line of the log since log_start, without its stamp; "" if none. */
char *private_last_words(struct place *, char *text, size_t size);

/* Whether the disk allows a start: 0, or a status with the error. */
int private_may_start(struct place *, int lock);

#endif
