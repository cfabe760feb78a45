/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The connections of mq-consume, which never waits, on a libev loop: a pair for the server, or
 * for each node of a Redis Cluster that is needed, behind one struct mq_redis.  The first
 * connection of a pair is for commands.  The second listens for changes of keys that tracked
 * commands have read (CLIENT TRACKING), and for calls by other clients over a channel of this
 * program alone.
 *
 * If a node is lost, the whole connection is, with two exceptions.  If the node had only
 * optional commands, these get the error of mq_reply_missing(), as they do after 4 s without a
 * reply.  If the node has not been ready for 2 s, it is away: all its commands get that error,
 * until it answers or another node has its slots; then the connection is lost.
 *
 * With sentinels, the connection is lost as soon as the sentinel that named the master names
 * another: the old master may go on for seconds.  If that sentinel dies, only the end of the
 * connection to the master tells.
 */
#ifndef MQ_LOOP_H
#define MQ_LOOP_H

#include "base/timer.h"
#include "connection.h"

/* Events of a connection.  Without a channel, there is only down(). */
struct mq_loop_events {
	/* The connection is gone; why is a text for people.  Called once, after the
	 * callbacks of all commands. */
	void (*down)(void *arg, const char *why);
	/* The server refused the command `what`, and does not report changes of keys.
	 * Called before the replies to commands sent since ready(). */
	void (*untracked)(void *arg, const char *what, const char *error);
	/* Commands can be sent; those of the former connection are over. */
	void (*ready)(void *arg);
	/* A key has changed that a tracked command had read; NULL: any key may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Another client has called. */
	void (*called)(void *arg, const char *text, size_t n);
};

#define MQ_LOOP_TIMERS 4
struct mq_loop {
	struct mq_redis redis; /* for commands; must be the first member */
	struct ev_loop *loop;
	const char *channel, *name;
	const struct mq_loop_events *events;
	void *arg;
	bool known; /* a node has told the map of the cluster */
	struct mq_timer timers[MQ_LOOP_TIMERS]; /* see loop.c */
	char why[512]; /* cause of a failure to be reported; or empty */
	/* The sentinel that reports another master: */
	struct mq_server sentinel;
	struct mq_node sentinel_node;
};

/* channel: for calls by other clients; NULL: there is only the connection for commands,
 * which gets the unique name, at most 31 bytes.  Server, channel, name and events must
 * outlive the loop. */
void mq_loop_init(struct mq_loop *, struct ev_loop *, struct mq_server *,
    const char *channel, const char *name, const struct mq_loop_events *,
    void *arg);

/* Starts to connect to the server's socket or address, or to any node of a cluster.  Returns
 * 0, and down() reports a failure later, or -1 with why. */
int mq_loop_open(struct mq_loop *, const char **why);
/* Closes at once; callbacks get NULL, down() is not called. */
void mq_loop_close(struct mq_loop *);
void mq_loop_free(struct mq_loop *);

/* Writes as much as the sockets take at once, without waiting for the loop's next turn. */
void mq_loop_flush(struct mq_redis *);

#endif
