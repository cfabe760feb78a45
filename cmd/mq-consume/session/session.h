/*
 * The session of a consumer with its server, and its errands there.
 */
#ifndef SESSION_H
#define SESSION_H

#include "mq-consume/fact.h"
#include "process/process.h"
#include "queue/consumer.h"
#include "redis/loop.h"

/* why: the error; NULL: the server's address or socket is set. */
typedef void find_found(void *arg, const char *why);

/* Finds the address of a server in a helper process, since the look-up of a host or the
 * start of a private server takes time.  Zeroed: idle. */
struct finder {
	struct mq_helper helper;
	struct mq_server *server;
	find_found *found;
	void *arg;
};

/* Finds the address, starts a private server if need be, and calls found().  Returns 0;
 * 1 if there is nothing to find, and found() is not called; or -1 with errno. */
int find_start(struct finder *, struct mq_children *, struct mq_server *,
    find_found *found, void *arg);

/* --- lease -------------------------------------------------------------- */

/*
 * The lease, which a heartbeat renews.  We use three quarters of the time that the server
 * keeps it, from when the last good renewal was sent: the scripts are killed before
 * another consumer can get their messages.  Times are of the boot time clock, which goes
 * on while this process is stopped or the machine sleeps.
 */

struct lease {
	/* Set by the caller, but for these zeroed. */
	struct mq_consumer *server;
	/* The server has lost the lease. */
	void (*lost)(void *arg);
	/* The server refused a renewal. */
	void (*refused)(void *arg, const char *error);
	void *arg;

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

/* --- session -------------------------------------------------------------- */

/*
 * The session is this consumer's membership at its server: connections for commands and
 * for news of changed keys, the lease, and joining, under a new name or, after a lost
 * connection, under the old one.  The session never claims, runs or settles a message.
 */

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
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct mq_children *children;
	struct mq_idgen *ids;
	fact_fn *hear;
	/* Whether this consumer has a message, of a queue or of any (-1). */
	bool (*has)(void *arg, int queue);
	void *arg;

	/* Others read these. */
	enum session_state state;
	struct mq_consumer self; /* sends; with the connection's name */
	struct lease lease;
	char complaint[256]; /* last error said; empty: none */
	bool one_by_one;     /* the server has cut answers with messages */

	struct mq_loop conn;
	char channel[sizeof("mq::wake::") + NAME_SIZE];
	char client_name[32]; /* of its connections for commands */
	struct finder finder;
	struct session_queue *queues;
	bool ever_joined;
	bool leaving;
	int settings_wanted; /* joining: settings that are missing, with the pause of
			      * all, */
	int64_t lease_ms;   /* and a lease for so long; 0: none yet */
	double settings_at; /* steady time when they were asked for */
	bool pause_unknown; /* nobody could tell whether all is paused; said */
	int answers_wanted; /* joining: answers missing until the next step, */
	bool asked_held;    /* which is to be up; else to ask what is held */
	int cuts; /* connections in a row that ended before that answer */
	double waits_since; /* steady time since it cannot join; 0: it can */
	double heard_at, retry_s; /* heard_at: opened, or bytes since */
	ev_timer tick, retry;
};

/* Begins to connect.  make: make missing queues. */
void session_init(struct session *, bool make);
/* Leaves, and tells the end of that, also if it fails. */
void session_leave(struct session *);
void session_free(struct session *);

bool session_is_up(const struct session *);

/* False: the lease may have lapsed, and the session rejoins.  To be asked before the end
 * of a run, which may have taken long, is settled. */
bool session_holds_lease(struct session *);
/* The server has lost the lease: joins under a new name. */
void session_rejoin(void *session);
/* Drops the connections, says why, and connects again later. */
void session_reset(void *session, const char *why);
/* The settings of a queue may have changed, which make its rules; or the pause of all. */
void session_ask_settings(struct session *, int queue);
void session_ask_pause(struct session *);
/* Says an error of the server, if it is another complaint than the last one; NULL: the
 * complaint is over. */
void session_complain(void *session, const char *error);

/* --- for this folder ---------------------------------------------------------- */

/* The error of a connection, without the server's name in front. */
const char *find_cause(const struct mq_redis *);
/* Seconds until a lost connection is tried again, the first time. */
#define SESSION_RETRY_MIN 0.05

/* Nodes that are away keep it from joining: says so, and tries again later. */
void session_wait(struct session *, const char *why);
/* The connections are open: renews the lease, or joins. */
void session_renew_or_join(void *session);
/* Once a second: asks for all settings from time to time, where nothing tells of changes;
 * ends a consumer that is not to wait, when it has waited long. */
void session_check(struct session *);

/* --- errands ------------------------------------------------------------ */

/*
 * Errands at the server that take their time: each is run in a helper process, with a
 * connection of its own, and only once at a time.
 *
 *	cleaning	reclaims dead connections
 *	drain		--drain: whether the queues are empty, with no message in flight
 *			at any consumer
 *	survey		what --drain has before it: how many messages can be claimed, and
 *			which other consumers have some
 *	transfers	on a cluster, messages that were pushed to a queue of another node
 *			are still on that of their own: brings them there.  What a crash
 *			leaves is brought by any cleaner.
 */

enum errand_kind {
	ERRAND_CLEAN,
	ERRAND_DRAIN,
	ERRAND_SURVEY,
	ERRAND_TRANSFER,
	ERRANDS
};

struct errand {
	struct mq_helper helper;
	struct errands *all;
	enum errand_kind kind;
	double next; /* steady time before which none begins; 0: at once */
	double failing_since; /* steady time; 0: the last one did well */
};

/* Of all consumers of a server, one cleans, about once a minute.  They compete for a key
 * of the server.  One that has no right to that, or while the node of that key is away,
 * competes for a key of each of its queues. */
struct cleaning {
	bool by_queue;		      /* the key of the server is refused, */
	bool away;		      /* or its node is away, this time */
	bool ours;		      /* some key is */
	int answers;		      /* missing: whose the keys are */
	long long wait_ms;	      /* until the first key may be free */
	unsigned long long scan_from; /* of the next round */
};

/* Another consumer that has messages. */
struct holder {
	char name[128]; /* empty: there is none */
	char host[80];	/* empty: not known */
	int64_t ttl_ms; /* of its lease; not above 0: it is over */
	long long unacked;
};

/* A consumer that no longer renews its lease is named, since --drain waits until its
 * messages are back. */
struct survey {
	int waited;	    /* ticks in a row */
	bool waits;	    /* the one under way is about what is waited for */
	struct holder last; /* whose lease ended first in the last survey */
	struct holder said;
};

struct errands {
	/* Set by the caller, but for these zeroed. */
	const struct options *opt;
	struct session *session;
	fact_fn *hear;
	void *arg;

	struct errand errands[ERRANDS];
	struct cleaning cleaning;
	struct survey survey;
	bool transfers; /* some wait */
	bool placed;	/* one has had a connection of its own */
	bool crowded;	/* the last one had none; said */
	bool given_up;	/* FACT_NO_PLACE was told */
};

/* Once a second: begins what is due.  counts: the number of messages is wanted; waits:
 * nothing is left but what other consumers have. */
void errands_tick(struct errands *, bool counts, bool waits);
/* Whether the first round is over, or another consumer's, and no other is under way.
 * Begins the first. */
bool errands_cleaned(struct errands *);
/* The consumer leaves: another one may clean. */
void errands_resign(struct errands *);
/* Makes the next round of cleaning, or look whether the queues are empty, due at once. */
void errands_soon(struct errands *, enum errand_kind);
/* Looks whether the queues are empty, unless it did less than 0.9 s ago. */
void errands_drain(struct errands *);
/* A message was pushed. */
void errands_transfer(struct errands *);
/* Breaks off the errands under way; but transfers are brought to an end, which is waited
 * for. */
void errands_end(struct errands *);

#endif
