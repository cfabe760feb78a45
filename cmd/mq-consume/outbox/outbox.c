/* Settlements: one message's, and those of many that go together; acks that wait for
 * others; and messages that go back. */
#include "outbox.h"

/* Bytes of messages that one command settles together, if it must read them. */
#define BATCH_BYTES ((size_t)1 << 20)

/* Messages that are settled by one command. */
struct batch {
	struct outbox *outbox;
	bool oldest; /* acks of the oldest ones of a queue */
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

/* --- answers ---------------------------------------------------------------- */

/* Says why the outcome, in parentheses, does not count. */
static void
say_overtaken(const struct message *m, const char *by)
{
	if (m->news != NULL)
		message_say(m, "%s (%s)", by, m->news);
	else
		message_say(m, "%s", by);
}

void
outbox_lose(struct outbox *o, struct message *m, const char *why)
{
	o->queues[m->queue].counts.lease_lost++;
	say_overtaken(m, why);
}

/* The message does not wait any more, or does not go back with others. */
static void
leave_line(struct outbox *o, struct message *m)
{
	struct outbox_queue *q = &o->queues[m->queue];

	if (m->in_line == LINE_NONE)
		return;
	TAILQ_REMOVE(m->in_line == LINE_ACKS ? &o->waiting :
		m->in_line == LINE_EQUAL     ? &q->equal :
					       &q->back,
	    m, line);
	o->in_line[m->in_line]--;
	q->waiting -= m->in_line == LINE_ACKS;
	m->in_line = LINE_NONE;
}

void
outbox_forget(struct outbox *o, struct message *m)
{
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

	counters_settled(o, m);
	if (m->news != NULL && !silent)
		message_say(m, "%s", m->news);
	end_settlement(o, m, true);
}

static void send_settlement(struct outbox *, struct message *);

static void
take_refusal(
    struct outbox *o, struct message *m, const struct mq_answer *answer)
{
	inbox_disorder(o->inbox, m->queue);
	m->sent = false;
	if (m->outcome == MQ_OUTCOME_ACK || m->outcome == MQ_OUTCOME_FRONT ||
	    answer->status != MQ_EXIT_WRONGTYPE) {
		tell(o, FACT_REFUSED, .text = answer->error);
		return;
	}
	/* A key of the destination holds something else.  The message goes back instead,
	 * and the consumer ends.  The next start finds the key, and names it. */
	message_note(m, "returned: a key of %s has the wrong type",
	    m->outcome == MQ_OUTCOME_PUSH ? m->to : "the queue");
	m->outcome = MQ_OUTCOME_FRONT;
	send_settlement(o, m);
	tell(o, FACT_WRONG_KEY);
}

static void
take_settled(struct outbox *o, struct message *m, enum mq_settled how)
{
	char *why;

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
		mq_buf_clear(&m->header);
		why = mq_xasprintf("push: too long for the queue %s", m->to);
		tell(o, FACT_UNFIT, .message = m, .unfit = UNFIT_RUN,
		    .text = why);
		free(why);
		break;
	}
}

/* How many bytes the server copies for it, about.  The next of a group, which an end makes
 * ready, may be as long. */
static size_t
settlement_copies(const struct message *m)
{
	if (m->outcome != MQ_OUTCOME_ACK)
		return m->len + m->header.len;
	return mq_message_holds(&m->envelope) ? 2 * m->len : 0;
}

/* The message is not in flight any more.  alone: the batch did not settle the message,
 * which is sent by itself now. */
static void
take_answer(struct outbox *o, struct message *m, const struct mq_answer *answer,
    enum mq_settled how, bool alone)
{
	m->in_flight = false;
	o->in_flight--;
	o->copying -= settlement_copies(m);
	o->moves++;
	if (alone)
		m->sent = false;
	if (m->lost)
		end_settlement(o, m, false);
	else if (alone)
		send_settlement(o, m);
	else if (answer != NULL && answer->error != NULL)
		take_refusal(o, m, answer);
	else if (answer != NULL)
		take_settled(o, m, how);
}

/* If somebody has taken some of several, each finds out for itself.  Without an answer, the
 * end of the session follows, and until then no turn may send what waits for it. */
static void
on_settled(void *arg, const struct mq_answer *answer)
{
	struct batch *b = arg;
	struct outbox *o = b->outbox;
	bool good = mq_answer_good(answer), ended = answer != NULL;
	enum mq_settled how =
	    answer != NULL ? (enum mq_settled)answer->n : MQ_SETTLED;
	bool one_by_one = good && how != MQ_SETTLED && b->n > 1;
	int i;

	if (b->oldest && (!good || one_by_one))
		inbox_disorder(o->inbox, b->m[0]->queue);
	for (i = 0; i < b->n; i++) {
		ended |= b->m[i]->lost;
		b->m[i]->alone |= one_by_one && !b->oldest;
		take_answer(o, b->m[i], answer, how, one_by_one);
	}
	free(b);
	if (ended)
		tell(o, FACT_WAKE);
}

/* The message is settled in any case. */
static void
on_paused(void *arg, const struct mq_answer *answer)
{
	struct outbox_queue *q = arg;
	struct outbox *o = q->outbox;
	int queue = (int)(q - o->queues);

	inbox_pausing(o->inbox, queue, false);
	if (answer != NULL && answer->error != NULL) {
		tell(o, FACT_REFUSED, .text = answer->error);
	} else if (answer != NULL) {
		inbox_pause_seen(o->inbox, queue, true);
		inbox_look(o->inbox, false);
	}
}

/* --- sending one ------------------------------------------------------------- */

static void
note_sent(struct outbox *o, struct message *m)
{
	o->copying += settlement_copies(m);
	if (m->in_line != LINE_BACK)
		leave_line(o, m);
	m->sent = true;
	m->in_flight = true;
	o->in_flight++;
	inbox_settling(o->inbox, m);
}

/* Says how, but for a result and a notice; for as long as the message stays. */
static void
describe_settlement(
    struct outbox *o, const struct message *m, struct mq_settlement *how)
{
	*how = (struct mq_settlement){.outcome = m->outcome,
	    .element = m->element,
	    .len = m->len,
	    .delay_ms = m->delay_ms,
	    .push = m->to,
	    .unrun = m->expired,
	    .holds = mq_message_holds(&m->envelope),
	    .header = m->header.len > 0 ? m->header.data : NULL,
	    .header_len = m->header.len};
	if (m->envelope.payload != NULL)
		how->payload_at = (size_t)(m->envelope.payload - m->element);
	/* What is pushed to another node arrives in the order of these. */
	mq_id_make(o->ids, (uint64_t)mq_clock_unix_us(), how->unique);
}

/* Whether the server has room for copies of that many bytes, beside those that are under
 * way: a disk that is full ends a private server.  If not, the next tick tries again. */
static bool
has_room(struct outbox *o, size_t bytes)
{
	char why[512];

	if (bytes == 0 ||
	    mq_server_room(
		o->session->server, o->copying + bytes, why, sizeof(why)) == 0)
		return true;
	tell(o, FACT_NO_ROOM, .text = why);
	return false;
}

/* Although the message may have equal ones. */
static void
send_alone(struct outbox *o, struct message *m)
{
	struct mq_result result;
	struct mq_notice notice = {.queue = NULL};
	struct mq_settlement how;
	struct batch *b;

	if (!has_room(o, settlement_copies(m))) {
		leave_line(o, m);
		return;
	}
	describe_settlement(o, m, &how);
	result_add(o, m, &how, &result, &notice);
	/* Until the answer, no message of the queue is started. */
	if (m->pause_ms > 0) {
		inbox_pausing(o->inbox, m->queue, true);
		mq_consumer_pause(o->server, m->queue_name, m->pause_ms,
		    on_paused, &o->queues[m->queue]);
	}
	note_sent(o, m);
	b = make_batch(o, 1);
	b->m[b->n++] = m;
	mq_consumer_settle(o->server, m->queue, &how, 1, on_settled, b);
	mq_buf_free(&notice.element);
}

/* One that has equal ones waits until no settlement of these is under way; see below. */
static void
send_settlement(struct outbox *o, struct message *m)
{
	if (!m->equal) {
		send_alone(o, m);
		return;
	}
	leave_line(o, m);
	TAILQ_INSERT_TAIL(&o->queues[m->queue].equal, m, line);
	m->in_line = LINE_EQUAL;
	o->in_line[LINE_EQUAL]++;
	tell(o, FACT_WAKE);
}

/* --- equal ones --------------------------------------------------------------- */

/* Settlements of messages that have the same bytes.  The server cannot tell these apart:
 * it removes the oldest, whichever has ended.  So that nothing has to be guessed after a
 * lost connection, at most one settlement of such messages is under way in a queue.  The
 * others wait for its answer, and go together. */

/* The most that are settled together. */
#define EQUAL_MAX 250

/* Whether a settlement of a message that has equal ones is under way in a queue; so is one
 * whose answer was lost, until the server has said what it holds. */
static bool
equal_under_way(const struct outbox *o, int queue)
{
	const struct message *m;

	TAILQ_FOREACH(m, &o->inbox->queues[queue].all, own)
		if (m->equal &&
		    (m->in_flight || (m->sent && m->in_line == LINE_NONE)))
			return true;
	return false;
}

/* Together go those that ask for nothing but a place in line, of others either: their
 * header may ask for more.  A message that was not started has no envelope yet. */
static void
send_equal_of(struct outbox *o, int queue)
{
	struct mq_settlement how[EQUAL_MAX];
	struct batch *b = make_batch(o, EQUAL_MAX);
	struct messages *line = &o->queues[queue].equal;
	struct message *m;
	size_t bytes = 0;
	bool special;
	int i;

	/* The server removes another place of the list than ours. */
	inbox_disorder(o->inbox, queue);
	TAILQ_FOREACH(m, line, line) {
		special = mq_envelope_signed(m->element, m->len) &&
		    (m->envelope.payload == NULL ||
			mq_message_special(&m->envelope));
		if (special || m->alone || m->outcome == MQ_OUTCOME_PUSH ||
		    m->pause_ms != 0 || result_wanted(o, m) ||
		    !add_to_batch(b, m, EQUAL_MAX))
			break;
		bytes += settlement_copies(m);
	}
	if (b->n <= 1 || !has_room(o, bytes)) {
		free(b);
		send_alone(o, TAILQ_FIRST(line));
		return;
	}
	for (i = 0; i < b->n; i++) {
		describe_settlement(o, b->m[i], &how[i]);
		note_sent(o, b->m[i]);
	}
	mq_consumer_settle(o->server, queue, how, b->n, on_settled, b);
}

/* Sends what waits for equal messages, where none of them is under way. */
static void
send_equal(struct outbox *o)
{
	int queue;

	for (queue = 0;
	     queue < o->opt->queue_count && o->in_line[LINE_EQUAL] > 0; queue++)
		if (!TAILQ_EMPTY(&o->queues[queue].equal) &&
		    !equal_under_way(o, queue) && session_is_up(o->session))
			send_equal_of(o, queue);
}

/* --- acks ---------------------------------------------------------------------- */

/* Acks wait for others, so that one command acks the oldest messages of a queue,
 * without their bytes.  Waiting acks, and their longest wait: after a crash, at most
 * that many messages are run again: if each has a run of its own, at most as many as
 * there are slots.  If messages end many at a time, more acks may wait until the end
 * of a turn.  If one holds a key or a group, others may wait for it. */
#define ENOUGH	    64
#define ENOUGH_S    0.05
#define HOLDING_S   0.02
#define ENOUGH_MANY 250
#define MANY_S	    0.005
#define MANY_MAX    1000
/* The server removes acks together cheaply if this many times fewer others are
 * between them. */
#define DENSE 4
/* Fewer acks are sent one by one. */
#define TOGETHER_MIN 4

/* Adds the acks that wait, as far as they can go together; unless all, as far as
 * few others are between them. */
static void
collect_acks(struct batch *b, int queue, bool all, struct mq_acks *acks,
    int *places, int most)
{
	struct outbox *o = b->outbox;
	struct message *m;
	size_t bytes = 0, others_len = 0;
	int place = 0;
	bool holds;

	TAILQ_FOREACH(m, &o->inbox->queues[queue].all, own) {
		if (b->n == most)
			break;
		/* The server does not have the message any more, or once all
		 * commands in flight are carried out. */
		if (m->in_flight || m->lost || m->gone)
			continue;
		if (place++ == 0)
			acks->oldest = (struct mq_part){m->element, m->len};
		bytes += m->len;
		if (m->in_line != LINE_ACKS || m->equal ||
		    result_wanted(o, m)) {
			others_len += m->len;
			continue;
		}
		holds = acks->holds || mq_message_holds(&m->envelope);
		if (holds && bytes > BATCH_BYTES)
			break;
		acks->holds = holds;
		places[b->n] = place;
		b->m[b->n++] = m;
		if (all || (place - b->n) * DENSE <= b->n) {
			acks->n = b->n;
			acks->others_len = others_len;
		}
	}
	b->n = acks->n;
}

static void
send_acks_of(struct outbox *o, int queue, bool all)
{
	int i, most = o->queues[queue].waiting;
	struct batch *b = make_batch(o, most);
	int *places = mq_xcalloc((size_t)most, sizeof(*places));
	struct mq_part *elements = mq_xcalloc((size_t)most, sizeof(*elements));
	struct mq_acks acks = {.elements = elements, .places = places};

	collect_acks(b, queue, all, &acks, places, most);
	if (acks.n < TOGETHER_MIN) {
		free(b);
	} else {
		for (i = 0; i < acks.n; i++) {
			elements[i] =
			    (struct mq_part){b->m[i]->element, b->m[i]->len};
			note_sent(o, b->m[i]);
		}
		mq_id_make(o->ids, 0, acks.unique);
		b->oldest = true;
		mq_consumer_ack_oldest(o->server, queue, &acks, on_settled, b);
	}
	free(places);
	free(elements);
}

static void
send_acks(struct outbox *o, bool all)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count; queue++)
		if (o->queues[queue].waiting >= TOGETHER_MIN &&
		    inbox_in_order(o->inbox, queue))
			send_acks_of(o, queue, all);
}

/* If not all are to go, the others wait until the acks between them have come. */
void
outbox_flush(struct outbox *o, bool all)
{
	/* After the next join, all are sent again. */
	if (!session_is_up(o->session)) {
		ev_timer_stop(o->loop, &o->timer);
		return;
	}
	if (!all && o->in_line[LINE_ACKS] >= o->enough && !o->holding)
		send_acks(o, false);
	if (all || o->in_line[LINE_ACKS] >= o->enough) {
		ev_timer_stop(o->loop, &o->timer);
		o->holding = false;
		if (o->in_line[LINE_ACKS] >= TOGETHER_MIN)
			send_acks(o, true);
		while (session_is_up(o->session) && !TAILQ_EMPTY(&o->waiting))
			send_settlement(o, TAILQ_FIRST(&o->waiting));
	}
	send_equal(o);
}

void
outbox_settle(struct outbox *o, struct message *m, enum mq_outcome outcome)
{
	bool held = o->holding;
	int most;

	if (outcome == MQ_OUTCOME_FRONT &&
	    !TAILQ_EMPTY(&o->queues[m->queue].back)) {
		outbox_give_back(o, m);
		return;
	}
	m->outcome = outcome;
	m->state = MESSAGE_SETTLING;
	o->settling++;
	if (!session_is_up(o->session))
		return;
	if (outcome != MQ_OUTCOME_ACK) {
		send_settlement(o, m);
		return;
	}
	most = o->many ? MANY_MAX : rules_slots(o->opt, NULL);
	if (!o->many)
		most = MIN(most, ENOUGH);
	m->in_line = LINE_ACKS;
	TAILQ_INSERT_TAIL(&o->waiting, m, line);
	o->queues[m->queue].waiting++;
	o->holding = o->holding || mq_message_holds(&m->envelope);
	if (++o->in_line[LINE_ACKS] > most || m->awaited) {
		outbox_flush(o, true);
	} else if (!ev_is_active(&o->timer) || o->holding != held) {
		mq_timer_start(o->loop, &o->timer,
		    o->many	   ? MANY_S :
			o->holding ? HOLDING_S :
				     ENOUGH_S);
	}
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

/* The most that go back, which takes the server a few milliseconds. */
#define BACK_MAX 500
/* Fewer messages are sent one by one, unless the first is long: alone it is copied. */
#define BACK_MIN  4
#define BACK_LONG 4096

void
outbox_give_back(struct outbox *o, struct message *m)
{
	struct messages *line = &o->queues[m->queue].back;
	struct message *other = TAILQ_LAST(line, messages);

	m->outcome = MQ_OUTCOME_FRONT;
	m->state = MESSAGE_SETTLING;
	m->in_line = LINE_BACK;
	o->settling++;
	o->in_line[LINE_BACK]++;
	while (other != NULL && other->number < m->number)
		other = TAILQ_PREV(other, messages, line);
	if (other == NULL)
		TAILQ_INSERT_HEAD(line, m, line);
	else
		TAILQ_INSERT_AFTER(line, other, m, line);
	tell(o, FACT_WAKE);
}

/* Without an answer, or beyond the bounds of the command, a message stays in
 * line. */
static void
on_given_back(void *arg, const struct mq_answer *answer)
{
	long long done = answer != NULL ? answer->n : 0;
	struct batch *b = arg;
	struct outbox *o = b->outbox;
	struct message *m;
	int i;

	o->back_sent = 0;
	for (i = 0; i < b->n; i++) {
		m = b->m[i];
		if (i < done) {
			take_answer(o, m, answer, MQ_SETTLED, false);
		} else if (answer == NULL || done > 0) {
			m->sent &= answer == NULL;
			take_answer(o, m, NULL, MQ_SETTLED_LOST, false);
		} else {
			leave_line(o, m);
			take_answer(o, m, answer, MQ_SETTLED_LOST, true);
		}
	}
	free(b);
	tell(o, FACT_WAKE);
}

static void
send_newest(struct outbox *o, int queue)
{
	struct batch *b = make_batch(o, BACK_MAX);
	struct mq_part elements[BACK_MAX];
	struct mq_newest newest = {
	    .elements = elements, .each = !inbox_in_order(o->inbox, queue)};
	struct message *m;
	int i;

	TAILQ_FOREACH(m, &o->queues[queue].back, line)
		if (!add_to_batch(b, m, BACK_MAX))
			break;
	if (b->n < BACK_MIN && b->m[0]->len < BACK_LONG) {
		for (i = 0; i < b->n; i++) {
			leave_line(o, b->m[i]);
			send_settlement(o, b->m[i]);
		}
		free(b);
		return;
	}
	for (i = 0; i < b->n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		newest.each |= b->m[i]->equal;
		note_sent(o, b->m[i]);
	}
	newest.n = o->back_sent = b->n;
	mq_consumer_give_back(o->server, queue, &newest, on_given_back, b);
}

void
outbox_send_back(struct outbox *o)
{
	int queue, before;

	for (queue = 0;
	     queue < o->opt->queue_count && o->in_line[LINE_BACK] > 0; queue++)
		while (!TAILQ_EMPTY(&o->queues[queue].back) &&
		    o->back_sent == 0 && !equal_under_way(o, queue) &&
		    session_is_up(o->session)) {
			before = o->in_line[LINE_BACK];
			send_newest(o, queue);
			/* The connection takes nothing any more; its end follows. */
			if (o->back_sent == 0 &&
			    o->in_line[LINE_BACK] == before)
				return;
		}
}

/* --- once more --------------------------------------------------------------- */

static bool
is_unsent(const struct message *m)
{
	return m->state == MESSAGE_SETTLING && !m->in_flight &&
	    m->in_line != LINE_BACK && m->in_line != LINE_EQUAL;
}

void
outbox_send_again(struct outbox *o, bool joined)
{
	struct message *m, *next;

	o->reported = o->reported && !joined;
	ev_timer_stop(o->loop, &o->timer);
	if (!session_is_up(o->session) || o->settling == o->in_flight)
		return;
	TAILQ_FOREACH_SAFE(m, &o->inbox->all, link, next)
		if (is_unsent(m) && m->outcome != MQ_OUTCOME_FRONT)
			send_settlement(o, m);
	/* The oldest goes back last: then it is in front. */
	TAILQ_FOREACH_REVERSE_SAFE(m, &o->inbox->all, messages, link, next)
		if (is_unsent(m))
			send_settlement(o, m);
	send_equal(o);
	outbox_send_back(o);
}

bool
outbox_refused(const struct outbox *o)
{
	return o->settling !=
	    o->in_flight + o->in_line[LINE_ACKS] + o->in_line[LINE_EQUAL] +
	    o->in_line[LINE_BACK] - o->back_sent;
}

/* --- beginning and end ------------------------------------------------------ */

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	outbox_flush(w->data, true);
}

void
outbox_init(struct outbox *o)
{
	int i, n = o->opt->queue_count;

	o->enough = o->many ? ENOUGH_MANY : ENOUGH;
	TAILQ_INIT(&o->waiting);
	o->queues = mq_xcalloc((size_t)n, sizeof(*o->queues));
	for (i = 0; i < n; i++) {
		o->queues[i].outbox = o;
		TAILQ_INIT(&o->queues[i].back);
		TAILQ_INIT(&o->queues[i].equal);
	}
	ev_timer_init(&o->timer, on_timer, 0, 0);
	o->timer.data = o;
}

void
outbox_free(struct outbox *o)
{
	int i;

	for (i = 0; i < o->opt->queue_count; i++)
		free(o->queues[i].to);
	free(o->queues);
	mq_buf_free(&o->runs);
}
