/* For the files of this folder. */
#ifndef MQ_CONSUME_SESSION_PARTS_H
#define MQ_CONSUME_SESSION_PARTS_H

#include "base/timer.h"
#include "mq-consume/find.h"
#include "redis/loop.h"
#include "session.h"

/* --- lease.c ------------------------------------------------------------------ */

/*
 * The lease, which a heartbeat renews.  We use three quarters of the time that the server
 * keeps it, from when the last good renewal was sent: the scripts are killed before
 * another consumer can get their messages.  Times are of the boot time clock, which goes
 * on while this process is stopped or the machine sleeps.
 */

struct lease {
	/* Set by the caller, but for these zeroed. */
	struct mq_consumer *server;
	struct facts *facts;

	char connection[NAME_SIZE], name[NAME_SIZE];
	char former[NAME_SIZE]; /* the connection that lost its lease */
	/* A former name, under which the server still holds our messages, until they
	 * are taken over; empty: none. */
	char moved[NAME_SIZE];
	bool joined;  /* under this connection name */
	int64_t ms;   /* the server's last word */
	double asked; /* boot time of the last join; 0: none */
	/* And of the last good renewal, or join, of the name under which the server
	 * holds our messages; not 0: the server may know the name. */
	double sent;
	double moved_at;     /* boot time of the last bytes received */
	double renewal_sent; /* boot time of an unanswered one; 0: none */
	/* Seconds that the next one comes before its time: at one of two ticks, by chance,
	 * lest many consumers renew together. */
	double early;
	double spread; /* and of the first one, without messages, moreover */
};

/* Takes a new name: one that lost its lease is never used again. */
void lease_new_name(struct lease *, const char *tag, struct mq_idgen *);
/* On a cluster: takes such a name, whose keys lie on nodes that answer; the former one
 * keeps its lease for as long as it holds.  False: there is none, and nothing has
 * changed. */
bool lease_move(struct lease *, const char *tag, struct mq_idgen *);
/* A join begins, or is done. */
void lease_begin_join(struct lease *);
void lease_joined(struct lease *);
/* Seconds since the last renewal, if the lease may have lapsed; else 0. */
double lease_lapsed_s(const struct lease *);
/* Renews if it is time, which is later for one without messages (idle); to be
 * called once a second.  False: no answer for 20 s. */
bool lease_keep(struct lease *, bool idle);

/* --- session.c ---------------------------------------------------------------- */

enum session_state {
	SESSION_DOWN,
	SESSION_FINDING, /* where the server is */
	SESSION_OPENING, /* connecting and joining */
	SESSION_UP
};

/* With a command about a queue: whose, and which. */
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
	struct mq_consumer self; /* sends; with the connection's name */
	struct lease lease;
	char complaint[256]; /* last error said; empty: none */
	bool one_by_one;     /* the server has cut answers with messages */

	struct mq_loop conn;
	char channel[sizeof("mq::wake::") + NAME_SIZE];
	char client_name[32]; /* of its connections for commands */
	struct finder *finder;
	struct session_queue *queues;
	bool ever_joined;
	bool leaving;
	int settings_wanted; /* joining: settings that are missing, with the pause of
			      * all, */
	int64_t lease_ms;   /* and a lease for so long; 0: none yet */
	bool may_enter;	    /* FACT_ENTER was told, and this join goes on */
	double settings_at; /* steady time when they were asked for */
	bool pause_unknown; /* nobody could tell whether all is paused; said */
	int answers_wanted; /* joining: answers missing until the next step, */
	bool asked_held;    /* which is to be up; else to ask what is held */
	int cuts; /* connections in a row that ended before that answer */
	double waits_since; /* steady time since it cannot join; 0: it can */
	double heard_at, retry_s; /* heard_at: opened, or bytes since */
	struct mq_timer tick, retry;
};

/* --- join.c ------------------------------------------------------------------- */

/* Seconds until a lost connection is tried again, the first time. */
#define SESSION_RETRY_MIN 0.05

/* Nodes that are away keep it from joining: says so, and tries again later. */
void session_wait(struct session *, const char *why);
/* The connections are open: renews the lease, or joins. */
void session_renew_or_join(void *session);
/* Once a second: asks for all settings from time to time, where nothing tells of changes;
 * ends a consumer that is not to wait, when it has waited long. */
void session_check(struct session *);

#endif
