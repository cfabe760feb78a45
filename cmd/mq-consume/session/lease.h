/*
 * The lease, which a heartbeat renews.  The server keeps it for a time that the
 * server sets.  We use three quarters of that time, from when the last good
 * renewal was sent.  So the scripts are killed before another consumer can get
 * their messages.  Times are of the boot time clock, which goes on while this
 * process is stopped or the machine sleeps.
 */
#ifndef MQ_CONSUME_LEASE_H
#define MQ_CONSUME_LEASE_H

#include "base/id.h"
#include "mq-consume/options.h"
#include "queue/consumer.h"

struct lease_events {
	/* The server has lost the lease. */
	void (*lost)(void *arg);
	/* The server refused a renewal. */
	void (*refused)(void *arg, const char *error);
};

struct lease {
	struct mq_consumer *server;
	const struct lease_events *events;
	void *arg;
	char connection[NAME_SIZE], name[NAME_SIZE];
	char former[NAME_SIZE]; /* the connection that lost its lease */
	/* A former name, under which the server holds our messages until they are
	 * taken over; empty: none. */
	char moved[NAME_SIZE];
	bool joined;  /* under this connection name */
	int64_t ms;   /* the server's last word */
	double asked; /* boot time of the last join */
	/* And of the last good renewal, or join, of the name under which the server
	 * holds our messages. */
	double sent;
	double moved_at;     /* boot time of the last bytes received */
	double renewal_sent; /* boot time of an unanswered one; 0: none */
	double early;  /* seconds that the next one comes before its time */
	double spread; /* and of the first one, without messages, moreover */
};

/* Takes a name that no connection has had: one that lost its lease is never used
 * again. */
void lease_new_name(struct lease *, const char *tag, struct mq_idgen *);
/* On a cluster: takes such a name, whose keys lie on nodes that answer; the former one
 * keeps its lease for as long as it holds.  False: there is none, and nothing has
 * changed. */
bool lease_move(struct lease *, const char *tag, struct mq_idgen *);
/* The name under which the server still holds our messages; NULL: this one. */
const char *lease_moved(const struct lease *);
/* The server has answered how long the lease holds. */
void lease_confirm(struct lease *, int64_t ms);
/* A join, or a connection, begins. */
void lease_begin_join(struct lease *);
void lease_begin_connection(struct lease *);
void lease_joined(struct lease *);
/* Whether a lease was asked for; whether the name has one. */
bool lease_was_asked(const struct lease *);
bool lease_is_joined(const struct lease *);
/* Seconds since the last renewal, if the lease may have lapsed; else 0. */
double lease_lapsed_s(const struct lease *);
/* Renews if it is time, which is later for one without messages (idle); to be
 * called once a second.  False: no answer for 20 s. */
bool lease_keep(struct lease *, bool idle);
/* Whether a renewal has no answer yet. */
bool lease_is_renewing(const struct lease *);

#endif
