/*
 * Duplicates (the verb dup).  A run asks for a duplicate of its message in a queue, and
 * reads the answer on its descriptor 4.  The requests of a run are carried out one after
 * the other, so that answers come in order, on the connection of the session or on others
 * to other servers.  A message is settled when all its requests are answered.
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
/* Drops all requests, and closes the connections to other servers.  Our own may still
 * reply. */
void duplicates_free(struct duplicates *);
/* Our own server can be reached, or cannot any more. */
void duplicates_up(struct duplicates *, bool up);

/* The requests of a slot, for one run after the other; freed with the duplicates. */
struct requests;
/* The answers go to that descriptor; FACT_ANSWERED names the slot n. */
struct requests *requests_new(struct duplicates *, struct mq_answers *, int n);

/* Adds a request.  wrong: why there can be no duplicate; NULL: nothing.  The message
 * may be NULL if something is wrong.  text: as of queue/dup.h; NULL: too long. */
void requests_ask(struct requests *, const struct message *, const char *wrong,
    const char *text);
/* Whether none is unanswered; or so many that no more are to be read now. */
bool requests_empty(const struct requests *);
bool requests_full(const struct requests *);

/* A message has its final verb: FACT_ANSWERED tells when no request is pending.
 * False: none is.  If its run has ended, requests are given up after 10 s. */
bool requests_await(struct requests *, bool ended);
/* Gives up the awaited requests now. */
void requests_hurry(struct requests *);

#endif
