/*
 * The private server: a server of this user's own, which the first tool starts.
 */
#ifndef MQ_PRIVATE_H
#define MQ_PRIVATE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

/* --- private ------------------------------------------------------------ */

/*
 * The private server: a redis-server of this user's own on a unix socket,
 * started on demand by whichever tool comes first.
 */

/*
 * Makes sure that the private server in dir answers, starting it when needed,
 * and writes the path of its socket.  dir NULL means $XDG_STATE_HOME/mq, else
 * ~/.local/state/mq.  Waits while the server loads its data, for as long as
 * it is alive.  With after_crash, a server that was shut down on purpose stays so,
 * and the status is MQ_EXIT_UNAVAILABLE.  Returns 0, or an mq_exit status with one line of reason in
 * error (which may hold control characters of the server's log).
 *
 * Several callers at once get one server: the lock file in dir is held,
 * through an inherited descriptor, by the server itself for as long as any of
 * its processes lives, so "the lock is free" means that no server can be
 * writing to these files.
 */
int mq_private_ensure(const char *dir, bool after_crash, char *socket_path,
    size_t path_size, char *error, size_t error_size);

/* --- place -------------------------------------------------------------- */

/* The directory of the private server, and the socket and the log in it. */

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

/* --- disk --------------------------------------------------------------- */

/*
 * The private server and a full disk.  The server syncs each write to disk, and ends
 * when it cannot write.
 */

/* Whether the disk allows a start: 0, or a status with the error.  lock is the open
 * lock file, which is empty. */
int private_may_start(struct place *, int lock);

/*
 * Whether the disk of the private server with this socket has room for a write
 * of this many bytes, and for some small ones after it: 0, or MQ_EXIT_IO with one
 * line in error.
 */
int mq_private_room(
    const char *socket_path, size_t bytes, char *error, size_t error_size);

/* Bytes of the file system with this socket; unchanged if nobody knows. */
void mq_private_disk(
    const char *socket_path, long long *free_bytes, long long *all_bytes);

/* --- exec --------------------------------------------------------------- */

/* The process of the private server, and what it inherits. */

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

#endif
