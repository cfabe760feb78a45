/*
 * The inside of requests.h, for the files of this folder.
 */
#ifndef DUPLICATES_PARTS_H
#define DUPLICATES_PARTS_H

#include <sys/queue.h>

#include <stdbool.h>

#include "base/buf.h"
#include "base/id.h"
#include "mq-consume/session/session.h"
#include "process/process.h"
#include "queue/dup.h"
#include "queue/queue.h"
#include "redis/async.h"

/* --- remotes ------------------------------------------------------------ */

/*
 * Remotes: the other servers that duplicates go to.  Each URL has one connection,
 * while it is in use and for 5 s after.
 */

struct remote;
TAILQ_HEAD(remote_list, remote);

struct remotes {
	struct ev_loop *loop;
	const struct mq_server *own; /* our own server */
	struct mq_children *children;
	/* The result of remote_ready() or remote_error() has changed. */
	void (*changed)(void *arg);
	void *arg;
	struct remote_list list;
	bool noted; /* what there is to know of a server has been said */
};

void remotes_init(struct remotes *, struct ev_loop *,
    const struct mq_server *own, struct mq_children *,
    void (*changed)(void *arg), void *arg);
/* Closes all connections. */
void remotes_free(struct remotes *);

/* --- request ------------------------------------------------------------ */

/*
 * One request for a duplicate, from its text to its answer.  A request takes two
 * commands: whether the queue exists, and the publishing.
 */

struct message;

/* The origin of duplicates: this consumer. */
struct copy_origin {
	const struct mq_layout *layout; /* of its messages */
	const char *host;		/* the name of this machine */
	struct mq_idgen *ids;
};

/* Shared by all requests. */
struct request_context {
	struct copy_origin origin;
	const char *ns; /* namespace of our server's URL; NULL: none */
	bool urls;	/* answers have RQ's full ids */
	struct mq_async *async;
	const struct session *session; /* when up, async can be used */
	struct remotes *remotes;
};

struct request {
	TAILQ_ENTRY(request) link; /* the owner's */
	const struct request_context *context;
	const struct message *m;
	void (*moved)(void *arg); /* NULL: to be freed with the reply */
	void *arg;
	struct mq_dup what;
	struct mq_buf answer; /* empty: none yet */
	enum {
		REQUEST_WAITING, /* for its turn, or for the server */
		REQUEST_ASKED,	 /* whether the queue exists */
		REQUEST_SENT	 /* the duplicate */
	} step;
	bool in_flight;
	struct remote *remote; /* NULL: our own server */
	const struct mq_layout
	    *layout;		/* of the queue; NULL: not resolved yet */
	char id[MQ_ID_LEN + 1]; /* of the duplicate, when ASKED */
};

/*
 * text: as of queue/dup.h; NULL: too long.  wrong: why there can be no duplicate;
 * NULL: nothing.  moved() is called after a reply: the request can advance.
 */
struct request *request_new(const struct request_context *,
    const struct message *, const char *wrong, const char *text,
    void (*moved)(void *arg), void *arg);
/* A reply to come is ignored. */
void request_free(struct request *);

/* Does the next step, if it can.  Returns the answer, "ok ID" or "fail WHY", valid
 * until the request is freed; NULL: the request waits. */
const char *request_advance(struct request *);
/* Ends the wait: sets the answer. */
void request_give_up(struct request *);

#endif
