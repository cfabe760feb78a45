/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "consumer.h"

#include "base/exit.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "layout.h"
#include "redis/connection.h"

const struct mq_answer *
mq_answer_to(const redisReply *reply, const char *form, struct mq_answer *a)
{
	if (reply == NULL)
		return NULL;
	*a = (struct mq_answer){0};
	if (reply->type == REDIS_REPLY_ERROR) {
		a->error = reply->str;
		a->status = mq_error_status(reply->str);
		a->missing = mq_reply_missing(reply);
	} else if (form != NULL &&
	    !(*form == ':' ? reply->type == REDIS_REPLY_INTEGER :
			     mq_reply_is(reply, form))) {
		a->error = "unexpected reply";
		a->status = MQ_EXIT_UNAVAILABLE;
	} else if (reply->type == REDIS_REPLY_INTEGER) {
		a->n = reply->integer;
	} else if (reply->type == REDIS_REPLY_STRING) {
		a->text = reply->str;
	}
	return a;
}

static void
receive_number(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;

	asker->fn(asker->arg, mq_answer_to(reply, ":", &buf));
}

static void
receive_answer(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;

	asker->fn(asker->arg, mq_answer_to(reply, NULL, &buf));
}

/* --- claims --------------------------------------------------------------------- */

/* Takes the memory of the last n elements, as messages may be large. */
static struct mq_element *
elements_new(const redisReply *list, int n)
{
	struct mq_element *elements =
	    mq_xcalloc((size_t)n + 1, sizeof(*elements));
	redisReply *one;
	int i;

	for (i = 0; i < n; i++) {
		one = list->element[(int)list->elements - n + i];
		elements[i] = (struct mq_element){one->str, one->len};
		one->str = NULL;
	}
	return elements;
}

static void
elements_free(struct mq_element *elements, int n)
{
	while (n > 0)
		free(elements[--n].data);
	free(elements);
}

static void
receive_claimed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_claimed claimed = {0};
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, NULL, &buf);
	int n = mq_answer_good(a) ? mq_layout_claimed(reply, &claimed) : 0;

	claimed.n = n;
	if (n > 0)
		claimed.elements = elements_new(reply, n);
	buf.claimed = &claimed;
	asker->fn(asker->arg, a);
	elements_free(claimed.elements, n);
}

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	const struct mq_extra_keys *extra = k->layout->extra;
	const char *name = k->session.queues[queue];

	/* CLIENT TRACKING reports changes of the keys of this EXISTS. */
	if (how->tracked) {
		mq_command_plain(&cmd, "EXISTS");
		extra->key(
		    &cmd, name, how->max == 0 ? "paused" : extra->watched);
		/* If the slot moves, the lease, which exists, is reported. */
		if (cmd.cluster && k->layout->has & MQ_HAS_NODES)
			extra->other(
			    &cmd, k->session.connection, name, "lease");
		cmd.tracked = true;
		mq_redis_post(k->redis, &cmd, NULL, NULL);
	}
	k->layout->claim(&k->session, queue, how, &cmd);
	mq_consumer_ask(k, &cmd, receive_claimed, fn, arg);
}

/* --- messages that the server holds ------------------------------------------- */

static bool
is_transaction(const redisReply *reply)
{
	return reply != NULL && reply->elements == 2 &&
	    reply->element[1]->type == REDIS_REPLY_ARRAY;
}

static void
receive_held(const struct mq_asker *asker, redisReply *reply)
{
	int first = !is_transaction(reply);
	const redisReply *list = first ? reply : reply->element[1], *received;
	struct mq_held held = {0};
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(list, first ? "*" : "", &buf);

	if (mq_answer_good(a)) {
		received = reply->element[0];
		held.received = received->type == REDIS_REPLY_STRING ?
		    mq_number(received->str, received->len, INT64_MAX) :
		    received->integer;
		held.n = (int)list->elements - first;
		held.elements = elements_new(list, held.n);
	}
	buf.held = &held;
	asker->fn(asker->arg, a);
	elements_free(held.elements, held.n);
}

/* Parses the reply to EXEC.  After an error, asks with a script: transactions may not be
 * permitted, or the queue may be moving to another node. */
static void
receive_transaction(const struct mq_asker *asker, redisReply *reply)
{
	const struct mq_consumer_queue *q = asker->of;
	struct mq_command cmd = mq_redis_command(q->of->redis);

	if (reply == NULL || is_transaction(reply)) {
		receive_held(asker, reply);
		return;
	}
	q->of->layout->held(
	    &q->of->session, (int)(q - q->of->queues), MQ_HELD_AT_ONCE, &cmd);
	mq_redis_ask(q->of->redis, &cmd, receive_held, asker);
}

/* Sends one command, or two as a transaction, all with the slot of the queue. */
void
mq_consumer_held(struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	struct mq_command end = mq_redis_command(k->redis);
	struct mq_command c[2] = {end, end};
	int slot;

	if (k->layout->held(&k->session, queue, MQ_HELD, c) == 1) {
		mq_consumer_ask(k, &c[0], receive_held, fn, arg);
		return;
	}
	slot = c[0].slot;
	mq_command_plain(&end, "MULTI");
	end.slot = slot;
	mq_redis_post(k->redis, &end, NULL, NULL);
	mq_redis_post(k->redis, &c[0], NULL, NULL);
	mq_redis_post(k->redis, &c[1], NULL, NULL);
	mq_command_plain(&end, "EXEC");
	end.slot = slot;
	mq_redis_ask(k->redis, &end, receive_transaction,
	    &(struct mq_asker){.fn = fn, .arg = arg, .of = &k->queues[queue]});
}

/* --- messages ----------------------------------------------------------------- */

/* Looks at queues under way; a cluster has a command for each queue. */
struct looks {
	mq_looked_fn *fn;
	void *arg;
	int n, missing;
	bool bad;
	long long *waiting;
};

static void
end_look(struct looks *all)
{
	if (--all->missing > 0)
		return;
	all->fn(
	    all->arg, all->bad ? NULL : all->waiting, all->bad ? 0 : all->n);
	free(all->waiting);
	free(all);
}

/* Stores the numbers of a reply; the asker's `of` points to the first. */
static void
store_looked(const struct mq_asker *asker, redisReply *reply)
{
	struct looks *all = asker->arg;
	long i, from = (const long long *)asker->of - all->waiting;
	struct mq_answer buf;

	if (!mq_answer_good(mq_answer_to(reply, NULL, &buf)))
		all->bad = true;
	else if (reply->type == REDIS_REPLY_INTEGER)
		all->waiting[0] += reply->integer;
	else
		for (i = 0; i < (long)reply->elements && from + i < all->n; i++)
			all->waiting[from + i] = reply->element[i]->integer;
	end_look(all);
}

void
mq_consumer_look(struct mq_consumer *k, const int *queues, int n,
    enum mq_look how, mq_looked_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	const struct mq_extra_keys *extra = k->layout->extra;
	int i, from, step = cmd.cluster ? 1 : n;
	struct looks *all = mq_xcalloc(1, sizeof(*all));
	bool any = how == MQ_LOOK_ANY;
	const char *name;

	*all = (struct looks){.fn = fn,
	    .arg = arg,
	    .n = n,
	    .missing = n / step + 1,
	    .waiting = mq_xcalloc((size_t)n, sizeof(*all->waiting))};
	for (from = 0; from < n; from += step) {
		if (mq_consumer_lacks(k, queues[from])) {
			all->missing--;
			continue;
		}
		if (any)
			mq_command_plain(&cmd, "EXISTS");
		else
			mq_command_script(&cmd, k->layout->look);
		for (i = from; i < from + step; i++) {
			name = k->session.queues[queues[i]];
			extra->key(&cmd, name,
			    any ? extra->claimable : extra->watched);
			if (!any)
				extra->key(&cmd, name, "watch idle");
		}
		if (!any) {
			mq_command_str(&cmd, k->session.wake);
			mq_command_int(&cmd, how == MQ_LOOK_CHECK);
		}
		mq_redis_ask(k->redis, &cmd, store_looked,
		    &(struct mq_asker){.arg = all, .of = all->waiting + from});
	}
	end_look(all);
}

void
mq_consumer_pass(struct mq_consumer *k, int queue)
{
	const struct mq_extra_keys *extra = k->layout->extra;
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_command_script(&cmd, &mq_script_pass);
	extra->key(&cmd, k->session.queues[queue], mq_command_keys(&cmd));
	MQ_COMMAND_ARGV(&cmd, mq_pass_argv, .name = mq_str(k->session.wake));
	mq_redis_post(k->redis, &cmd, NULL, NULL);
}

/* Parses a number; or an array of a number and a claimed message. */
static void
receive_settled(const struct mq_asker *asker, redisReply *reply)
{
	bool next = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
	struct mq_claimed claimed = {0};
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, next ? "#$" : ":", &buf);

	if (next && mq_answer_good(a)) {
		claimed.n = 1;
		claimed.elements = elements_new(reply, 1);
		buf.n = reply->element[0]->integer;
		buf.claimed = &claimed;
	}
	asker->fn(asker->arg, a);
	elements_free(claimed.elements, claimed.n);
}

void
mq_consumer_settle(struct mq_consumer *k, int queue,
    const struct mq_settlement *how, int n, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->settle(&k->session, queue, how, n, &cmd);
	mq_consumer_ask(k, &cmd, receive_settled, fn, arg);
}

void
mq_consumer_ack_oldest(struct mq_consumer *k, int queue,
    const struct mq_acks *acks, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->ack_oldest(&k->session, queue, acks, &cmd);
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

#define HOLDS_MANY 500 /* most keys of one command */

void
mq_consumer_count_held(struct mq_consumer *k, enum mq_held_how how,
    const int *queues, int n, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	int from, i, step = cmd.cluster ? 1 : HOLDS_MANY;

	for (from = 0; from < n; from += step) {
		if (how == MQ_HELD_KEY)
			mq_command_plain(&cmd, "EXISTS");
		for (i = from; i < n && i < from + step; i++)
			(void)k->layout->held(
			    &k->session, queues[i], how, &cmd);
		mq_consumer_ask(k, &cmd, receive_number, fn, arg);
	}
}

void
mq_consumer_take_over(struct mq_consumer *k, int queue, const char *from,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->take_over(&k->session, queue, from, &cmd);
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

void
mq_consumer_exists(struct mq_consumer *k, int queue, const char *element,
    size_t len, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->exists(&k->session, queue, element, len, &cmd);
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

void
mq_consumer_give_back(struct mq_consumer *k, int queue,
    const struct mq_newest *newest, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->give_back(&k->session, queue, newest, &cmd);
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

/* --- settings ------------------------------------------------------------------ */

static void
receive_settings(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_setting_texts texts = {{NULL}};
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, " *", &buf);

	if (mq_answer_good(a))
		mq_settings_read(reply, &texts);
	buf.settings = &texts;
	asker->fn(asker->arg, a);
	mq_setting_texts_free(&texts);
}

void
mq_consumer_settings(
    struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	struct mq_command c = mq_redis_command(k->redis);

	mq_settings_ask(k->layout, k->session.queues[queue], &c);
	c.tracked = k->session.wake != NULL;
	mq_consumer_ask(k, &c, receive_settings, fn, arg);
}

/* --- pauses and reports -------------------------------------------------------- */

void
mq_consumer_pause(struct mq_consumer *k, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_command_script(&cmd, &mq_script_pause);
	k->layout->extra->key(&cmd, queue, mq_command_keys(&cmd));
	MQ_COMMAND_ARGV(&cmd, mq_pause_argv, .ms = mq_int(ms));
	mq_consumer_ask(k, &cmd, receive_answer, fn, arg);
}

void
mq_consumer_ask_pause(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	const struct mq_extra_keys *extra = k->layout->extra;
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_command_plain(&cmd, "PTTL");
	extra->other(&cmd, NULL, k->session.queues[0], "all-paused");
	cmd.tracked = k->session.wake != NULL;
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

void
mq_consumer_count(struct mq_consumer *k, const char *queue,
    const struct mq_counts *counts, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_extra_count(k->layout->extra, &cmd, queue, counts);
	mq_consumer_ask(k, &cmd, receive_answer, fn, arg);
}

void
mq_consumer_tell_running(struct mq_consumer *k, const struct mq_buf *text,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->session.runs = text->len > 0;
	mq_command_plain(&cmd, text->len == 0 ? "DEL" : "SET");
	k->layout->extra->other(
	    &cmd, k->session.connection, k->session.queues[0], "runs");
	if (text->len > 0) {
		mq_command_arg(&cmd, text->data, text->len);
		mq_command_str(&cmd, "EX");
		mq_command_int(&cmd, MQ_RUNNING_S);
	}
	mq_consumer_ask(k, &cmd, receive_answer, fn, arg);
}

void
mq_consumer_keep_output(struct mq_consumer *k, const char *queue,
    const char *id, const char *first, const struct mq_part *parts, int n,
    int64_t keep_ms, mq_answer_fn *fn, void *arg)
{
	struct mq_command add = mq_redis_command(k->redis);
	struct mq_command expire = mq_redis_command(k->redis);
	int i;

	mq_command_plain(&add, "XADD");
	mq_extra_output(k->layout->extra, &add, queue, id);
	if (*first != '\0')
		mq_command_add(&add, "MINID = %s", first);
	mq_command_str(&add, "*");
	for (i = 0; i < n; i++)
		mq_command_arg(&add, parts[i].p, parts[i].n);
	mq_command_plain(&expire, "PEXPIRE");
	mq_extra_output(k->layout->extra, &expire, queue, id);
	mq_command_int(&expire, keep_ms);
	/* The node of a cluster may be away. */
	add.optional = expire.optional = true;
	mq_consumer_ask(k, &add, receive_answer, fn, arg);
	mq_redis_post(k->redis, &expire, NULL, NULL);
}

void
mq_consumer_ask_policy(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_command_plain(&cmd, "INFO memory");
	mq_consumer_ask(k, &cmd, receive_answer, fn, arg);
}

void
mq_consumer_look_for_stop(
    struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	mq_command_plain(&cmd, "GET");
	k->layout->extra->key(&cmd, k->session.queues[queue], "stop");
	mq_consumer_ask(k, &cmd, receive_answer, fn, arg);
}

#define ANSWER_MS 5000 /* life of an answer, for which tools look every 50 ms */

void
mq_consumer_tell_stop(struct mq_consumer *k, int queue, enum mq_stop answer,
    const struct mq_run *run)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	struct mq_run own = *run;

	own.connection = (char *)(uintptr_t)k->session.connection;
	own.queue = (char *)(uintptr_t)k->session.queues[queue];
	mq_extra_stop(k->layout->extra, &cmd, &own, answer, ANSWER_MS);
	mq_redis_post(k->redis, &cmd, NULL, NULL);
}

void
mq_consumer_compete(
    struct mq_consumer *k, int queue, int64_t ms, mq_answer_fn *fn, void *arg)
{
	const struct mq_session *s = &k->session;
	const struct mq_extra_keys *extra = k->layout->extra;
	struct mq_command cmd = mq_redis_command(k->redis);

	if (ms == 0)
		mq_command_plain(&cmd, "DEL");
	else
		mq_command_script(&cmd, &mq_script_compete);
	cmd.optional = queue == -1;
	if (queue == -1)
		extra->other(&cmd, NULL, s->queues[0], "all-cleaning");
	else
		extra->key(&cmd, s->queues[queue], "cleaning");
	if (ms == 0) {
		mq_redis_post(k->redis, &cmd, NULL, NULL);
		return;
	}
	if (!cmd.cluster)
		extra->other(&cmd, s->connection, s->queues[0], "lease");
	MQ_COMMAND_ARGV(&cmd, mq_compete_argv, .ms = mq_int(ms),
	    .name = mq_str(s->connection),
	    .former = s->former != NULL ? mq_str(s->former) : MQ_NO_ARG);
	mq_consumer_ask(k, &cmd, receive_number, fn, arg);
}

/* --- duplicates, at any server ------------------------------------------------- */

void
mq_ask_known(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(r);

	layout->known(&cmd, queue, false);
	mq_redis_ask(
	    r, &cmd, receive_number, &(struct mq_asker){.fn = fn, .arg = arg});
}

void
mq_ask_attach(struct mq_redis *r, const struct mq_layout *layout,
    const char *set, const char *id, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(r);

	layout->attachments->refer(&cmd, set, id, false);
	mq_redis_ask(
	    r, &cmd, receive_number, &(struct mq_asker){.fn = fn, .arg = arg});
}

static void
receive_published(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, NULL, &buf);

	if (mq_answer_good(a))
		buf.n = mq_layout_published(reply, 0);
	asker->fn(asker->arg, a);
}

void
mq_ask_publish(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_envelope *message,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(r);
	struct mq_buf header = {0};

	if (message->headers != NULL)
		mq_envelope_write_header(message, &header);
	layout->publish(&cmd, queue, how);
	layout->publish_add(
	    &cmd, how, id, &header, message->payload, message->payload_len);
	mq_buf_free(&header);
	mq_redis_ask(r, &cmd, receive_published,
	    &(struct mq_asker){.fn = fn, .arg = arg});
}
