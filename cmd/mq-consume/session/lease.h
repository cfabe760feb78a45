/*
 * The lease, which a heartbeat keeps.  The server keeps it for a time of its
 * own; we use it for three quarters of that after the last good renewal was
 * sent, by the boot time clock, which goes on while this process is stopped or
 * the machine sleeps.  So the scripts are killed before anybody else can get
 * their messages.
 */
#ifndef MQ_CONSUME_LEASE_H
#define MQ_CONSUME_LEASE_H

#include "base/id.h"
#include "mq-consume/options.h"
#include "queue/consumer.h"

struct lease_events {
	/* It is gone; the server said so. */
	void (*lost)(void *arg);
	/* The server refused to renew it. */
	void (*refused)(void *arg, const char *error);
};

struct lease {
	struct mq_consumer *server;
	const struct lease_events *events;
	void *arg;
	char connection[NAME_SIZE], name[NAME_SIZE];
	char former[NAME_SIZE]; /* connection, whose lease was lost */
	bool joined;		/* under this connection name */
	int64_t ms;		/* as the server said last */
	double sent;	     /* boot time when the last good renewal went out */
	double moved_at;     /* boot time when anything came last */
	double renewal_sent; /* boot time of the one without answer; 0: none */
};

/* Takes a name that nobody has had; one that lost its lease is never used
 * again. */
void lease_new_name(struct lease *, const char *tag, struct mq_idgen *);
/* The server has told how long it holds, since sent or since the last join or
 * renewal. */
void lease_confirm(struct lease *, int64_t ms);
/* A join, or the connection, begins. */
void lease_begin_join(struct lease *);
void lease_begin_connection(struct lease *);
void lease_joined(struct lease *);
/* Whether it was asked for; whether there is one, under this name. */
bool lease_was_asked(const struct lease *);
bool lease_is_joined(const struct lease *);
/* Seconds for which it could not be renewed, if it may have lapsed; else 0. */
double lease_lapsed_s(const struct lease *);
/* Once a second: renews.  False: nothing has come for REPLY_TIMEOUT. */
bool lease_keep(struct lease *);

#endif
