/*
 * The two connections of a consumer to one server: one for commands, and one that
 * listens for news of changed keys, and for calls by other clients over a channel of
 * this program alone.  Only what tracked commands read counts (CLIENT TRACKING).
 */
#ifndef MQ_PAIR_H
#define MQ_PAIR_H

#include "async.h"

struct mq_pair_events {
	/* Commands can be sent, and those of the former connection are over. */
	void (*ready)(void *arg);
	/* A connection is lost.  The answers to all commands have come, or NULL in
	 * their place, or mq_pair_close() brings that. */
	void (*down)(void *arg, const char *why);
	/* The server has refused our greeting; down() follows. */
	void (*refused)(void *arg, const char *error);
	/* The server refused what, and reports nothing.  Answers to commands that were
	 * sent from ready() on come later. */
	void (*untracked)(void *arg, const char *what, const char *error);
	/* A key that was read and has changed; NULL: any key may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Somebody has called. */
	void (*called)(void *arg, const char *text, size_t n);
};

struct mq_pair {
	const struct mq_server *server;
	const char *channel, *name;
	const struct mq_pair_events *events;
	void *arg;
	struct mq_async main, wake;
	long long
	    former; /* the number of the last one with the name; 0: none */
};

/*
 * channel: where others call this consumer.  name: of its connections for commands,
 * and of nobody else's, at most 31 bytes.  front: as of struct mq_async, or NULL.  All
 * but the events are the caller's, and outlive the pair.
 */
void mq_pair_init(struct mq_pair *, struct ev_loop *, const struct mq_server *,
    const char *channel, const char *name, struct mq_async *front,
    const struct mq_pair_events *, void *arg);
/* As mq_async_open(). */
int mq_pair_open(struct mq_pair *, const char **why);
void mq_pair_close(struct mq_pair *);

#endif
