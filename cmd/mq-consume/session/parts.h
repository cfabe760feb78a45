/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* For files of this folder. */
#ifndef MQ_CONSUME_SESSION_PARTS_H
#define MQ_CONSUME_SESSION_PARTS_H

#include "base/timer.h"
#include "mq-consume/find.h"
#include "redis/loop.h"
#include "session.h"

/* --- lease.c ------------------------------------------------------------------ */

/*
 * The lease, which a heartbeat renews.  The lease counts as lost after three quarters of its time at
 * the server, from the sending of the last good renewal on: commands are killed before another
 * consumer can get their messages.  Times are of the boot time clock, which goes on while this
 * process is stopped or the machine sleeps.
 */

struct lease {
	/* Set by the caller; all else begins zeroed. */
	struct mq_consumer *server;
	struct facts *facts;

	char connection[NAME_SIZE], name[NAME_SIZE];
	char former[NAME_SIZE]; /* the connection that lost its lease */
	/* Former connection, under which the server holds our messages until they are taken
	 * over; empty: none. */
	char old_name[NAME_SIZE];
	bool joined; /* under `connection` */
	int64_t ms;  /* length of the lease, as the server last said */
	/* Boot times. */
	double asked;	 /* last join; 0: none */
	double sent;	 /* last good renewal, or join, of the name under which
			      * the server holds our messages; 0: no such name */
	double heard_at; /* last bytes received */
	double renewal_sent; /* renewal without an answer; 0: none */
	/* Seconds that a renewal comes before its time, by chance, lest many consumers renew
	 * together; and moreover the first one, without messages. */
	double early;
	double spread;
};

/* Takes a new name: a name that lost its lease is never used again. */
void lease_new_name(struct lease *, const char *tag, struct mq_idgen *);
/* On a cluster: takes a new name, whose keys lie on nodes that answer.  The lease of the old name
 * stays until it lapses.  False: there is no such name, and nothing has changed. */
bool lease_rename(struct lease *, const char *tag, struct mq_idgen *);
/* A join begins, or is done. */
void lease_begin_join(struct lease *);
void lease_joined(struct lease *);
/* Seconds since the last renewal, if the lease may have lapsed; else 0. */
double lease_lapsed_s(const struct lease *);
/* Once a second: renews the lease if it is time, which is later without messages (idle).  False: no
 * answer for 20 s, or 15 s on a cluster. */
bool lease_keep(struct lease *, bool idle);

/* --- session.c ---------------------------------------------------------------- */

enum session_state {
	SESSION_DOWN,
	SESSION_FINDING, /* looking up the address */
	SESSION_OPENING, /* connecting and joining */
	SESSION_UP
};

/* The argument of callbacks about a queue. */
struct session_queue {
	struct session *session;
	int number;
};

struct session {
	/* The caller's. */
	const struct options *opt;
	const struct hand *hand;
	struct facts *facts;
	struct mq_server *server;
	struct mq_idgen *ids;

	enum session_state state;
	struct mq_consumer self; /* sends commands */
	struct lease lease;
	char complaint[256]; /* last error said; empty: over, or none */
	bool one_by_one;     /* the server has cut answers with messages */

	struct mq_loop conn;
	char channel[sizeof("mq::wake::") + NAME_SIZE];
	char client_name[32]; /* CLIENT SETNAME of connections for commands */
	struct finder *finder;
	struct session_queue *queues;
	bool ever_joined;
	bool leaving;
	/* Joining. */
	int settings_wanted; /* missing answers about settings, and all queues' pause */
	int64_t lease_ms;    /* length of the new lease; 0: none yet */
	bool may_enter;	     /* FACT_ENTER was told, and this join goes on */
	int answers_wanted;  /* missing answers until the next step */
	bool asked_holdings; /* next step: up; else to ask for holdings */
	int cuts; /* connections that ended before the holdings, in a row */
	double waits_since; /* steady time of the first failure; 0: none */

	double settings_at; /* steady time when all settings were asked for */
	bool pause_unknown; /* no right to know whether all is paused; said */
	double heard_at;    /* steady time of the last bytes while opening */
	double retry_s;	    /* seconds until the next try to connect */
	struct mq_timer tick, retry;
};

/* --- join.c ------------------------------------------------------------------- */

/* Seconds from the loss of a connection to the first try to connect. */
#define SESSION_RETRY_MIN 0.05

/* Nodes that are away keep the session from joining: says so, and tries again later. */
void session_wait(struct session *, const char *why);
/* The connections are open: renews the lease, or joins. */
void session_renew_or_join(void *session);
/* Once a second: if the server does not tell of changes, asks for all settings from time to time;
 * with --drain, -n or --idle, ends after a long wait. */
void session_check(struct session *);

#endif
