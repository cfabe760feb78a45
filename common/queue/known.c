#include "known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "calls.h"

/* Questions: first whether each queue is known, then whether each can be used. */
struct looking {
	const struct mq_layout *layout;
	const struct mq_session *session;
	struct mq_known *out;
	size_t queues; /* those to push to and to notify are the last */
	bool *answered;
};

/* The queue that question i is about. */
static size_t
queue_of(const struct looking *l, size_t i)
{
	return i < l->queues ? i : i - l->queues;
}

static const char *
name_of_queue(const struct looking *l, size_t i)
{
	i = queue_of(l, i);
	if (i < (size_t)l->session->queue_count)
		return l->session->queues[i];
	return i == (size_t)l->session->queue_count &&
		l->session->push != NULL ?
	    l->session->push :
	    l->session->notify;
}

static void
ask_queue(void *arg, size_t i, struct mq_command *c)
{
	const struct looking *l = arg;
	bool consumed = queue_of(l, i) < (size_t)l->session->queue_count;

	if (i < l->queues)
		l->layout->known(c, name_of_queue(l, i));
	else
		l->layout->probe(
		    c, consumed ? l->session : NULL, name_of_queue(l, i), true);
}

static int
take_existence(void *arg, size_t i, redisReply *reply)
{
	struct looking *l = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	/* A queue that has keys exists, although the list lacks it. */
	l->out->there[queue_of(l, i)] |= reply->integer != 0;
	l->answered[i] = true;
	return 0;
}

/* A name that could not be asked for has no error of its own. */
static bool
is_answered(struct mq_redis *r, const struct looking *l, size_t i)
{
	return l->answered[i] ||
	    (i < l->queues &&
		mq_queue_unlisted(r, l->layout, name_of_queue(l, i)) != NULL);
}

/* An error about the use of one queue is a result, and names it. */
static int
judge_use(struct mq_redis *r, const struct looking *l)
{
	size_t i, first = 0;

	if (mq_redis_lost(r))
		return -1;
	while (first + 1 < 2 * l->queues && is_answered(r, l, first))
		first++;
	/* The error is about the use of this queue: none behind it counts as missing. */
	for (i = first; i < l->queues; i++)
		l->out->there[i] = true;
	l->out->status = r->status;
	snprintf(l->out->error, sizeof(l->out->error), "%s: %s",
	    name_of_queue(l, first), r->error);
	return 0;
}

/* Waits while the server loads its data. */
static int
wait_for_server(struct mq_redis *r)
{
	struct mq_command ping = mq_redis_command(r);

	mq_command_plain(&ping, "PING");
	return mq_call_done(r, &ping);
}

int
mq_known_ask(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_session *s, struct mq_known *out)
{
	size_t n =
	    (size_t)s->queue_count + (s->push != NULL) + (s->notify != NULL);
	struct looking l = {layout, s, out, n, mq_xcalloc(2 * n, sizeof(bool))};
	int rv;

	*out = (struct mq_known){.there = mq_xcalloc(n, sizeof(bool))};
	rv = wait_for_server(r);
	if (rv == 0 &&
	    mq_ask_all(r, 2 * n, ask_queue, take_existence, &l) == -1)
		rv = judge_use(r, &l);
	free(l.answered);
	return rv;
}

static bool
is_known(struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	bool known;

	/* A namespace would be that of the URL, or none. */
	return strchr(queue, ':') == NULL &&
	    layout->queue_error(queue) == NULL &&
	    mq_queue_known(r, layout, queue, &known) == 0 && known;
}

const char *
mq_known_elsewhere(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	/* A user of the server has the rights for one layout. */
	if (r->server->url.user != NULL)
		return "";
	if (layout == &mq_layout_rmq)
		return is_known(r, &mq_layout_rsmq, queue) ?
		    "; the layout rsmq has a queue of that name (-L rsmq)" :
		    "";
	return is_known(r, &mq_layout_rmq, queue) ?
	    "; the layout rmq has a queue of that name (-L rmq)" :
	    "";
}
