/*
 * Finds the address of a server in a helper process, since the look-up of a host
 * or the start of a private server takes time.
 */
#ifndef MQ_CONSUME_FIND_H
#define MQ_CONSUME_FIND_H

#include <stdbool.h>

#include "process/helper.h"
#include "redis/server.h"

/* why: the error; NULL: the server's address or socket is set. */
typedef void find_found(void *arg, const char *why);

/* Zeroed: idle. */
struct finder {
	struct mq_helper helper;
	struct mq_server *server;
	find_found *found;
	void *arg;
};

/* Whether the server can be connected to without a look-up. */
bool find_at_once(struct mq_server *);

/* Finds the address, starts a private server if need be, and calls found().
 * Returns 0, or -1 with errno. */
int find_start(struct finder *, struct mq_children *, struct mq_server *,
    find_found *found, void *arg);

#endif
