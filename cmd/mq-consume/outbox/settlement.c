/*
 * The settlement of one message.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "outbox.h"

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

void
settlement_out_of_line(struct outbox *o, struct message *m)
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
	settlement_out_of_line(o, m);
	o->settling--;
}

static void
end_settlement(struct outbox *o, struct message *m, bool confirmed)
{
	outbox_forget(o, m);
	o->events->settled(o->arg, m, confirmed);
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
		o->events->refused(o->arg, answer->error);
		return;
	}
	/* The message goes back instead, and the consumer ends.  The next start
	 * finds the key, and names it. */
	message_note(m, "returned: a key of %s has the wrong type",
	    m->outcome == MQ_OUTCOME_PUSH ? m->to : "the queue");
	m->outcome = MQ_OUTCOME_FRONT;
	settlement_send(o, m);
	o->events->wrong_key(o->arg);
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
		o->events->too_long(o->arg, m);
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
	o->events->pausing(o->arg, queue, false);
	if (answer == NULL)
		return;
	if (answer->error != NULL)
		o->events->refused(o->arg, answer->error);
	else
		o->events->paused(o->arg, queue);
}

/* Until the answer, no message of the queue is started. */
static void
send_pause(struct outbox *o, const struct message *m)
{
	struct pause_request *p = mq_xcalloc(1, sizeof(*p));

	*p = (struct pause_request){o, m->queue};
	o->events->pausing(o->arg, m->queue, true);
	mq_consumer_pause(o->server, m->queue_name, m->pause_ms, on_paused, p);
}

/* --- sending ---------------------------------------------------------------- */

/* The next of a group, which an end makes ready, may be as long. */
size_t
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

	if (bytes == 0 || o->events->has_room(o->arg, bytes))
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
		o->events->wake(o->arg);
}

/* Until no settlement of an equal message is under way; see equal.c. */
static void
wait_for_equal(struct outbox *o, struct message *m)
{
	stop_waiting(o, m);
	TAILQ_INSERT_TAIL(&o->equal_of[m->queue], m, waiting);
	m->lined_up = true;
	o->equal_count++;
	o->events->wake(o->arg);
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

void
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
	mq_consumer_settle(o->server, m->queue, &how, on_settled, m);
	mq_buf_free(&notice.element);
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
