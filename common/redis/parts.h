/* For the files of common/redis only. */
#ifndef MQ_REDIS_PARTS_H
#define MQ_REDIS_PARTS_H

#include <sys/queue.h>

#include <stdio.h>

#include "connection.h"

/* --- private ------------------------------------------------------------- */

/*
 * Makes sure that the private server of the URL, a redis-server of this user's own on a
 * unix socket, answers, starting it when needed, and writes the path of its socket.  A
 * URL without DIR means $XDG_STATE_HOME/mq, else ~/.local/state/mq.  Waits while the
 * server loads its data, for as long as it is alive.  With server->waits, a server that
 * was shut down on purpose stays so, and the status is MQ_EXIT_UNAVAILABLE.  Several
 * callers at once get one server.  Returns 0, or an mq_exit status with the error (which
 * may hold control characters of the server's log).
 */
int mq_private_ensure(struct mq_server *);

/* Sets server->error.  Its value is the status. */
#define mq_server_fail(server, status, ...)                                    \
	(snprintf((server)->error, sizeof((server)->error), __VA_ARGS__),      \
	    (status))

/* --- tls ----------------------------------------------------------------- */

#ifdef MQ_TLS

/*
 * Begins TLS if *tls is NULL, on a connection that does not block, with the files of the
 * URL, which are read each time; *tls goes with the connection.  The server's certificate
 * must be for the URL's sni, or else for host, a name or an address.  Then goes on with the
 * handshake, as a connection of libev does by itself.  0: it is over; -1: not yet; else an
 * mq_exit status with why.
 */
int mq_tls_start(mq_tls **tls, redisContext *, const struct mq_url *,
    const char *host, char why[MQ_TLS_WHY]);

/* Why the connection has just failed: TLS has more to say than the library.  Early: the
 * server has ended it without any answer.  Returns the mq_exit status; 0: TLS knows of
 * none. */
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

/* Builds number step of AUTH and SELECT, as far as the URL of the server needs them.
 * False: there is no such step.  HELLO then goes out with the first command; from Redis 7
 * on it needs no right. */
bool mq_redis_greeting(const struct mq_server *, int step, struct mq_command *);

/* In an array of names and values, the value, a string; "": there is none. */
const char *mq_reply_value(const redisReply *pairs, const char *name);

/* Why the server cannot be used, as the reply to HELLO says, which may be an error, and
 * holds the text; NULL: it can.  On the nodes of a cluster, unless a node is wanted, queues
 * lie on several nodes.  What sentinels said of the master may be old. */
const char *mq_reply_unfit(const redisReply *, const struct mq_server *);
#define MQ_REDIS_CLUSTER "this server is a node of a cluster; use redis"
#define MQ_REDIS_REPLICA "this server is a replica"
#define MQ_REDIS_PROTECTED                                                     \
	"the server is in protected mode, and takes clients of its own host "  \
	"only"

/* Why the connection is of no use from this reply on, with which its command did nothing:
 * the server of a sentinel's URL is not the master any more, or these are its last words;
 * NULL: it is. */
const char *mq_reply_last(const redisReply *, const struct mq_server *);

#define MQ_REPLY_ENDLESS "a reply without an end"

/* With such an error a server ends the connection: its words; NULL: with another one. */
const char *mq_error_last(const char *error);

/* --- failover ------------------------------------------------------------ */

/* A master that is about to be replaced is tried again for 30 seconds, since a cluster
 * takes 17 by default, or as long as the server says.  Then the status is 75 if a failover
 * was due or under way, else 69.  Zeroed: nothing has failed. */
struct mq_failover {
	double until; /* steady seconds; 0: not begun */
	bool failed;  /* something has, since then */
	bool due; /* somebody has said that the master is down, or replaced */
};

/* The time begins, unless it has. */
void mq_failover_begin(struct mq_failover *, const struct mq_server *);

/* r has failed: waits a little, with r's function if it has one.  False: time is over,
 * and the status of r says so. */
bool mq_failover_again(struct mq_failover *, struct mq_redis *r);

/* --- request ------------------------------------------------------------- */

/* A command under way. */
struct mq_request {
	struct mq_request *next;     /* in a list */
	struct mq_request *in_order; /* in that of mq_redis_reply() */
	struct mq_command command;   /* until it is sent, or (kept) answered */
	bool borrowed;		     /* the command's memory is the caller's */
	bool kept;		     /* it can be sent again */
	bool loads;  /* a script that the server does not know goes as text */
	bool hashed; /* it has gone by its hash twice */
	bool optional;
	int slot;
	bool asks;	/* the node gets its slot, and is told so before */
	int redirected; /* so often at a time */
	int64_t until;	/* it goes again, if refused; 0: it was not */
	size_t sent;
	struct mq_node *node; /* which it was handed to; NULL: it waits */
	/* NULL: the reply stays for mq_redis_reply(). */
	mq_asker_take *take;
	struct mq_asker asker;
	redisReply *reply;
	bool answered;
};

void mq_requests_add(struct mq_requests *, struct mq_request *);
/* NULL: there is none. */
struct mq_request *mq_requests_take(struct mq_requests *);

/* Takes the command's memory.  fn gets the reply, or NULL; it may be NULL.  Then the reply
 * is freed, and the request. */
struct mq_request *mq_request_new(
    struct mq_command *, mq_reply_fn *fn, void *arg);
/* The same without a taker, and the command stays the caller's. */
struct mq_request *mq_request_copy(const struct mq_command *);
void mq_request_free(struct mq_request *);
/* Frees its command. */
void mq_request_forget(struct mq_request *);

/* --- route --------------------------------------------------------------- */

/* Which node of a Redis Cluster has which slot, as CLUSTER SLOTS says it.  Starts zeroed,
 * but for the owners; the array of nodes is to be freed. */
#define MQ_NO_OWNER 0xff      /* all bytes of -1 */
#define MQ_NODES    INT16_MAX /* no map takes more, old ones included */
struct mq_topology {
	struct mq_place_of_node *nodes;
	int count;
	int16_t owner[MQ_SLOTS]; /* index of its node; -1: none */
};

/* Takes a reply to CLUSTER SLOTS, of node number `asked`, which is meant where the reply
 * names no other.  Nodes keep their index; those without a slot stay.  Returns 0, or -1
 * when the reply makes no sense, and nothing has changed then. */
int mq_topology_take(struct mq_topology *, const redisReply *, int asked);

/* The index of the node at host and port, which is added if it is new. */
int mq_topology_node(struct mq_topology *, const char *host, int port);

/* The first slot of a node; MQ_SLOTS: it has none. */
int mq_topology_slot(const struct mq_topology *, int node);

/*
 * What a reply means to the command.  All but MQ_STAYS: it was not carried out, and
 * MQ_LATER: it goes later to the node that has its slot; MQ_MOVED: now to node *to, which
 * has the slot; MQ_ASKS: now to node *to, which gets the slot, behind an ASKING.
 */
enum mq_redirect { MQ_STAYS, MQ_LATER, MQ_MOVED, MQ_ASKS };

/* Takes a reply of node number `asked`, whose host is meant when an error names none, and
 * notes what it says of the owner of *slot. */
enum mq_redirect mq_topology_redirect(
    struct mq_topology *, const redisReply *, int asked, int *slot, int *to);

/* What is done with the nodes of a cluster, or on a loop: by those who know whether one may
 * wait. */
struct mq_driver {
	/* Makes *node, or another one that has the slot now, ready for the command, or
	 * begins to.  False: it is lost, with node->missing or mq_redis.lost; or, on a
	 * loop, the nodes are not known yet. */
	bool (*connect)(
	    struct mq_redis *, struct mq_node **, const struct mq_request *);
	/* A command was not carried out: what becomes of it.  The reply may become
	 * another one, or NULL, as the connection is lost. */
	enum mq_redirect (*refused)(struct mq_redis *,
	    const struct mq_request *, redisReply **, enum mq_redirect);
	/* Whether the rest goes on without a node whose link is lost. */
	bool (*spares)(struct mq_redis *, struct mq_node *);
	/* The node's link may want something else; NULL: commands are in mq_redis.later or
	 * in mq_redis.missed. */
	void (*changed)(struct mq_redis *, struct mq_node *);
	/* Gets the reply to CLIENT CACHING. */
	mq_reply_fn *cached;
};

/* The nodes behind a connection. */
struct mq_cluster {
	struct mq_topology map;
	int last; /* the node that is asked if none is known */
	/* Some command about the slot had no answer, as this node is lost, from 1. */
	int16_t missing[MQ_SLOTS];
	/* The others are of tools that wait. */
	bool partial; /* goes on without nodes; see mq_partial_begin() */
	struct mq_failover failover;
};

/* A cluster whose nodes are not known yet; mq_route_close() frees all that it has. */
void mq_route_cluster(struct mq_redis *);
void mq_route_close(struct mq_redis *);

/* Sends a command to the server, or to the node that has its slot. */
void mq_route_send(struct mq_redis *, struct mq_request *);
/* The same to this node, whose link is open. */
void mq_route_send_to(struct mq_redis *, struct mq_node *, struct mq_request *);
/* Decides what a reply means, which it takes. */
void mq_route_settle(
    struct mq_redis *, struct mq_node *, struct mq_request *, redisReply *);
/* Commands that wait for the node go out. */
void mq_route_ready(struct mq_redis *, struct mq_node *);
/* Those of a node whose link is lost or closed hear of it. */
void mq_route_lose(struct mq_redis *, struct mq_node *);
/* Those that are with no node hear of it, too: all is closed. */
void mq_route_drop(struct mq_redis *);
/* Those of mq_redis.later go out again, mq_route_missed(): those of mq_redis.missed are
 * answered. */
void mq_route_retry(struct mq_redis *);
void mq_route_missed(struct mq_redis *);

/* The server, or each node that is in use, from *i = 0; NULL: there are no more. */
struct mq_node *mq_route_next(struct mq_redis *, int *i);
/* Node number i of the map, which is used from now on. */
struct mq_node *mq_route_node(struct mq_redis *, int i);
/* The same if it is used already; else NULL. */
struct mq_node *mq_route_known(const struct mq_redis *, int i);
/* Closes its link: others go on without it, and its commands get why as their error. */
void mq_route_miss(struct mq_redis *, struct mq_node *, const char *why);

/* --- connection ---------------------------------------------------------- */

/* Waits so long, with r's function if it has one. */
void mq_redis_pause(const struct mq_redis *, int ms);
/* Waits until commands can go: 0, or -1 with the error. */
int mq_redis_await_ready(struct mq_redis *);
/* Sets status and error, since the link is lost, to the cause.  Returns -1. */
int mq_redis_set_lost(struct mq_redis *, const struct mq_node *);

/* --- reach --------------------------------------------------------------- */

/* mq_redis_open_until() for one server, or one node. */
int mq_redis_connect(struct mq_redis *, struct mq_server *, double until);
/* The same, without a word to the server. */
int mq_redis_begin(struct mq_redis *, struct mq_server *, double until);

/* One of the servers to connect to.  The caller sets the server; and host and port, unless
 * they are those of its URL, or it has a socket. */
struct mq_dial {
	struct mq_server *server;
	const char *host; /* from then on NULL: the socket */
	int port;
	struct mq_redis redis; /* the connection; or why there is none */
	/* Of reach.c: */
	int found; /* addresses of the host, so far */
	int fd;	   /* a search writes more of them there; -1: none does */
	bool over; /* there are no more */
	enum mq_link_state failed_at; /* where, with the error that is kept */
};

/* Takes the answer to the question, which it frees.  0, or -1 with the error. */
typedef int mq_dial_fn(void *arg, struct mq_dial *, redisReply *);

/*
 * Connects to one of n servers, at most until then (steady seconds): while those before do
 * not answer, the next server, or the next address of a name, is tried every half second.
 * With a question, it is the one that answers first, and whose answer is taken; without,
 * the greeting is still to come.  Returns its number; its server has host, address and
 * port then.  -1: each of them has its error.
 */
int mq_dial(struct mq_dial *, size_t n, struct mq_command *question,
    mq_dial_fn *take, void *arg, double until);

/* The error that counts: one that refuses is greater than none that answers. */
const struct mq_redis *mq_dial_error(const struct mq_dial *, size_t n);

/* Which replicas could be made the master of a server, which says of itself what is in
 * info.  Answers of several sentinels add up. */
struct mq_heirs {
	const struct mq_server *server;
	const struct mq_info *info;
	bool moved; /* the sentinel names another master */
	int connected; /* replicas that answer the sentinel, and are connected... */
	int missing; /* ...and are not */
	int silent;  /* neither the one nor the other */
};

/* Asks the sentinels in the URL of r's server, side by side, until one answers: 0, or -1
 * with the error.  Or each, for half a second; those that do not answer are left out. */
int mq_redis_ask_heirs(struct mq_redis *, struct mq_heirs *, bool each);

/* --- servers behind one -------------------------------------------------- */

/* A server at one host of another's URL: a sentinel, with the sentinels' own password, or a
 * node.  It is not to be freed, and lives no longer than the other one and the host. */
void mq_server_behind(struct mq_server *, const struct mq_server *of,
    struct mq_url_host *host, bool sentinel);

#endif
