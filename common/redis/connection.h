/* Where commands go: to a server, or to the nodes of a cluster as if they were one.  Tools
 * wait for their answers; mq-consume, which must not wait, has its connections from
 * loop.h. */
#ifndef MQ_REDIS_H
#define MQ_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "command.h"
#include "link.h"
#include "server.h"

/* How long an answer may take, and a write without any progress. */
#define MQ_REDIS_PATIENCE_MS 60000
#define MQ_REDIS_LATE	     "no answer for too long"

/* How long name, TCP and TLS of a server may take together; and its greeting, from the
 * same beginning, since a server that is busy says so after 5 seconds. */
#define MQ_CONNECT_S 5
#define MQ_GREET_S   7

/* --- connection ---------------------------------------------------------- */

/* One server: the only one, or a node of a cluster. */
struct mq_node {
	struct mq_link link;
	struct mq_server *server;
	struct mq_url_host at; /* in a cluster */
	int number;	       /* in the map of a cluster */
	bool ready;	       /* commands can go; unused for the only one */
	bool needed; /* it was asked for more than optional commands */
	/* Why others go on without it, "node HOST:PORT: why"; or NULL. */
	char *missing;
	struct mq_requests waiting; /* until it is ready */
	int optional;		    /* such commands under way */
	void *own;		    /* what a loop keeps of it */
};

struct mq_redis {
	struct mq_node only;	    /* the server; unused with a cluster */
	struct mq_cluster *cluster; /* the nodes; or NULL */
	/* NULL: one server's, which is waited for. */
	const struct mq_driver *driver;
	struct mq_requests order; /* whose replies mq_redis_reply() hands out */
	struct mq_requests later; /* no server takes these now */
	struct mq_requests missed; /* of nodes that are away */
	int home;  /* slot of the node for commands without a key; -1: any */
	bool lost; /* it is given up; see mq_redis_lost() */
	struct mq_server *server; /* the caller's */
	int status;		  /* mq_exit of the last failure */
	char error[512];    /* "NAME: what went wrong", in any characters */
	double greet_until; /* the greeting is over by then (steady seconds) */
	/* See mq_redis_wait_with(). */
	bool (*wait)(void *arg, int fd, int64_t ms);
	void *wait_arg;
	int64_t patience_ms;
};

/* From now on hiredis 1.x and OpenSSL allocate as xalloc.h says: a failed allocation
 * could pass for bad data, or crash them. */
void mq_redis_memory(void);

/* Connects, after waking the private server, and authenticates.  All hosts of the URL,
 * and all their addresses, are tried side by side.  Returns 0, or -1 with the error. */
int mq_redis_open(struct mq_redis *, struct mq_server *);
/* The same, at most until then (steady seconds). */
int mq_redis_open_until(struct mq_redis *, struct mq_server *, double until);
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

/* Sends a command without waiting for its reply, which mq_redis_reply() hands out later,
 * in order.  The command can be changed or freed at once.  Returns 0, or -1 when the
 * connection is lost. */
int mq_redis_send(struct mq_redis *, struct mq_command *);

/* The same for one of many: they are collected, and go out in pieces of about 64 KiB; what
 * is left goes with mq_redis_flush(), with the next mq_redis_send(), or when
 * mq_redis_reply() has to wait. */
int mq_redis_append(struct mq_redis *, struct mq_command *);
int mq_redis_flush(struct mq_redis *);

/* The next reply, which may be an error; freeReplyObject() frees it.  NULL when the
 * connection is lost. */
redisReply *mq_redis_reply(struct mq_redis *);

/*
 * From now on, and until the connection is closed, mq_redis_reply() waits with a
 * function of the caller, which may look for something else meanwhile: it waits until
 * fd (-1: none) can be read, and returns false if that takes longer than ms.  A reply
 * may take patience_ms, which is a minute unless the caller sets it.
 */
void mq_redis_wait_with(
    struct mq_redis *, bool (*wait)(void *arg, int fd, int64_t ms), void *arg);

/* Sends one command and waits for its reply.  Loads a script that the server does not
 * know, and waits (at most a minute) for a server that is busy with a long script, or
 * loads its data.  NULL when the connection is lost. */
redisReply *mq_redis_answer(struct mq_redis *, struct mq_command *);

/* --- without waiting ------------------------------------------------------ */

/* Gets a reply, which is freed when it returns; NULL: the connection was lost before one
 * came, and nothing is known of the command. */
typedef void mq_reply_fn(void *arg, redisReply *reply);

/* Over a connection of loop.h: sends a command, whose memory it takes: *c is empty
 * afterwards.  A script that the server does not know is sent once more with its text.  fn
 * may be NULL. */
void mq_redis_post(
    struct mq_redis *, struct mq_command *, mq_reply_fn *fn, void *arg);

/* The same for calls that take the reply apart before their caller hears of it: take()
 * gets the reply, or NULL, with a copy of *asker. */
struct mq_answer; /* what is in a reply, of those who ask */
typedef void mq_answer_fn(void *arg, const struct mq_answer *);
struct mq_asker {
	mq_answer_fn *fn;
	mq_reply_fn *raw; /* of mq_redis_post() */
	void *arg;
	void *of; /* the call's own */
};
typedef void mq_asker_take(const struct mq_asker *, redisReply *);
void mq_redis_ask(struct mq_redis *, struct mq_command *, mq_asker_take *take,
    const struct mq_asker *);

/* Whether anything has come or gone since the last call; on a cluster, from or to the
 * node that has the keys of this command (NULL: any). */
bool mq_redis_moves(struct mq_redis *, const struct mq_command *);

/* Why the node of a cluster that has the keys of this command is away, as far as it was
 * asked; else NULL.  Its commands get this as their error: see mq_reply_missing(). */
const char *mq_redis_away(const struct mq_redis *, const struct mq_command *);

/* --- errors --------------------------------------------------------------- */

/* Sets status and error, which begins with the server's name.  Returns -1. */
int mq_redis_fail(struct mq_redis *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As mq_server_room(). */
int mq_redis_room(struct mq_redis *, size_t bytes);

/* Waits for the answer to HELLO, if that has not come: 0, or -1 with the error if the
 * connection is lost, or the server cannot be used. */
int mq_redis_check(struct mq_redis *);

/* Whether a reply is an error; if so it sets status and error from it. */
bool mq_redis_refused(struct mq_redis *, const redisReply *);

/* --- partial ------------------------------------------------------------- */

/* From now on, and until the connection is closed, a reader of a cluster goes on without
 * the nodes that are lost: all its commands are optional, and mq_ask_all() passes over the
 * errors of ours that mq_reply_missing() knows.  On one server none of this has an effect. */
void mq_partial_begin(struct mq_redis *);

/* Why some command about the keys of this one, or about others in their slot, had no
 * answer: "node HOST:PORT: why", valid until the connection is closed; or NULL. */
const char *mq_partial_missed(
    const struct mq_redis *, const struct mq_command *);

/* The same of the i-th node that a reader has lost, from 0; NULL: there are no more. */
const char *mq_partial_lost(const struct mq_redis *, int i);

/* A node of a Redis Cluster. */
#define MQ_NODE_HOST_SIZE 256
struct mq_place_of_node {
	/* Its address, or the name that the cluster gives it. */
	char host[MQ_NODE_HOST_SIZE];
	char address[MQ_ADDRESS_SIZE]; /* empty: not known */
	int port;
	bool replicated; /* it has a replica in good order */
	void *own;	 /* what the user of a map keeps of it; NULL at first */
};

/* The node that has the keys of a command, valid until the next one is sent; NULL: on one
 * server, or if none is known. */
const struct mq_place_of_node *mq_node_of(
    const struct mq_redis *, const struct mq_command *);

/* --- error --------------------------------------------------------------- */

/* The mq_exit status that fits an error reply. */
int mq_error_status(const char *error);

/* Whether an error, with a server's name in front of it or not, and its status are of the
 * command itself: the server does not have it, or the user no right to it.  Whoever can do
 * without it does. */
bool mq_error_barred(int status, const char *error);
#define MQ_REDIS_LACKS	    "the server has no "
#define MQ_REDIS_LACKS_SOME MQ_REDIS_LACKS "command of a script"

/* Whether the server runs a long script, or loads its data. */
bool mq_error_busy(const char *error);

/* Whether there is no place for one more connection: at the server, or in this process,
 * whose errors of that kind begin so as well. */
bool mq_error_crowded(const char *error);

/* Whether the server has ended a connection without a word. */
bool mq_error_ended(const char *error);

/* Whether the server breaks the protocol. */
bool mq_error_nonsense(const char *error);

/* The words to add for people if the user may come in, but may not do this, or the server
 * cannot; else "".  Constant text. */
const char *mq_error_hint(const char *error);

/* --- info ---------------------------------------------------------------- */

/* What INFO and CONFIG say: where a server keeps data, and whether it may drop some.
 * Numbers below 0 and empty texts are not known: rented servers tell less. */
struct mq_info {
	char version[80]; /* "redis 7.0.15" */
	char run_id[48];  /* changes with each start of the server */
	bool is_replica;
	int replicas;	   /* of its own, online... */
	char online[1024]; /* ...a line "ADDRESS PORT" for each that fits in */
	bool had_replica;  /* within the last hour, or it was one */
	long long pid, uptime_s;
	long long memory, maxmemory; /* bytes; maxmemory 0: no limit */
	char policy[32];	     /* maxmemory-policy... */
	bool evicts;	     /* ...which drops keys when memory is full */
	int aof;	     /* whether the server has an append-only file... */
	bool aof_later;	     /* ...which counts only after its first rewrite */
	long long aof_bytes; /* its size */
	bool aof_failed;     /* the last write of it, or rewrite */
	bool save_failed;    /* the last snapshot */
	/* Of CONFIG: */
	char dir[512];	  /* where its files are, on its host */
	int snapshots;	  /* whether it saves them by itself */
	char fsync[16];	  /* appendfsync... */
	char unread[512]; /* ...or why it was refused; or empty */
	bool lax;	  /* no fsync while the file is rewritten */
	/* Of the file system of a private one: */
	long long disk_free, disk_bytes;
};

/* Takes the text of a reply to INFO; all else is unknown then. */
void mq_info_take(struct mq_info *, const char *text);

/* Asks all nodes for their policy, which stays unknown where INFO is refused; one that
 * evicts counts.  Returns 0, or -1 when the connection is lost. */
int mq_info_ask_policy(struct mq_redis *, struct mq_info *);

/* Asks with INFO and CONFIG, which may be refused.  Not for a cluster.  Returns 0, or
 * -1 when the connection is lost. */
int mq_info_ask(struct mq_redis *, struct mq_info *);

/* --- durable ------------------------------------------------------------- */

/* When what a server has accepted is safe: once it is on the server's disk, if the server
 * keeps a file that can be relied upon, and on all replicas that the server had when we
 * connected; with sentinels, on all that one of these could make the master when we
 * wait. */
struct mq_durable {
	bool disk;    /* on the disk of the server... */
	bool waitaof; /* ...which it is when WAITAOF says so; else at once */
	struct mq_info
	    info; /* whose replicas, and as which run of the server */
};

/* Finds out when writes will be safe.  A server whose first append-only file is not
 * complete is waited for, 30 s at most.  Returns 0, or -1 with the error: the connection
 * is lost, or the server can promise nothing (MQ_EXIT_CONFIG, and the error says what to
 * change).  Needs mq_redis_wait_with(). */
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
