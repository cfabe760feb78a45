/*
 * The two connections of a consumer to one server.
 */
#ifndef MQ_PAIR_H
#define MQ_PAIR_H

#include "async.h"

/* --- tracking ----------------------------------------------------------- */

/*
 * Reports to a connection that listens: of keys that another one, the reader, has
 * read and that change (CLIENT TRACKING), and of calls by other clients over a
 * channel of this program alone.  Only what tracked commands read counts.
 */

struct mq_tracking {
	/* Set by the caller before. */
	struct mq_async *reader;
	struct mq_async *listener; /* for nothing else */
	const char *channel;
	/* Commands to the reader from now on go out behind the requests. */
	void (*started)(void *arg);
	/* The server refused what, and reports nothing.  Answers to commands
	 * that were sent behind the requests come later. */
	void (*refused)(void *arg, const char *what, const char *error);
	/* A key that the reader has read; NULL: any key may have changed. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Somebody has called. */
	void (*called)(void *arg, const char *text, size_t n);
	void *arg;
};

/* To be called when both connections have been opened.  If one is lost, no
 * more callbacks come. */
void mq_tracking_start(struct mq_tracking *);

/* --- fence -------------------------------------------------------------- */

/*
 * The end of a connection that was given up.  Commands of it may still be
 * unread at the server, and would be carried out behind what the next
 * connection has found there.  Therefore the next one kills it first.
 */

struct mq_fence {
	/* Set by the caller before. */
	struct mq_async *async;
	char name[32];		 /* that no other client's connections have */
	void (*then)(void *arg); /* the one before is killed, or cannot be */
	void *arg;
	/* Of the last connection that was fenced; 0: there was none. */
	long long id;
};

/*
 * To be called when the connection has been opened.  What then() sends is
 * carried out after the last command of the connection before; also when the
 * server refuses CLIENT LIST or CLIENT KILL.  If this connection is lost
 * before, then() is not called.
 */
void mq_fence(struct mq_fence *);

/* --- pair -------------------------------------------------------------- */

/*
 * The two connections of a consumer to one server: one for commands, and one that
 * listens for news of changed keys, and for calls.
 */

struct mq_pair_events {
	/* Commands can be sent, and those of the former connection are over. */
	void (*ready)(void *arg);
	/* A connection is lost.  The answers to all commands have come, or NULL in
	 * their place, or mq_pair_close() brings that. */
	void (*down)(void *arg, const char *why);
	/* The server has refused our greeting; down() follows. */
	void (*refused)(void *arg, const char *error);
	/* As of struct mq_tracking. */
	void (*untracked)(void *arg, const char *what, const char *error);
	void (*changed)(void *arg, const char *key, size_t n);
	void (*called)(void *arg, const char *text, size_t n);
};

struct mq_pair {
	const struct mq_server *server;
	const struct mq_pair_events *events;
	void *arg;
	struct mq_async main, wake;
	struct mq_tracking tracking;
	struct mq_fence fence;
};

/*
 * channel: where others call this consumer.  name: of its connections for commands,
 * and of nobody else's.  front: as of struct mq_async, or NULL.  All but the events are
 * the caller's, and outlive the pair.
 */
void mq_pair_init(struct mq_pair *, struct ev_loop *, const struct mq_server *,
    const char *channel, const char *name, struct mq_async *front,
    const struct mq_pair_events *, void *arg);
/* As mq_async_open(). */
int mq_pair_open(struct mq_pair *, const char **why);
void mq_pair_close(struct mq_pair *);

#endif
