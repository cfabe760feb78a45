#include "publish.h"

#include <math.h>
#include <stdarg.h>

/* --- what is safe ---------------------------------------------------------- */

/* At most 1 MiB of ids waits until their messages are safe. */
#define HELD_BYTES ((size_t)1024 * 1024)

/* -1: there is none, with the error. */
static int
find_promise(struct transport *t)
{
	char replicas[24] = "";
	int n;

	if (mq_durable_find(&t->redis, &t->promise) == -1)
		return -1;
	n = t->promise.info.replicas;
	if (n > 0)
		snprintf(replicas, sizeof(replicas), "%d replica%s", n,
		    n == 1 ? "" : "s");
	snprintf(t->where, sizeof(t->where), " on %s%s%s",
	    t->promise.disk ? "disk" : "",
	    t->promise.disk && n > 0 ? " and " : "", replicas);
	t->moved = false;
	return 0;
}

/* Waits until all messages are safe, a minute at most.  False, with the error: they are
 * not, or nobody knows.  Without --durable they are. */
static bool
make_safe(struct transport *t)
{
	if (!t->opt->durable || !t->unsure)
		return true;
	if (t->moved && find_promise(t) == -1)
		return false;
	if (mq_publisher_wait_durable(&t->publisher, &t->promise, t->ours) ==
	    -1)
		return false;
	t->safe = t->count[MQ_PUBLISHED];
	t->unsure = false;
	if (t->held.len > 0)
		(void)fwrite(t->held.data, 1, t->held.len, stdout);
	mq_buf_clear(&t->held);
	return true;
}

static void
take_id(struct transport *t, const char *id)
{
	if (t->opt->ids && !t->opt->durable) {
		printf("%.*s\n", MQ_ID_LEN, id);
	} else if (t->opt->ids) {
		mq_buf_add(&t->held, id, MQ_ID_LEN);
		mq_buf_add(&t->held, "\n", 1);
	}
	if (t->opt->wait)
		mq_buf_add(&t->ids, id, MQ_ID_LEN);
}

/* --- transport ----------------------------------------------------------- */

/* About so many bytes are under way at most. */
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024)
/* How long a server may be away. */
#define PATIENCE_MS 60000
/* Between two connections. */
#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 1000

bool
transport_wait(void *transport, int fd, int64_t ms)
{
	int n = interrupt_wait(fd, ms);

	if (n == -1)
		outcome_interrupt(transport);
	return n != 0;
}

static void __attribute__((noreturn)) give_up(struct transport *t, int status)
{
	/* All are accepted; only whether they are safe is not known. */
	if (t->used == 0 && t->opt->durable && t->unsure)
		status = MQ_EXIT_AGAIN;
	mq_say("%s", t->redis.error);
	outcome_end(t, status);
}

static bool
is_special(const struct options *o)
{
	return o->how.special || o->tick >= 0 || o->attachments.n > 0 ||
	    o->how.when.kind != MQ_WHEN_NOW;
}

/* What a first command meets that gets no answer at all: if it is a server, its
 * next connection answers, or is refused for as long as the server is away. */
static void
check_server(struct transport *t)
{
	const struct mq_redis *r = &t->redis;
	struct mq_redis other;

	/* It may have had its time. */
	if (r->greet_until == 0 || mq_clock_steady_s() < r->greet_until) {
		if (mq_redis_open(&other, r->server) == -1)
			return;
		if (mq_redis_check(&other) == 0) {
			mq_redis_close(&other);
			return;
		}
		r = &other;
	}
	/* There is nothing to count. */
	if (t->used == 0)
		mq_die(r->status, "%s", r->error);
	mq_say("%s", r->error);
	outcome_end(t, r->status);
}

/* A connection that breaks before there is a message is made again as any later one.
 * False: it did not break, or more has failed.  A cluster's node that is away has been
 * waited for as it deserves. */
static bool
begin_again(struct transport *t)
{
	const struct mq_redis *r = &t->redis;

	if (!mq_redis_lost(r) || r->cluster != NULL ||
	    r->status != MQ_EXIT_UNAVAILABLE)
		return false;
	if (!r->only.link.heard)
		check_server(t);
	if (t->lost_ms == 0 && !t->opt->shared.quiet)
		mq_say("%s; reconnecting", r->error);
	if (t->lost_ms == 0)
		t->lost_ms = mq_clock_steady_ms();
	return transport_reconnect(t, t->lost_ms + PATIENCE_MS, &t->pause_ms);
}

/* Finds out the server's clock, too, if it says that. */
static void
open_queue(struct transport *t)
{
	const struct options *o = t->opt;
	struct mq_redis *r = &t->redis;
	enum mq_call result;
	bool yes;

	do
		result = mq_publisher_open(&t->publisher, is_special(o),
		    !o->shared.existing, &t->clock_us, &yes);
	while (result != MQ_CALL_DONE && begin_again(t));
	if (result == MQ_CALL_DONE)
		t->lost_ms = t->pause_ms = 0;
	/* Unless it was waited for, there is nothing to count. */
	if (mq_redis_lost(r) && t->lost_ms == 0 && !o->durable &&
	    o->attachments.n == 0)
		mq_die(r->status, "%s", r->error);
	if (mq_redis_lost(r))
		mq_say("%s", r->error);
	else if (result != MQ_CALL_DONE)
		mq_say("%s: %s", o->queue, r->error);
	if (result != MQ_CALL_DONE)
		outcome_end(t, r->status);
	if (o->shared.existing && !yes) {
		mq_option_unknown(r, o->shared.layout, o->queue);
		exit(MQ_EXIT_NO); /* which is 404, too */
	}
	if (!o->shared.existing && yes)
		mq_option_made(&o->shared, r, o->queue);
}

void
transport_begin(struct transport *t, struct mq_server *server, bool single)
{
	const struct options *o = t->opt;

	mq_option_must(&t->redis, mq_redis_open(&t->redis, server));
	interrupt_catch(0);
	mq_publisher_init(&t->publisher, &t->redis, o->shared.layout, o->queue,
	    &o->attributes);
	/* Nothing has to be asked before the only message: not the time, as the
	 * server is on this machine, and what is wrong with the queue can be said
	 * later.  A private server has its socket only now. */
	t->unasked = single && t->redis.server->socket[0] != '\0' &&
	    o->shared.layout->has & MQ_HAS_TRIALS && !is_special(o) &&
	    !o->durable;
	mq_redis_wait_with(&t->redis, transport_wait, t);
	while (o->durable && find_promise(t) == -1)
		if (!begin_again(t))
			give_up(t, t->redis.status);
	t->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	if (!t->unasked)
		open_queue(t);
}

void
transport_free(struct transport *t)
{
	size_t i;

	mq_publisher_free(&t->publisher);
	mq_redis_close(&t->redis);
	for (i = 0; i < MQ_MARKS; i++) {
		mq_post_clear(&t->batches[i].post, true);
		mq_buf_free(&t->batches[i].ids);
	}
	mq_buf_free(&t->ids);
	mq_buf_free(&t->held);
}

/* Whether so many batches are under way that the next one has to wait. */
static bool
is_full(struct transport *t)
{
	unsigned most =
	    mq_publisher_alone(&t->publisher, &t->how) ? 0 : MQ_MARKS - 1;

	t->overtaken &= t->used > 0;
	return t->used > most || t->overtaken ||
	    (t->used > 0 && t->bytes > UNDER_WAY_BYTES);
}

bool
transport_reconnect(struct transport *t, int64_t until_ms, int64_t *pause_ms)
{
	struct mq_redis *r = &t->redis;
	double until = until_ms == -1 ? INFINITY : (double)until_ms / 1000;

	mq_redis_close(r);
	for (;;) {
		/* The last try that had its time says why. */
		if (until_ms != -1 &&
		    until_ms - mq_clock_steady_ms() <= *pause_ms)
			return false;
		(void)transport_wait(t, -1, *pause_ms);
		*pause_ms = *pause_ms == 0 ? PAUSE_MIN_MS :
					     MIN(2 * *pause_ms, PAUSE_MAX_MS);
		if (mq_redis_open_until(r, r->server, until) == 0) {
			mq_redis_wait_with(r, transport_wait, t);
			return true;
		}
		if (r->status != MQ_EXIT_UNAVAILABLE &&
		    r->status != MQ_EXIT_AGAIN)
			give_up(t, r->status);
	}
}

/* What the server said of message i; joined: the id of that which it has joined. */
static void
take_verdict(void *arg, int i, enum mq_published verdict, const char *joined)
{
	const struct batch *b = arg;
	struct transport *t = b->transport;
	bool ours = verdict == MQ_PUBLISHED;

	t->count[verdict]++;
	t->behind += t->gap && ours;
	/* Another message may not be safe yet, and somebody else's. */
	if (ours || joined != NULL || verdict == MQ_PUBLISHED_DUPLICATE) {
		t->unsure = true;
		t->ours = ours;
	}
	if (joined != NULL)
		take_id(t, joined);
	else if (ours)
		take_id(t,
		    b->ids.len > 0 ? b->ids.data + (size_t)i * MQ_ID_LEN :
				     NULL);
}

/* The server has answered for the batch, which is empty from now on. */
static void
note_answered(struct transport *t, struct batch *b)
{
	t->bytes -= mq_post_bytes(&b->post);
	t->lost_ms = t->pause_ms = 0;
	b->breaks = 0;
	mq_post_clear(&b->post, false);
	mq_buf_clear(&b->ids);
}

/* Number i is answered, and those behind it move up. */
static void
take_batch_out(struct transport *t, unsigned i)
{
	struct batch answered = t->batches[i];

	note_answered(t, &answered);
	memmove(&t->batches[i], &t->batches[i + 1],
	    (--t->used - i) * sizeof(answered));
	t->batches[t->used] = answered;
}

/* Finds out what has become of a batch: mq_post_settle(), mq_post_answer(). */
typedef enum mq_call judge_fn(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);

/* Of the batches from number `from` on, those that are done are under way no more; the
 * others stay, in their order.  False: one was refused. */
static bool
settle_batches(struct transport *t, unsigned from, judge_fn *fn)
{
	struct batch *b;
	bool good = true;
	enum mq_call result;

	while (from < t->used) {
		b = &t->batches[from];
		result = fn(&t->publisher, &b->post, take_verdict, b);
		good &= result != MQ_CALL_REFUSED;
		if (result == MQ_CALL_DONE)
			take_batch_out(t, from);
		else
			from++;
	}
	return good;
}

static int
send_one(struct transport *t, unsigned i, bool eval)
{
	return mq_post_send(&t->publisher, &t->batches[i].post,
	    i > 0 ? &t->batches[i - 1].post : NULL, eval);
}

/* The server may not know the script: its text goes with the first. */
static enum mq_call
send_rest(struct transport *t)
{
	bool eval = true;
	unsigned i;

	if (mq_redis_room(&t->redis, t->bytes) == -1) {
		mq_say("%s", t->redis.error);
		/* The server has nothing of the rest. */
		t->used = 0;
		outcome_end(t, t->redis.status);
	}
	for (i = 0; i < t->used; i++) {
		if (send_one(t, i, eval) == -1)
			return MQ_CALL_LOST;
		eval &= !mq_post_whole(&t->batches[i].post);
	}
	return MQ_CALL_DONE;
}

/* Whether all batches under way find their marks themselves. */
static bool
all_whole(struct transport *t)
{
	unsigned i;

	for (i = 0; i < t->used; i++)
		if (!mq_post_whole(&t->batches[i].post))
			return false;
	return true;
}

/* No server has a smaller limit for what it takes at once. */
#define LIMIT_MIN ((size_t)1024 * 1024)

/* A server ends the connection when a command is longer than it takes: with words, or
 * (client-query-buffer-limit) without.  The longest of those that it has not done is meant,
 * which is not sent again, without words not a third time.  It holds one message. */
static void
drop_too_long(struct transport *t, const char *why, bool said)
{
	const struct mq_layout *layout = t->opt->shared.layout;
	unsigned i, at = 0;
	struct batch *b;

	for (i = 1; i < t->used; i++)
		if (mq_post_bytes(&t->batches[i].post) >
		    mq_post_bytes(&t->batches[at].post))
			at = i;
	b = &t->batches[at];
	if (t->used == 0 || mq_post_bytes(&b->post) < LIMIT_MIN ||
	    (!said && ++b->breaks < 2))
		return;
	mq_say("record %lld: %s%s%s", b->post.how.mark.before + 1, why,
	    said ? "" : ", twice at this message, which may be too long for it",
	    layout->attachments != NULL ? "; --attach sends it as a file" : "");
	t->told = true;
	t->count[MQ_PUBLISHED_TOO_LONG] += (unsigned long)b->post.count;
	take_batch_out(t, at);
}

/* On a new connection: finds out what was done meanwhile. */
static enum mq_call
try_resume(struct transport *t)
{
	unsigned long lost, accepted = t->count[MQ_PUBLISHED];
	long long missing;
	bool proven;
	enum mq_call result;

	if (t->used == 0 && !t->publisher.marks)
		return MQ_CALL_DONE;
	result =
	    mq_publisher_resume(&t->publisher, all_whole(t), &missing, &proven);
	if (result != MQ_CALL_DONE)
		return result;
	if (missing > 0) {
		lost = (unsigned long)missing;
		mq_say("%s: the server has come back without what it had "
		       "accepted: up to %lu message%s lost",
		    t->opt->queue, lost, lost == 1 ? " is" : "s are");
		t->count[MQ_PUBLISHED] -= MIN(lost, accepted);
		t->used = 0;
		outcome_end(t, MQ_EXIT_AGAIN);
	}
	if (!settle_batches(t, 0, mq_post_settle))
		give_up(t, MQ_EXIT_UNAVAILABLE);
	/* Nothing was written on this connection yet.  Without a mark, only the
	 * former server could make good its promise. */
	t->ours = false;
	t->moved = t->opt->durable && proven;
	return result;
}

/* The connection is lost, and the answers for what was under way with it: goes on
 * with another one, or ends the program.  The server has marked what it has done,
 * and only the rest is sent again. */
static void
resume(struct transport *t)
{
	bool marked = true, said = t->redis.status == MQ_EXIT_DATA;
	enum mq_call result = MQ_CALL_LOST;
	char why[sizeof(t->redis.error)];
	unsigned i;

	strlcpy(why, t->redis.error, sizeof(why));
	/* The only one is the one that is meant. */
	if (said && t->used == 1)
		drop_too_long(t, why, said);
	/* Whether the marks will say all that there is to know about them. */
	for (i = 0; i < t->used; i++)
		marked &= t->batches[i].post.how.mark.publisher != NULL;
	if (t->used > 0 &&
	    (!marked || t->ending ||
		!mq_publisher_can_resume(&t->publisher, all_whole(t))))
		give_up(t, t->redis.status);
	if (!t->opt->shared.quiet && t->lost_ms == 0 && !said)
		mq_say("%s; reconnecting", why);
	while (result == MQ_CALL_LOST || result == MQ_CALL_AGAIN) {
		/* Again, when something was found to be done. */
		if (t->lost_ms == 0)
			t->lost_ms = mq_clock_steady_ms();
		if (!transport_reconnect(
			t, t->lost_ms + PATIENCE_MS, &t->pause_ms))
			give_up(t, t->redis.status);
		result = try_resume(t);
	}
	if (result == MQ_CALL_REFUSED)
		give_up(t, MQ_EXIT_UNAVAILABLE);
	drop_too_long(t, why, said);
	t->overtaken = t->used > 0;
	if (send_rest(t) == MQ_CALL_LOST)
		resume(t);
}

/* Waits for an answer to the oldest one.  False: the server refused it, with the
 * error. */
static bool
collect(struct transport *t)
{
	struct batch *b = t->batches;
	enum mq_call result =
	    mq_post_answer(&t->publisher, &b->post, take_verdict, b);

	/* The oldest one was not done, and so none that has to come behind it: all go
	 * out again, in their order.  What was refused is refused again when its turn
	 * comes.  At the end, the one that it has to come behind was refused. */
	if (result == MQ_CALL_AGAIN && !t->ending) {
		(void)settle_batches(t, 1, mq_post_answer);
		if (!mq_redis_lost(&t->redis) && send_rest(t) == MQ_CALL_DONE)
			return true;
		result = MQ_CALL_LOST;
	}
	if (result == MQ_CALL_LOST) {
		resume(t);
		return true;
	}
	take_batch_out(t, 0);
	return result == MQ_CALL_DONE;
}

/* --- trial --------------------------------------------------------------- */

/* The first batch, before anything is known of the queue: sends it as a trial, and
 * waits for the answer.  False: nothing was done, with the error, or the batch
 * cannot be tried.  It is the next one again then. */
static bool
try_first(struct transport *t)
{
	struct batch *b = &t->batches[t->used];
	const struct mq_redis *r = &t->redis;
	enum mq_call result = MQ_CALL_LOST;

	if (!mq_post_trial(&t->publisher, &b->post, true))
		return false;
	t->bytes = mq_post_bytes(&b->post);
	t->used++;
	if (send_one(t, 0, true) == 0)
		result =
		    mq_post_answer(&t->publisher, &b->post, take_verdict, b);
	if (result == MQ_CALL_LOST && !r->only.link.heard)
		check_server(t);
	/* Lost with an answer, it does nothing for us. */
	while (result == MQ_CALL_LOST && !r->only.link.unfit) {
		resume(t);
		result = t->used > 0 ?
		    mq_post_answer(&t->publisher, &b->post, take_verdict, b) :
		    MQ_CALL_DONE;
	}
	/* A resumption has settled what it found to be done. */
	if (result == MQ_CALL_DONE && t->used > 0)
		note_answered(t, b);
	t->used = 0;
	if (result == MQ_CALL_DONE)
		return true;
	(void)mq_post_trial(&t->publisher, &b->post, false);
	t->bytes = 0;
	t->lost_ms = t->pause_ms = 0;
	return false;
}

/* --- batch --------------------------------------------------------------- */

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536

/* No more can be published: ends when all that is under way, and may be accepted, is settled. */
static void __attribute__((noreturn))
end_when_answered(struct transport *t, int status)
{
	t->ending = t->gap = true;
	while (t->used > 0)
		(void)collect(t);
	(void)make_safe(t);
	mq_publisher_count(&t->publisher);
	outcome_end(t, status);
}

static void __attribute__((noreturn)) end_refused(struct transport *t)
{
	mq_say("%s", t->redis.error);
	end_when_answered(t, t->redis.status);
}

static void
end_if_full(struct transport *t)
{
	if (t->count[MQ_PUBLISHED_FULL] == 0)
		return;
	mq_say("%s: the queue is full", t->opt->queue);
	end_when_answered(t, MQ_EXIT_AGAIN);
}

static void
collect_or_end(struct transport *t)
{
	if (!collect(t))
		end_refused(t);
	end_if_full(t);
}

/* Sends the batch, if there is anything in it; the first one without a question, if that
 * is possible.  A private server ends when its disk is full. */
static void
send_batch(struct transport *t)
{
	const struct mq_post *post = &t->batches[t->used].post;
	bool done = false;

	if (post->count == 0)
		return;
	if (mq_redis_room(&t->redis, t->bytes + mq_post_bytes(post)) == -1)
		end_refused(t);
	if (t->unasked) {
		done = try_first(t);
		if (!done)
			open_queue(t);
		t->unasked = false;
		/* Nothing but a second trial is safe: that looks for the mark of
		 * the first one, which may still arrive on a connection that was
		 * lost. */
		if (!done && t->publisher.loose && !(done = try_first(t)))
			end_refused(t);
	}
	if (done)
		return;
	t->bytes += mq_post_bytes(post);
	if (send_one(t, t->used++, false) == -1)
		resume(t);
	end_if_full(t);
	while (is_full(t))
		collect_or_end(t);
}

static void
flush_output(struct transport *t)
{
	if (fflush(stdout) == EOF) {
		mq_say("standard output: %s", strerror(errno));
		outcome_end(t, MQ_EXIT_IO);
	}
}

void
batch_flush(struct transport *t)
{
	send_batch(t);
	while (t->used > 0)
		collect_or_end(t);
	mq_publisher_count(&t->publisher);
	flush_output(t);
}

void
batch_settle(struct transport *t)
{
	batch_flush(t);
	while (!make_safe(t)) {
		/* Sentinels soon name another server, which may have all. */
		if (!mq_redis_lost(&t->redis) ||
		    t->redis.server->url.kind != MQ_URL_SENTINEL)
			give_up(t, MQ_EXIT_AGAIN);
		resume(t);
	}
	/* A connection that is lost now is lost for the first time. */
	t->lost_ms = t->pause_ms = 0;
	flush_output(t);
}

/* Ids that are held must not become too many. */
static void
send_or_settle(struct transport *t)
{
	send_batch(t);
	if (t->held.len > HELD_BYTES)
		batch_settle(t);
}

void
batch_set(struct transport *t, struct mq_when when, bool special)
{
	/* Messages before the first special one come first. */
	if (special && !t->how.special)
		batch_flush(t);
	else if (when.kind != t->how.when.kind || when.ms != t->how.when.ms)
		send_or_settle(t);
	t->how.when = when;
	t->how.special = special;
}

void
batch_add(struct transport *t, const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct batch *next = &t->batches[t->used];

	if (next->post.count > 0 &&
	    mq_post_bytes(&next->post) + n > BATCH_BYTES) {
		send_or_settle(t);
		next = &t->batches[t->used];
	}
	next->transport = t;
	if (next->post.count == 0)
		mq_post_begin(&t->publisher, &next->post, &t->how);
	mq_post_add(&t->publisher, &next->post, unique, header, payload, n);
	if (t->opt->ids || t->opt->wait)
		mq_buf_add(&next->ids, id, MQ_ID_LEN);
	if (next->post.count == BATCH_COUNT ||
	    mq_post_bytes(&next->post) > BATCH_BYTES)
		send_or_settle(t);
}

void
batch_end(struct transport *t, int status, const char *fmt, ...)
{
	va_list ap;
	char *why;

	va_start(ap, fmt);
	why = mq_xvasprintf(fmt, ap);
	va_end(ap);
	batch_settle(t);
	mq_say("%s", why);
	outcome_end(t, status);
}
