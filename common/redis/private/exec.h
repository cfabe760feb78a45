/* The process of the private server, and what it inherits. */
#ifndef MQ_PRIVATE_EXEC_H
#define MQ_PRIVATE_EXEC_H

#include <sys/types.h>

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
