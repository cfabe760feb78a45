/*
 * Duplicates (the verb dup).  A run asks for a duplicate of its message in a queue, and
 * reads the answer on its descriptor 4.  The requests of a run are carried out one after
 * the other, so that answers come in order, on the connection of the session or on others
 * to other servers.  A message is settled when all its requests are answered.
 */
#ifndef MQ_CONSUME_DUPLICATES_H
#define MQ_CONSUME_DUPLICATES_H

#include "mq-consume/session/session.h"
#include "process/process.h"

/* Shared by the requests of all runs. */
struct duplicates {
	/* Set by the caller. */
	struct session *session; /* with our own server */
	const char *host;	 /* the name of this machine */
	TAILQ_HEAD(requests_list, requests) runs;
	TAILQ_HEAD(remote_list, remote) remotes;
	/* Not by the caller. */
	bool noted; /* what there is to know of a server has been said */
};

/* A server can be reached, or cannot any more. */
void duplicates_resume(struct duplicates *);
/* Drops all requests, and closes the connections to other servers.  Our own may still
 * reply. */
void duplicates_free(struct duplicates *);

/* The requests of a slot, for one run after the other. */
struct requests {
	TAILQ_ENTRY(requests) link;
	struct duplicates *shared;
	/* all: the last awaited request of a run is answered; else the requests are not
	 * full any more. */
	void (*answered)(void *arg, bool all);
	void *arg;
	struct mq_answers *answers;		/* the slot's */
	TAILQ_HEAD(request_list, request) list; /* unanswered, in order */
	/* Others read these two. */
	int count;    /* of list */
	bool awaited; /* answered() is to be called for the last one */
	ev_timer timer;
};

void requests_init(struct requests *, struct duplicates *, struct mq_answers *,
    void (*answered)(void *arg, bool all), void *arg);

/* Adds a request.  wrong: why there can be no duplicate; NULL: nothing.  The message
 * may be NULL if something is wrong.  text: as of queue/dup.h; NULL: too long. */
void requests_ask(struct requests *, const struct message *, const char *wrong,
    const char *text);
/* Whether no more requests are to be read now. */
bool requests_full(const struct requests *);

/* A message has its final verb: answered() is called when no request is pending.
 * False: none is.  If its run has ended, requests are given up after 10 s. */
bool requests_await(struct requests *, bool ended);
/* Gives up the awaited requests now. */
void requests_hurry(struct requests *);

#endif
