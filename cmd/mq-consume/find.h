/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Finds the address of a server in a helper process, since the look-up of a host or the
 * start of a private server takes time. */
#ifndef MQ_CONSUME_FIND_H
#define MQ_CONSUME_FIND_H

#include "redis/connection.h"
#include "redis/server.h"

struct finder;
struct mq_children;

/* why: the error; NULL: the address, or socket, of the server is set. */
typedef void find_found(void *arg, const char *why);

/* The pointers stay the caller's. */
struct finder *finder_new(
    struct mq_children *, struct mq_server *, find_found *found, void *arg);
/* Finds the address, starts a private server if need be, and calls found().  Returns 0;
 * 1 if there is nothing to find, and found() is not called; or -1 with errno. */
int finder_start(struct finder *);
/* Breaks off the search; found() is not called. */
void finder_stop(struct finder *);
void finder_free(struct finder *);

/* The error of a connection, without the server's name in front. */
const char *find_cause(const struct mq_redis *);

#endif
