/*
 * When what a server has accepted is safe: once it is on the server's disk, if the
 * server keeps a file that can be relied upon, and on all replicas that the server
 * had when we connected; with sentinels, on all that one of these could make the master
 * when we wait.
 */
#ifndef MQ_DURABLE_H
#define MQ_DURABLE_H

#include "info.h"

struct mq_durable {
	bool disk;    /* on the disk of the server... */
	bool waitaof; /* ...which it is when WAITAOF says so; else at once */
	int replicas; /* and on this many */
	/* with sentinels, which replicas these are, as in struct mq_info; else empty */
	char online[sizeof(((struct mq_info *)NULL)->online)];
	char run_id[48];
};

/*
 * Finds out when writes will be safe.  A server whose first append-only file is not
 * complete is waited for, 30 s at most.  Returns 0, or -1 with the error: the
 * connection is lost, or the server can promise nothing (MQ_EXIT_CONFIG, and the
 * error says what to change).  Needs mq_redis_wait_with().
 */
int mq_durable_find(struct mq_redis *, struct mq_durable *);

/*
 * Waits until everything is safe that this connection has written, at most 30 s for
 * the disk and 30 s for the replicas.  If something else may have been written
 * later elsewhere, `write` is a harmless command that goes first; else it is NULL.
 * With sentinels, the replicas are looked for again before, 30 s at most; and if the
 * server is not the master that they name, the connection counts as lost, since the
 * next one goes to that.  Returns 0, or -1 with the error.
 */
int mq_durable_wait(
    struct mq_redis *, const struct mq_durable *, struct mq_command *write);

#endif
