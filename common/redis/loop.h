/*
 * The connections of mq-consume, which never waits, on a libev loop: two to its server, or to
 * each of those nodes of a Redis Cluster that it needs, behind one struct mq_redis.  One is
 * for commands; the other one listens for news of changed keys, and for calls by other
 * clients over a channel of this program alone.  Only what tracked commands read counts
 * (CLIENT TRACKING).
 *
 * When a node is lost, so is the connection; but for a node that was asked for nothing but
 * optional commands, which get an error of ours then, or after 4 seconds (see
 * mq_reply_missing()).  A node that was not ready for two seconds before is away: all its
 * commands get that error.  The connection is lost when that node answers again, or another
 * one has its slots.
 *
 * With sentinels, the one that has named the master last tells at once of another one, and
 * the connection is lost, while the old master may go on for seconds.  Nobody waits for a
 * sentinel that has died; a lost connection to the master tells the same.
 */
#ifndef MQ_LOOP_H
#define MQ_LOOP_H

#include "base/timer.h"
#include "connection.h"

/* What happens to a connection.  All but down() are only of those with a channel. */
struct mq_loop_events {
	/* The connection is gone; why is a text for people.  Called once, after the
	 * callbacks of all commands. */
	void (*down)(void *arg, const char *why);
	/* The server refused what, and does not report changes of what a tracked command
	 * reads.  Answers to commands that were sent from ready() on come later. */
	void (*untracked)(void *arg, const char *what, const char *error);
	/* Commands can be sent, and those of the former connection are over. */
	void (*ready)(void *arg);
	/* A key that was read and has changed; NULL: any key may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Somebody has called. */
	void (*called)(void *arg, const char *text, size_t n);
};

#define MQ_LOOP_TIMERS 4
struct mq_loop {
	struct mq_redis redis; /* where commands go; comes first */
	struct ev_loop *loop;
	const char *channel, *name;
	const struct mq_loop_events *events;
	void *arg;
	bool known; /* the map of the cluster is the cluster's */
	struct mq_timer timers[MQ_LOOP_TIMERS]; /* see loop.c */
	char why[512];				/* it fails; or empty */
	/* Who tells of another master: */
	struct mq_server sentinel;
	struct mq_node sentinel_node;
};

/* channel: where others call this consumer; NULL: there is only the connection for
 * commands.  name: of that, and of nobody else's, at most 31 bytes.  All but the events are
 * the caller's, and outlive it. */
void mq_loop_init(struct mq_loop *, struct ev_loop *, struct mq_server *,
    const char *channel, const char *name, const struct mq_loop_events *,
    void *arg);

/* Starts to connect to the socket or address of the server (of a cluster, to that of any
 * node), and to greet it.  Returns 0, and down() reports a failure later, or -1 with why. */
int mq_loop_open(struct mq_loop *, const char **why);
/* Closes at once; callbacks get NULL, down() is not called. */
void mq_loop_close(struct mq_loop *);
void mq_loop_free(struct mq_loop *);

/* Writes now, as far as the sockets take it, and not in the next turn of the loop. */
void mq_loop_flush(struct mq_redis *);

#endif
