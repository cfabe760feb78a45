/*
 * A connection to one server as a state machine over a redisContext that does not block:
 * TCP, TLS, the greeting, what is under way, and what the server says last.  A link cannot
 * wait: its driver calls mq_link_move() when poll(2) says that the socket is ready, and
 * decides how long that may take.
 */
#ifndef MQ_LINK_H
#define MQ_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "server.h"

/* Room for why a link is lost. */
#define MQ_LINK_WHY 512

/* Commands in an order; zeroed, there are none. */
struct mq_requests {
	struct mq_request *first, *last;
};

enum mq_link_state {
	MQ_LINK_CLOSED,
	MQ_LINK_TCP,
	MQ_LINK_TLS,
	MQ_LINK_AUTH, /* AUTH and SELECT wait for their answers */
	MQ_LINK_HELLO, /* commands can go; the answer to HELLO comes before theirs */
	MQ_LINK_OPEN,
	MQ_LINK_LOST /* no reply comes any more: status and why are set */
};

struct mq_link {
	enum mq_link_state state;
	const struct mq_server *server; /* the caller's */
	redisContext *context;
	mq_tls *tls;
	const char *host; /* of the certificate; the caller's; NULL: a socket */
	bool greets;	  /* with HELLO, too */
	int greetings;	  /* answers to AUTH and SELECT that are to come */
	/* Commands: handed over, in the order of their replies; and not handed over whole. */
	struct mq_requests sent, backlog;
	bool listens;			/* messages of channels come, too */
	const struct mq_script *loaded; /* whose text went out last */
	bool heard;			/* the server has answered something */
	bool unfit;  /* the server has said why it is of no use */
	bool early;  /* the server has ended the connection, and said nothing */
	bool deaf;   /* the server takes no more; it may have said why */
	bool ended;  /* nothing more comes than what was read */
	size_t seen; /* of moved; see mq_redis_moves() */
	size_t moved; /* goes up with what comes or goes, unless it trickles */
	size_t bytes; /* that have come */
	int status;   /* mq_exit */
	char why[MQ_LINK_WHY];
};

/* Begins to connect to the socket of the server, or (host: not NULL) to this address, which
 * stands for the host.  With hello, HELLO goes out before the first command.  A failure is
 * told by the state, as it always is.  The server must outlive the link. */
void mq_link_open(struct mq_link *, const struct mq_server *, const char *host,
    const char *address, int port, bool hello);

/* Frees all; a zeroed link is closed, too. */
void mq_link_close(struct mq_link *);

/* What poll(2) is to look for. */
short mq_link_wants(const struct mq_link *);

/* Goes on as poll(2) says that it can. */
void mq_link_move(struct mq_link *, short revents);

/* Takes a command, which goes out when the driver moves the link, or nowhere if the server
 * takes no more.  Until mq_link_next() gives it back, it is the link's. */
void mq_link_send(struct mq_link *, struct mq_request *);
/* Whether bytes wait for the socket. */
bool mq_link_unwritten(const struct mq_link *);

/* The next reply, which freeReplyObject() frees, and the command that it is for; a message
 * of a channel is for none.  NULL: none has come yet, or the link is lost.  Of a script's
 * errors, only what its command got is left. */
redisReply *mq_link_next(struct mq_link *, struct mq_request **);

/* The next command of a link that is lost, which has no reply; NULL: there are no more. */
struct mq_request *mq_link_orphan(struct mq_link *);

/* Gives the link up: the state is MQ_LINK_LOST, and `why` the reason. */
void mq_link_lose(struct mq_link *, int status, const char *why);

#endif
