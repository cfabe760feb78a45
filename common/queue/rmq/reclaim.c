/*
 * The rmq layout: taking dead connections apart, many at a time.
 *
 * A crash, or an error, anywhere in here leaves a connection listed as long as
 * it has a queue, and a queue as long as it has a message there.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"
#include "message/result.h"
#include "rmq.h"

/* --- dead_queue ---------------------------------------------------------- */

/* Bytes of headers in one reply; it has one in any case. */
#define SHOW_BYTES 16384
/* The most that one step returns, as in reclaim_dead.lua.  That many go back in one step
 * with those that may have been running: a consumer that waits finds the
 * latter in front, and knows that another one has died. */
#define STEP 500
/* The numbers before the headers in a reply. */
enum { MOVED, BACK, OUT, LEFT, UNLISTED, FIRST };
/* How many are left when the queue has keys in the form for a cluster. */
#define CLUSTER (-2)

static long
at_most(long n, long max)
{
	return n < max ? n : max;
}

static long
shown(const struct rmq_dead_queue *q)
{
	if (q->shown == NULL)
		return 0;
	return at_most((long)q->shown->elements - FIRST, RMQ_HEADERS);
}

/* What the queue hears that its consumer notified. */
struct notice {
	char id[MQ_ID_LEN + 1];
	struct mq_buf element; /* empty: nothing */
};

static void
write_notice(const struct rmq_dead_queue *q, const struct mq_envelope *e,
    long attempt, struct notice *out)
{
	const char *id = mq_message_id(e);
	struct mq_ending end = {.queue = q->queue,
	    .state = MQ_END_REJECTED,
	    .text = mq_envelope_get(e, MQ_HEADER_ERROR),
	    .status = -1,
	    .attempts = attempt,
	    .host = q->owner->host,
	    .finished_ms = mq_clock_unix_us() / 1000};
	struct mq_buf text = {0};

	if (mq_envelope_get(e, MQ_HEADER_NOTICE) != NULL)
		return;
	if (id != NULL)
		strlcpy(end.id, id, sizeof(end.id));
	mq_ending_write(&end, &text);
	mq_notice_write(out->id, q->queue, &text, &out->element);
	mq_buf_free(&text);
}

static void
add_notice(struct mq_command *c, const struct rmq_dead_queue *q,
    const struct notice *notice)
{
	const char *to = q->notify;

	if (rmq_transfer_needed(c, q->queue, to))
		rmq_transfer_field(c, notice->id, "push", to);
	else
		mq_command_str(c, "");
	mq_command_arg(c, notice->element.data, notice->element.len);
}

/*
 * A message that may have been running when its consumer died has had one run more:
 * appends its new header.  One with a bad header goes back as it is, and the consumer
 * that claims it next rejects it.
 */
static enum rmq_crash
count_crash(const redisReply *header, const struct rmq_dead_queue *q,
    struct mq_buf *out, struct notice *notice)
{
	const struct rmq_dead *d = q->owner;
	struct mq_envelope e;
	const char *why;
	long attempt;
	bool last;

	if (header->len == 1 ||
	    mq_envelope_parse(header->str, header->len, &e, &why) == -1) {
		mq_buf_add(out, header->str, header->len);
		return RMQ_CRASH_NONE;
	}
	attempt = mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0) + 1;
	last = attempt >= q->attempts;
	mq_history_crash(&e, attempt, last, d->host);
	mq_envelope_write_header(&e, out);
	if (last && q->notify != NULL)
		write_notice(q, &e, attempt, notice);
	mq_envelope_free(&e);
	return last ? RMQ_CRASH_REJECT : RMQ_CRASH_BACK;
}

/* Adds the fate of the messages that were shown. */
static void
add_crashes(struct rmq_dead_queue *q, struct mq_command *c)
{
	struct mq_buf header = {0};
	struct notice notice = {.id = ""};
	struct mq_idgen ids = {0};
	const redisReply *old;
	long i, n = shown(q);

	for (i = 0; i < n; i++) {
		old = q->shown->element[FIRST + i];
		mq_buf_clear(&header);
		mq_buf_clear(&notice.element);
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), notice.id);
		q->crashes[i] = count_crash(old, q, &header, &notice);
		mq_command_arg(c, old->str, old->len);
		mq_command_arg(c, header.data, header.len);
		mq_command_str(c,
		    q->crashes[i] == RMQ_CRASH_REJECT ? "rejected" : "ready");
		if (q->notify != NULL)
			add_notice(c, q, &notice);
	}
	mq_buf_free(&header);
	mq_buf_free(&notice.element);
}

/* How many messages are kept: until headers are shown, more than may have been running. */
static long
kept(const struct rmq_dead_queue *q)
{
	long slots = q->owner->slots;

	return slots > 0 && shown(q) == 0 ? slots + STEP : slots;
}

/* On a cluster, which has no keys of the other form, the connection stays listed; see
 * reclaim.c. */
static void
add_connection_keys(struct mq_command *c, const struct rmq_dead_queue *q)
{
	const char *connection = q->owner->connection;

	rmq_key_both(c, connection, q->queue, "unacked");
	rmq_key_lease(c, connection, q->queue);
	rmq_key_both(c, connection, q->queue, "consumers");
	rmq_key_own(c, connection, q->queue, "queues");
	if (c->cluster) {
		rmq_key_queue(c, q->queue, "none");
		rmq_key_queue(c, q->queue, "none");
	} else {
		rmq_key_both_other(c, connection, q->queue, "consumers");
		rmq_key_both_other(c, connection, q->queue, "unacked");
	}
	if (q->owner->ours) {
		rmq_key_info(c, connection, q->queue);
		rmq_key_own(c, connection, q->queue, "running");
	}
}

static bool
is_sound(struct rmq_cleaner *w, const redisReply *reply)
{
	size_t i;

	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY))
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
		    (i < FIRST ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return mq_round_nonsense(&w->round);
	return i >= FIRST || mq_round_nonsense(&w->round);
}

/* Counts the first n of the messages that were shown. */
static void
count_crashes(struct rmq_cleaner *w, const struct rmq_dead_queue *q, long n)
{
	long i, crashed = 0, rejected = 0;

	for (i = 0; i < n; i++) {
		crashed += q->crashes[i] != RMQ_CRASH_NONE;
		rejected += q->crashes[i] == RMQ_CRASH_REJECT;
	}
	w->out->rejected += rejected;
	w->out->returned += n - rejected;
	rmq_cleaner_count(w, q->queue, crashed, rejected, 0);
}

static void
count_reply(
    struct rmq_cleaner *w, struct rmq_dead_queue *q, const redisReply *reply)
{
	long moved = (long)reply->element[MOVED]->integer;
	long settled = (long)(reply->element[BACK]->integer +
	    reply->element[OUT]->integer);
	long left = (long)reply->element[LEFT]->integer;

	if (w->how->dry_run) {
		if (q->shown == NULL && left > q->owner->slots)
			moved = left - q->owner->slots;
		settled = shown(q);
		left = at_most(left, q->owner->slots) - q->at;
	}
	if (reply->element[UNLISTED]->integer > 0) {
		w->out->connections++;
		q->owner->closed = true;
	}
	w->out->returned += moved;
	count_crashes(w, q, at_most(settled, shown(q)));
	q->left = left;
}

/* Its messages are not ours to return: leaves it to Go programs. */
static void
leave_alone(struct rmq_cleaner *w, struct rmq_dead_queue *q)
{
	struct rmq_dead *d = q->owner;

	if (!d->cluster && w->how->cluster != NULL)
		mq_names_add(w->how->cluster, d->connection, NULL);
	d->cluster = d->failed = true;
	q->left = 0;
}

/* Takes its reply, and keeps it.  The fate of the messages is known only if the reply is
 * sound. */
static void
take_reply(struct rmq_cleaner *w, struct rmq_dead_queue *q, redisReply *reply)
{
	if (!is_sound(w, reply)) {
		q->owner->failed = true;
		q->left = 0;
		freeReplyObject(reply);
		return;
	}
	if (reply->element[LEFT]->integer == CLUSTER) {
		leave_alone(w, q);
	} else if (reply->element[LEFT]->integer < 0) {
		/* The connection lives again. */
		q->owner->failed = true;
		q->left = 0;
	} else {
		count_reply(w, q, reply);
	}
	freeReplyObject(q->shown);
	q->shown = reply;
}

/* --- reclaim ------------------------------------------------------------- */

/* How many connections are dealt with at a time; how many of them share a step, which
 * takes the server a millisecond or two; and how many steps other clients wait for. */
#define MANY	 500
#define TOGETHER 50
#define FEW	 2

struct step {
	struct rmq_dead_queue *list[TOGETHER];
	size_t n;
};

/* Dead connections and their queues. */
struct reclaim {
	struct rmq_cleaner *w;
	struct rmq_dead *dead;
	struct rmq_dead_queue *queues; /* sorted, once all are there */
	size_t dead_n, queue_n, queue_cap;
	struct rmq_dead_queue **running; /* see list_running() */
	size_t running_n;
	struct step steps[FEW];
	size_t n;
};

static void
add_queue(struct reclaim *all, struct rmq_dead *d, const char *queue)
{
	struct rmq_cleaner *w = all->w;

	if (all->queue_n == all->queue_cap) {
		all->queue_cap =
		    all->queue_cap == 0 ? MANY : all->queue_cap * 2;
		all->queues = mq_xreallocarray(
		    all->queues, all->queue_cap, sizeof(*all->queues));
	}
	all->queues[all->queue_n++] = (struct rmq_dead_queue){
	    .owner = d, .queue = queue, .left = LONG_MAX};
	if (w->how->all && w->how->dry_run)
		mq_names_add(&w->known, queue, NULL);
}

static void
add_queues(struct reclaim *all, struct rmq_dead *d)
{
	const redisReply *queue;
	size_t i;

	for (i = 0; i < d->queues->elements; i++) {
		queue = d->queues->element[i];
		/* No key can be made of a name with a NUL in it here. */
		if (queue->type == REDIS_REPLY_STRING &&
		    strlen(queue->str) == queue->len)
			add_queue(all, d, queue->str);
		else
			d->failed = true;
	}
}

static long
number_of(const redisReply *text)
{
	return text->type == REDIS_REPLY_STRING ? strtol(text->str, NULL, 10) :
						  0;
}

/* A queue that others can be told to notify; NULL: none. */
static const char *
queue_in(const redisReply *text)
{
	return text->type == REDIS_REPLY_STRING &&
		strlen(text->str) == text->len &&
		rmq_queue_error(text->str) == NULL ?
	    text->str :
	    NULL;
}

static bool
read_info(struct rmq_cleaner *w, struct rmq_dead *d)
{
	const redisReply *slots, *host;
	long limit;

	if (d->info->elements != 4)
		return mq_round_nonsense(&w->round);
	slots = d->info->element[0];
	host = d->info->element[1];
	limit = number_of(d->info->element[2]);
	d->notify = queue_in(d->info->element[3]);
	d->slots = number_of(slots);
	/* The second half of LONG_MAX is for sums. */
	if (d->slots < 0 || d->slots > INT_MAX)
		d->slots = 0;
	if (host->type == REDIS_REPLY_STRING)
		d->host = host->str;
	d->attempts = limit > 0 && limit <= MQ_ATTEMPTS_MAX ? (int)limit : 0;
	/* Messages of a lapsed connection may have run, but none crashed. */
	if (mq_names_have(&w->lapsed, d->connection))
		d->slots = 0;
	d->ours = slots->type == REDIS_REPLY_STRING || d->host != NULL;
	return true;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const char *connection = all->dead[i / 2].connection;

	if (i % 2 == 1) {
		mq_command_plain(c, "SMEMBERS");
		rmq_key_connection(c, connection, "queues");
		return;
	}
	mq_command_plain(c, "HMGET");
	rmq_key_connection(c, connection, "info");
	mq_command_words(c, "slots host attempts notify");
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;
	struct rmq_dead *d = &all->dead[i / 2];

	*(i % 2 == 1 ? &d->queues : &d->info) = reply;
	return MQ_KEEP;
}

/* Whether the i-th name is of another connection than the one before. */
static bool
is_another(const struct mq_name *dead, size_t i)
{
	return i == 0 || strcmp(dead[i].name, dead[i - 1].name) != 0;
}

static int
ask_dead(struct reclaim *all, const struct mq_name *dead, size_t n)
{
	size_t i;

	all->dead = mq_xcalloc(n, sizeof(*all->dead));
	for (i = 0; i < n; i++)
		if (is_another(dead, i))
			all->dead[all->dead_n++].connection = dead[i].name;
	return mq_ask_each(
	    all->w->round.r, 2 * all->dead_n, ask_about, take_about, all);
}

static bool
is_readable(struct rmq_cleaner *w, struct rmq_dead *d)
{
	return mq_round_good(&w->round, d->info, REDIS_REPLY_ARRAY) &&
	    mq_round_good(&w->round, d->queues, REDIS_REPLY_ARRAY) &&
	    read_info(w, d);
}

/* By name, and those of a queue in the order of their connections. */
static int
by_queue(const void *a, const void *b)
{
	const struct rmq_dead_queue *x = a, *y = b;
	int rv = strcmp(x->queue, y->queue);

	return rv != 0 ? rv : (x->owner > y->owner) - (x->owner < y->owner);
}

static void
find_queues(struct reclaim *all, const struct mq_name *dead, size_t n)
{
	struct rmq_dead *d = all->dead;
	size_t i;

	for (i = 0; i < n; i++) {
		if (is_another(dead, i)) {
			d += i > 0;
			d->failed = !is_readable(all->w, d);
		}
		if (d->failed)
			continue;
		if (dead[i].queue != NULL && all->w->how->dry_run)
			add_queue(all, d, dead[i].queue);
		else if (is_another(dead, i))
			add_queues(all, d);
	}
	if (all->queue_n > 0)
		qsort(
		    all->queues, all->queue_n, sizeof(*all->queues), by_queue);
}

static bool
is_same_queue(const struct rmq_dead_queue *a, const struct rmq_dead_queue *b)
{
	return strcmp(a->queue, b->queue) == 0;
}

/* The settings are for what may have been running: once for each queue. */
static void
list_running(struct reclaim *all)
{
	struct rmq_dead_queue *q;

	all->running = mq_xcalloc(all->queue_n + 1, sizeof(*all->running));
	for (q = all->queues; q < all->queues + all->queue_n; q++)
		if (q->owner->slots > 0 &&
		    (all->running_n == 0 ||
			!is_same_queue(all->running[all->running_n - 1], q)))
			all->running[all->running_n++] = q;
}

static void
ask_settings(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;

	mq_command_plain(c, "HMGET");
	rmq_key_queue(c, all->running[i]->queue, "settings");
	mq_command_words(c, "attempts notify");
}

/* What the consumer itself did not say is as the settings of the queue are now. */
static int
take_settings(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct rmq_dead_queue *first = all->running[i], *q = first;
	redisReply *const *e = reply->element;
	bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
	const char *notify = good ? queue_in(e[1]) : NULL;
	long limit = good ? number_of(e[0]) : 0;

	first->settings = reply;
	if (limit <= 0 || limit > MQ_ATTEMPTS_MAX)
		limit = all->w->how->limit;
	for (; q < all->queues + all->queue_n && is_same_queue(first, q); q++) {
		if (q->owner->slots == 0)
			continue;
		q->notify =
		    q->owner->notify != NULL ? q->owner->notify : notify;
		q->attempts =
		    q->owner->attempts > 0 ? q->owner->attempts : (int)limit;
	}
	return MQ_KEEP;
}

/*
 * On a cluster, where no script could look: whether a queue has keys in the other form,
 * or messages that lie in several slots.
 */
static void
ask_others(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const struct rmq_dead_queue *q = &all->queues[i / 2];
	const char *connection = q->owner->connection;

	mq_command_plain(c, "EXISTS");
	if (i % 2 == 1)
		rmq_key_both_other(c, connection, q->queue, "unacked");
	else if (rmq_is_scattered(c, q->queue))
		rmq_key_both(c, connection, q->queue, "unacked");
	else
		rmq_key_both_other(c, connection, q->queue, "consumers");
}

static int
take_others(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct rmq_cleaner *w = all->w;
	const struct mq_command c = mq_redis_command(w->round.r);
	struct rmq_dead_queue *q = &all->queues[i / 2];

	/* What is in our form goes back, although the connection may have more. */
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_INTEGER))
		q->owner->failed = true;
	else if (reply->integer > 0)
		leave_alone(w, q);
	if (rmq_is_scattered(&c, q->queue)) {
		q->left = 0;
		rmq_cleaner_scattered(w, q->queue);
	}
	return 0;
}

/* They differ in nothing but their connections. */
static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const struct step *s = &all->steps[i];
	struct rmq_dead_queue *q = s->list[0];
	size_t j;

	mq_command_script(c, &rmq_script_reclaim_dead);
	rmq_queue_keys(c, q->queue);
	rmq_key_queue(c, q->queue, "rejected");
	rmq_key_queues(c, q->queue);
	if (c->cluster)
		rmq_key_queue(c, q->queue, "none");
	else
		rmq_key_all(c, RMQ_CONNECTIONS);
	for (j = 0; j < s->n; j++)
		add_connection_keys(c, s->list[j]);
	if (shown(q) > 0 && q->notify != NULL)
		rmq_key_notice(c, q->queue, q->notify);
	mq_command_str(c, q->queue);
	mq_command_int(c, SHOW_BYTES);
	if (all->w->how->dry_run)
		mq_command_int(c, q->at);
	else
		mq_command_str(c, "");
	mq_command_int(c, (long long)s->n);
	for (j = 0; j < s->n; j++) {
		mq_command_str(c, s->list[j]->owner->connection);
		mq_command_int(c, s->list[j]->owner->slots);
		mq_command_int(c, kept(s->list[j]));
	}
	add_crashes(q, c);
}

/* A step of several is refused for the keys of one, and nothing is done: each is asked
 * again alone.  Those behind the last answer have their turn in the next step. */
static int
take_step(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;
	struct step *s = &all->steps[i];
	bool sound = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	    reply->elements <= s->n;
	size_t j;

	if (!sound && s->n == 1) {
		take_reply(all->w, s->list[0], reply);
		return MQ_KEEP;
	}
	for (j = 0; !sound && j < s->n; j++)
		s->list[j]->alone = true;
	for (j = 0; sound && j < reply->elements; j++) {
		take_reply(all->w, s->list[j], reply->element[j]);
		reply->element[j] = NULL;
	}
	return 0;
}

/* With headers, each has its own step. */
static bool
is_same_step(const struct rmq_dead_queue *a, const struct rmq_dead_queue *b)
{
	return shown(a) == 0 && shown(b) == 0 && !a->alone && !b->alone &&
	    a->owner->ours == b->owner->ours && is_same_queue(a, b);
}

/* Fills a step with those that need one; returns where the next one begins to look. */
static struct rmq_dead_queue *
fill_step(struct reclaim *all, struct step *s, struct rmq_dead_queue *q)
{
	for (s->n = 0; q < all->queues + all->queue_n && s->n < TOGETHER; q++) {
		if (q->left <= 0)
			continue;
		if (s->n > 0 && !is_same_step(s->list[0], q))
			break;
		q->at += shown(q);
		s->list[s->n++] = q;
	}
	return q;
}

static int
walk_queues(struct reclaim *all)
{
	struct rmq_dead_queue *first = all->queues, *q;
	int rv = 0;

	while (rv == 0) {
		while (first < all->queues + all->queue_n && first->left <= 0)
			first++;
		for (q = first, all->n = 0; all->n < FEW; all->n++) {
			q = fill_step(all, &all->steps[all->n], q);
			if (all->steps[all->n].n == 0)
				break;
		}
		if (all->n == 0)
			break;
		rv = mq_ask_each(
		    all->w->round.r, all->n, ask_step, take_step, all);
	}
	return rv;
}

static void
free_dead(struct reclaim *all)
{
	size_t i;

	for (i = 0; i < all->queue_n; i++) {
		freeReplyObject(all->queues[i].shown);
		freeReplyObject(all->queues[i].settings);
	}
	for (i = 0; i < all->dead_n; i++) {
		freeReplyObject(all->dead[i].info);
		freeReplyObject(all->dead[i].queues);
	}
	free(all->running);
	free(all->queues);
	free(all->dead);
}

static int
reclaim_some(struct rmq_cleaner *w, const struct mq_name *dead, size_t n)
{
	struct reclaim all = {.w = w};
	int rv = ask_dead(&all, dead, n);

	if (rv == 0) {
		find_queues(&all, dead, n);
		list_running(&all);
		rv = mq_ask_each(w->round.r, all.running_n, ask_settings,
		    take_settings, &all);
	}
	if (rv == 0 && mq_redis_command(w->round.r).cluster)
		rv = mq_ask_each(
		    w->round.r, 2 * all.queue_n, ask_others, take_others, &all);
	if (rv == 0)
		rv = walk_queues(&all);
	if (rv == 0)
		rv = rmq_unlist(
		    w, all.dead, all.dead_n, all.queues, all.queue_n);
	free_dead(&all);
	return rv;
}

int
rmq_reclaim(struct rmq_cleaner *w, const struct mq_name *dead, size_t total)
{
	size_t i, n;

	for (i = 0; i < total; i += n) {
		/* The first goes alone, and makes the scripts known. */
		n = i == 0 ? 1 : total - i < MANY ? total - i : MANY;
		/* All queues that one is named with together. */
		while (i + n < total && !is_another(dead, i + n))
			n++;
		if (reclaim_some(w, dead + i, n) == -1)
			return -1;
	}
	return 0;
}
