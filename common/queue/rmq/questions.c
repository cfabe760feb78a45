/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The rmq layout: questions about many queues or connections, and functions for cleaners. */
#include "rmq.h"

/* Bytes for any KEY. */
#define KEY_SIZE 32

void
rmq_ask(struct mq_command *c, const char *question, const char *name,
    const char *queue)
{
	const char *verb = question + strspn(question, "?!$"), *p;
	size_t len = strcspn(verb, " |"), n;
	bool full = *question == '!';
	char key[KEY_SIZE];

	mq_command_script(c,
	    full		 ? &mq_script_write_when_full :
		*question != '$' ? NULL :
		*verb == 'f'	 ? &rmq_script_fence :
		*verb == 'o'	 ? &rmq_script_orphan :
		*verb == 'p'	 ? &rmq_script_promote :
				   &rmq_script_unlist);
	if (c->script == NULL)
		mq_command_arg(c, verb, len);
	for (p = verb + len; *p == ' ' && p[2] == ':'; p += n + 1) {
		n = strcspn(p + 1, " |");
		strlcpy(key, p + 1, MIN(n + 1, sizeof(key)));
		/* Other keys of a scattered queue, which only Go programs use, are in
		 * other slots. */
		if (*key == 'Q' && p > verb + len && rmq_is_scattered(c, name))
			continue;
		if (*key == 'Q')
			rmq_key_queue(c, name, key + 2);
		else
			rmq_keys(c, name, queue, *key == 'B' ? key + 2 : key);
	}
	if (full)
		mq_command_arg(c, verb, len);
	for (; *p == ' '; p += n + 1) {
		n = strcspn(p + 1, " |");
		if (p[1] == '@')
			c->slot =
			    c->cluster ? mq_slot_of(name, strlen(name)) : -1;
		else if (p[1] == '%')
			mq_command_str(c, p[2] == 'n' ? name : queue);
		else
			mq_command_arg(c, p + 1, n);
	}
}

int
rmq_call_number(struct mq_redis *r, const char *question, const char *name,
    const char *queue, long long *n)
{
	struct mq_command c = mq_redis_command(r);

	rmq_ask(&c, question, name, queue);
	return mq_call_number(r, &c, n);
}

void
rmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *attributes, bool set)
{
	(void)attributes;
	(void)set;
	rmq_ask(c, "SADD A:" RMQ_QUEUES " %n", queue, NULL);
	c->optional = true;
}

int
rmq_call_names(struct mq_redis *r, const char *set, struct mq_names *names,
    struct mq_names *odd)
{
	redisReply *all = mq_call_members(r, set);

	if (all == NULL)
		return -1;
	mq_rows_list(names, all, odd);
	freeReplyObject(all);
	return 0;
}

/* --- keys that exist ----------------------------------------------------------- */

/*
 * Most of thousands of connections or queues may have no keys.  One EXISTS asks about many:
 * 5,000 connections take the server 3 ms, and more questions go only to those with keys.
 */

/* Keys in one EXISTS, which takes the server some 0.1 ms. */
#define KEYS_MAX 200

static void
ask_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct rmq_exists *look = arg;
	size_t at = i * look->together, end = at + look->together;

	mq_command_plain(c, "EXISTS");
	for (; at < end && at < look->n; at++)
		look->add(look->arg, look->item[at], c);
}

static int
store_found(void *arg, size_t i, redisReply *reply)
{
	const struct rmq_exists *look = arg;
	size_t at = i * look->together, end = at + look->together;

	for (; at < end && at < look->n; at++)
		look->keys[look->item[at]] =
		    reply->type != REDIS_REPLY_INTEGER ? RMQ_ANY :
		    reply->integer == 0		       ? RMQ_NONE :
							 RMQ_SOME;
	return 0;
}

int
rmq_exists(
    struct rmq_exists *look, enum rmq_found of, size_t n, size_t together)
{
	size_t i;
	int rv;

	look->item = mq_xcalloc(n + 1, sizeof(*look->item));
	look->n = 0;
	look->together = together;
	for (i = 0; i < n; i++)
		if (look->keys[i] == of)
			look->item[look->n++] = i;
	rv = mq_ask_each(look->r, (look->n + together - 1) / together, ask_keys,
	    store_found, look);
	free(look->item);
	return rv;
}

struct held {
	const char *const *queues;
	int count;
	bool cluster;
	redisReply **connection;
};

static void
add_held(void *arg, size_t i, struct mq_command *c)
{
	const struct held *h = arg;
	const char *connection = h->connection[i]->str;
	int k;

	for (k = 0; k < h->count; k++) {
		rmq_keys(c, connection, h->queues[k], "unacked consumers");
		if (h->cluster)
			rmq_keys(c, connection, h->queues[k],
			    "O:consumers O:unacked");
	}
}

int
rmq_keep_holders(struct mq_redis *r, const char *const *queues, int count,
    bool cluster, redisReply *connections)
{
	struct held h = {queues, count, cluster, connections->element};
	size_t n = connections->elements, kept = 0, i;
	struct rmq_exists look = {
	    .r = r, .add = add_held, .arg = &h, .keys = mq_xcalloc(n + 1, 1)};
	int rv = rmq_exists(&look, RMQ_ANY, n,
	    (size_t)(KEYS_MAX / (count * (cluster ? 4 : 2))));

	for (i = 0; i < n; i++)
		kept += look.keys[i] != RMQ_NONE;
	/* If few commands found keys, each of their connections is asked by itself. */
	if (rv == 0 && kept < n / 2)
		rv = rmq_exists(&look, RMQ_SOME, n, 1);
	for (kept = i = 0; i < n; i++)
		if (look.keys[i] == RMQ_NONE)
			freeReplyObject(h.connection[i]);
		else
			h.connection[kept++] = h.connection[i];
	connections->elements = kept;
	free(look.keys);
	return rv;
}

/* --- a round of cleaning -------------------------------------------------------- */

int
rmq_cleaner_listed(struct rmq_cleaner *w, const char *set,
    struct mq_names *names, bool *complete)
{
	redisReply *all;
	int rv = mq_round_members(&w->round, set, &all);

	if (all != NULL)
		mq_rows_list(names, all, NULL);
	if (complete != NULL)
		*complete &= all != NULL && names->n == all->elements;
	freeReplyObject(all);
	return rv;
}

struct questioning {
	struct rmq_cleaner *w;
	const struct mq_names *names;
	const char *questions;
	size_t n; /* questions about each name */
	long long *answers;
};

static const char *
question_of(const struct questioning *all, size_t i)
{
	const char *question = all->questions;

	for (i %= all->n; i > 0; i--)
		question = strchr(question, '|') + 1;
	return question;
}

static void
ask_question(void *arg, size_t i, struct mq_command *c)
{
	const struct questioning *all = arg;
	const struct mq_name *name = &all->names->list[i / all->n];

	rmq_ask(c, question_of(all, i), name->name, name->queue);
}

static int
parse_answer(void *arg, size_t i, redisReply *reply)
{
	struct questioning *all = arg;
	int64_t ms;

	if (reply->type == REDIS_REPLY_STRING)
		all->answers[i] = strtoll(reply->str, NULL, 10);
	else if (reply->type == REDIS_REPLY_STATUS)
		all->answers[i] = (unsigned char)*reply->str;
	else if (mq_reply_time(reply, &ms) == 0)
		all->answers[i] = ms;
	else if (reply->type == REDIS_REPLY_INTEGER)
		all->answers[i] = reply->integer;
	else if (*question_of(all, i) != '?')
		(void)mq_round_good(&all->w->round, reply, REDIS_REPLY_INTEGER);
	return 0;
}

int
rmq_cleaner_ask(struct rmq_cleaner *w, const struct mq_names *names,
    const char *questions, long long **answers)
{
	struct questioning all = {w, names, questions, 1, NULL};
	const char *p = questions;
	size_t i;

	while ((p = strchr(p, '|')) != NULL)
		all.n++, p++;
	all.answers = mq_xcalloc(all.n * names->n + 1, sizeof(*all.answers));
	for (i = 0; i < all.n * names->n; i++)
		all.answers[i] = RMQ_NO_ANSWER;
	*answers = all.answers;
	return mq_ask_each(
	    w->round.r, all.n * names->n, ask_question, parse_answer, &all);
}

int
rmq_cleaner_fields(struct rmq_cleaner *w, const char *queue, const char *what,
    int (*take)(void *arg, redisReply *some), void *arg)
{
	struct mq_command c = mq_redis_command(w->round.r);
	char cursor[MQ_CURSOR_SIZE] = "0";
	redisReply *reply, *some;
	int rv = 0;

	while (rv == 0 && *cursor != '\0') {
		mq_command_plain(&c, "HSCAN");
		rmq_key_queue(&c, queue, what);
		mq_command_add(&c, "%s COUNT %d", cursor, MQ_CURSOR_STEP);
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
		if (reply == NULL)
			break;
		some = mq_cursor_take(cursor, reply);
		if (some != NULL && mq_reply_is(some, ""))
			rv = take(arg, some);
		freeReplyObject(reply);
	}
	return rv;
}

void
rmq_cleaner_count(struct rmq_cleaner *w, const char *queue, long crashed,
    long rejected, long expired)
{
	size_t n = w->count_n;
	struct rmq_count *at;

	if (crashed == 0 && expired == 0)
		return;
	/* Most counts of a queue come one after the other. */
	if (n == 0 || strcmp(w->counts[n - 1].queue, queue) != 0) {
		w->counts =
		    mq_xreallocarray(w->counts, n + 1, sizeof(*w->counts));
		w->counts[w->count_n++] =
		    (struct rmq_count){.queue = mq_xstrdup(queue)};
	}
	at = &w->counts[w->count_n - 1];
	at->n.runs += crashed;
	at->n.crashed += crashed;
	at->n.failed += rejected + expired;
	at->n.expired += expired;
}
