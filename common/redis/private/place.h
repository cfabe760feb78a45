/* The directory of the private server, and the socket and the log in it. */
#ifndef MQ_PRIVATE_PLACE_H
#define MQ_PRIVATE_PLACE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

struct place {
	char *dir;	    /* absolute; the caller frees */
	const char *socket; /* the caller's buffer */
	off_t log_start;    /* where the log of our own start begins */
	bool crashed;	    /* the server that we start was killed before */
	char *error;
	size_t error_size;
};

/*
 * Finds or makes the directory, which must be this user's alone, and writes the path
 * of the socket.  p has the buffer for errors.  Returns 0, or a status with the error.
 */
int private_find_place(
    struct place *, const char *dir, char *path, size_t size);

/* Writes the error and returns status. */
int private_fail(struct place *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The last line of the log since log_start, without its stamp; "" if none. */
char *private_last_words(struct place *, char *text, size_t size);

/* The server ended before it answered: a status, with the reason from its log. */
int private_did_not_start(struct place *);

#endif
