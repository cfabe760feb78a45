/*
 * The server and the queues that a command line means, and what their layout has.
 * If the user got it wrong, the functions end the program with exit 64 and one line.
 */
#ifndef MQ_OPERANDS_H
#define MQ_OPERANDS_H

#include <stddef.h>

#include "queue/queue.h"
#include "redis/connection.h"
#include "redis/server.h"

struct mq_shared;

/*
 * Finds the server that the options name, and the layout of its queues: that
 * of -L, of the URL, of MQ_LAYOUT, or rmq.  Returns 0, or an mq_exit status
 * with one line in error.
 */
int mq_option_find(
    struct mq_shared *, struct mq_server *, char *error, size_t error_size);
/* The same; ends the program if it cannot.  Returns the layout. */
const struct mq_layout *mq_option_server(
    struct mq_shared *, struct mq_server *);

/*
 * The name by which the layout, which has been found, knows the queue that the
 * user calls so: with its namespace in front, if the URL has one.  Ends with
 * exit 64 unless it can be the name of a queue.
 */
const char *mq_option_queue(
    struct mq_shared *, const struct mq_server *, const char *queue);

/* The same for operands, in place. */
void mq_option_queues(
    struct mq_shared *, const struct mq_server *, char *operands[], int count);

/* Ends with exit 64 if the layout, which is known now, lacks what an option that was
 * given needs. */
void mq_option_check(const struct mq_shared *);

/* Says that there is no such queue, and where there is one.  Waits. */
void mq_option_unknown(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* Says that a queue was made, whose name may have been mistyped: to a person, with -v,
 * or if there is a similar name; but not if a new one is meant.  Waits. */
void mq_option_made(
    const struct mq_shared *, struct mq_redis *, const char *queue);

/* Ends with exit 64 unless the layout has what an option needs (MQ_HAS_*). */
void mq_option_needs(
    const struct mq_shared *, const char *option, unsigned what);

/* The rights of --print-acl have to allow to put messages into that queue, too; NULL:
 * none. */
void mq_option_target(struct mq_shared *, const char *queue);

/*
 * With --print-acl, prints what a tool with its options (as of rights.h) needs for the
 * queues that are named, or for any queue, and exits.  For when all options are known.
 */
void mq_option_rights(
    struct mq_shared *, unsigned tool, char *operands[], int count);

#endif
