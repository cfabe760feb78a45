/*
 * The private server: a redis-server of this user's own on a unix socket, which
 * whichever tool comes first starts on demand.
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

#endif
