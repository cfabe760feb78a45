/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "lease.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "calls.h"

#define CLAIM_BYTES ((size_t)1024 * 1024)
#define NAMES	    50 /* new names that are tried */

/* --- connection ----------------------------------------------------------------- */

/* Does the first `steps` steps of renewing, and on a cluster those of the queue.  1: the lease
 * holds for ms from now on (0: for the layout's usual time); 0: the lease was over. */
static int
session_renew(const struct mq_lease *s, int64_t ms, int steps)
{
	const struct mq_layout *layout = s->layout;
	struct mq_session session = s->session;
	struct mq_steps list = {.redis = s->redis};
	bool cluster = mq_redis_command(s->redis).cluster;
	redisReply *reply;
	int queue, step, held = 1;
	int end = cluster && (layout->has & MQ_HAS_NODES) ? 1 : 0;

	session.lease_ms = ms;
	for (queue = -1; queue < end; queue++) {
		layout->renew(&session, queue, &list);
		for (step = 0;
		     held == 1 && step < list.n && (queue == 0 || step < steps);
		     step++) {
			reply = mq_call(s->redis, &list.list[step], -1);
			if (reply == NULL)
				held = -1;
			else if (step == 0)
				held =
				    mq_layout_lease(layout, reply, cluster) > 0;
			freeReplyObject(reply);
		}
		mq_steps_free(&list);
	}
	return held;
}

/* Removes the connection if it holds no messages; on a cluster in steps, since some keys are
 * on other nodes than the queue. */
static int
session_vacate(const struct mq_lease *s)
{
	const struct mq_layout *layout = s->layout;
	struct mq_redis *r = s->redis;
	struct mq_steps list = {.redis = r};
	long long empty;
	int i, rv;

	layout->leave(&s->session, MQ_LEAVE_EMPTY, &list);
	rv = mq_call_number(r, &list.list[0], &empty);
	if (rv == 0 && list.list[0].cluster && (layout->has & MQ_HAS_NODES) &&
	    empty == 1)
		layout->leave(&s->session, MQ_LEAVE_OWN, &list);
	for (i = 1; rv == 0 && i < list.n; i++)
		rv = mq_call_done(r, &list.list[i]);
	mq_steps_free(&list);
	return rv;
}

/* Counts; a failure does not matter, as a user may have no right to count. */
static void
session_count(
    const struct mq_lease *s, const char *queue, const struct mq_counts *n)
{
	struct mq_command c = mq_redis_command(s->redis);

	mq_extra_count(s->layout->extra, &c, queue, n);
	(void)mq_call_done(s->redis, &c);
}

/* Parses an element, which must stay.  Returns an error, constant text, or NULL. */
static const char *
session_unpack(const struct mq_lease *s, struct mq_leased *m,
    const char *element, size_t len)
{
	const char *id, *why = NULL;

	*m = (struct mq_leased){.element = element, .len = len};
	if (mq_envelope_parse(element, len, &m->envelope, &why) == -1)
		m->envelope = (struct mq_envelope){0};
	id = s->layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
					   mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	return why;
}

/*
 * Settles a message in one step: 1; 0: the session does not hold it any more.  number: of
 * its receipt; NULL: not handed out yet, or found by its id.  changed: its headers differ
 * from the element's.  end: the result, which gets the id; NULL: it goes back to the front.
 */
static int
settle_message(struct mq_lease *s, const struct mq_leased *m,
    const char *number, bool changed, struct mq_ending *end)
{
	int64_t asked = mq_result_wanted(&m->envelope) ? MQ_RESULT_KEEP_MS : 0;
	int64_t own = s->keep_ms;
	struct mq_result result = {.id = m->id,
	    .keep_ms = own > asked ? own : asked,
	    .listed = own > 0};
	struct mq_settlement how = {.outcome = end == NULL ? MQ_OUTCOME_FRONT :
		end->state == MQ_END_DONE		   ? MQ_OUTCOME_ACK :
		end->state == MQ_END_PUSHED		   ? MQ_OUTCOME_PUSH :
							     MQ_OUTCOME_REJECT,
	    .push = end != NULL ? end->to : NULL,
	    .element = m->element,
	    .len = m->len,
	    .holds = mq_message_has(&m->envelope, MQ_TRAIT_LOCK),
	    .receipt = number};
	struct mq_command c = mq_redis_command(s->redis);
	struct mq_buf text = {0}, header = {0};
	long long settled;
	int rv;

	if (changed) {
		if (how.push != NULL)
			mq_message_pass(&m->envelope, &header);
		else
			mq_envelope_write_header(&m->envelope, &header);
		how.header = header.data;
		how.header_len = header.len;
		how.payload_at = (size_t)(m->envelope.payload - m->element);
	}
	if (end != NULL && result.keep_ms > 0 && m->id[0] != '\0') {
		strlcpy(end->id, m->id, sizeof(end->id));
		mq_ending_write(end, &text);
		result.text = text.data;
		result.len = text.len;
		how.result = &result;
	}
	mq_id_make(&s->ids, 0, how.unique);
	s->layout->settle(&s->session, 0, &how, 1, &c);
	rv = mq_call_number(s->redis, &c, &settled);
	mq_buf_free(&text);
	mq_buf_free(&header);
	return rv == -1 ? -1 : settled == MQ_SETTLED;
}

/* --- taking ---------------------------------------------------------------------- */

static void
forget_messages(struct mq_lease *l)
{
	int i;

	for (i = 0; i < l->count; i++) {
		mq_envelope_free(&l->messages[i].envelope);
		free(l->messages[i].receipt);
	}
	free(l->messages);
	freeReplyObject(l->reply);
	l->messages = NULL;
	l->reply = NULL;
	l->count = 0;
}

/* Joins under a new name, whose keys must lie on nodes of the cluster that answer.  The first
 * step begins the lease, and is confirmed before the others.  A node with the list of queues
 * that is away does not matter. */
static int
join_queue(struct mq_lease *l)
{
	struct mq_redis *redis = l->redis;
	struct mq_steps list = {.redis = redis};
	struct mq_command asked;
	int rv, i, left = NAMES;
	const char *why;
	char random[7];
	bool spare;

	do {
		mq_id_random(&l->ids, random, 6);
		snprintf(l->connection, sizeof(l->connection), "%s-%s", l->tag,
		    random);
		rv = 0;
		l->layout->join(&l->session, &list);
		for (i = 0; rv == 0 && i < list.n; i++) {
			spare = list.list[i].optional;
			list.list[i].optional = true;
			asked = list.list[i];
			rv = mq_call_done(redis, &list.list[i]);
			why = rv == -1 || spare ?
			    NULL :
			    mq_partial_missed(redis, &asked);
			if (why != NULL)
				rv = mq_redis_fail(
				    redis, MQ_EXIT_UNAVAILABLE, "%s", why);
		}
		mq_steps_free(&list);
	} while (rv == -1 && !mq_redis_lost(redis) &&
	    redis->status == MQ_EXIT_UNAVAILABLE && --left > 0);
	l->make &= rv == -1;
	l->joined = rv == 0;
	return rv;
}

/* Pushes a message that goes on in another queue.  1; 0: the server refuses, and why says the
 * reason. */
static int
pass_message(struct mq_lease *l, struct mq_leased *m, const char *to)
{
	struct mq_redis *r = l->redis;
	const struct mq_layout *layout = l->layout;
	struct mq_ending end = {.state = MQ_END_PUSHED,
	    .to = to,
	    .status = -1,
	    .finished_ms = mq_clock_unix_us() / 1000};
	const char *bad = layout->queue_error(to);
	int settled = bad == NULL ? settle_message(l, m, NULL, true, &end) : 0;

	if (settled == -1 && r->status != MQ_EXIT_NOPERM &&
	    r->status != MQ_EXIT_WRONGTYPE)
		return -1;
	if (bad != NULL || settled == -1) {
		snprintf(m->why, sizeof(m->why), "push: %.64s: %.200s", to,
		    bad != NULL ? bad : r->error);
		return 0;
	}
	if (settled == 0)
		return 1;
	session_count(l, l->queue, &(struct mq_counts){.done = 1});
	session_count(l, to, &(struct mq_counts){.published = 1});
	/* Otherwise mq-clean does that. */
	if (mq_redis_command(r).cluster && layout->finish_pushes != NULL)
		(void)layout->finish_pushes(r, l->queue, to);
	return 1;
}

/* Rejects messages that cannot run, gives the others receipts, in their order, and returns
 * their number. */
static int
sort_messages(struct mq_lease *l, int n, const struct mq_claimed *facts)
{
	redisReply **elements = l->reply->element + l->reply->elements - n;
	struct mq_ending end;
	const redisReply *e;
	struct mq_leased *m;
	const char *bad, *to;
	int good = 0, passed;
	bool late, unfit;

	l->messages = mq_xcalloc((size_t)n, sizeof(*l->messages));
	for (; l->count < n; l->count++) {
		m = &l->messages[l->count];
		e = elements[l->count];
		bad = session_unpack(l, m, e->str, e->len);
		late = bad == NULL &&
		    mq_message_over(&m->envelope, facts->now_ms, facts->tick,
			m->why, sizeof(m->why));
		unfit = late ||
		    (bad == NULL &&
			mq_message_batch_failed(
			    &m->envelope, m->why, sizeof(m->why)));
		to = unfit ? NULL : mq_message_to(&m->envelope, l->queue);
		passed = to != NULL ? pass_message(l, m, to) : 0;
		if (passed == -1)
			return -1;
		if (passed == 1)
			continue;
		unfit |= to != NULL;
		if (bad == NULL && !unfit) {
			m->receipt =
			    mq_xasprintf("%s.%d", l->connection, ++good);
			continue;
		}
		if (unfit)
			mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, m->why);
		else
			snprintf(m->why, sizeof(m->why), "bad header: %s", bad);
		end = (struct mq_ending){
		    .state = late ? MQ_END_EXPIRED : MQ_END_REJECTED,
		    .text = m->why,
		    .status = -1,
		    .finished_ms = mq_clock_unix_us() / 1000};
		if (settle_message(l, m, NULL, unfit, &end) == -1)
			return -1;
		session_count(l, l->queue,
		    &(struct mq_counts){.failed = !late, .expired = late});
	}
	return good;
}

static int
hand_out_messages(struct mq_lease *l, int n)
{
	struct mq_part *elements = mq_xcalloc((size_t)n, sizeof(*elements));
	struct mq_redis *redis = l->redis;
	const struct mq_leased *m = l->messages;
	struct mq_command c = mq_redis_command(redis);
	long long numbered;
	int i, held;

	for (i = 0; i < n; m++)
		if (m->receipt != NULL)
			elements[i++] = (struct mq_part){m->element, m->len};
	l->layout->receipts(&l->session, elements, n, &c);
	free(elements);
	if (mq_call_number(l->redis, &c, &numbered) == -1)
		return -1;
	held = numbered == n ? session_renew(l, l->ms, 1) : 0;
	if (held != 0)
		return held;
	return mq_layout_fail(
	    redis, MQ_EXIT_AGAIN, l->connection, "lease lost");
}

int
mq_lease_take(struct mq_lease *l, const struct mq_leased **messages)
{
	const struct mq_claim how = {
	    .max = l->max, .bytes = CLAIM_BYTES, .shared = true};
	struct mq_command c = mq_redis_command(l->redis);
	struct mq_claimed facts;
	int n, good, held = l->joined && !l->empty;
	long long left;

	l->session = (struct mq_session){.connection = l->connection,
	    .consumer = l->connection,
	    .queues = &l->queue,
	    .queue_count = 1,
	    .make = l->make,
	    .slots = l->max,
	    .attempts = l->attempts,
	    .lease_ms = l->ms};
	forget_messages(l);
	if (mq_queue_pause_left(l->redis, l->layout, l->queue, &left) == -1)
		return -1;
	if (left != -2)
		return 0;
	/* After an empty claim, the lease was not renewed. */
	if (l->joined && l->empty)
		held = session_renew(l, 0, 1);
	if (held == 0)
		held = join_queue(l);
	if (held == -1)
		return -1;
	do {
		forget_messages(l);
		l->layout->claim(&l->session, 0, &how, &c);
		l->reply = mq_call(l->redis, &c, -1);
		if (l->reply == NULL)
			return -1;
		n = mq_layout_claimed(l->reply, &facts);
		/* The server dropped messages that others have replaced, and has more. */
	} while (n == 0 && facts.again);
	if (n == MQ_CLAIM_BAD) {
		(void)mq_nonsense(l->redis);
		l->redis->status = MQ_EXIT_WRONGTYPE;
		return -1;
	}
	l->joined = n != MQ_CLAIM_LOST;
	l->empty = n == 0;
	if (n <= 0)
		return n;
	good = sort_messages(l, n, &facts);
	if (good == -1 || (good > 0 && hand_out_messages(l, good) == -1))
		return -1;
	*messages = l->messages;
	return n;
}

int
mq_lease_free(struct mq_lease *l, bool undo)
{
	int i, rv = 0;

	for (i = l->count; undo && rv == 0 && i-- > 0;)
		if (l->messages[i].receipt != NULL &&
		    settle_message(l, &l->messages[i], NULL, false, NULL) == -1)
			rv = -1;
	if (undo && rv == 0)
		rv = session_vacate(l);
	forget_messages(l);
	return rv;
}

/* --- receipts ------------------------------------------------------------------ */

const char *
mq_receipt_number(const char *word)
{
	const char *dot = strrchr(word, '.');

	return dot == NULL || dot == word || dot[1] == '\0' ||
		dot[1 + strspn(dot + 1, "0123456789")] != '\0' ?
	    NULL :
	    dot + 1;
}

static int
end_message(struct mq_lease *s, struct mq_leased *m, bool ack, const char *text,
    const char *number)
{
	const struct mq_counts n = {.done = ack, .failed = !ack};
	const char *id = mq_message_id(&m->envelope);
	char host[256] = "", new[MQ_ID_LEN + 1];
	struct mq_ending end = {.state = ack ? MQ_END_DONE : MQ_END_REJECTED,
	    .text = ack || text != NULL ? text : "rejected by receipt",
	    .status = -1,
	    .attempts =
		1 + mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0),
	    .host = host,
	    .finished_ms = mq_clock_unix_us() / 1000};
	const struct mq_failure failure = {.at_ms = end.finished_ms,
	    .attempt = end.attempts,
	    .status = -1,
	    .host = host,
	    .text = end.text};
	int settled;

	gethostname(host, sizeof(host) - 1);
	if (!ack) {
		mq_id_make(&s->ids, (uint64_t)mq_clock_unix_us(), new);
		mq_message_record(&m->envelope, id != NULL ? id : new,
		    end.attempts, end.text);
		mq_history_add(&m->envelope, &failure);
	}
	settled = settle_message(s, m, number, !ack, &end);
	if (settled == 1)
		session_count(s, s->queue, &n);
	return settled;
}

static int
settle_receipt(struct mq_lease *s, const struct mq_buf *element,
    const char *number, enum mq_receipt_act act, const char *text)
{
	struct mq_leased m;
	bool good = session_unpack(s, &m, element->data, element->len) == NULL;
	int settled = 0;

	if (act == MQ_RECEIPT_RETURN)
		settled = settle_message(s, &m, number, false, NULL);
	else if (good)
		/* A message that was handed out has no bad header. */
		settled =
		    end_message(s, &m, act == MQ_RECEIPT_ACK, text, number);
	mq_envelope_free(&m.envelope);
	if (settled == 1 && session_vacate(s) == -1)
		return -1;
	return settled;
}

int
mq_receipt_use(struct mq_lease *l, const char *word, enum mq_receipt_act act,
    const char *text)
{
	const char *number = mq_receipt_number(word);
	struct mq_command c = mq_redis_command(l->redis);
	struct mq_receipt found = {0};
	redisReply *reply;
	int rv = 0;

	if (number != NULL) {
		found.connection =
		    mq_xstrndup(word, (size_t)(number - 1 - word));
		l->layout->receipt(&c, found.connection, l->queue, number);
		reply = mq_call(l->redis, &c, -1);
		if (reply == NULL) {
			rv = -1;
		} else if (reply->type == REDIS_REPLY_STRING) {
			mq_buf_add(&found.element, reply->str, reply->len);
		} else {
			free(found.connection);
			found.connection = NULL;
		}
		freeReplyObject(reply);
	} else if (l->layout->receipt_by_id != NULL) {
		rv = l->layout->receipt_by_id(l->redis, l->queue, word, &found);
	}
	/* Without a connection, the message is not held. */
	if (rv == 0 && found.connection != NULL) {
		l->session = (struct mq_session){.connection = found.connection,
		    .queues = &l->queue,
		    .queue_count = 1};
		rv = act == MQ_RECEIPT_EXTEND ?
		    session_renew(l, l->ms, INT_MAX) :
		    settle_receipt(l, &found.element, number, act, text);
	}
	free(found.connection);
	mq_buf_free(&found.element);
	return rv;
}
