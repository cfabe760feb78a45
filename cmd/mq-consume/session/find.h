/*
 * Finding out where a server is, in a helper process: to look for the addresses
 * of a host, or to start a private server, takes its time.
 */
#ifndef MQ_CONSUME_FIND_H
#define MQ_CONSUME_FIND_H

#include <stdbool.h>

#include "process/helper.h"
#include "redis/server.h"

/* why: what went wrong; NULL: the server's address or socket is set. */
typedef void find_found(void *arg, const char *why);

/* Zeroed, nothing is under way. */
struct finder {
	struct mq_helper helper;
	struct mq_server *server;
	find_found *found;
	void *arg;
};

/* Whether the server's place is clear; then it can be connected to. */
bool find_at_once(struct mq_server *);

/* Finds the place, starting a private server, and calls found().  Returns 0, or
 * -1 with errno. */
int find_start(struct finder *, struct mq_children *, struct mq_server *,
    find_found *found, void *arg);

#endif
