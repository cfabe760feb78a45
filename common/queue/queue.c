/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Functions that are the same for all layouts. */
#include "base/text.h"
#include "layout.h"

const double mq_bucket_s[MQ_BUCKETS - 1] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800};

char *
mq_layout_queue(const struct mq_layout *layout, const char *ns,
    const char *queue, const char **why)
{
	const char *colon = strrchr(queue, ':');

	*why = layout->queue_error(queue);
	if (*why != NULL)
		return NULL;
	if (layout->ns == NULL)
		return mq_xstrdup(queue);
	if (ns == NULL)
		ns = layout->ns;
	if (colon != NULL) {
		if (strlen(ns) != (size_t)(colon - queue) ||
		    memcmp(ns, queue, strlen(ns)) != 0) {
			*why = "not of the namespace that the URL names (ns=)";
			return NULL;
		}
		queue = colon + 1;
	}
	return strcmp(ns, layout->ns) == 0 ? mq_xstrdup(queue) :
					     mq_xasprintf("%s:%s", ns, queue);
}

int
mq_layout_fail(
    struct mq_redis *r, int status, const char *about, const char *why)
{
	r->status = status;
	snprintf(r->error, sizeof(r->error), "%s: %s", about, why);
	return -1;
}

const char *
mq_state_name(enum mq_state state)
{
	static const char *const names[MQ_STATES] = {[MQ_READY] = "ready",
	    [MQ_DELAYED] = "delayed",
	    [MQ_UNACKED] = "unacked",
	    [MQ_REJECTED] = "rejected"};

	return names[state];
}

int
mq_state_parse(const char *word, enum mq_state *state)
{
	for (*state = MQ_READY; *state < MQ_STATES; ++*state)
		if (strcmp(word, mq_state_name(*state)) == 0)
			return 0;
	return -1;
}

enum mq_key
mq_key_of(const char *key, size_t n)
{
	static const char *const ends[] = {[MQ_KEY_SETTINGS] = "settings",
	    [MQ_KEY_ALL_PAUSED] = "::paused",
	    [MQ_KEY_STOP] = "stop"};
	enum mq_key which = MQ_KEY_STOP;
	size_t len;

	for (; which != MQ_KEY_OTHER; which--) {
		len = strlen(ends[which]);
		if (n > len && memcmp(key + n - len, ends[which], len) == 0)
			break;
	}
	return which;
}

enum mq_published
mq_layout_published(const redisReply *reply, int i)
{
	/* In the order of the enum. */
	static const char letters[] = "adjfstur";
	const char *letter;

	/* The reply to a plain LPUSH. */
	if (reply->type == REDIS_REPLY_INTEGER)
		return MQ_PUBLISHED;
	if (reply->type != REDIS_REPLY_STRING || (size_t)i >= reply->len)
		return MQ_PUBLISHED_NONSENSE;
	letter = memchr(letters, reply->str[i], sizeof(letters) - 1);
	return letter != NULL ? (enum mq_published)(letter - letters) :
				MQ_PUBLISHED_NONSENSE;
}

struct mq_command *
mq_steps_add(struct mq_steps *steps)
{
	steps->list = mq_xreallocarray(
	    steps->list, (size_t)steps->n + 1, sizeof(*steps->list));
	steps->list[steps->n] = mq_redis_command(steps->redis);
	return &steps->list[steps->n++];
}

void
mq_steps_free(struct mq_steps *steps)
{
	while (steps->n > 0)
		mq_command_free(&steps->list[--steps->n]);
	free(steps->list);
	steps->list = NULL;
}

void
mq_command_add(struct mq_command *c, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	do {
		n = strcspn(fmt, " ");
		if (*fmt != '%')
			mq_command_arg(c, fmt, n);
		else if (fmt[1] == 's')
			mq_command_str(c, va_arg(ap, const char *));
		else if (fmt[1] == 'd')
			mq_command_int(c, va_arg(ap, int));
		else
			mq_command_int(c,
			    fmt[2] == 'd' ? va_arg(ap, long) :
					    va_arg(ap, long long));
		fmt += n;
	} while (*fmt++ != '\0');
	va_end(ap);
}

struct mq_arg
mq_bound(long long n)
{
	return n < 0 ? mq_str("") : mq_int(n);
}

const char *
mq_when_name(enum mq_when_kind kind)
{
	static const char *const names[] = {
	    [MQ_WHEN_NOW] = "now", [MQ_WHEN_IN] = "in", [MQ_WHEN_AT] = "at"};

	return names[kind];
}

const char *
mq_claim_why(enum mq_why why)
{
	static const char *const names[] = {[MQ_CLAIM_OWN] = "own",
	    [MQ_CLAIM_CALLED] = "called",
	    [MQ_CLAIM_LOOK] = "look"};

	return names[why];
}

const char *
mq_outcome_name(enum mq_outcome outcome)
{
	static const char *const verbs[] = {[MQ_OUTCOME_ACK] = "ack",
	    [MQ_OUTCOME_REJECT] = "reject",
	    [MQ_OUTCOME_FRONT] = "front",
	    [MQ_OUTCOME_AGAIN] = "again",
	    [MQ_OUTCOME_PUSH] = "push"};

	return verbs[outcome];
}

#define FACTS 4	   /* elements before the messages */
#define AGAIN (-2) /* in the place of due_ms */

int
mq_layout_claimed(const redisReply *reply, struct mq_claimed *out)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		return MQ_CLAIM_LOST;
	if (!mq_reply_is(reply, "####"))
		return MQ_CLAIM_BAD;
	*out = (struct mq_claimed){.due_ms = reply->element[0]->integer,
	    .again = reply->element[0]->integer == AGAIN,
	    .paused = reply->element[1]->integer & 1,
	    .role = (enum mq_role)(reply->element[1]->integer >> 2 & 3),
	    .now_ms = reply->element[2]->integer,
	    .tick = reply->element[3]->integer,
	    .missing = reply->element[3]->integer < 0};
	if (out->again)
		out->due_ms = 0;
	return (int)reply->elements - FACTS;
}

bool
mq_layout_obeys(
    const struct mq_layout *l, const struct mq_envelope *e, struct mq_buf *why)
{
	static const struct {
		const char *header;
		unsigned what;
	} asked[] = {{MQ_HEADER_KEY, MQ_HAS_KEYS},
	    {MQ_HEADER_GROUP, MQ_HAS_GROUPS},
	    {MQ_HEADER_FROM_TICK, MQ_HAS_TICKS},
	    {MQ_HEADER_UNTIL_TICK, MQ_HAS_TICKS},
	    {MQ_HEADER_BATCH, MQ_HAS_BATCHES},
	    {MQ_HEADER_AFTER, MQ_HAS_BATCHES}};
	const char *priority = mq_envelope_get(e, MQ_HEADER_PRIORITY);
	const char *to = mq_envelope_get(e, MQ_HEADER_TO);
	size_t i;

	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		if (l->has & asked[i].what ||
		    mq_envelope_get(e, asked[i].header) == NULL)
			continue;
		mq_buf_printf(
		    why, "the layout %s has no %s", l->name, asked[i].header);
		return false;
	}
	if (!(l->has & MQ_HAS_LOW_PRIORITY) && priority != NULL &&
	    *priority == '-') {
		mq_buf_addstr(why, "its priority is below 0");
		return false;
	}
	if (to != NULL && l->queue_error(to) != NULL) {
		mq_buf_printf(why, "Mq-To: %s", l->queue_error(to));
		return false;
	}
	return true;
}

/* For a constant lease, join() is answered by OK, renew() by 1 or 0. */
int64_t
mq_layout_lease(
    const struct mq_layout *layout, const redisReply *reply, bool cluster)
{
	bool number = reply->type == REDIS_REPLY_INTEGER;

	if (layout->lease_ms == 0)
		return number && reply->integer > 0 ? reply->integer : 0;
	if (number && reply->integer != 1)
		return 0;
	return cluster ? layout->queue_lease_ms : layout->lease_ms;
}

/* --- walks --------------------------------------------------------------------- */

void
mq_scan_free(struct mq_scan *scan)
{
	struct mq_walk *w = &scan->walk;

	mq_names_free(&w->held);
	freeReplyObject(w->connections);
	freeReplyObject(w->reply);
	mq_buf_free(&w->cursor);
	mq_buf_free(&w->anchor);
	mq_buf_free(&w->aside);
	free(scan->items);
	*scan = (struct mq_scan){0};
}

/* --- marks --------------------------------------------------------------------- */

void
mq_extra_marks(const struct mq_extra_keys *extra, struct mq_command *c,
    const char *queue, const char *publisher)
{
	char what[32 + MQ_ID_LEN];

	snprintf(what, sizeof(what), "%s%s", extra->publisher, publisher);
	extra->key(c, queue, what);
}

struct mq_arg
mq_marked(const struct mq_mark *m, long long n)
{
	return m->publisher == NULL ? mq_str("") : mq_int(n);
}

/* --- attachments --------------------------------------------------------------- */

#define ATTACH_NAME_LEN 255

const char *
mq_attach_name_error(const char *name)
{
	if (*name == '\0')
		return "a name must not be empty";
	if (strlen(name) > ATTACH_NAME_LEN)
		return "a name has at most 255 bytes";
	if (*name == '.')
		return "a name must not begin with a dot";
	if (strchr(name, '/') != NULL)
		return "a name must not contain a slash";
	return NULL;
}

int
mq_attach_refer(struct mq_redis *r, const struct mq_attachments *how,
    const char *set, const char *id)
{
	struct mq_command c = mq_redis_command(r);
	long long there;

	how->refer(&c, set, id, false);
	return mq_call_number(r, &c, &there);
}
