/* Connections to the server for mq-consume, which never wait: links on a libev loop. */
#ifndef MQ_ASYNC_H
#define MQ_ASYNC_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>
#include <hiredis/hiredis.h>

#include "command.h"
#include "link.h"
#include "server.h"

/* --- async ------------------------------------------------------------- */

struct mq_request;
struct mq_async;

/* What a connection does that has several nodes behind it; see pairs.c. */
struct mq_async_route {
	/* Takes a new command. */
	void (*ask)(struct mq_async *, struct mq_request *);
	/* Takes a command back whose reply says that it was not carried out, or (NULL)
	 * that has none; false: the reply is for the asker. */
	bool (*again)(
	    struct mq_async *, struct mq_request *, const redisReply *);
	/* The connection to the node of a slot; NULL: none was asked for. */
	struct mq_async *(*node)(const struct mq_async *, int slot);
};

/* What happens to a connection, or to a pair of them.  Behind a front,
 * untracked() and changed() are those of the front. */
struct mq_async_events {
	/* The connection is gone; why is a text for people.  Called once, after the
	 * callbacks of all commands; of a pair, or if there was no connection at all, those
	 * may come later, with NULL.  NULL: nobody hears. */
	void (*down)(void *arg, const char *why);
	/* The server refused what, and does not report changes of what a tracked command
	 * reads.  Only where there are such commands.  Answers to commands that were sent
	 * from ready() on come later. */
	void (*untracked)(void *arg, const char *what, const char *error);
	/* The others are of a pair.  Commands can be sent, and those of the former
	 * connection are over. */
	void (*ready)(void *arg);
	/* A key that was read and has changed; NULL: any key may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Somebody has called. */
	void (*called)(void *arg, const char *text, size_t n);
};

struct mq_async {
	struct ev_loop *loop;
	struct mq_link link;
	const struct mq_server *server; /* the caller's, of the last one */
	/* Commands: handed over, in the order of their replies; and not handed over whole. */
	TAILQ_HEAD(mq_requests, mq_request) sent, backlog;
	TAILQ_HEAD(mq_listeners, mq_listener) listeners;
	ev_io readable, writable; /* as the link wants */
	size_t moved_before;	  /* see mq_async_moves() */
	const struct mq_async_events *events;
	void *arg;
	const struct mq_async_route *route; /* NULL: it is one server's */
	/* Which has this one behind it; or itself, from mq_async_open() on. */
	struct mq_async *front;
	struct mq_async *behind; /* of a front: one of the others... */
	struct mq_async *next;	 /* ...and of these, the next one */
	char missing[512]; /* behind a front: see mq_async_away(); or empty */
};

/* A reply, which is freed when the callback returns; NULL: the connection was lost before
 * one came, and nothing is known of the command. */
typedef void mq_async_fn(void *arg, redisReply *reply);

/*
 * Starts to connect to the socket or address of the server, and to greet it; commands can
 * be sent at once.  The server must outlive the connection.  The caller sets loop, events
 * and arg before.  Returns 0, and down() reports a failure later, or -1 with why.
 */
int mq_async_open(
    struct mq_async *, const struct mq_server *, const char **why);

/* Sends a command, whose memory it takes: *c is empty afterwards.  A script that the
 * server does not know is sent once more with its text.  fn may be NULL. */
void mq_async_send(
    struct mq_async *, struct mq_command *, mq_async_fn *fn, void *arg);

/* The same for calls that take the reply apart before their caller hears of it: take()
 * gets the reply, or NULL, with a copy of *asker. */
struct mq_answer; /* what is in a reply, of those who ask */
typedef void mq_answer_fn(void *arg, const struct mq_answer *);
struct mq_asker {
	mq_answer_fn *fn;
	mq_async_fn *raw; /* of mq_async_send() */
	void *arg;
	void *of; /* the call's own */
};
typedef void mq_async_take(const struct mq_asker *, redisReply *);
void mq_async_ask(struct mq_async *, struct mq_command *, mq_async_take *take,
    const struct mq_asker *);

/* Writes now, as far as the socket takes it, and not in the next turn of the loop. */
void mq_async_flush(struct mq_async *);

/* Whether anything has come or gone since the last call; on a cluster, from or to the
 * node that has the keys of this command (NULL: any). */
bool mq_async_moves(struct mq_async *, const struct mq_command *);

/* Subscribes to a channel: fn gets the reply, and each message. */
void mq_async_subscribe(
    struct mq_async *, const char *channel, mq_async_fn *fn, void *arg);

/* Closes at once; callbacks get NULL, down() is not called. */
void mq_async_close(struct mq_async *);

/* An empty command for this server; on a cluster, keys have other names. */
struct mq_command mq_async_command(const struct mq_async *);

/* Why the node of a cluster that has the keys of this command is away, as far as it was
 * asked; else NULL.  Its commands get this as their error: see mq_reply_missing(). */
const char *mq_async_away(const struct mq_async *, const struct mq_command *);

/* --- request ------------------------------------------------------------ */

/* For async.c and pairs.c: a command under way. */
struct mq_request {
	/* In a backlog, or in a list of pairs.c. */
	TAILQ_ENTRY(mq_request) link;
	struct mq_async *async;
	mq_async_take *take;
	struct mq_asker asker;
	struct mq_command command; /* until it is sent; a script until the
				    * server is known to have it; behind a
				    * route until the answer */
	size_t sent;
	bool tracked;
	int redirected; /* so often */
};

/* Sends it to one server. */
void mq_request_send(struct mq_async *, struct mq_request *);
/* Its asker gets this reply, NULL: the connection is lost; and it is freed. */
void mq_request_answer(struct mq_request *, redisReply *);
/* It has no reply: its asker hears so, unless its route knows better. */
void mq_request_lose(struct mq_request *);

/* --- pairs --------------------------------------------------------------- */

/*
 * The connections of a consumer: two to its server, or to each of those nodes of a Redis
 * Cluster that it needs, behind one struct mq_async, as nodes.c has them behind one
 * struct mq_redis.  One is for commands; the other one listens for news of changed keys,
 * and for calls by other clients over a channel of this program alone.  Only what tracked
 * commands read counts (CLIENT TRACKING).
 *
 * On a cluster each command goes to the node that has the slot of its first key, one
 * without a key to any.  Where a slot has moved, or is moving, the command goes to the
 * other node, or once more; the asker does not hear of it.  Commands of one slot that
 * wait keep their order.  When a node is lost, so is the connection; but for a node
 * that was asked for nothing but optional commands, which get an error of ours then, or
 * after 4 seconds (see mq_reply_missing()).  A node that was not ready for two seconds
 * before is away: all its commands get that error.  The connection is lost when that
 * node answers again, or another one has its slots.
 *
 * With sentinels, the one that has named the master last tells at once of another one, and
 * the connection is lost, while the old master may go on for seconds.  Nobody waits for a
 * sentinel that has died; a lost connection to the master tells the same.
 */

struct mq_pair {
	const struct mq_server *server;
	const char *channel, *name;
	struct mq_async main, wake;
	long long former; /* the last one's number; 0: there was none */
};

struct mq_pairs {
	struct mq_async *async;	    /* where commands go */
	struct mq_pair only;	    /* of one server; else a model of others */
	struct mq_cluster *cluster; /* or NULL */
	struct mq_async news;	    /* of another master, by... */
	struct mq_server sentinel;  /* ...this one */
};

/* channel: where others call this consumer.  name: of its connections for commands, and of
 * nobody else's, at most 31 bytes.  All but the events are the caller's, and outlive the
 * pairs. */
void mq_pairs_init(struct mq_pairs *, struct ev_loop *,
    const struct mq_server *, const char *channel, const char *name,
    const struct mq_async_events *, void *arg);

/* As mq_async_open(); of a cluster, the address and port of the server are those of any
 * node. */
int mq_pairs_open(struct mq_pairs *, const char **why);
void mq_pairs_close(struct mq_pairs *);
void mq_pairs_free(struct mq_pairs *);

#endif
