/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Duplicates (the verb dup).  A run requests a duplicate of its message in a queue, of this server
 * or another one, and reads the answer on its descriptor 4.  The requests of a run are carried
 * out one after the other, so that answers come in order.  A message is settled when all its
 * requests are answered.
 */
#ifndef MQ_CONSUME_DUPLICATES_H
#define MQ_CONSUME_DUPLICATES_H

#include "fact.h"
#include "queue/consumer.h"
#include "redis/server.h"

struct duplicates;
struct ev_loop;
struct mq_answers;
struct mq_children;

/* The pointers stay the caller's.  host: the name of this machine. */
struct duplicates *duplicates_new(struct ev_loop *, const struct options *,
    struct facts *, struct mq_consumer *, struct mq_server *,
    struct mq_children *, struct mq_idgen *, const char *host);
/* Drops all requests, and closes the connections to other servers.  Our own server may still
 * answer. */
void duplicates_free(struct duplicates *);
/* The connection to our own server is up, or down. */
void duplicates_up(struct duplicates *, bool up);

/* The requests of a slot, for one run after the other; freed with the duplicates. */
struct requests;
/* n: the slot, for FACT_ANSWERED. */
struct requests *requests_new(struct duplicates *, struct mq_answers *, int n);

/* Adds a request.  wrong: why there can be no duplicate, in which case the message may be NULL;
 * NULL: nothing is wrong.  text: as of queue/dup.h; NULL: too long. */
void requests_ask(struct requests *, const struct message *, const char *wrong,
    const char *text);
/* Whether no request is unanswered; or too many are, and no more are to be read now. */
bool requests_empty(const struct requests *);
bool requests_full(const struct requests *);

/* The message has its final verb: FACT_ANSWERED will tell when no request is pending.  False: none
 * is.  ended: the run is over, and requests are given up after 10 s. */
bool requests_await(struct requests *, bool ended);
/* Gives up awaited requests now. */
void requests_hurry(struct requests *);

#endif
