/*
 * A connection to the server for tools that wait for their answers.  Queues
 * and layouts are not its business.  (mq-consume, which must not wait, has
 * async.h.)
 */
#ifndef MQ_REDIS_H
#define MQ_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "command.h"
#include "reply.h"
#include "server.h"
#include "tls.h"

/* How long one read or write may take without any progress. */
#define MQ_REDIS_PATIENCE_MS 60000

/* How long name, TCP and TLS of a server may take together; and its greeting, from the
 * same beginning, since a server that is busy says so after 5 seconds. */
#define MQ_CONNECT_S 5
#define MQ_GREET_S   7

struct mq_redis;

/* What a connection does that has several nodes behind it; see nodes.h. */
struct mq_route {
	int (*append)(struct mq_redis *, struct mq_command *);
	int (*flush)(struct mq_redis *);
	redisReply *(*reply)(struct mq_redis *);
	bool (*lost)(const struct mq_redis *);
	/* As mq_redis_visit(). */
	bool (*visit)(struct mq_redis *, int i);
	void (*close)(struct mq_redis *);
};

struct mq_redis {
	redisContext *context;
	mq_tls *tls;
	const struct mq_route *route; /* NULL: it is one server's */
	struct mq_nodes *nodes;	      /* of the route */
	int home; /* on a cluster, the slot whose node commands without a key
		   * are for; -1: any node */
	struct mq_server *server; /* the caller's */
	size_t unsent;		  /* bytes collected, and not sent yet */
	int status;		  /* mq_exit of the last failure */
	char error[512];	  /* "NAME: what went wrong" of it; may hold
				   * anything that the server said */
	bool heard;		  /* the server has answered something */
	bool asked;		  /* the reply to HELLO is the next one */
	const char *unfit;	  /* why the server cannot be used; or NULL */
	/* Until its greeting is over, which must be by then, it never blocks; then 0. */
	double greet_until;
	bool wanted_node; /* it may be a node of a cluster */
	/* See mq_redis_wait_with(). */
	bool (*wait)(void *arg, int fd, int64_t ms);
	void *wait_arg;
	int64_t patience_ms;
};

/*
 * From now on hiredis 1.x and OpenSSL allocate as xalloc.h says: a failed allocation
 * could pass for bad data, or crash them.
 */
void mq_redis_memory(void);

/*
 * Connects, after waking the private server, and authenticates.  All hosts of the URL,
 * and all their addresses, are tried side by side.  Returns 0, or -1 with status and
 * error set.
 */
int mq_redis_open(struct mq_redis *, struct mq_server *);
/* The same, at most until then (steady seconds), without the waking of the private
 * server. */
int mq_redis_open_until(struct mq_redis *, struct mq_server *, double until);
/* The same for one server, or one node. */
int mq_redis_connect(struct mq_redis *, struct mq_server *, double until);
/* The same, without a word to the server. */
int mq_redis_begin(struct mq_redis *, struct mq_server *, double until);
/* Only finds out where to connect to: server->address, or its socket. */
int mq_redis_reach(struct mq_redis *, struct mq_server *);
void mq_redis_close(struct mq_redis *);
/* An empty command for this server; on a cluster, keys have other names. */
struct mq_command mq_redis_command(const struct mq_redis *);
/* Whether there is a node number i, from 0, to which commands without a key go from
 * now on.  One server is number 0. */
bool mq_redis_visit(struct mq_redis *, int i);
/* Whether the connection is lost, and can only be closed. */
bool mq_redis_lost(const struct mq_redis *);

/*
 * Sends a command without waiting for its reply, which mq_redis_reply() hands
 * out later, in order.  The command can be changed or freed at once.  Returns
 * 0, or -1 when the connection is lost.
 */
int mq_redis_send(struct mq_redis *, struct mq_command *);

/*
 * The same for one of many: they are collected here, and go out in pieces of
 * about 64 KiB; what is left goes with mq_redis_flush(), with the next
 * mq_redis_send(), or when mq_redis_reply() has to wait.
 */
int mq_redis_append(struct mq_redis *, struct mq_command *);
int mq_redis_flush(struct mq_redis *);
/* mq_redis_append() of a command as bytes, to one server. */
int mq_redis_append_bytes(struct mq_redis *, const char *p, size_t n);

/*
 * The next reply; freeReplyObject() frees it.  NULL when the connection is
 * lost.  An error reply is returned as such: see mq_redis_refused().
 */
redisReply *mq_redis_reply(struct mq_redis *);

/*
 * From now on, and until the connection is closed, mq_redis_reply() waits with a
 * function of the caller, which may look for something else meanwhile: it waits until
 * fd (-1: none) can be read, and returns false if that takes longer than ms.  A reply
 * may take patience_ms, which is a minute unless the caller sets it.
 */
void mq_redis_wait_with(
    struct mq_redis *, bool (*wait)(void *arg, int fd, int64_t ms), void *arg);

/*
 * Sends one command and waits for its reply.  Loads a script that the server
 * does not know and waits (at most a minute) for a server that is busy with a long
 * script, or loading its data.  NULL when the connection is lost.
 */
redisReply *mq_redis_answer(struct mq_redis *, struct mq_command *);

/* The same; NULL also when the reply is an error, with status and error set. */
redisReply *mq_redis_call(struct mq_redis *, struct mq_command *);

/* Sets status and error, which begins with the server's name.  Returns -1. */
int mq_redis_fail(struct mq_redis *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As mq_server_room(). */
int mq_redis_room(struct mq_redis *, size_t bytes);

/* Sets them, since the connection is lost, to the cause. */
void mq_redis_set_lost(struct mq_redis *);

/* Waits for the answer to HELLO, if that has not come: 0, or -1 with the error if the
 * connection is lost, or the server cannot be used. */
int mq_redis_check(struct mq_redis *);

/* For dial.c: the greeting is over; from now on, reads and writes block. */
void mq_redis_greeted(struct mq_redis *);

/* Whether a reply is an error; if so it sets status and error from it. */
bool mq_redis_refused(struct mq_redis *, const redisReply *);

#endif
