/*
 * One request for a duplicate, from its text to its answer.  That takes two
 * commands: whether there is such a queue, and the publishing.
 */
#ifndef MQ_CONSUME_REQUEST_H
#define MQ_CONSUME_REQUEST_H

#include <sys/queue.h>

#include <stdbool.h>

#include "base/buf.h"
#include "base/id.h"
#include "copy.h"
#include "queue/dup.h"
#include "queue/queue.h"
#include "remotes.h"

struct message;

/* What all requests share. */
struct request_context {
	struct copy_origin origin;
	const char *ns; /* of our server's URL; NULL: none */
	struct mq_async *async;
	bool (*is_up)(void *arg); /* whether async can be used */
	void *arg;
	struct remotes *remotes;
};

struct request {
	TAILQ_ENTRY(request) link; /* the owner's */
	const struct request_context *context;
	const struct message *m;
	void (*moved)(void *arg); /* NULL: freed, but for a reply */
	void *arg;
	struct mq_dup what;
	struct mq_buf answer; /* empty: none yet */
	enum {
		REQUEST_WAITING, /* for its turn, or for the server */
		REQUEST_ASKED,	 /* whether there is such a queue */
		REQUEST_SENT
	} step;
	bool in_flight;
	struct remote *remote;		/* NULL: our own server */
	const struct mq_layout *layout; /* of that queue; NULL: not found yet */
	char id[MQ_ID_LEN + 1];		/* of the duplicate, when SENT */
};

/*
 * text: as of dup.h; NULL: it was too long.  wrong: why there can be no duplicate,
 * whatever it says; else NULL.  moved() is called when a reply has come: the
 * request is to be advanced then.
 */
struct request *request_new(const struct request_context *,
    const struct message *, const char *wrong, const char *text,
    void (*moved)(void *arg), void *arg);
/* Whatever the reply to what was sent, it does not matter. */
void request_free(struct request *);

/* Does what can be done now.  Returns the answer, "ok ID" or "fail WHY", which is
 * valid until the request is freed; NULL: the request is under way, or waits. */
const char *request_advance(struct request *);
/* Waits no more: the answer says so. */
void request_give_up(struct request *);

#endif
