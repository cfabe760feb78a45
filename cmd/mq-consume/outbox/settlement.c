/*
 * The settlement of one message.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "mq-consume/rules.h"
#include "outbox.h"

/* Bytes of messages that one command settles together. */
#define BATCH_BYTES ((size_t)1 << 20)
/* The most of these that are equal. */
#define EQUAL_MAX 250
/* The most that go back, which takes the server a few milliseconds. */
#define BACK_MAX 500
/* Fewer messages are sent one by one, unless the first is long: alone it is copied. */
#define BACK_MIN  4
#define BACK_LONG 4096

/* --- result -------------------------------------------------------------- */

/* The queue that hears of the end; NULL: none.  A notice has no other. */
static const char *
notified(const struct result_rules *r, const struct message *m)
{
	return mq_envelope_get(&m->envelope, MQ_HEADER_NOTICE) != NULL ?
	    NULL :
	    rules_of(r->opt, m->queue)->notify;
}

static bool
is_kept(const struct result_rules *r, const struct message *m)
{
	return m->id[0] != '\0' &&
	    (rules_of(r->opt, m->queue)->keep_ms > 0 || m->awaited);
}

bool
result_wanted(const struct result_rules *r, const struct message *m)
{
	return is_kept(r, m) || notified(r, m) != NULL;
}

static void
write_result(const struct result_rules *r, struct message *m, enum mq_end state,
    const struct mq_failure *f, const char *to)
{
	struct mq_ending e = {.state = state,
	    .queue = notified(r, m) != NULL ? m->queue_name : NULL,
	    .text = f != NULL && f->text[0] != '\0' ? f->text : NULL,
	    .status = f != NULL ? f->status : -1,
	    .signal = f != NULL ? f->signal : NULL,
	    .attempts = m->attempts + !m->expired,
	    .host = r->host,
	    .to = to,
	    .finished_ms = mq_clock_unix_us() / 1000};

	strlcpy(e.id, m->id, sizeof(e.id));
	mq_buf_clear(&m->result);
	mq_ending_write(&e, &m->result);
}

void
result_note(const struct result_rules *r, struct message *m, enum mq_end state,
    const struct mq_failure *f)
{
	if (result_wanted(r, m))
		write_result(r, m, state, f, NULL);
}

/* Sets *out to the result to send with a settlement; its text is the message's.
 * NULL: none. */
static const struct mq_result *
result_of(const struct result_rules *r, struct message *m,
    const struct mq_settlement *how, struct mq_result *out)
{
	int64_t asked = m->awaited ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep_ms = rules_of(r->opt, m->queue)->keep_ms;

	if (how->outcome == MQ_OUTCOME_FRONT ||
	    how->outcome == MQ_OUTCOME_AGAIN || !result_wanted(r, m))
		return NULL;
	if (how->outcome == MQ_OUTCOME_PUSH)
		write_result(r, m, MQ_END_PUSHED, NULL, how->push);
	else if (m->result.len == 0)
		write_result(r, m,
		    how->outcome == MQ_OUTCOME_ACK ? MQ_END_DONE :
						     MQ_END_REJECTED,
		    NULL, NULL);
	if (!is_kept(r, m))
		return NULL;
	*out = (struct mq_result){.id = m->id,
	    .text = m->result.data,
	    .len = m->result.len,
	    .keep_ms = keep_ms > asked ? keep_ms : asked};
	return out;
}

/* The same, after it, for the notice; the caller frees the element. */
static const struct mq_notice *
result_notice(const struct result_rules *r, const struct message *m,
    const struct mq_settlement *how, struct mq_idgen *ids,
    struct mq_notice *out)
{
	if (how->outcome == MQ_OUTCOME_FRONT ||
	    how->outcome == MQ_OUTCOME_AGAIN || notified(r, m) == NULL)
		return NULL;
	out->queue = notified(r, m);
	mq_id_make(ids, (uint64_t)mq_clock_unix_us(), out->unique);
	mq_notice_write(out->unique, m->queue_name, &m->result, &out->element);
	return out;
}

/* --- answers ---------------------------------------------------------------- */

/* Says why the outcome, in parentheses, does not count. */
static void
say_overtaken(const struct message *m, const char *by)
{
	if (m->news.len > 0)
		message_say(m, "%s (%.*s)", by, (int)m->news.len, m->news.data);
	else
		message_say(m, "%s", by);
}

void
outbox_lose(struct outbox *o, struct message *m, const char *why)
{
	counters_lost(o->counters, m);
	say_overtaken(m, why);
}

static void
stop_waiting(struct outbox *o, struct message *m)
{
	if (m->lined_up) {
		TAILQ_REMOVE(&o->equal_of[m->queue], m, waiting);
		o->equal_count--;
		m->lined_up = false;
	}
	if (!m->waits)
		return;
	TAILQ_REMOVE(&o->waiting, m, waiting);
	o->waiting_count--;
	o->waiting_of[m->queue]--;
	m->waits = false;
}

/* The message does not go back any more, or not with others. */
static void
leave_line(struct outbox *o, struct message *m)
{
	if (!m->goes_back)
		return;
	TAILQ_REMOVE(&o->back_of[m->queue], m, line);
	m->goes_back = false;
	o->back_count--;
}

void
outbox_forget(struct outbox *o, struct message *m)
{
	stop_waiting(o, m);
	leave_line(o, m);
	o->settling--;
}

static void
end_settlement(struct outbox *o, struct message *m, bool confirmed)
{
	outbox_forget(o, m);
	tell(o, FACT_SETTLED, .message = m, .yes = confirmed);
}

void
outbox_confirm(struct outbox *o, struct message *m)
{
	bool silent = o->opt->quiet && m->outcome == MQ_OUTCOME_REJECT;

	counters_settled(o->counters, m);
	if (m->news.len > 0 && !silent)
		message_say(m, "%.*s", (int)m->news.len, m->news.data);
	end_settlement(o, m, true);
}

/* The message is not in flight any more. */
static void
note_answer(struct outbox *o, struct message *m)
{
	m->in_flight = false;
	o->in_flight--;
	o->copying -= m->copied;
	m->copied = 0;
	o->moves++;
}

/* Whether a key of the destination holds something else. */
static bool
is_wrong_key(const struct message *m, const struct mq_answer *answer)
{
	return m->outcome != MQ_OUTCOME_ACK && m->outcome != MQ_OUTCOME_FRONT &&
	    answer->status == MQ_EXIT_WRONGTYPE;
}

static void
take_refusal(
    struct outbox *o, struct message *m, const struct mq_answer *answer)
{
	inbox_disorder(o->inbox, m->queue);
	m->sent = false;
	if (!is_wrong_key(m, answer)) {
		tell(o, FACT_REFUSED, .text = answer->error);
		return;
	}
	/* The message goes back instead, and the consumer ends.  The next start
	 * finds the key, and names it. */
	message_note(m, "returned: a key of %s has the wrong type",
	    m->outcome == MQ_OUTCOME_PUSH ? m->to : "the queue");
	m->outcome = MQ_OUTCOME_FRONT;
	settlement_send(o, m);
	tell(o, FACT_WRONG_KEY);
}

static void
take_settled(struct outbox *o, struct message *m, enum mq_settled how)
{
	switch (how) {
	case MQ_SETTLED:
		outbox_confirm(o, m);
		break;
	case MQ_SETTLED_LOST:
		outbox_lose(
		    o, m, "lease lost: another consumer has the message now");
		end_settlement(o, m, false);
		break;
	case MQ_SETTLED_GONE:
		/* Nobody misses a message that was not started. */
		if (m->outcome != MQ_OUTCOME_FRONT || o->opt->verbose)
			say_overtaken(m, "gone: the message was deleted");
		end_settlement(o, m, false);
		break;
	case MQ_SETTLED_TOO_LONG:
		outbox_forget(o, m);
		tell(o, FACT_TOO_LONG, .message = m);
		break;
	}
}

void
settlement_answered(struct outbox *o, struct message *m,
    const struct mq_answer *answer, enum mq_settled how)
{
	note_answer(o, m);
	if (m->lost)
		end_settlement(o, m, false);
	else if (answer != NULL && answer->error != NULL)
		take_refusal(o, m, answer);
	else if (answer != NULL)
		take_settled(o, m, how);
}

/* --- pauses ----------------------------------------------------------------- */

struct pause_request {
	struct outbox *outbox;
	int queue;
};

/* The message is settled in any case. */
static void
on_paused(void *arg, const struct mq_answer *answer)
{
	struct pause_request *p = arg;
	struct outbox *o = p->outbox;
	int queue = p->queue;

	free(p);
	tell(o, FACT_PAUSING, .queue = queue);
	if (answer == NULL)
		return;
	if (answer->error != NULL)
		tell(o, FACT_REFUSED, .text = answer->error);
	else
		tell(o, FACT_PAUSED, .queue = queue);
}

/* Until the answer, no message of the queue is started. */
static void
send_pause(struct outbox *o, const struct message *m)
{
	struct pause_request *p = mq_xcalloc(1, sizeof(*p));

	*p = (struct pause_request){o, m->queue};
	tell(o, FACT_PAUSING, .queue = m->queue, .yes = true);
	mq_consumer_pause(o->server, m->queue_name, m->pause_ms, on_paused, p);
}

/* --- sending ---------------------------------------------------------------- */

/* How many bytes the server copies for it, about.  The next of a group, which an end makes
 * ready, may be as long. */
static size_t
settlement_copies(const struct message *m)
{
	if (m->outcome != MQ_OUTCOME_ACK)
		return m->len + m->header.len;
	return mq_message_holds(&m->envelope) ? 2 * m->len : 0;
}

/* Whether the server has room for it; else the next tick tries again. */
static bool
fits(struct outbox *o, struct message *m)
{
	size_t bytes = settlement_copies(m);

	if (bytes == 0 || o->has_room(o->arg, bytes))
		return true;
	stop_waiting(o, m);
	return false;
}

void
settlement_sent(struct outbox *o, struct message *m)
{
	m->copied = settlement_copies(m);
	o->copying += m->copied;
	stop_waiting(o, m);
	m->sent = true;
	m->in_flight = true;
	o->in_flight++;
	inbox_settling(o->inbox, m);
}

static void
on_settled(void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct message *m = arg;
	struct outbox *o = m->outbox;
	bool ended = answer != NULL || m->lost;

	settlement_answered(o, m, answer, how);
	if (ended)
		tell(o, FACT_WAKE);
}

/* Until no settlement of an equal message is under way; see below. */
static void
wait_for_equal(struct outbox *o, struct message *m)
{
	stop_waiting(o, m);
	TAILQ_INSERT_TAIL(&o->equal_of[m->queue], m, waiting);
	m->lined_up = true;
	o->equal_count++;
	tell(o, FACT_WAKE);
}

/* Says how, but for a result and a notice; for as long as the message stays. */
static void
settlement_describe(
    struct outbox *o, const struct message *m, struct mq_settlement *how)
{
	*how = (struct mq_settlement){.outcome = m->outcome,
	    .element = m->element,
	    .len = m->len,
	    .delay_ms = m->delay_ms,
	    .push = m->to,
	    .unrun = m->expired,
	    .holds = mq_message_holds(&m->envelope)};
	if (m->envelope.payload != NULL)
		how->payload_at = (size_t)(m->envelope.payload - m->element);
	if (m->header.len > 0) {
		how->header = m->header.data;
		how->header_len = m->header.len;
	}
	/* What is pushed to another node arrives in the order of these. */
	mq_id_make(o->ids, (uint64_t)mq_clock_unix_us(), how->unique);
}

/* Although the message may have equal ones. */
static void
settlement_send_alone(struct outbox *o, struct message *m)
{
	struct mq_result result;
	struct mq_notice notice = {.queue = NULL};
	struct mq_settlement how;

	if (!fits(o, m))
		return;
	settlement_describe(o, m, &how);
	how.result = result_of(o->results, m, &how, &result);
	how.notice = result_notice(o->results, m, &how, o->ids, &notice);
	if (m->pause_ms > 0)
		send_pause(o, m);
	settlement_sent(o, m);
	m->outbox = o;
	mq_consumer_settle(o->server, m->queue, &how, 1, on_settled, m);
	mq_buf_free(&notice.element);
}

void
settlement_send(struct outbox *o, struct message *m)
{
	if (m->equal)
		wait_for_equal(o, m);
	else
		settlement_send_alone(o, m);
}

void
settlement_again(struct outbox *o, struct message *m)
{
	note_answer(o, m);
	m->sent = false;
	if (m->lost)
		end_settlement(o, m, false);
	else
		settlement_send(o, m);
}

/* --- together ------------------------------------------------------------ */

/* Messages that are settled by one command. */
struct batch {
	struct outbox *outbox;
	size_t bytes;
	int n;
	struct message *m[];
};

static struct batch *
make_batch(struct outbox *o, int most)
{
	struct batch *b =
	    mq_xcalloc(1, sizeof(*b) + (size_t)most * sizeof(b->m[0]));

	b->outbox = o;
	return b;
}

/* False: there are as many already. */
static bool
add_to_batch(struct batch *b, struct message *m, int most)
{
	b->bytes += m->len;
	if (b->n == most || (b->n > 0 && b->bytes > BATCH_BYTES))
		return false;
	b->m[b->n++] = m;
	return true;
}

/* --- equal --------------------------------------------------------------- */

/*
 * Settlements of messages that have the same bytes.  The server cannot tell these apart:
 * it removes the oldest, whichever has ended.  So that nothing has to be guessed after a
 * lost connection, at most one settlement of such messages is under way in a queue.  The
 * others wait for its answer, and go together.
 */

/* Whether a settlement of a message that has equal ones is under way in a queue. */
static bool
equal_under_way(const struct outbox *o, int queue)
{
	const struct message *m;

	for (m = inbox_first_of(o->inbox, queue); m != NULL;
	     m = TAILQ_NEXT(m, own))
		if (m->equal && m->in_flight)
			return true;
	return false;
}

/* Whether its header may ask for more than a place in line.  A message that was not
 * started has no envelope yet. */
static bool
asks_for_more(const struct message *m)
{
	return mq_envelope_signed(m->element, m->len) &&
	    (m->envelope.payload == NULL || mq_message_special(&m->envelope));
}

static bool
goes_together(const struct outbox *o, const struct message *m)
{
	return !m->alone && m->outcome != MQ_OUTCOME_PUSH && m->pause_ms == 0 &&
	    !asks_for_more(m) && !result_wanted(o->results, m);
}

/* If somebody has taken some of them, each finds out for itself. */
static void
on_settled_together(
    void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct batch *b = arg;
	struct outbox *o = b->outbox;
	bool one_by_one = mq_answer_good(answer) && how != MQ_SETTLED;
	int i;

	for (i = 0; i < b->n; i++) {
		b->m[i]->alone |= one_by_one;
		if (one_by_one)
			settlement_again(o, b->m[i]);
		else
			settlement_answered(o, b->m[i], answer, how);
	}
	free(b);
	tell(o, FACT_WAKE);
}

static struct batch *
collect_equal(struct outbox *o, int queue)
{
	struct batch *b = make_batch(o, EQUAL_MAX);
	struct message *m;

	TAILQ_FOREACH(m, &o->equal_of[queue], waiting)
		if (!goes_together(o, m) || !add_to_batch(b, m, EQUAL_MAX))
			break;
	return b;
}

static bool
fits_together(struct outbox *o, const struct batch *b)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < b->n; i++)
		bytes += settlement_copies(b->m[i]);
	return bytes == 0 || o->has_room(o->arg, bytes);
}

static void
send_together(struct outbox *o, int queue, struct batch *b)
{
	struct mq_settlement how[EQUAL_MAX];
	int i;

	for (i = 0; i < b->n; i++) {
		settlement_describe(o, b->m[i], &how[i]);
		settlement_sent(o, b->m[i]);
	}
	mq_consumer_settle(o->server, queue, how, b->n, on_settled_together, b);
}

static void
send_equal(struct outbox *o, int queue)
{
	struct batch *b = collect_equal(o, queue);

	/* The server removes another place of the list than ours. */
	inbox_disorder(o->inbox, queue);
	if (b->n > 1 && fits_together(o, b)) {
		send_together(o, queue, b);
		return;
	}
	settlement_send_alone(o, TAILQ_FIRST(&o->equal_of[queue]));
	free(b);
}

void
outbox_send_equal(struct outbox *o)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count && o->equal_count > 0;
	     queue++)
		if (!TAILQ_EMPTY(&o->equal_of[queue]) &&
		    !equal_under_way(o, queue) && session_is_up(o->session))
			send_equal(o, queue);
}

/* --- back ------------------------------------------------------------------- */

/*
 * Messages that go back unstarted, to the front of their queue.  The newest go
 * first, so the oldest ends up in front.  One command gives back the newest
 * messages of a queue that the server holds for us.  The next command waits for
 * its answer: other clients of the server have their turn meanwhile.
 *
 * If these are not the newest, as another message has not ended yet, they go one
 * by one.
 */

void
outbox_give_back(struct outbox *o, struct message *m)
{
	struct messages *line = &o->back_of[m->queue];
	struct message *other = TAILQ_LAST(line, messages);

	m->outcome = MQ_OUTCOME_FRONT;
	m->state = MESSAGE_SETTLING;
	m->goes_back = true;
	o->settling++;
	o->back_count++;
	while (other != NULL && other->number < m->number)
		other = TAILQ_PREV(other, messages, line);
	if (other == NULL)
		TAILQ_INSERT_HEAD(line, m, line);
	else
		TAILQ_INSERT_AFTER(line, other, m, line);
	tell(o, FACT_WAKE);
}

bool
outbox_gives_back(const struct outbox *o, int queue)
{
	return !TAILQ_EMPTY(&o->back_of[queue]);
}

/* Without an answer, or beyond the bounds of the command, a message stays in
 * line. */
static void
end_batch(struct batch *b, const struct mq_answer *answer, long long done)
{
	struct outbox *o = b->outbox;
	struct message *m;
	int i;

	o->back_sent = 0;
	for (i = 0; i < b->n; i++) {
		m = b->m[i];
		if (i < done) {
			settlement_answered(o, m, answer, MQ_SETTLED);
		} else if (answer == NULL || done > 0) {
			m->sent &= answer == NULL;
			settlement_answered(o, m, NULL, MQ_SETTLED_LOST);
		} else {
			leave_line(o, m);
			settlement_again(o, m);
		}
	}
}

static void
on_given_back(void *arg, const struct mq_answer *answer, long long n)
{
	struct batch *b = arg;
	struct outbox *o = b->outbox;

	end_batch(b, answer, n);
	free(b);
	tell(o, FACT_WAKE);
}

/* The next messages of a line that go together. */
static struct batch *
collect_newest(struct outbox *o, int queue)
{
	struct batch *b = make_batch(o, BACK_MAX);
	struct message *m;

	TAILQ_FOREACH(m, &o->back_of[queue], line)
		if (!add_to_batch(b, m, BACK_MAX))
			break;
	return b;
}

static void
send_one_by_one(struct outbox *o, struct batch *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		leave_line(o, b->m[i]);
		settlement_send(o, b->m[i]);
	}
	free(b);
}

static void
send_newest(struct outbox *o, int queue)
{
	struct batch *b = collect_newest(o, queue);
	struct mq_part elements[BACK_MAX];
	struct mq_newest newest = {.elements = elements,
	    .n = b->n,
	    .each = !inbox_in_order(o->inbox, queue)};
	int i;

	if (b->n < BACK_MIN && b->m[0]->len < BACK_LONG) {
		send_one_by_one(o, b);
		return;
	}
	for (i = 0; i < b->n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		newest.each |= b->m[i]->equal;
		settlement_sent(o, b->m[i]);
	}
	o->back_sent = b->n;
	mq_consumer_give_back(o->server, queue, &newest, on_given_back, b);
}

void
outbox_send_back(struct outbox *o)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count && o->back_count > 0;
	     queue++)
		while (outbox_gives_back(o, queue) && o->back_sent == 0 &&
		    !equal_under_way(o, queue) && session_is_up(o->session))
			send_newest(o, queue);
}

/* --- questions -------------------------------------------------------------- */

int
outbox_settling(const struct outbox *o)
{
	return o->settling;
}

bool
outbox_refused(const struct outbox *o)
{
	return o->settling !=
	    o->in_flight + o->waiting_count + o->equal_count + o->back_count -
	    o->back_sent;
}

unsigned long
outbox_moves(const struct outbox *o)
{
	return o->moves;
}
