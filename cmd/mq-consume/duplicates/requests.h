/*
 * Requests for duplicates (the verb dup): a run asks for a duplicate of its message
 * in some queue, and waits for the answer on its descriptor 4.
 *
 * The requests of a run are carried out one after the other, so that the answers
 * come in order.  A message is not settled before all its requests are answered:
 * none is forgotten when the run ends at once.
 */
#ifndef MQ_CONSUME_REQUESTS_H
#define MQ_CONSUME_REQUESTS_H

#include <sys/queue.h>

#include <stdbool.h>

#include <ev.h>

#include "process/answers.h"
#include "remotes.h"
#include "request.h"

struct requests;
TAILQ_HEAD(request_list, request);
TAILQ_HEAD(requests_list, requests);

/* What the requests of all runs share. */
struct duplicates {
	/* The caller's. */
	struct ev_loop *loop;
	struct mq_children *children;
	bool verbose, quiet;
	struct request_context context; /* but for the remotes */
	/* The module's. */
	struct remotes remotes;
	struct requests_list runs;
};

/* After the caller's part is set. */
void duplicates_init(struct duplicates *);
/* Our own server can be reached again. */
void duplicates_resume(struct duplicates *);
/* Drops all requests; the replies to what was sent may come until the connections
 * are closed.  Zeroed, there are none. */
void duplicates_free(struct duplicates *);

struct request_events {
	/* The last request of a run that was awaited has its answer. */
	void (*answered)(void *arg);
	/* There are not too many requests any more. */
	void (*room)(void *arg);
};

/* Those of one run after the other. */
struct requests {
	TAILQ_ENTRY(requests) link;
	struct duplicates *shared;
	const struct request_events *events;
	void *arg;
	struct mq_answers answers;
	struct request_list list; /* without an answer, in order */
	int count;
	bool awaited;
	ev_timer timer;
};

void requests_init(struct requests *, struct duplicates *,
    const struct request_events *, void *arg);
/* A run begins; fd is our end of its descriptor 4, which is taken. */
void requests_begin(struct requests *, int fd);
/* The run has ended: nobody reads answers. */
void requests_close(struct requests *);

/* The text of a dup, as of dup.h, about a message, which may be NULL if there is
 * something wrong.  wrong: why there can be no duplicate; else NULL.  text: NULL if
 * it was too long. */
void requests_ask(struct requests *, const struct message *, const char *wrong,
    const char *text);
/* There are so many that no more are to be read. */
bool requests_full(const struct requests *);
/* Whether any has no answer yet. */
bool requests_pending(const struct requests *);

/* The run has had its say about the message: answered() is called when no request
 * is pending.  False: none is. */
bool requests_await(struct requests *);
/* The same at the end of a run, which keeps it waiting for a few seconds at most. */
bool requests_finish(struct requests *);
/* Whether answered() is to be called. */
bool requests_awaited(const struct requests *);
/* Those that are awaited are given up now. */
void requests_hurry(struct requests *);

#endif
