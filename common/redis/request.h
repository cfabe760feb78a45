/* For async.c and links.c: a command under way. */
#ifndef MQ_REQUEST_H
#define MQ_REQUEST_H

#include "async.h"

struct mq_request {
	/* In a backlog, or in a list of links.c. */
	TAILQ_ENTRY(mq_request) link;
	struct mq_async *async;
	mq_async_take *take;
	struct mq_asker asker;
	struct mq_command command; /* until it is sent; a script until the
				    * server is known to have it; behind a
				    * route until the answer */
	struct mq_buf text;	   /* a script with its text, instead */
	size_t sent;
	bool tracked;
};
TAILQ_HEAD(mq_requests, mq_request);

/* Sends it to one server. */
void mq_request_send(struct mq_async *, struct mq_request *);
/* Its asker gets this reply, NULL: the connection is lost; and it is freed. */
void mq_request_answer(struct mq_request *, redisReply *);
/* It has no reply: its asker hears so, unless its route knows better. */
void mq_request_lose(struct mq_request *);

#endif
