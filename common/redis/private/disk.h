/*
 * The private server and a full disk.  The server syncs each write to disk, and ends
 * when it cannot write.
 */
#ifndef MQ_PRIVATE_DISK_H
#define MQ_PRIVATE_DISK_H

#include <stddef.h>

#include "place.h"

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

#endif
