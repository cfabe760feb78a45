/*
 * The rmq layout: taking dead connections apart, many at a time, and forgetting those
 * whose messages are gone.
 *
 * A crash, or an error, anywhere in here leaves a connection listed as long as
 * it has a queue, and a queue as long as it has a message there.
 *
 * On a cluster the sets of names are in other slots than the queues.  There the steps
 * are: the messages of a queue, as anywhere; then the queue is made known; then it is
 * taken from the connection; and when that has none, the connection's own keys and
 * its name go.  Each step can be repeated, and the next cleaner goes on with those that
 * a crash has left.
 */
#include "base/clock.h"
#include "base/text.h"
#include "rmq.h"

/* --- a queue ------------------------------------------------------------- */

/* Most headers in one reply, as in reclaim_dead.lua; and their bytes: it has one in any
 * case. */
#define HEADERS	   64
#define SHOW_BYTES 16384
/* The numbers before the headers in a reply. */
enum { MOVED, BACK, OUT, LEFT, UNLISTED, AT, FIRST };
#define FORM "######"
/* How many are left when the queue has keys in the form for a cluster. */
#define CLUSTER (-2)

struct dead {
	const char *connection, *host; /* host: NULL: not known */
	redisReply *info, *queues; /* what the server knows of it, or NULL */
	long slots; /* how many messages could run at once; 0: not known */
	const char *notify; /* the queue that hears of each end; NULL: what the
			     * settings of a queue say */
	int attempts; /* how many runs a message may have had there; 0: the
		       * same */
	bool ours;    /* it is of these tools */
	bool failed;  /* it is to stay listed */
	bool closed;  /* it is not listed any more */
};

/* The fate of a message that may have been running; one that is not counted goes back as
 * it is, as there is nowhere to write. */
enum crash { UNCOUNTED, GOES_BACK, REJECTED, CRASHES };

/* One queue of a dead connection, whose messages go back to where they belong, or
 * to the rejected ones; see lua/reclaim_dead.lua. */
struct dead_queue {
	struct dead *owner;
	const char *queue;
	redisReply *settings; /* attempts and notify, or NULL */
	const char *notify;   /* the queue that hears of each end; NULL: none */
	int attempts;	      /* how many runs a message may have had */
	long left;	      /* messages to be dealt with; at first LONG_MAX */
	long at;	   /* of the oldest, how many were looked at before */
	bool alone;	   /* a step with others was refused */
	redisReply *shown; /* the last reply; NULL: none yet */
	long crashes[CRASHES]; /* dry run: of the messages shown in it */
};

static long
shown(const struct dead_queue *q)
{
	return q->shown == NULL ?
	    0 :
	    MIN((long)q->shown->elements - FIRST, HEADERS);
}

/*
 * A message that may have been running when its consumer died has had one run more:
 * appends its new header, and what the queue hears that its consumer notified, in a
 * message with this id.  One with a bad header goes back as it is, and the consumer that
 * claims it next rejects it.
 */
static enum crash
count_crash(const redisReply *header, const struct dead_queue *q,
    struct mq_buf *out, const char *notice_id, struct mq_buf *notice)
{
	struct mq_envelope e;
	struct mq_ending end;
	struct mq_buf text = {0};
	const char *why, *id;
	long attempt;
	bool last;

	if (header->len == 1 ||
	    mq_envelope_parse(header->str, header->len, &e, &why) == -1) {
		mq_buf_add(out, header->str, header->len);
		return UNCOUNTED;
	}
	attempt = mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0) + 1;
	last = attempt >= q->attempts;
	mq_history_crash(&e, attempt, last, q->owner->host);
	mq_envelope_write_header(&e, out);
	if (last && q->notify != NULL &&
	    mq_envelope_get(&e, MQ_HEADER_NOTICE) == NULL) {
		end = (struct mq_ending){.queue = q->queue,
		    .state = MQ_END_REJECTED,
		    .text = mq_envelope_get(&e, MQ_HEADER_ERROR),
		    .status = -1,
		    .attempts = attempt,
		    .host = q->owner->host,
		    .finished_ms = mq_clock_unix_us() / 1000};
		id = mq_message_id(&e);
		if (id != NULL)
			strlcpy(end.id, id, sizeof(end.id));
		mq_ending_write(&end, &text);
		mq_notice_write(notice_id, q->queue, &text, notice);
		mq_buf_free(&text);
	}
	mq_envelope_free(&e);
	return last ? REJECTED : GOES_BACK;
}

static void
add_crashes(struct dead_queue *q, struct mq_command *c)
{
	struct mq_buf header = {0}, notice = {0};
	struct mq_idgen ids = {0};
	char id[MQ_ID_LEN + 1], field[RMQ_FIELD];
	const redisReply *old;
	enum crash crash;
	long i, n = shown(q);

	memset(q->crashes, 0, sizeof(q->crashes));
	for (i = 0; i < n; i++) {
		old = q->shown->element[FIRST + i];
		mq_buf_clear(&header);
		mq_buf_clear(&notice);
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), id);
		crash = count_crash(old, q, &header, id, &notice);
		q->crashes[crash]++;
		mq_command_arg(c, old->str, old->len);
		mq_command_arg(c, header.data, header.len);
		mq_command_str(c, crash == REJECTED ? "rejected" : "ready");
		if (q->notify == NULL)
			continue;
		mq_command_str(c,
		    rmq_transfer_needed(c, q->queue, q->notify) ?
			rmq_transfer_field(field, id, q->notify) :
			"");
		mq_command_arg(c, notice.data, notice.len);
	}
	mq_buf_free(&header);
	mq_buf_free(&notice);
}

/* Leaves it to Go programs, as it has keys in the other form, a queue whose name has a
 * NUL, or on a cluster messages that lie in several slots. */
static void
leave_alone(struct rmq_cleaner *w, struct dead *d)
{
	mq_names_add_odd(w->how->cluster, d->connection, strlen(d->connection));
	d->failed = true;
}

static void
take_reply(struct rmq_cleaner *w, struct dead_queue *q, redisReply *reply)
{
	bool sound = mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) &&
	    (mq_reply_is(reply, FORM) || mq_round_nonsense(&w->round));
	redisReply **e = reply->element;
	long moved, back, out, left = sound ? (long)e[LEFT]->integer : -1;

	if (left == CLUSTER)
		leave_alone(w, q->owner);
	/* If less, the connection lives again, or nobody knows. */
	q->owner->failed |= left < 0;
	q->left = MAX(left, 0);
	if (left >= 0) {
		moved = (long)e[MOVED]->integer;
		back = (long)e[BACK]->integer;
		out = (long)e[OUT]->integer;
		q->at = (long)e[AT]->integer;
		if (w->how->dry_run) {
			moved = q->shown == NULL ? left - q->owner->slots : 0;
			moved = MAX(moved, 0) + q->crashes[UNCOUNTED];
			back = q->crashes[GOES_BACK];
			out = q->crashes[REJECTED];
			left = MIN(left, q->owner->slots) - q->at;
		}
		if (e[UNLISTED]->integer > 0) {
			w->out->connections++;
			q->owner->closed = true;
		}
		w->out->rejected += out;
		w->out->returned += moved + back;
		rmq_cleaner_count(w, q->queue, back + out, out, 0);
		q->left = left;
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
	struct dead_queue *list[TOGETHER];
	size_t n;
};

/* What is done behind the messages: the last, or on a cluster all the others, one after
 * the other, as nodes do not keep their order.  The first two are about a queue. */
enum forget { KNOW, TAKE, COUNT, INFO, RUNNING, NAME, UNLIST };
static const char *const to_forget[] = {[KNOW] = "!SADD A:" RMQ_QUEUES " %q",
    [TAKE] = "SREM C:queues %q",
    [COUNT] = "SCARD C:queues",
    [INFO] = "DEL C:info",
    [RUNNING] = "DEL C:running",
    [NAME] = "SREM A:" RMQ_CONNECTIONS " %n",
    [UNLIST] = "$unlist B:listed B:queues B:lease B:info B:running %n"};

struct reclaim {
	struct rmq_cleaner *w;
	struct dead *dead;
	struct dead_queue *queues; /* sorted, once all are there */
	size_t dead_n, queue_n;
	/* Of each queue with what may have been running, the first one. */
	struct dead_queue **running;
	size_t running_n;
	struct step steps[FEW];
	size_t n;
};

static void
add_queue(struct reclaim *all, struct dead *d, const char *queue)
{
	all->queues[all->queue_n++] =
	    (struct dead_queue){.owner = d, .queue = queue, .left = LONG_MAX};
	if (all->w->how->all && all->w->how->dry_run)
		mq_names_add(&all->w->known, queue, NULL);
}

/* No key can be made of a name with a NUL in it here. */
static bool
is_name(const redisReply *text)
{
	return text->type == REDIS_REPLY_STRING &&
	    strlen(text->str) == text->len;
}

/* A number from 1 to max; 0: it is none. */
static long
number_in(const redisReply *text, long max)
{
	return text->type == REDIS_REPLY_STRING ?
	    MAX(0, (long)mq_number(text->str, text->len, max)) :
	    0;
}

/* A queue that others can be told to notify; NULL: none. */
static const char *
queue_in(const redisReply *text)
{
	return is_name(text) && rmq_queue_error(text->str) == NULL ? text->str :
								     NULL;
}

static bool
read_info(struct rmq_cleaner *w, struct dead *d)
{
	redisReply *const *e = d->info->element;

	if (!mq_round_good(&w->round, d->info, REDIS_REPLY_ARRAY) ||
	    !mq_round_good(&w->round, d->queues, REDIS_REPLY_ARRAY))
		return false;
	if (d->info->elements != 4)
		return mq_round_nonsense(&w->round);
	/* The second half of LONG_MAX is for sums.  Messages of a lapsed connection may
	 * have run, but none crashed. */
	if (!mq_names_have(&w->lapsed, d->connection))
		d->slots = number_in(e[0], INT_MAX);
	if (e[1]->type == REDIS_REPLY_STRING)
		d->host = e[1]->str;
	d->attempts = (int)number_in(e[2], MQ_ATTEMPTS_MAX);
	d->notify = queue_in(e[3]);
	d->ours = e[0]->type == REDIS_REPLY_STRING || d->host != NULL;
	return true;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;

	rmq_ask(c,
	    i % 2 == 0 ? "HMGET C:info slots host attempts notify" :
			 "SMEMBERS C:queues",
	    all->dead[i / 2].connection, NULL);
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;
	struct dead *d = &all->dead[i / 2];

	*(i % 2 == 1 ? &d->queues : &d->info) = reply;
	return MQ_KEEP;
}

/* Whether the i-th name is of another connection than the one before. */
static bool
is_another(const struct mq_name *dead, size_t i)
{
	return i == 0 || strcmp(dead[i].name, dead[i - 1].name) != 0;
}

/* By name, and those of a queue in the order of their connections. */
static int
by_queue(const void *a, const void *b)
{
	const struct dead_queue *x = a, *y = b;
	int rv = strcmp(x->queue, y->queue);

	return rv != 0 ? rv : (x->owner > y->owner) - (x->owner < y->owner);
}

static bool
is_same_queue(const struct dead_queue *a, const struct dead_queue *b)
{
	return strcmp(a->queue, b->queue) == 0;
}

static void
find_queues(struct reclaim *all, const struct mq_name *dead, size_t n)
{
	struct dead *d = all->dead;
	struct dead_queue *q;
	const redisReply *name;
	size_t i, j, most = n + 1;

	for (i = 0; i < all->dead_n; i++)
		most += d[i].queues->elements;
	all->queues = mq_xcalloc(most, sizeof(*all->queues));
	for (i = 0; i < n; i++) {
		if (is_another(dead, i)) {
			d += i > 0;
			d->failed = !read_info(all->w, d);
		}
		if (d->failed)
			continue;
		if (dead[i].queue != NULL && all->w->how->dry_run) {
			add_queue(all, d, dead[i].queue);
			continue;
		}
		for (j = 0; is_another(dead, i) && j < d->queues->elements; j++)
			if (is_name(name = d->queues->element[j])) {
				add_queue(all, d, name->str);
			} else {
				leave_alone(all->w, d);
				mq_names_add_odd(all->w->how->scattered,
				    name->str, name->len);
			}
	}
	qsort(all->queues, all->queue_n, sizeof(*all->queues), by_queue);
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

	rmq_ask(c, "HMGET Q:settings attempts notify", all->running[i]->queue,
	    NULL);
}

/* What the consumer itself did not say is as the settings of the queue are now. */
static int
take_settings(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct dead_queue *first = all->running[i], *q = first;
	redisReply *const *e = reply->element;
	bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
	const char *notify = good ? queue_in(e[1]) : NULL;
	long limit = good ? number_in(e[0], MQ_ATTEMPTS_MAX) : 0;

	first->settings = reply;
	if (limit == 0)
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
	const struct dead_queue *q = &all->queues[i / 2];
	bool scattered = i % 2 == 0 && rmq_is_scattered(c, q->queue);

	rmq_ask(c,
	    scattered	   ? "EXISTS B:unacked" :
		i % 2 == 0 ? "EXISTS O:consumers" :
			     "EXISTS O:unacked",
	    q->owner->connection, q->queue);
}

static int
take_others(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct rmq_cleaner *w = all->w;
	const struct mq_command c = mq_redis_command(w->round.r);
	struct dead_queue *q = &all->queues[i / 2];

	/* What is in our form goes back, although the connection may have more. */
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_INTEGER))
		q->owner->failed = true;
	else if (reply->integer > 0)
		leave_alone(w, q->owner);
	if (rmq_is_scattered(&c, q->queue))
		mq_names_add_odd(w->how->scattered, q->queue, strlen(q->queue));
	if (rmq_is_scattered(&c, q->queue) || reply->integer > 0)
		q->left = 0;
	return 0;
}

/* They differ in nothing but their connections. */
static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const struct step *s = &all->steps[i];
	struct dead_queue *q = s->list[0];
	const struct dead *d;
	size_t j;

	mq_command_script(c, &rmq_script_reclaim_dead);
	rmq_keys(c, NULL, q->queue, RMQ_PLACES " rejected known listed");
	/* On a cluster, which has no keys of the other form, the connection stays
	 * listed. */
	for (j = 0; j < s->n; j++) {
		d = s->list[j]->owner;
		rmq_keys(c, d->connection, q->queue,
		    "unacked lease consumers queues other-consumers "
		    "other-unacked");
		if (d->ours)
			rmq_keys(c, d->connection, q->queue, "info running");
	}
	if (shown(q) > 0 && q->notify != NULL)
		rmq_key_notice(c, q->queue, q->notify);
	mq_command_add(c, "%s %d %ld %d %d", q->queue, SHOW_BYTES, q->at,
	    all->w->how->dry_run, (int)s->n);
	for (j = 0; j < s->n; j++) {
		d = s->list[j]->owner;
		mq_command_add(c, "%s %ld", d->connection, d->slots);
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

/* Fills a step with those that need one; returns where the next one begins to look. */
static struct dead_queue *
fill_step(struct reclaim *all, struct step *s, struct dead_queue *q)
{
	const struct dead_queue *first;

	for (s->n = 0; q < all->queues + all->queue_n && s->n < TOGETHER; q++) {
		if (q->left <= 0)
			continue;
		first = s->list[0];
		if (s->n > 0 &&
		    (shown(first) > 0 || first->alone || shown(q) > 0 ||
			q->alone || first->owner->ours != q->owner->ours ||
			!is_same_queue(first, q)))
			break;
		q->at += all->w->how->dry_run ? shown(q) : 0;
		s->list[s->n++] = q;
	}
	return q;
}

static int
walk_queues(struct reclaim *all)
{
	struct dead_queue *first = all->queues, *q;
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

/* --- forgetting ---------------------------------------------------------- */

/* One step, about the queues or the connections that nothing keeps. */
static int
forget_step(struct reclaim *all, enum forget step)
{
	struct rmq_cleaner *w = all->w;
	struct dead **of =
	    mq_xcalloc(all->queue_n + all->dead_n + 1, sizeof(*of));
	struct dead *d;
	const struct dead_queue *q;
	struct mq_names names = {0};
	long long *n;
	size_t i;
	int rv;

	for (q = all->queues; step <= TAKE && q < all->queues + all->queue_n;
	     q++)
		if (!q->owner->failed && q->left == 0) {
			of[names.n] = q->owner;
			mq_names_add(&names, q->owner->connection, q->queue);
		}
	for (d = all->dead; step > TAKE && d < all->dead + all->dead_n; d++)
		if (!d->failed && !d->closed) {
			of[names.n] = d;
			mq_names_add(&names, d->connection, NULL);
		}
	rv = rmq_cleaner_ask(w, &names, to_forget[step], &n);
	for (i = 0; i < names.n; i++)
		if (n[i] == RMQ_NO_ANSWER)
			of[i]->failed = true;
		else if (step == COUNT)
			of[i]->failed = n[i] > 0;
		else if (step >= NAME)
			w->out->connections += (long)n[i];
	mq_names_free(&names);
	free(of);
	free(n);
	return rv;
}

/* Forgets those that have not failed, and have no queue any more: they had none, or
 * another cleaner took their last one. */
static int
forget(struct reclaim *all)
{
	bool cluster = mq_redis_command(all->w->round.r).cluster;
	int step = cluster ? KNOW : UNLIST, last = cluster ? NAME : UNLIST;
	size_t i;
	int rv = 0;

	for (i = 0; all->w->how->dry_run && i < all->dead_n; i++)
		all->w->out->connections +=
		    !all->dead[i].failed && !all->dead[i].closed;
	for (; rv == 0 && !all->w->how->dry_run && step <= last; step++)
		rv = forget_step(all, step);
	return rv;
}

static int
reclaim_some(struct rmq_cleaner *w, const struct mq_name *dead, size_t n)
{
	struct reclaim all = {.w = w, .dead = mq_xcalloc(n, sizeof(*all.dead))};
	struct mq_redis *r = w->round.r;
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		if (is_another(dead, i))
			all.dead[all.dead_n++].connection = dead[i].name;
	rv = mq_ask_each(r, 2 * all.dead_n, ask_about, take_about, &all);
	if (rv == 0) {
		find_queues(&all, dead, n);
		rv = mq_ask_each(
		    r, all.running_n, ask_settings, take_settings, &all);
	}
	if (rv == 0 && mq_redis_command(r).cluster)
		rv = mq_ask_each(
		    r, 2 * all.queue_n, ask_others, take_others, &all);
	if (rv == 0)
		rv = walk_queues(&all);
	if (rv == 0)
		rv = forget(&all);
	for (i = 0; i < all.queue_n; i++) {
		freeReplyObject(all.queues[i].shown);
		freeReplyObject(all.queues[i].settings);
	}
	for (i = 0; i < all.dead_n; i++) {
		freeReplyObject(all.dead[i].info);
		freeReplyObject(all.dead[i].queues);
	}
	free(all.running);
	free(all.queues);
	free(all.dead);
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
