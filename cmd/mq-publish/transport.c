/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publish.h"

#include <math.h>
#include <stdarg.h>

/* --- safe messages --------------------------------------------------------- */

#define UNSAFE_BYTES ((size_t)1024 * 1024) /* most of unsafe_ids */

/* Finds out what makes messages safe, and says so in words: 0, or -1 with the error. */
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
	t->new_server = false;
	return 0;
}

/* The ids of messages that have become safe. */
static void
write_ids(struct transport *t)
{
	if (t->unsafe_ids.len > 0)
		(void)fwrite(t->unsafe_ids.data, 1, t->unsafe_ids.len, stdout);
	mq_buf_clear(&t->unsafe_ids);
}

/* With --durable, waits until all messages are safe, at most 60 s.  False, with the error:
 * some may not be. */
static bool
make_safe(struct transport *t)
{
	if (!t->opt->durable || !t->unsafe)
		return true;
	if (t->new_server && find_promise(t) == -1)
		return false;
	if (mq_publisher_wait_durable(&t->publisher, &t->promise) == -1)
		return false;
	t->safe = t->count[MQ_PUBLISHED];
	t->unsafe = false;
	write_ids(t);
	return true;
}

static void
note_id(struct transport *t, const char *id)
{
	if (t->opt->ids && !t->opt->durable)
		printf("%.*s\n", MQ_ID_LEN, id);
	else if (t->opt->ids)
		mq_buf_printf(&t->unsafe_ids, "%.*s\n", MQ_ID_LEN, id);
	if (t->opt->wait)
		mq_buf_add(&t->ids, id, MQ_ID_LEN);
}

/* Counts the verdict on a message; id: its own, or that of the message that it joined. */
static void
note_verdict(
    void *arg, enum mq_published verdict, long long number, const char *id)
{
	struct transport *t = arg;

	t->lost_ms = t->pause_ms = 0;
	t->count[verdict]++;
	if (t->opt->flush)
		spool_judge(t, verdict, number);
	if (t->opt->spool_max > 0)
		spool_done(t, number, false);
	t->behind += t->gap && verdict == MQ_PUBLISHED;
	/* The original of a duplicate may not be safe yet. */
	t->unsafe |= verdict == MQ_PUBLISHED ||
	    verdict == MQ_PUBLISHED_JOINED || verdict == MQ_PUBLISHED_DUPLICATE;
	if (id != NULL)
		note_id(t, id);
}

/* --- transport ----------------------------------------------------------- */

#define PATIENCE_MS 60000 /* longest absence of a server */
/* Pauses between two attempts to connect. */
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

static void __attribute__((noreturn)) end_unwritten(struct transport *t)
{
	int why = errno;

	if (why == EDQUOT)
		mq_say(
		    "--spool: no room: messages of %zu KiB are the most that wait "
		    "on this host",
		    t->opt->spool_max >> 10);
	else
		mq_say("--spool: %s", strerror(why));
	outcome_end(t, why == EDQUOT ? MQ_EXIT_AGAIN : MQ_EXIT_IO);
}

/* Whether messages go to this host's disk, now that the server is away. */
static bool
spools(struct transport *t)
{
	int rv = 0;

	if (t->opt->spool_max > 0 &&
	    (t->redis.status == MQ_EXIT_UNAVAILABLE ||
		t->redis.status == MQ_EXIT_AGAIN))
		rv = spool_take_over(t);
	if (rv == -1)
		end_unwritten(t);
	return rv == 1;
}

static void __attribute__((noreturn)) give_up(struct transport *t, int status)
{
	/* All messages are accepted, but may not be safe. */
	if (t->publisher.kept == 0 && t->opt->durable && t->unsafe)
		status = MQ_EXIT_AGAIN;
	mq_say("%s", t->redis.error);
	outcome_end(t, status);
}

static bool
needs_options(const struct options *o)
{
	return o->how.has_options || o->tick >= 0 || o->attachments.n > 0 ||
	    o->spool_max > 0 || o->flush || o->how.when.kind != MQ_WHEN_NOW;
}

bool
transport_reconnect(struct transport *t, int64_t until_ms, int64_t *pause_ms)
{
	struct mq_redis *r = &t->redis;
	double until = until_ms == -1 ? INFINITY : (double)until_ms / 1000;

	mq_redis_close(r);
	for (;;) {
		/* An attempt with too little time would hide the cause. */
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

/* transport_reconnect() for PATIENCE_MS since the first loss, which is reported with the
 * reason; why NULL: silently. */
static bool
reconnect(struct transport *t, const char *why)
{
	if (t->lost_ms == 0 && why != NULL && !t->opt->shared.quiet)
		mq_say("%s; reconnecting", why);
	if (t->lost_ms == 0)
		t->lost_ms = mq_clock_steady_ms();
	/* A flush ends, unless the server is there: a message was too long for it. */
	return (!t->opt->flush || why == NULL) &&
	    transport_reconnect(t, t->lost_ms + PATIENCE_MS, &t->pause_ms);
}

/* After a first command without any reply: returns if another connection gets one, or cannot
 * be made, as the server may be away.  Else there is no Redis server: ends the program. */
static void
check_server(struct transport *t)
{
	const struct mq_redis *r = &t->redis;
	struct mq_redis other;

	/* After a timeout, another connection would time out, too. */
	if (r->greet_until == 0 || mq_clock_steady_s() < r->greet_until) {
		if (mq_redis_open(&other, r->server) == -1)
			return;
		if (mq_redis_check(&other) == 0) {
			mq_redis_close(&other);
			return;
		}
		r = &other;
	}
	mq_die(r->status, "%s", r->error);
}

/* Connects again if the connection breaks before the first message.  False: it did not break,
 * or the attempt failed, or a cluster has waited for its node already. */
static bool
begin_again(struct transport *t)
{
	const struct mq_redis *r = &t->redis;

	/* Messages on disk can wait further. */
	if (!mq_redis_lost(r) || r->cluster != NULL || t->opt->flush ||
	    r->status != MQ_EXIT_UNAVAILABLE)
		return false;
	if (!r->only.link.heard)
		check_server(t);
	return reconnect(t, r->error);
}

/* Makes sure that the queue can be used, and reads the server's clock. */
static void
open_queue(struct transport *t)
{
	const struct options *o = t->opt;
	struct mq_redis *r = &t->redis;
	enum mq_call result;
	bool yes;

	do {
		result = mq_publisher_open(&t->publisher, needs_options(o),
		    !o->shared.existing, &t->clock_us, &yes);
		if (result != MQ_CALL_DONE && spools(t))
			return;
	} while (result != MQ_CALL_DONE && begin_again(t));
	if (result == MQ_CALL_DONE)
		t->lost_ms = t->pause_ms = 0;
	/* After a first failure, no message needs a report. */
	if (mq_redis_lost(r) && t->lost_ms == 0 && !o->durable && !o->flush &&
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
		exit(MQ_EXIT_NO); /* 404 with --http */
	}
	if (!o->shared.existing && yes)
		mq_option_made(&o->shared, r, o->queue);
}

void
transport_begin(struct transport *t, struct mq_server *server)
{
	const struct options *o = t->opt;
	int rv = mq_redis_open(&t->redis, server);

	interrupt_catch(0);
	t->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	if (rv == -1 && spools(t))
		return;
	if (rv == -1 && o->flush)
		spool_note(t, t->redis.status, t->redis.error);
	mq_option_must(&t->redis, rv);
	mq_publisher_init(&t->publisher, &t->redis, o->shared.layout, o->queue,
	    &o->attributes, note_verdict, t);
	if (o->spool_max > 0)
		mq_publisher_keep_marks(&t->publisher);
	mq_redis_wait_with(&t->redis, transport_wait, t);
	while (o->durable && find_promise(t) == -1)
		if (!begin_again(t))
			give_up(t, t->redis.status);
	open_queue(t);
}

void
transport_begin_away(struct transport *t)
{
	interrupt_catch(0);
	t->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	(void)spool_take_over(t);
}

void
transport_free(struct transport *t)
{
	mq_publisher_free(&t->publisher);
	mq_redis_close(&t->redis);
	mq_buf_free(&t->ids);
	mq_buf_free(&t->unsafe_ids);
	spool_free(t);
}

/* --- under way ----------------------------------------------------------------- */

/* No more can be published: waits for the verdicts on all batches under way, which may be
 * accepted, and ends the program. */
static void __attribute__((noreturn))
end_when_answered(struct transport *t, int status)
{
	struct mq_publisher *p = &t->publisher;

	t->gap = true;
	while (p->under_way > 0)
		if (mq_publisher_answer(p) == MQ_CALL_LOST)
			give_up(t, t->redis.status);
	(void)make_safe(t);
	outcome_end(t, status);
}

static void __attribute__((noreturn)) end_refused(struct transport *t)
{
	mq_say("%s", t->redis.error);
	end_when_answered(t, t->redis.status);
}

static void
drop_too_long(struct transport *t, const char *why, bool said)
{
	long long number = mq_publisher_drop(&t->publisher, said);

	if (number == 0)
		return;
	mq_say("record %lld: %s%s%s", number, why,
	    said ? "" : ", twice at this message, which may be too long for it",
	    t->opt->shared.layout->attachments != NULL ?
		"; --attach sends it as a file" :
		"");
	t->reported = true;
	t->count[MQ_PUBLISHED_TOO_LONG]++;
	if (t->opt->flush)
		spool_judge(t, MQ_PUBLISHED_TOO_LONG, number);
	if (t->opt->spool_max > 0)
		spool_done(t, number, true);
	t->lost_ms = t->pause_ms = 0;
}

static void __attribute__((noreturn))
end_missing(struct transport *t, long long missing)
{
	unsigned long lost = (unsigned long)missing;
	unsigned long *accepted = &t->count[MQ_PUBLISHED];

	mq_say("%s: the server has come back without what it had accepted: up "
	       "to %lu message%s lost",
	    t->opt->queue, lost, lost == 1 ? " is" : "s are");
	*accepted -= MIN(lost, *accepted);
	outcome_end(t, MQ_EXIT_AGAIN);
}

/* The connection is lost with the verdicts under way: connects again, and finds out which
 * batches must be sent again; or ends the program. */
static void
resume(struct transport *t)
{
	struct mq_publisher *p = &t->publisher;
	bool said = t->redis.status == MQ_EXIT_DATA, proven;
	enum mq_call result;
	char why[sizeof(t->redis.error)];
	long long missing;

	if (!said && spools(t))
		return;
	strlcpy(why, t->redis.error, sizeof(why));
	/* The server called a message too long, and there is only one. */
	if (said && p->kept == 1)
		drop_too_long(t, why, said);
	if (!mq_publisher_can_resume(p))
		give_up(t, t->redis.status);
	do {
		if (!reconnect(t, said ? NULL : why))
			give_up(t, t->redis.status);
		result = mq_publisher_resume(p, &missing, &proven);
	} while (result == MQ_CALL_LOST || result == MQ_CALL_AGAIN);
	if (result == MQ_CALL_REFUSED)
		give_up(t, MQ_EXIT_UNAVAILABLE);
	if (missing > 0)
		end_missing(t, missing);
	/* Without a mark, only the former server's promise would hold. */
	t->new_server = t->opt->durable && proven;
	drop_too_long(t, why, said);
}

/* Sends all batches; none to a private server whose disk is full, which would end it. */
static void
send_all(struct transport *t)
{
	struct mq_publisher *p = &t->publisher;

	while (!t->away) {
		if (mq_redis_room(&t->redis,
			p->bytes + mq_batch_bytes(mq_publisher_next(p))) == -1)
			end_refused(t);
		if (mq_publisher_send(p) == 0)
			return;
		resume(t);
	}
}

static void
end_if_full(struct transport *t)
{
	/* A flush first finds out which batches behind have a mark. */
	if (t->count[MQ_PUBLISHED_FULL] == 0 || t->opt->flush)
		return;
	mq_say("%s: the queue is full", t->opt->queue);
	end_when_answered(t, MQ_EXIT_AGAIN);
}

/* Whether a batch that the server cannot take now goes to disk, with all behind it.  Their marks say
 * which of those it has taken. */
static bool
spools_refused(struct transport *t, long long number)
{
	if (t->opt->spool_max == 0 || t->redis.status != MQ_EXIT_AGAIN ||
	    !mq_publisher_can_resume(&t->publisher))
		return false;
	spool_refuse(t, number);
	mq_redis_close(&t->redis);
	return spools(t);
}

/* Waits for the verdicts on the oldest batch. */
static void
collect(struct transport *t)
{
	long long number = t->publisher.batches[0].how.mark.before + 1;
	enum mq_call result = mq_publisher_answer(&t->publisher);

	if (result == MQ_CALL_REFUSED && spools_refused(t, number))
		return;
	if (result == MQ_CALL_REFUSED)
		end_refused(t);
	if (result == MQ_CALL_LOST)
		resume(t);
	if (result != MQ_CALL_DONE)
		send_all(t);
	end_if_full(t);
}

/* --- batch --------------------------------------------------------------- */

/* Messages and bytes of a full batch. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536
/* On disk: nobody waits for it to be full, and fewer batches are published faster. */
#define AWAY_BYTES ((size_t)2 * BATCH_BYTES)

void
batch_cut(struct transport *t)
{
	struct mq_publisher *p = &t->publisher;

	if (t->away && spool_cut(t) == -1)
		end_unwritten(t);
	if (t->away || mq_publisher_next(p)->count == 0)
		return;
	send_all(t);
	end_if_full(t);
	while (mq_publisher_full(p, &t->how))
		collect(t);
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
	batch_cut(t);
	while (t->publisher.kept > 0)
		collect(t);
	if (t->away && spool_sync(t) == -1)
		end_unwritten(t);
	if (t->away)
		write_ids(t);
	flush_output(t);
}

void
batch_settle(struct transport *t)
{
	batch_flush(t);
	while (!make_safe(t)) {
		/* Sentinels soon name another server, which may have all messages. */
		if (!mq_redis_lost(&t->redis) ||
		    t->redis.server->url.kind != MQ_URL_SENTINEL)
			give_up(t, MQ_EXIT_AGAIN);
		resume(t);
	}
	/* A later loss has all its time. */
	t->lost_ms = t->pause_ms = 0;
	flush_output(t);
}

/* Bounds the memory of unsafe_ids. */
static void
send_or_settle(struct transport *t)
{
	batch_cut(t);
	if (t->unsafe_ids.len > UNSAFE_BYTES)
		batch_settle(t);
}

void
batch_set(struct transport *t, struct mq_when when, bool has_options)
{
	/* Messages without options must be in the queue before the first with some. */
	if (has_options && !t->how.has_options)
		batch_flush(t);
	else if (when.kind != t->how.when.kind || when.ms != t->how.when.ms)
		send_or_settle(t);
	t->how.when = when;
	t->how.has_options = has_options;
}

static void
add_away(struct transport *t, const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	/* A message that the server calls too long must be alone. */
	if (n > AWAY_BYTES || spool_is_full(t, BATCH_COUNT, AWAY_BYTES - n))
		batch_cut(t);
	spool_copy(t, unique, id, header, payload, n);
	if (spool_is_full(t, BATCH_COUNT, AWAY_BYTES))
		batch_cut(t);
}

void
batch_add(struct transport *t, const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct mq_publisher *p = &t->publisher;
	const struct mq_batch *next = mq_publisher_next(p);

	if (t->away) {
		add_away(t, unique, id, header, payload, n);
		return;
	}
	if (next->count > 0 && mq_batch_bytes(next) + n > BATCH_BYTES) {
		send_or_settle(t);
		next = mq_publisher_next(p);
	}
	mq_publisher_add(p, &t->how, unique,
	    t->opt->ids || t->opt->wait ? id : NULL, header, payload, n);
	if (t->opt->spool_max > 0)
		spool_copy(t, unique, id, header, payload, n);
	if (next->count == BATCH_COUNT || mq_batch_bytes(next) > BATCH_BYTES)
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
