/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* For the files of common/redis only. */
#ifndef MQ_REDIS_PARTS_H
#define MQ_REDIS_PARTS_H

#include <sys/queue.h>

#include <stdio.h>

#include "connection.h"

/* --- private ------------------------------------------------------------- */

/*
 * Makes sure that the private server of the URL, a redis-server of this user's own on a
 * unix socket, answers, starts it if needed, and stores the path of its socket.  A URL
 * without DIR means $XDG_STATE_HOME/mq, else ~/.local/state/mq.  While the server loads its
 * data, waits without a limit.  With server->waits, a server that was shut down stays so,
 * and the status is MQ_EXIT_UNAVAILABLE.  Several callers at once get one server.  Returns
 * 0, or an mq_exit status with the error (which may hold control characters of the server's
 * log).
 */
int mq_private_ensure(struct mq_server *);

/* Sets server->error, and evaluates to the status. */
#define mq_server_fail(server, status, ...)                                    \
	(snprintf((server)->error, sizeof((server)->error), __VA_ARGS__),      \
	    (status))

/* --- tls ----------------------------------------------------------------- */

#ifdef MQ_TLS

/*
 * Begins TLS if *tls is NULL, on a connection that does not block, with the files of the
 * URL; *tls is freed with the connection.  The server's certificate must be for the URL's
 * sni, or else for host, a name or an address.  Then goes on with the handshake.  Returns 0
 * at its end, -1 before, or an mq_exit status with why.
 */
int mq_tls_start(mq_tls **tls, redisContext *, const struct mq_url *,
    const char *host, char why[MQ_TLS_WHY]);

/* The error of TLS that has just ended the connection, of which hiredis says less.  Early:
 * the server sent no reply before.  Returns the mq_exit status; 0: TLS has no error. */
int mq_tls_failure(mq_tls *, bool early, char why[MQ_TLS_WHY]);

/* Whether the last operation stopped only because the socket takes no more. */
bool mq_tls_wants_room(const mq_tls *);

#else

/* URLs with TLS are refused: no connection comes here. */
#define mq_tls_start(tls, c, u, host, why) MQ_EXIT_CONFIG
#define mq_tls_failure(tls, early, why)	   0
#define mq_tls_wants_room(tls)		   false

#endif

/* --- greeting ------------------------------------------------------------ */

/* Builds command number step, from 0, of AUTH and SELECT, as far as the server's URL needs
 * them.  False: there is no such step.  HELLO then goes out with the first command; from
 * Redis 7 on HELLO needs no right. */
bool mq_redis_greeting(const struct mq_server *, int step, struct mq_command *);

/* The string behind a name in an array of names and values; "": there is none. */
const char *mq_reply_value(const redisReply *pairs, const char *name);

/* Why the reply to HELLO, which may be an error, rules the server out: a node of a cluster
 * that is not expected, since queues lie on several nodes, or a replica that sentinels took
 * for the master.  The reply holds the text.  NULL: the server can be used. */
const char *mq_reply_unfit(const redisReply *, const struct mq_server *);
#define MQ_REDIS_CLUSTER "this server is a node of a cluster; use redis"
#define MQ_REDIS_REPLICA "this server is a replica"
#define MQ_REDIS_PROTECTED                                                     \
	"the server is in protected mode, and takes clients of its own host "  \
	"only"

/* Why the connection is of no use after this reply, whose command did nothing: the server
 * of a sentinel's URL is no longer the master, or it ends the connection.  NULL: it can be
 * used. */
const char *mq_reply_last(const redisReply *, const struct mq_server *);

#define MQ_REPLY_ENDLESS "a reply without an end"

/* The words for people of an error with which a server ends the connection; NULL: the
 * connection goes on. */
const char *mq_error_last(const char *error);

/* --- failover ------------------------------------------------------------ */

/* A master that is about to be replaced is tried again for 30 s, since a cluster takes 17 s
 * by default, or for server->failover_s.  Then the status is 75 if a failover was due or
 * under way, else 69.  Zeroed: nothing has failed. */
struct mq_failover {
	double until; /* steady seconds; 0: not begun */
	bool failed;  /* a connection has failed since the beginning */
	bool due;     /* a node or sentinel says: master down, or replaced */
};

/* Starts the time, unless it runs. */
void mq_failover_begin(struct mq_failover *, const struct mq_server *);

/* After a failure of r: pauses, with r's wait() if it has one.  False: time is over, and the
 * status of r is set. */
bool mq_failover_again(struct mq_failover *, struct mq_redis *r);

/* --- request ------------------------------------------------------------- */

/* A command under way. */
struct mq_request {
	struct mq_request *next;     /* in a list */
	struct mq_request *in_order; /* next in mq_redis.order */
	struct mq_command command;   /* until sent, or (kept) answered */
	bool borrowed;		     /* the command's memory is the caller's */
	bool kept;		     /* can be sent again */
	bool loads;  /* sent as text if the server does not know the script */
	bool hashed; /* was sent by its hash twice */
	bool optional;
	int slot;
	bool asks;	/* ASKING goes before: the node is getting the slot */
	int redirected; /* times in a row, without a pause */
	int64_t until;	/* sent again, if refused (steady ms); 0: not refused */
	size_t sent;	/* bytes given to hiredis */
	struct mq_node *node; /* the command's; NULL: none yet */
	/* NULL: the reply stays for mq_redis_reply(). */
	mq_asker_take *take;
	struct mq_asker asker;
	redisReply *reply;
	bool answered;
};

void mq_requests_add(struct mq_requests *, struct mq_request *);
/* Removes and returns the first one; NULL: there is none. */
struct mq_request *mq_requests_take(struct mq_requests *);

/* Takes the command's memory.  fn, which may be NULL, gets the reply, or NULL; then reply and
 * request are freed. */
struct mq_request *mq_request_new(
    struct mq_command *, mq_reply_fn *fn, void *arg);
/* mq_request_new() with a copy of the command, and without fn. */
struct mq_request *mq_request_copy(const struct mq_command *);
void mq_request_free(struct mq_request *);
/* Frees the command only. */
void mq_request_forget(struct mq_request *);

/* --- route --------------------------------------------------------------- */

/* The map of a Redis Cluster: its nodes, and the slots of each, as CLUSTER SLOTS tells.
 * Starts zeroed except the owners; the caller frees the array of nodes. */
#define MQ_NO_OWNER 0xff      /* all bytes of -1 */
#define MQ_NODES    INT16_MAX /* most nodes, former ones included */
struct mq_topology {
	struct mq_place_of_node *nodes;
	int count;
	int16_t owner[MQ_SLOTS]; /* index of its node; -1: none */
};

/* Updates the map from a reply to CLUSTER SLOTS by node number `asked`, whose host replaces
 * an empty one in the reply.  Nodes keep their index, even without a slot.  Returns 0, or -1
 * when the reply makes no sense and the map is unchanged. */
int mq_topology_update(struct mq_topology *, const redisReply *, int asked);

/* The index of the node at host and port, which is added if new. */
int mq_topology_node(struct mq_topology *, const char *host, int port);

/* The first slot of a node; MQ_SLOTS: the node has no slot. */
int mq_topology_slot(const struct mq_topology *, int node);

/* Where a command goes after a reply.  Except for MQ_STAYS, it was not carried out. */
enum mq_redirect {
	MQ_STAYS, /* nowhere: the reply is its own */
	MQ_LATER, /* later to the node that has its slot */
	MQ_MOVED, /* now to node *to, which has the slot */
	MQ_ASKS	  /* now to node *to, which is getting the slot, after ASKING */
};

/* Reads a reply of node number `asked`, whose host replaces an empty one in an error.  On
 * MOVED, updates the owner of *slot. */
enum mq_redirect mq_topology_redirect(
    struct mq_topology *, const redisReply *, int asked, int *slot, int *to);

/* How common/redis reaches the nodes of a cluster, or works on a loop: one driver for tools
 * that wait, one for mq-consume, which must not. */
struct mq_driver {
	/* Makes *node, or another node that has the slot by now, ready for the command, or
	 * begins to.  False: the node is lost, and node->missing or mq_redis.lost is set;
	 * or, on a loop, the map is not known yet. */
	bool (*connect)(
	    struct mq_redis *, struct mq_node **, const struct mq_request *);
	/* Decides about a command that was not carried out.  May replace the reply, or
	 * set it to NULL if the connection is lost. */
	enum mq_redirect (*refused)(struct mq_redis *,
	    const struct mq_request *, redisReply **, enum mq_redirect);
	/* Whether the connection does without a node whose link is lost. */
	bool (*spares)(struct mq_redis *, struct mq_node *);
	/* mq_link_wants() of the node may have changed.  Node NULL: there are commands in
	 * mq_redis.later or mq_redis.missed. */
	void (*changed)(struct mq_redis *, struct mq_node *);
	/* Gets the reply to CLIENT CACHING. */
	mq_reply_fn *cached;
};

/* The nodes behind a connection. */
struct mq_cluster {
	struct mq_topology map;
	int last; /* node for commands whose node is not known */
	/* 1 + the lost node that owes a command about the slot its reply; or 0. */
	int16_t missing[MQ_SLOTS];
	/* Only for tools that wait: */
	bool partial; /* does without lost nodes; see mq_partial_begin() */
	struct mq_failover failover;
};

/* A cluster whose nodes are not known yet; mq_route_close() frees it. */
void mq_route_cluster(struct mq_redis *);
void mq_route_close(struct mq_redis *);

/* Sends a command to the server, or to the node that has its slot. */
void mq_route_send(struct mq_redis *, struct mq_request *);
/* Sends a command to this node, whose link is open. */
void mq_route_send_to(struct mq_redis *, struct mq_node *, struct mq_request *);
/* Decides what a reply means, and takes it. */
void mq_route_settle(
    struct mq_redis *, struct mq_node *, struct mq_request *, redisReply *);
/* Sends the commands that wait for the node. */
void mq_route_ready(struct mq_redis *, struct mq_node *);
/* Ends the commands of a node whose link is lost or closed. */
void mq_route_lose(struct mq_redis *, struct mq_node *);
/* Ends the commands without a node, after all nodes are closed. */
void mq_route_drop(struct mq_redis *);
/* Sends the commands in mq_redis.later again. */
void mq_route_retry(struct mq_redis *);
/* Answers the commands in mq_redis.missed. */
void mq_route_missed(struct mq_redis *);

/* The server, or the next node in use, from *i = 0; NULL: there are no more. */
struct mq_node *mq_route_next(struct mq_redis *, int *i);
/* Node number i of the map, which is in use from now on. */
struct mq_node *mq_route_node(struct mq_redis *, int i);
/* Node number i of the map if it is in use; else NULL. */
struct mq_node *mq_route_known(const struct mq_redis *, int i);
/* Closes the node's link for this reason, which its commands get as their error. */
void mq_route_miss(struct mq_redis *, struct mq_node *, const char *why);

/* --- connection ---------------------------------------------------------- */

/* Sleeps, in r's wait() if it has one. */
void mq_redis_pause(const struct mq_redis *, int ms);
/* Waits until commands can go: 0, or -1 with the error. */
int mq_redis_await_ready(struct mq_redis *);
/* Sets status and error to the cause of a lost link.  Returns -1. */
int mq_redis_set_lost(struct mq_redis *, const struct mq_node *);

/* --- reach --------------------------------------------------------------- */

/* mq_redis_open_until() for one server, or one node. */
int mq_redis_connect(struct mq_redis *, struct mq_server *, double until);
/* mq_redis_connect() without a greeting. */
int mq_redis_begin(struct mq_redis *, struct mq_server *, double until);

/* A server that mq_dial() tries.  The caller sets server, and also host and port
 * unless they are the URL's, or the server has a socket. */
struct mq_dial {
	struct mq_server *server;
	const char *host; /* set by mq_dial(); NULL: the socket */
	int port;
	struct mq_redis redis; /* the connection; or why there is none */
	/* Private to reach.c: */
	int found; /* addresses of the host, so far */
	int fd;	   /* a search writes more addresses there; -1: none does */
	bool over; /* there are no more addresses */
	enum mq_link_state failed_at; /* state of the attempt with the error */
};

/* Gets and frees the reply to the question.  Returns 0, or -1 with the error. */
typedef int mq_dial_fn(void *arg, struct mq_dial *, redisReply *);

/*
 * Connects to one of n servers, at most until this time (steady seconds).  While no server
 * answers, the next server, or the next address of a name, is tried every 0.5 s.  With a
 * question, the first server wins whose reply take() accepts; without, the first that
 * connects, and it is not greeted yet.  Returns its number, with host, address and port in
 * its server; -1: each server has its error.
 */
int mq_dial(struct mq_dial *, size_t n, struct mq_command *question,
    mq_dial_fn *take, void *arg, double until);

/* The error that counts: that of a server that refuses, rather than of a silent one. */
const struct mq_redis *mq_dial_error(const struct mq_dial *, size_t n);

/* The replicas that sentinels could make the master in place of a server, whose own word is
 * in info.  Answers of several sentinels add up. */
struct mq_candidates {
	const struct mq_server *server;
	const struct mq_info *info;
	bool new_master; /* the sentinel names another master */
	int connected; /* replicas that the sentinel hears, and the server has */
	int missing; /* replicas that the sentinel hears, but the server lacks */
	int silent;  /* replicas that neither hears */
};

/* Asks the sentinels in the URL of r's server, side by side, until one answers: 0, or -1
 * with the error.  With each, asks every sentinel for 0.5 s, and skips silent ones. */
int mq_redis_ask_candidates(
    struct mq_redis *, struct mq_candidates *, bool each);

/* --- servers behind one -------------------------------------------------- */

/* A server at one host of another's URL: a sentinel, with the sentinels' own password, or a
 * node.  Nothing is to be freed; the other server and the host must outlive this one. */
void mq_server_behind(struct mq_server *, const struct mq_server *of,
    struct mq_url_host *host, bool sentinel);

#endif
