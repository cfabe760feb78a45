/*
 * The private server: a redis-server of this user's own on a unix socket,
 * started on demand by whichever tool comes first.
 */
#ifndef MQ_PRIVATE_H
#define MQ_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
