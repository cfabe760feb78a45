/*
 * The session is this consumer's membership at its server.  It owns
 *
 *	the connections: for commands, and for news of changed keys
 *	the lease, with its heartbeat
 *	joining: under a new name or, after a lost connection, under the old one
 *
 * The session calls only common code, and reports by session_events.  The
 * session never claims, runs or settles a message.
 */
#ifndef MQ_CONSUME_SESSION_H
#define MQ_CONSUME_SESSION_H

#include <ev.h>

#include "queue/settings.h"
#include "find.h"
#include "lease.h"
#include "redis/links.h"
#include "redis/switch.h"

struct session_events {
	/* Joined: commands may be sent. */
	void (*up)(void *arg);
	/* The connection is lost: no more answers come. */
	void (*down)(void *arg);
	/* The lease is lost: others may get our messages. */
	void (*lost)(void *arg);
	/* The settings of a queue: before the session says anything of itself while
	 * joining, and whenever they have changed. */
	void (*settings)(void *arg, int queue, struct mq_setting_texts *);
	/* While joining: the messages of a queue that the server holds for us. */
	void (*held)(void *arg, int queue, struct mq_held *);
	/* A key that a claim has read has changed; NULL: any key may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Another consumer leaves the messages of this key's queue to us. */
	void (*called)(void *arg, const char *key, size_t n);
	/* Whether this consumer has a message, of a queue or of any (-1). */
	bool (*has)(void *arg, int queue);
	/* Once a second; up: the session is up. */
	void (*tick)(void *arg, bool up);
	/* The session has left, or cannot. */
	void (*left)(void *arg);
	/* A final error, which has been said. */
	void (*failed)(void *arg, int status);
};

enum session_state {
	SESSION_DOWN,
	SESSION_FINDING, /* where the server is */
	SESSION_OPENING, /* connecting and joining */
	SESSION_UP
};

struct session {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct mq_children *children;
	struct mq_idgen *ids;
	const struct session_events *events;
	void *arg;
	enum session_state state;
	struct mq_links links;
	struct mq_switch news; /* of another master */
	struct mq_consumer self;
	char channel[sizeof("mq::wake::") + NAME_SIZE];
	char client_name[32]; /* of its connections for commands */
	struct finder finder;
	struct lease lease;
	bool ever_joined;
	bool leaving;
	int settings_wanted; /* joining: settings of queues that are missing, */
	int64_t lease_ms;    /* with a lease for so long; 0: none yet */
	double settings_at;  /* steady time when they were asked for */
	int answers_wanted;  /* joining: answers missing until the next step, */
	bool asked_held;     /* which is to be up; else to ask what is held */
	double waits_since;  /* steady time since it cannot join; 0: it can */
	double heard_at, retry_s; /* heard_at: opened, or bytes since */
	char complaint[256];	  /* last error said; empty: none */
	ev_timer tick, retry;
};

/* messages: how many can run at once.  make: make missing queues. */
void session_init(struct session *, struct ev_loop *, const struct options *,
    struct mq_server *, struct mq_children *, struct mq_idgen *, int messages,
    bool make, const struct session_events *, void *arg);
void session_start(struct session *);
/* Leaves; left() is called at the end, or if that fails. */
void session_leave(struct session *);
void session_free(struct session *);

bool session_is_up(const struct session *);
/* Whether a join is under way, so that the server may know the name. */
bool session_is_joining(const struct session *);
/* Whether the session is connecting or joining. */
bool session_is_opening(const struct session *);
/* Whether a heartbeat is on its way: commands now cost the server no round more. */
bool session_is_renewing(const struct session *);
/* The name of the connection, for people. */
const char *session_name(const struct session *);
/* Commands under that name; and any other commands. */
struct mq_consumer *session_server(struct session *);
struct mq_async *session_connection(struct session *);

/*
 * False: the lease may have lapsed, and the session rejoins.  To be asked before
 * the end of a run is settled, which may have taken long.
 */
bool session_holds_lease(struct session *);
/* The server has lost the lease: joins under a new name. */
void session_rejoin(struct session *);
/* Drops the connections, says why, and connects again later. */
void session_reset(struct session *, const char *why);
/* The settings of a queue may have changed. */
void session_ask_settings(struct session *, int queue);
/* So many messages can run at once now. */
void session_tell_slots(struct session *, int messages);
/* Says an error of the server, once until session_works(). */
void session_complain(struct session *, const char *error);
void session_works(struct session *);
bool session_complains(const struct session *);
/* Sends buffered commands now. */
void session_flush(struct session *);

#endif
