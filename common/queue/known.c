#include "calls.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "layout.h"

/* Shorter names are all alike. */
#define SLIP_LETTERS 5

/* Questions: first whether each queue is known, then whether each can be used. */
struct looking {
	const struct mq_layout *layout;
	const struct mq_session *session;
	struct mq_known *out;
	const char **names; /* those to push to and to notify are the last */
	size_t queues;
	bool *answered;
};

static void
ask_queue(void *arg, size_t i, struct mq_command *c)
{
	const struct looking *l = arg;
	size_t queue = i % l->queues;

	if (i < l->queues)
		l->layout->known(c, l->names[queue], false);
	else
		l->layout->probe(c,
		    queue < (size_t)l->session->queue_count ? l->session : NULL,
		    l->names[queue], true);
}

static int
take_existence(void *arg, size_t i, redisReply *reply)
{
	struct looking *l = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	/* A queue that has keys exists, although the list lacks it. */
	l->out->there[i % l->queues] |= reply->integer != 0;
	l->answered[i] = true;
	return 0;
}

/* An error about the use of one queue is a result, and names it. */
static int
judge_use(struct mq_redis *r, const struct looking *l)
{
	size_t i, first = 0;

	if (mq_redis_lost(r))
		return -1;
	/* A name that could not be asked for has no error of its own. */
	while (first + 1 < 2 * l->queues &&
	    (l->answered[first] ||
		(first < l->queues &&
		    mq_queue_unlisted(r, l->layout, l->names[first]) != NULL)))
		first++;
	/* The error is about the use of this queue: none behind it counts as missing. */
	for (i = first; i < l->queues; i++)
		l->out->there[i] = true;
	l->out->status = r->status;
	snprintf(l->out->error, sizeof(l->out->error), "%s: %s",
	    l->names[first % l->queues], r->error);
	return 0;
}

int
mq_known_ask(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_session *s, struct mq_known *out)
{
	size_t n = (size_t)s->queue_count;
	const char **names = mq_xcalloc(n + 2, sizeof(*names));
	struct looking l = {layout, s, out, names, 0, NULL};
	struct mq_command ping = mq_redis_command(r);
	int rv;

	memcpy(names, s->queues, n * sizeof(*names));
	if (s->push != NULL)
		names[n++] = s->push;
	if (s->notify != NULL)
		names[n++] = s->notify;
	l.queues = n;
	l.answered = mq_xcalloc(2 * n, sizeof(bool));
	*out = (struct mq_known){.there = mq_xcalloc(n, sizeof(bool))};
	/* Waits while the server loads its data. */
	mq_command_plain(&ping, "PING");
	rv = mq_call_done(r, &ping);
	if (rv == 0 &&
	    mq_ask_all(r, 2 * n, ask_queue, take_existence, &l) == -1)
		rv = judge_use(r, &l);
	free(l.answered);
	free(names);
	return rv;
}

/* --- what was meant ------------------------------------------------------------ */

/* Whether the names differ by a letter that is more, less or another, or by two that
 * have changed places.  Digits count things. */
static bool
is_slip(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), same = 0;

	while (same < la && same < lb && a[same] == b[same])
		same++;
	a += same, la -= same;
	b += same, lb -= same;
	while (la > 0 && lb > 0 && a[la - 1] == b[lb - 1])
		la--, lb--;
	if (la == 2 && lb == 2)
		return a[0] == b[1] && a[1] == b[0] &&
		    !(isdigit((unsigned char)a[0]) &&
			isdigit((unsigned char)a[1]));
	return la <= 1 && lb <= 1 &&
	    ((la == 1 && !isdigit((unsigned char)*a)) ||
		(lb == 1 && !isdigit((unsigned char)*b)));
}

/* The first of the names that the queue could have been; allocated, or NULL. */
static char *
find_similar(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	const char *colon = layout->ns != NULL ? strrchr(queue, ':') : NULL;
	const char *own = colon != NULL ? colon + 1 : queue, *name;
	struct mq_command c = mq_redis_command(r);
	redisReply *reply, *names;
	char *found = NULL;
	size_t i;

	if (strlen(own) < SLIP_LETTERS) {
		mq_command_free(&c);
		return NULL;
	}
	mq_command_plain(&c, "SSCAN");
	layout->side->all(&c, queue, layout->side->names);
	mq_command_words(&c, "0 COUNT 1000");
	reply = mq_call(r, &c, -1);
	names =
	    reply != NULL && reply->elements == 2 ? reply->element[1] : NULL;
	for (i = 0; names != NULL && found == NULL && i < names->elements;
	     i++) {
		name = names->element[i]->str;
		if (name != NULL && layout->queue_error(name) == NULL &&
		    is_slip(own, name))
			found = mq_xstrdup(name);
	}
	freeReplyObject(reply);
	return found;
}

char *
mq_known_hint(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	const struct mq_layout *other =
	    layout == &mq_layout_rmq ? &mq_layout_rsmq : &mq_layout_rmq;
	bool known;
	char *similar, *hint;

	/* A user of the server has the rights for one layout, and not that for all
	 * names. */
	if (r->server->url.user != NULL)
		return mq_xstrdup("");
	/* A namespace would be that of the URL, or none. */
	if (strchr(queue, ':') == NULL && other->queue_error(queue) == NULL &&
	    mq_queue_known(r, other, queue, &known) == 0 && known)
		return mq_xasprintf("; the layout %s has a queue of that name "
				    "(-L %s)",
		    other->name, other->name);
	similar = find_similar(r, layout, queue);
	if (similar == NULL)
		return mq_xstrdup("");
	hint = mq_xasprintf("; did you mean %s?", similar);
	free(similar);
	return hint;
}
