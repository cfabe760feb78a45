/*
 * Requests for duplicates (the verb dup).  A run asks for a duplicate of its
 * message in a queue, and reads the answer on its descriptor 4.  The requests of
 * a run are carried out one after the other, so that answers come in order.
 *
 * The module calls the publishing of common/queue and its own connections to
 * other servers.  The module never settles a message: the executor waits until
 * all requests of a message are answered.
 */
#ifndef MQ_CONSUME_REQUESTS_H
#define MQ_CONSUME_REQUESTS_H

#include <sys/queue.h>

#include <stdbool.h>

#include <ev.h>

#include "parts.h"
#include "process/process.h"

struct requests;
TAILQ_HEAD(request_list, request);
TAILQ_HEAD(requests_list, requests);

/* Shared by the requests of all runs. */
struct duplicates {
	/* Set by the caller. */
	struct ev_loop *loop;
	const struct mq_server *server;
	struct mq_children *children;
	bool verbose, quiet;
	struct request_context context; /* but for the remotes */
	/* Set by duplicates_init(). */
	struct remotes remotes;
	struct requests_list runs;
};

void duplicates_init(struct duplicates *);
/* The session is up again. */
void duplicates_resume(void *duplicates);
/* Drops all requests.  Replies may come until the connections are closed. */
void duplicates_free(struct duplicates *);

struct request_events {
	/* The last awaited request of a run is answered. */
	void (*answered)(void *arg);
	/* The requests are not full any more. */
	void (*room)(void *arg);
};

/* The requests of a slot, for one run after the other. */
struct requests {
	TAILQ_ENTRY(requests) link;
	struct duplicates *shared;
	const struct request_events *events;
	void *arg;
	struct mq_answers answers;
	struct request_list list; /* unanswered, in order */
	int count;
	bool awaited;
	ev_timer timer;
};

void requests_init(struct requests *, struct duplicates *,
    const struct request_events *, void *arg);
/* A run begins.  Returns the script's descriptor 4, which stays ours; -1 with
 * errno. */
int requests_open(struct requests *);
/* The run has ended: nobody reads answers.  alone: it has left no process behind. */
void requests_close(struct requests *, bool alone);

/* Adds a request.  wrong: why there can be no duplicate; NULL: nothing.  The message
 * may be NULL if something is wrong.  text: as of queue/dup.h; NULL: too long. */
void requests_ask(struct requests *, const struct message *, const char *wrong,
    const char *text);
/* Whether no more requests are to be read now. */
bool requests_full(const struct requests *);
/* Whether a request has no answer yet. */
bool requests_pending(const struct requests *);

/* A message has its final verb: answered() is called when no request is pending.
 * False: none is. */
bool requests_await(struct requests *);
/* The same at the end of a run; requests are given up after 10 s. */
bool requests_finish(struct requests *);
/* Whether answered() is to be called. */
bool requests_awaited(const struct requests *);
/* Gives up the awaited requests now. */
void requests_hurry(struct requests *);

#endif
