/*
 * Session: this consumer at its server.  It owns the two connections, one for
 * commands and one that hears which keys have changed; it joins under a new name
 * or, after a lost connection, again under the old one; it keeps the lease, and
 * leaves.
 */
#ifndef MQ_CONSUME_SESSION_H
#define MQ_CONSUME_SESSION_H

#include <ev.h>

#include "find.h"
#include "lease.h"
#include "redis/fence.h"
#include "redis/tracking.h"

struct session_events {
	/* Joined; what is sent from now on is carried out. */
	void (*up)(void *arg);
	/* The connection is lost: no answer comes. */
	void (*down)(void *arg);
	/* The lease is gone, and with it all messages: others may get them. */
	void (*lost)(void *arg);
	/* While joining: what the server holds for us of a queue. */
	void (*held)(void *arg, int queue, struct mq_held *);
	/* A key has changed that a claim has read; NULL: any may have. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Once a second; up: and the session is. */
	void (*tick)(void *arg, bool up);
	/* It has left, or cannot. */
	void (*left)(void *arg);
	/* Trying again would change nothing; said already. */
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
	struct mq_async main; /* commands */
	struct mq_async wake; /* news of changed keys */
	struct mq_consumer self;
	struct mq_tracking tracking;
	struct mq_fence fence;
	struct finder finder;
	struct lease lease;
	bool ever_joined;
	bool leaving;
	int answers_wanted; /* joining: until the session is up */
	double opened_at, retry_s;
	char complaint[256]; /* what the server refused last; empty: nothing */
	ev_timer tick, retry;
};

/* messages: how many can run at once.  make: queues that do not exist. */
void session_init(struct session *, struct ev_loop *, const struct options *,
    struct mq_server *, struct mq_children *, struct mq_idgen *, int messages,
    bool make, const struct session_events *, void *arg);
void session_start(struct session *);
/* Leaves; left() is called when that is over, or cannot be. */
void session_leave(struct session *);
void session_free(struct session *);

bool session_is_up(const struct session *);
/* Whether it is joining, and the server may know its name by now. */
bool session_is_joining(const struct session *);
/* Whether it is connecting or joining. */
bool session_is_opening(const struct session *);
/* Its name at the server. */
const char *session_name(const struct session *);
/* For what is asked under that name; and for anything else. */
struct mq_consumer *session_server(struct session *);
struct mq_async *session_connection(struct session *);

/*
 * False when the lease may have lapsed, after doing what follows from that.  To
 * be asked before anything is settled that may have taken its time.
 */
bool session_holds_lease(struct session *);
/* The server has found the lease gone: joins under a new name. */
void session_rejoin(struct session *);
/* Drops the connections, says why, and connects again later. */
void session_reset(struct session *, const char *why);
/* Says what the server refused, once until something works again. */
void session_complain(struct session *, const char *error);
void session_works(struct session *);
bool session_complains(const struct session *);
/* What has been sent goes out now. */
void session_flush(struct session *);

#endif
