/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* A connection to a server, or to the nodes of a cluster as if they were one.  Tools wait
 * for the replies to their commands; mq-consume, which must not wait, uses loop.h. */
#ifndef MQ_REDIS_H
#define MQ_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "command.h"
#include "link.h"
#include "server.h"

/* Longest wait for a reply, and for any progress of a write. */
#define MQ_REDIS_PATIENCE_MS 60000
#define MQ_REDIS_LATE	     "no answer for too long"

/* Most seconds for the name, TCP and TLS of a server together, and, from the same beginning,
 * for its greeting, too: a busy server says so after 5 s. */
#define MQ_CONNECT_S 5
#define MQ_GREET_S   7

/* --- connection ---------------------------------------------------------- */

/* One server: the only one, or a node of a cluster. */
struct mq_node {
	struct mq_link link;
	struct mq_server *server;
	struct mq_url_host at; /* in a cluster */
	int number;	       /* in the map of a cluster */
	bool ready;	       /* commands can go; unused without a cluster */
	bool needed;	       /* commands were sent that are not optional */
	/* Why other nodes are used without this one, "node HOST:PORT: why"; or NULL. */
	char *missing;
	struct mq_requests waiting; /* until the node is ready */
	int optional;		    /* optional commands under way */
	void *own;		    /* private to loop.c */
};

struct mq_redis {
	struct mq_node only;	    /* the server; unused with a cluster */
	struct mq_cluster *cluster; /* the nodes; or NULL */
	/* NULL: one server, and a tool that waits. */
	const struct mq_driver *driver;
	struct mq_requests order;  /* mq_redis_reply() returns their replies */
	struct mq_requests later;  /* no server takes these now */
	struct mq_requests missed; /* commands for nodes that are away */
	int home;  /* slot of the node for commands without a key; -1: any */
	bool lost; /* given up; see mq_redis_lost() */
	struct mq_server *server; /* the caller's */
	int status;		  /* mq_exit of the last failure */
	char error[512];    /* "NAME: what went wrong", in any characters */
	double greet_until; /* end of the greeting (steady seconds) */
	/* See mq_redis_wait_with(). */
	bool (*wait)(void *arg, int fd, int64_t ms);
	void *wait_arg;
	int64_t patience_ms;
};

/* Makes hiredis 1.x and OpenSSL allocate as xalloc.h says: otherwise a failed allocation
 * could pass for bad data, or crash. */
void mq_redis_memory(void);

/* Connects, after waking the private server, and authenticates.  All hosts of the URL,
 * and all their addresses, are tried side by side.  Returns 0, or -1 with the error. */
int mq_redis_open(struct mq_redis *, struct mq_server *);
/* mq_redis_open() until this time (steady seconds). */
int mq_redis_open_until(struct mq_redis *, struct mq_server *, double until);
/* Only finds out where to connect to: server->address, or its socket. */
int mq_redis_reach(struct mq_redis *, struct mq_server *);
void mq_redis_close(struct mq_redis *);
/* An empty command for this server; on a cluster, keys have other names. */
struct mq_command mq_redis_command(const struct mq_redis *);
/* Sends commands without a key to node number i, from 0, from now on.  False: the cluster
 * has fewer nodes.  A single server is number 0. */
bool mq_redis_visit(struct mq_redis *, int i);
/* Whether the connection is lost, and can only be closed. */
bool mq_redis_lost(const struct mq_redis *);

/* Sends a command without waiting for its reply, which mq_redis_reply() returns later, in
 * order.  The command can be changed or freed at once.  Returns 0, or -1 when the
 * connection is lost. */
int mq_redis_send(struct mq_redis *, struct mq_command *);

/* mq_redis_send() for one of many commands, which go out in pieces of about 64 KiB; the last
 * piece goes with mq_redis_flush(), with the next mq_redis_send(), or when mq_redis_reply()
 * has to wait. */
int mq_redis_append(struct mq_redis *, struct mq_command *);
int mq_redis_flush(struct mq_redis *);

/* The next reply, which may be an error; freeReplyObject() frees it.  NULL when the
 * connection is lost. */
redisReply *mq_redis_reply(struct mq_redis *);

/*
 * Until the connection is closed, mq_redis_reply() waits with a function of the caller,
 * which may look for something else meanwhile: wait() returns when fd (-1: none) can be
 * read, or false after ms.  A reply may take patience_ms, 60,000 unless the caller sets
 * it.
 */
void mq_redis_wait_with(
    struct mq_redis *, bool (*wait)(void *arg, int fd, int64_t ms), void *arg);

/* Sends one command and waits for its reply.  Loads a script that the server does not
 * know, and waits (at most a minute) for a server that is busy with a long script, or
 * loads its data.  NULL when the connection is lost. */
redisReply *mq_redis_answer(struct mq_redis *, struct mq_command *);

/* --- without waiting ------------------------------------------------------ */

/* Gets a reply, which is freed when the function returns.  NULL: the connection was lost
 * before the reply, and the command may have been carried out. */
typedef void mq_reply_fn(void *arg, redisReply *reply);

/* Sends a command over a connection of loop.h, and takes its memory: *c is empty
 * afterwards.  If the server does not know a script, its text is sent.  fn may be NULL. */
void mq_redis_post(
    struct mq_redis *, struct mq_command *, mq_reply_fn *fn, void *arg);

/* mq_redis_post() for calls that parse the reply before they answer their caller: take()
 * gets the reply, or NULL, and a copy of *asker. */
struct mq_answer; /* a parsed reply; common/queue has its members */
typedef void mq_answer_fn(void *arg, const struct mq_answer *);
struct mq_asker {
	mq_answer_fn *fn;
	mq_reply_fn *raw; /* function for mq_redis_post() */
	void *arg;
	void *of; /* for take() */
};
typedef void mq_asker_take(const struct mq_asker *, redisReply *);
void mq_redis_ask(struct mq_redis *, struct mq_command *, mq_asker_take *take,
    const struct mq_asker *);

/* Whether bytes were sent or received since the last call; on a cluster, to or from the
 * node that has the keys of this command (NULL: any node). */
bool mq_redis_active(struct mq_redis *, const struct mq_command *);

/* The reason if the node of a cluster that has the keys of this command is known to be
 * away; else NULL.  Its commands get this error: see mq_reply_missing(). */
const char *mq_redis_away(const struct mq_redis *, const struct mq_command *);

/* --- errors --------------------------------------------------------------- */

/* Sets the status, and the error, which begins with the server's name.  Returns -1. */
int mq_redis_fail(struct mq_redis *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* mq_server_room() for this server: 0, or -1 with the error. */
int mq_redis_room(struct mq_redis *, size_t bytes);

/* Waits for the reply to HELLO: 0, or -1 with the error if the connection is lost, or the
 * server cannot be used. */
int mq_redis_check(struct mq_redis *);

/* Whether a reply is an error; if so, sets status and error. */
bool mq_redis_refused(struct mq_redis *, const redisReply *);

/* --- partial ------------------------------------------------------------- */

/* Until the connection is closed, a reader of a cluster does without lost nodes: all its
 * commands are optional, and mq_ask_all() skips the errors that mq_reply_missing() knows.
 * With a single server, nothing changes. */
void mq_partial_begin(struct mq_redis *);

/* "node HOST:PORT: why" if any command in the slot of this command's keys had no reply,
 * valid until the connection is closed; else NULL. */
const char *mq_partial_missed(
    const struct mq_redis *, const struct mq_command *);

/* "node HOST:PORT: why" for the i-th lost node of a reader, from 0; NULL: there are no
 * more. */
const char *mq_partial_lost(const struct mq_redis *, int i);

/* A node of a Redis Cluster. */
#define MQ_NODE_HOST_SIZE 256
struct mq_place_of_node {
	char host[MQ_NODE_HOST_SIZE];  /* the cluster's name for the node */
	char address[MQ_ADDRESS_SIZE]; /* empty: not known */
	int port;
	bool replicated; /* has a replica in good order */
	void *own;	 /* data of the map's user; NULL at first */
};

/* The node that has the keys of a command, valid until the next one is sent; NULL: the node
 * is not known, or the server is single. */
const struct mq_place_of_node *mq_node_of(
    const struct mq_redis *, const struct mq_command *);

/* --- error --------------------------------------------------------------- */

/* The mq_exit status that fits an error reply. */
int mq_error_status(const char *error);

/* Whether an error and its status mean that the server lacks the command, or the user the
 * right to it, so that another command may do.  A server's name may precede the error. */
bool mq_error_barred(int status, const char *error);
#define MQ_REDIS_LACKS	    "the server has no "
#define MQ_REDIS_LACKS_SOME MQ_REDIS_LACKS "command of a script"

/* Whether the server runs a long script, or loads its data. */
bool mq_error_busy(const char *error);

/* Whether the server, or this process, has no place for another connection. */
bool mq_error_crowded(const char *error);

/* Whether the server has ended a connection without an error. */
bool mq_error_ended(const char *error);

/* Whether the server breaks the protocol. */
bool mq_error_nonsense(const char *error);

/* Advice to append to an error for people, "" if there is none.  Constant text. */
const char *mq_error_hint(const char *error);

/* --- info ---------------------------------------------------------------- */

/* INFO and CONFIG of a server: where it keeps data, and whether it may drop some.
 * Numbers below 0 and empty texts are not known: rented servers tell less. */
struct mq_info {
	char version[80]; /* "redis 7.0.15" */
	char run_id[48];  /* changes with each start of the server */
	bool is_replica;
	int replicas; /* connected ones */
	char
	    online[1024]; /* lines "ADDRESS PORT" of replicas, as room allows */
	bool had_replica; /* within the last hour, or was a replica */
	long long pid, uptime_s;
	long long memory, maxmemory; /* bytes; maxmemory 0: no limit */
	char policy[32];	     /* maxmemory-policy */
	bool evicts;	     /* the policy drops keys when memory is full */
	int aof;	     /* whether the server has an append-only file */
	bool aof_later;	     /* the file is not complete yet */
	long long aof_bytes; /* size of the file */
	bool aof_failed;     /* the last write or rewrite of the file */
	bool save_failed;    /* the last snapshot */
	/* From CONFIG: */
	char dir[512];	  /* folder with the server's files, on its host */
	int snapshots;	  /* whether the server makes them by itself */
	char fsync[16];	  /* appendfsync */
	char unread[512]; /* why appendfsync was refused; or empty */
	bool lax;	  /* no fsync while the file is rewritten */
	/* The file system of a private server, in bytes: */
	long long disk_free, disk_bytes;
};

/* Parses the reply to INFO; members from elsewhere become unknown. */
void mq_info_parse(struct mq_info *, const char *text);

/* Asks all nodes for their maxmemory-policy, and keeps one that evicts, if any; where INFO
 * is refused, the policy is unknown.  Returns 0, or -1 when the connection is lost. */
int mq_info_ask_policy(struct mq_redis *, struct mq_info *);

/* Asks a single server with INFO and CONFIG, which may be refused.  Returns 0, or -1 when
 * the connection is lost. */
int mq_info_ask(struct mq_redis *, struct mq_info *);

/* The server's clock in unix milliseconds; -1: failed. */
int mq_server_time(struct mq_redis *, int64_t *ms);

/* --- durable ------------------------------------------------------------- */

/* A write is safe on the server's disk, if its append-only file can be relied upon, and on
 * all replicas that the server had when the connection was opened; with sentinels, on all
 * replicas that a sentinel could make the master at the time of the wait. */
struct mq_durable {
	bool disk;	     /* writes are to be on the server's disk */
	bool waitaof;	     /* WAITAOF says when; false: with the reply */
	struct mq_info info; /* the replicas, and the run of the server */
};

/* Finds out what makes writes safe.  Waits at most 30 s for a server whose first append-only
 * file is not complete.  Returns 0, or -1 with the error: the connection is lost, or the
 * server can promise nothing (MQ_EXIT_CONFIG; the error says what to change).  Needs
 * mq_redis_wait_with(). */
int mq_durable_find(struct mq_redis *, struct mq_durable *);

/*
 * Waits until all writes of this connection are safe, at most 30 s for the disk and 30 s
 * for the replicas.  If another connection may have written later, `write` is a harmless
 * command that goes first; else it is NULL.  With sentinels, first looks for the replicas
 * again, at most 30 s; if the sentinels name another master, the connection counts as
 * lost, since the next one goes there.  Returns 0, or -1 with the error.
 */
int mq_durable_wait(
    struct mq_redis *, const struct mq_durable *, struct mq_command *write);

#endif
