/*
 * Remotes: the other servers that duplicates go to.  Each URL has one connection,
 * while it is in use and for 5 s after.
 */
#ifndef MQ_CONSUME_REMOTES_H
#define MQ_CONSUME_REMOTES_H

#include <sys/queue.h>

#include <stdbool.h>

#include "process/children.h"
#include "redis/async.h"

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

/* The server of this URL, as of redis/url.h, until remote_put().  NULL: 16 others are
 * in use. */
struct remote *remote_get(struct remotes *, const char *url);
void remote_put(struct remote *);

/* Whether commands can be sent. */
bool remote_ready(const struct remote *);
/* Why the server cannot be reached; NULL: no error yet. */
const char *remote_error(const struct remote *);
struct mq_async *remote_async(struct remote *);

#endif
