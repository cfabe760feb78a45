/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * A link: a connection to one server as a state machine over a redisContext that does not
 * block: TCP, TLS, the greeting, commands under way, and the server's last words.  A link
 * cannot wait: its driver calls mq_link_move() when poll(2) says that the socket is ready,
 * and decides how long that may take.
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
	MQ_LINK_AUTH,  /* until the replies to AUTH and SELECT */
	MQ_LINK_HELLO, /* commands can go; the reply to HELLO comes first */
	MQ_LINK_OPEN,
	MQ_LINK_LOST /* no reply can come; status and why are set */
};

struct mq_link {
	enum mq_link_state state;
	const struct mq_server *server; /* the caller's */
	redisContext *context;
	mq_tls *tls;
	const char
	    *host;	 /* for the certificate; the caller's; NULL: a socket */
	bool says_hello; /* HELLO is sent, too */
	int greetings;	 /* replies to AUTH and SELECT under way */
	struct mq_requests sent;    /* given to hiredis, in order of replies */
	struct mq_requests backlog; /* given in part, or not yet */
	bool listens;		    /* messages of channels come, too */
	const struct mq_script *loaded; /* the last one sent as text */
	bool heard;	      /* the server has replied to something */
	bool unfit;	      /* the server has said why it is of no use */
	bool early;	      /* the server hung up without a reply */
	bool send_failed;     /* the server may have said why */
	bool eof;	      /* the server's last bytes were read */
	size_t activity;      /* goes up with bytes, unless they trickle */
	size_t activity_seen; /* by mq_redis_active() */
	size_t bytes;	      /* received */
	int status;	      /* mq_exit */
	char why[MQ_LINK_WHY];
};

/* Begins to connect to the server's socket, or, if host is not NULL, to this address of the
 * host.  With hello, HELLO goes out before the first command.  After a failure, the state is
 * MQ_LINK_LOST, here and below.  The server must outlive the link. */
void mq_link_open(struct mq_link *, const struct mq_server *, const char *host,
    const char *address, int port, bool hello);

/* Frees the connection; a zeroed link may be closed, too. */
void mq_link_close(struct mq_link *);

/* The events for poll(2). */
short mq_link_wants(const struct mq_link *);

/* Connects, greets, reads and writes as far as the events of poll(2) allow. */
void mq_link_move(struct mq_link *, short revents);

/* Takes a command, which the link owns until mq_link_next() returns it.  mq_link_move() sends
 * it; once a send has failed, nothing more is sent. */
void mq_link_send(struct mq_link *, struct mq_request *);
/* Whether bytes wait for the socket. */
bool mq_link_unwritten(const struct mq_link *);

/* The next reply, which freeReplyObject() frees, and its command, NULL for a message of a
 * channel.  NULL: no reply has come yet, or the link is lost.  mq_reply_strip_script() has
 * stripped errors. */
redisReply *mq_link_next(struct mq_link *, struct mq_request **);

/* The next command without a reply, of a lost link; NULL: there are no more. */
struct mq_request *mq_link_orphan(struct mq_link *);

/* Sets the state to MQ_LINK_LOST for this reason. */
void mq_link_lose(struct mq_link *, int status, const char *why);

#endif
