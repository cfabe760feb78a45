/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "calls.h"

#include <ctype.h>

#include "base/exit.h"

const struct mq_layout *
mq_layout_find(const char *name)
{
	if (strcmp(mq_layout_rmq.name, name) == 0)
		return &mq_layout_rmq;
	return strcmp(mq_layout_rsmq.name, name) == 0 ? &mq_layout_rsmq : NULL;
}

enum mq_call
mq_call_once(struct mq_redis *r, struct mq_command *c, redisReply **out)
{
	redisReply *reply = NULL;
	enum mq_call result = MQ_CALL_DONE;

	if (mq_redis_send(r, c) == 0)
		reply = mq_redis_reply(r);
	mq_command_free(c);
	if (reply == NULL)
		return MQ_CALL_LOST;
	if (mq_redis_refused(r, reply))
		result = r->status == MQ_EXIT_AGAIN ? MQ_CALL_AGAIN :
						      MQ_CALL_REFUSED;
	if (out != NULL && result == MQ_CALL_DONE)
		*out = reply;
	else
		freeReplyObject(reply);
	return result;
}

/* Sends and frees a command; *answer: its reply is not 0. */
static int
call_for_answer(struct mq_redis *r, struct mq_command *c, bool *answer)
{
	long long n;

	if (mq_call_number(r, c, &n) == -1)
		return -1;
	*answer = n != 0;
	return 0;
}

const char *
mq_queue_unlisted(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	struct mq_command c = mq_redis_command(r);
	const char *why;

	layout->known(&c, queue, false);
	why = mq_partial_missed(r, &c);
	mq_command_free(&c);
	return why;
}

/* If the node with the list of queues is away, looks for any key of the queue. */
static int
look_for_traces(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, bool *there)
{
	struct mq_command c = mq_redis_command(r);

	if (!(layout->has & MQ_HAS_NODES) || mq_redis_lost(r) ||
	    mq_queue_unlisted(r, layout, queue) == NULL)
		return -1;
	layout->known(&c, queue, true);
	return call_for_answer(r, &c, there);
}

int
mq_queue_known(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, bool *known)
{
	struct mq_command c = mq_redis_command(r);
	const char *why;

	layout->known(&c, queue, false);
	if (call_for_answer(r, &c, known) == 0)
		return 0;
	if (look_for_traces(r, layout, queue, known) == -1)
		return -1;
	why = mq_queue_unlisted(r, layout, queue);
	return *known ? 0 : mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "%s", why);
}

int
mq_queue_make(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const struct mq_attributes *attributes,
    enum mq_making how, bool *made)
{
	struct mq_command c = mq_redis_command(r);

	if (how == MQ_MAKE_TO_PUT) {
		layout->probe(&c, NULL, queue, true);
		if (call_for_answer(r, &c, made) == -1)
			return -1;
	}
	layout->open(&c, queue, attributes, how == MQ_MAKE_SET);
	if (call_for_answer(r, &c, made) == 0)
		return 0;
	if (look_for_traces(r, layout, queue, made) == -1)
		return -1;
	*made = !*made;
	return 0;
}

int
mq_queue_attributes(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, struct mq_attributes *out)
{
	long *const to[] = {&out->vt_s, &out->delay_s, &out->maxsize};
	struct mq_command c = mq_redis_command(r);
	redisReply *reply;
	size_t i;

	*out = (struct mq_attributes)MQ_ATTRIBUTES_NONE;
	mq_command_plain(&c, "HMGET");
	layout->extra->key(&c, queue, layout->extra->exists);
	mq_command_words(&c, "vt delay maxsize");
	reply = mq_call(r, &c, REDIS_REPLY_ARRAY);
	if (reply == NULL)
		return -1;
	for (i = 0; i < 3 && i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING)
			*to[i] = strtol(reply->element[i]->str, NULL, 10);
	freeReplyObject(reply);
	return 0;
}

int
mq_queue_tick(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, int64_t tick, long long *now)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_script(&c, &mq_script_tick);
	layout->extra->key(&c, queue, mq_command_keys(&c));
	MQ_COMMAND_ARGV(&c, mq_tick_argv, .tick = mq_int(tick));
	return mq_call_number(r, &c, now);
}

const char *const mq_batch_words[MQ_BATCH_COUNTS] = {"total", "open", "done",
    "rejected", "expired", "purged", "pushed", "unknown"};

/* Starts a command with the key of a batch's counts. */
static struct mq_command
about_batch(struct mq_redis *r, const struct mq_layout *layout,
    const char *verb, const char *queue, const char *batch)
{
	struct mq_command c = mq_redis_command(r);
	char *word = mq_xasprintf("result::batch:%s", batch);

	mq_command_plain(&c, verb);
	layout->extra->key(&c, queue, word);
	free(word);
	return c;
}

/* Adds the counts of one batch. */
static int
add_batch(struct mq_redis *r, const struct mq_layout *layout, const char *queue,
    const char *batch, bool *known, long long counts[MQ_BATCH_COUNTS])
{
	struct mq_command c = about_batch(r, layout, "HMGET", queue, batch);
	redisReply *reply;
	size_t i;

	for (i = 0; i < MQ_BATCH_COUNTS; i++)
		mq_command_str(&c, mq_batch_words[i]);
	reply = mq_redis_answer(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	for (i = 0; i < reply->elements && i < MQ_BATCH_COUNTS; i++) {
		if (reply->element[i]->type != REDIS_REPLY_STRING)
			continue;
		counts[i] += strtoll(reply->element[i]->str, NULL, 10);
		*known |= i == MQ_BATCH_TOTAL;
	}
	freeReplyObject(reply);
	return 0;
}

int
mq_queue_batch(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *names, bool *known,
    long long counts[MQ_BATCH_COUNTS])
{
	char *list = mq_xstrdup(names), *rest = list, *name;
	int rv = 0;

	*known = false;
	memset(counts, 0, MQ_BATCH_COUNTS * sizeof(*counts));
	while (rv == 0 && (name = strsep(&rest, ",")) != NULL)
		rv = add_batch(r, layout, queue, name, known, counts);
	free(list);
	return rv;
}

int
mq_queue_open_batches(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, struct mq_names *out)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *reply, *open;
	char *name;
	size_t i;

	mq_command_plain(&c, "HSCAN");
	layout->extra->key(&c, queue, "locks");
	mq_command_words(&c, "0 MATCH m* COUNT 1000");
	reply = mq_call(r, &c, REDIS_REPLY_ARRAY);
	if (reply == NULL)
		return -1;
	open = reply->elements == 2 ? reply->element[1] : reply;
	/* A field, and its value "ID NAME US". */
	for (i = 1; i < open->elements; i += 2) {
		name = strchr(open->element[i]->str, ' ');
		if (name == NULL)
			continue;
		name[1 + strcspn(name + 1, " ")] = '\0';
		mq_names_add(out, name + 1, queue);
	}
	freeReplyObject(reply);
	mq_names_sort(out);
	return 0;
}

int
mq_queue_begin_batch(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *batch)
{
	struct mq_command c = about_batch(r, layout, "HINCRBY", queue, batch);
	long long n;

	mq_command_words(&c, "total 0");
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	/* As KEPT of rmq/lua/lib/batch.lua. */
	c = about_batch(r, layout, "PEXPIRE", queue, batch);
	mq_command_words(&c, "2592000000");
	return mq_call_number(r, &c, &n);
}

int
mq_queue_pause(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, bool all, int64_t ms, bool *was)
{
	const struct mq_extra_keys *extra = layout->extra;
	struct mq_command c = mq_redis_command(r);

	/* A queue may be paused because it has filled the memory. */
	if (ms == 0)
		mq_command_plain(&c, "DEL");
	else
		mq_command_script(&c, &mq_script_write_when_full);
	if (all)
		extra->other(&c, NULL, queue, "all-paused");
	else
		extra->key(&c, queue, "paused");
	if (ms == 0)
		return call_for_answer(r, &c, was);
	mq_command_words(&c, "SET 1");
	if (ms > 0)
		mq_command_add(&c, "PX %lld", (long long)ms);
	return mq_call_done(r, &c);
}

int
mq_queue_pause_left(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, long long *left)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, "PTTL");
	layout->extra->other(&c, NULL, queue, "all-paused");
	if (mq_call_number(r, &c, left) == 0)
		return 0;
	*left = -2;
	return mq_redis_lost(r) ? -1 : 0;
}

/*
 * Builds the question for a result: nil if there is none.  With block_ms, waits for it, by
 * rotating the list of one element, which leaves it as it is: any number of publishers can
 * wait.  Like every write, that is refused while memory is full.
 */
static void
ask_result(const struct mq_extra_keys *extra, struct mq_command *c,
    const char *queue, const char *id, int64_t block_ms)
{
	char key[32 + MQ_ID_LEN];

	snprintf(key, sizeof(key), "result::%s", id);
	mq_command_plain(c, block_ms > 0 ? "BLMOVE" : "LINDEX");
	extra->key(c, queue, key);
	if (block_ms == 0) {
		mq_command_int(c, 0);
		return;
	}
	extra->key(c, queue, key);
	mq_command_words(c, "LEFT LEFT");
	mq_command_fmt(c, "%.3f", (double)block_ms / 1000);
}

int
mq_queue_ending(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_stats *stats, const char *id, struct mq_ending *out,
    const char **queue)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_ending e;
	redisReply *reply;
	bool better;
	int i, rv = 0;

	*out = (struct mq_ending){0};
	*queue = NULL;
	for (i = 0; i < stats->count && rv == 0; i++) {
		ask_result(layout->extra, &c, stats->queues[i].name, id, 0);
		rv = mq_redis_append(r, &c);
	}
	mq_command_free(&c);
	if (rv == -1 || mq_redis_flush(r) == -1)
		return -1;
	for (i = 0; i < stats->count; i++) {
		reply = mq_redis_reply(r);
		if (reply == NULL)
			return -1;
		if (reply->type == REDIS_REPLY_STRING &&
		    mq_ending_read(reply->str, reply->len, &e) == 0) {
			better = *queue == NULL || out->state == MQ_END_PUSHED;
			mq_ending_free(better ? out : &e);
			if (better) {
				*out = e;
				*queue = stats->queues[i].name;
			}
		}
		freeReplyObject(reply);
	}
	return 0;
}

#define ANSWER_MS 10000 /* longest delay of a reply after block_ms */

enum mq_call
mq_ending_ask(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *id, int64_t block_ms, bool *ended,
    struct mq_ending *ending)
{
	struct mq_command c = mq_redis_command(r);
	int64_t usual_ms = r->patience_ms;
	redisReply *reply;
	enum mq_call result;

	*ended = false;
	ask_result(layout->extra, &c, queue, id, block_ms);
	r->patience_ms = block_ms + ANSWER_MS;
	result = mq_call_once(r, &c, &reply);
	r->patience_ms = usual_ms;
	if (result == MQ_CALL_REFUSED && r->status == MQ_EXIT_UNAVAILABLE)
		return MQ_CALL_AGAIN;
	if (result != MQ_CALL_DONE)
		return result;
	*ended = reply->type == REDIS_REPLY_STRING;
	if (*ended && mq_ending_read(reply->str, reply->len, ending) == -1)
		result = MQ_CALL_NONSENSE;
	freeReplyObject(reply);
	return result;
}

/* --- ends ---------------------------------------------------------------- */

#define TIME_LEN 13 /* digits of an end's time in ms, before the id */

/* A slice of a walk, and the members of the index that it has, each with its score. */
struct ends {
	const struct mq_layout *layout;
	struct mq_ended *walk;
	redisReply **members;
};

static void
ask_end(void *arg, size_t i, struct mq_command *c)
{
	const struct ends *s = arg;
	const redisReply *member = s->members[2 * i];

	ask_result(s->layout->extra, c, s->walk->queue,
	    member->len > TIME_LEN ? member->str + TIME_LEN : "", 0);
}

static int
store_end(void *arg, size_t i, redisReply *reply)
{
	const struct ends *s = arg;
	struct mq_ending *e = &s->walk->list[i];
	char time[TIME_LEN + 1];

	snprintf(time, sizeof(time), "%s", s->members[2 * i]->str);
	if (reply->type == REDIS_REPLY_STRING &&
	    mq_ending_read(reply->str, reply->len, e) == 0 &&
	    e->finished_ms != strtoll(time, NULL, 10)) {
		mq_ending_free(e);
		*e = (struct mq_ending){0};
	}
	return 0;
}

int
mq_ended_next(struct mq_redis *r, const struct mq_layout *layout,
    struct mq_ended *w, int max)
{
	struct mq_command c = mq_redis_command(r);
	struct ends s = {layout, w, NULL};
	redisReply *reply;
	int rv, i;

	mq_ended_free(w);
	if (w->score[0] == '\0')
		strlcpy(w->score, "+inf", sizeof(w->score));
	mq_command_plain(&c, "ZREVRANGEBYSCORE");
	layout->extra->key(&c, w->queue, "ended");
	mq_command_add(
	    &c, "%s -inf WITHSCORES LIMIT %ld %d", w->score, w->same, max);
	reply = mq_call(r, &c, REDIS_REPLY_ARRAY);
	if (reply == NULL)
		return -1;
	w->count = (int)(reply->elements / 2);
	w->end = w->count < max;
	w->list = mq_xcalloc((size_t)w->count + 1, sizeof(*w->list));
	s.members = reply->element;
	for (i = 0; i < w->count; i++, w->same++)
		if (strcmp(s.members[2 * i + 1]->str, w->score) != 0) {
			strlcpy(w->score, s.members[2 * i + 1]->str,
			    sizeof(w->score));
			w->same = 0;
		}
	rv = mq_ask_all(r, (size_t)w->count, ask_end, store_end, &s);
	freeReplyObject(reply);
	return rv;
}

void
mq_ended_free(struct mq_ended *w)
{
	int i;

	for (i = 0; i < w->count; i++)
		mq_ending_free(&w->list[i]);
	free(w->list);
	w->list = NULL;
	w->count = 0;
}

/* --- known --------------------------------------------------------------- */

#define TYPO_LETTERS 5 /* shorter names are too similar for a hint */

/* Questions: first whether each queue is listed, then whether each can be used. */
struct looking {
	struct mq_redis *r;
	const struct mq_layout *layout;
	const struct mq_session *session;
	struct mq_known *out;
	const char **names; /* queues, then push and notify */
	size_t queues;
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

/* Stores whether a queue exists.  The first refusal becomes the result, with the queue's
 * name. */
static int
store_existence(void *arg, size_t i, redisReply *reply)
{
	const struct looking *l = arg;
	struct mq_known *out = l->out;
	size_t queue = i % l->queues;

	if (out->status == 0 && reply->type == REDIS_REPLY_INTEGER) {
		/* A queue that has keys exists, although the list lacks it. */
		out->there[queue] |= reply->integer != 0;
		return 0;
	}
	if (out->status == 0 && mq_reply_missing(reply))
		return 0;
	/* After an error, queues count as existing. */
	out->there[queue] |= i < l->queues;
	if (out->status == 0) {
		if (!mq_redis_refused(l->r, reply))
			(void)mq_nonsense(l->r);
		out->status = l->r->status;
		snprintf(out->error, sizeof(out->error), "%s: %s",
		    l->names[queue], l->r->error);
	}
	if (!mq_reply_busy(reply))
		return 0;
	/* Later replies might take as long again. */
	for (; i < l->queues; i++)
		out->there[i] = true;
	return -1;
}

int
mq_known_ask(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_session *s, struct mq_known *out)
{
	size_t n = (size_t)s->queue_count;
	const char **names = mq_xcalloc(n + 2, sizeof(*names));
	struct looking l = {r, layout, s, out, names, 0};
	struct mq_command ping = mq_redis_command(r);
	int rv;

	memcpy(names, s->queues, n * sizeof(*names));
	if (s->push != NULL)
		names[n++] = s->push;
	if (s->notify != NULL)
		names[n++] = s->notify;
	l.queues = n;
	*out = (struct mq_known){.there = mq_xcalloc(n, sizeof(bool))};
	/* Waits while the server loads its data. */
	mq_command_plain(&ping, "PING");
	rv = mq_call_done(r, &ping);
	if (rv == 0)
		rv = mq_ask_each(r, 2 * n, ask_queue, store_existence, &l);
	if (rv == -1 && out->status != 0 && !mq_redis_lost(r))
		rv = 0;
	free(names);
	return rv;
}

/* --- hints --------------------------------------------------------------- */

/* Whether the names differ by one letter added, removed or changed, or by two swapped; but not
 * by a digit, as in job1 and job2. */
static bool
is_typo(const char *a, const char *b)
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

char *
mq_known_hint(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	const struct mq_layout *other =
	    layout == &mq_layout_rmq ? &mq_layout_rsmq : &mq_layout_rmq;
	const char *colon = layout->ns != NULL ? strrchr(queue, ':') : NULL;
	const char *own = colon != NULL ? colon + 1 : queue, *name;
	struct mq_command c = mq_redis_command(r);
	redisReply *reply, *names;
	char *hint = NULL;
	bool known;
	size_t i;

	/* A user with rights usually has them for one layout only. */
	if (r->server->url.user != NULL)
		return mq_xstrdup("");
	/* A name with a colon has a namespace, and belongs to its layout. */
	if (strchr(queue, ':') == NULL && other->queue_error(queue) == NULL &&
	    mq_queue_known(r, other, queue, &known) == 0 && known)
		return mq_xasprintf("; the layout %s has a queue of that name "
				    "(-L %s)",
		    other->name, other->name);
	if (strlen(own) < TYPO_LETTERS)
		return mq_xstrdup("");
	mq_command_plain(&c, "SSCAN");
	layout->extra->other(&c, NULL, queue, "names");
	mq_command_words(&c, "0 COUNT 1000");
	reply = mq_call(r, &c, -1);
	names =
	    reply != NULL && reply->elements == 2 ? reply->element[1] : NULL;
	for (i = 0; names != NULL && hint == NULL && i < names->elements; i++) {
		name = names->element[i]->str;
		if (name != NULL && layout->queue_error(name) == NULL &&
		    is_typo(own, name))
			hint = mq_xasprintf("; did you mean %s?", name);
	}
	freeReplyObject(reply);
	return hint != NULL ? hint : mq_xstrdup("");
}
