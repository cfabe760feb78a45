/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Settlements, of one message or of many together; acks that wait for others; messages that go
 * back. */
#include "parts.h"

static struct batch *
make_batch(struct outbox *o, int most)
{
	struct batch *b =
	    mq_xmalloc(sizeof(*b) + (size_t)most * sizeof(b->m[0]));

	b->outbox = o;
	b->oldest = b->plain = b->again = b->next = false;
	b->bytes = b->copied = 0;
	b->n = 0;
	return b;
}

/* Returns false if the batch is full. */
static bool
add_to_batch(struct batch *b, struct message *m, int most)
{
	b->bytes += m->len;
	if (b->n == most || (b->n > 0 && b->bytes > BATCH_BYTES))
		return false;
	b->m[b->n++] = m;
	return true;
}

/* --- lines -------------------------------------------------------------------- */

static struct messages *
line_of(struct outbox *o, const struct message *m)
{
	switch (m->in_line) {
	case LINE_ACKS:
		return &o->acks;
	case LINE_EQUAL:
		return &o->queues[m->queue].equal;
	case LINE_BACK:
		return &o->queues[m->queue].back;
	default:
		return &o->again;
	}
}

void
outbox_drop(struct outbox *o, struct message *m)
{
	if (m->in_line == LINE_NONE)
		return;
	TAILQ_REMOVE(line_of(o, m), m, line);
	o->in_line[m->in_line]--;
	o->queues[m->queue].acks -= m->in_line == LINE_ACKS;
	m->in_line = LINE_NONE;
}

/* LINE_BACK has the newest message first, LINE_AGAIN the oldest; others are in the order in which
 * they join. */
static void
join_line(struct outbox *o, struct message *m, enum message_line which)
{
	struct messages *list;
	struct message *other;

	outbox_drop(o, m);
	m->in_line = which;
	o->in_line[which]++;
	o->queues[m->queue].acks += which == LINE_ACKS;
	list = line_of(o, m);
	other = TAILQ_LAST(list, messages);
	while (other != NULL &&
	    (which == LINE_BACK		? other->number < m->number :
		    which == LINE_AGAIN ? other->number > m->number :
					  false))
		other = TAILQ_PREV(other, messages, line);
	if (other == NULL)
		TAILQ_INSERT_HEAD(list, m, line);
	else
		TAILQ_INSERT_AFTER(list, other, m, line);
}

/* --- answers ---------------------------------------------------------------- */

/* Says why the outcome, which is added in parentheses, does not count. */
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

static void
end_settlement(struct outbox *o, struct message *m, bool confirmed)
{
	outbox_drop(o, m);
	hand_settled(o->hand, m);
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

/* Rejects a message whose push was refused, for this reason, which it frees. */
static void
reject_pushed(struct outbox *o, struct message *m, char *why)
{
	mq_buf_clear(&m->header);
	hand_end(o->hand, m);
	tell(o, FACT_TOO_LONG, .message = m, .text = why);
}

static void
receive_refusal(
    struct outbox *o, struct message *m, const struct mq_answer *answer)
{
	bool wrong = answer->status == MQ_EXIT_WRONGTYPE;

	hand_disorder(o->hand, m->queue);
	m->sent = false;
	/* A queue that a publisher has named must stop nothing else. */
	if (m->passed && (wrong || answer->status == MQ_EXIT_NOPERM)) {
		m->passed = false;
		reject_pushed(
		    o, m, mq_xasprintf("push: %s: %s", m->to, answer->error));
	} else if (!wrong || m->outcome == MQ_OUTCOME_ACK ||
	    m->outcome == MQ_OUTCOME_FRONT) {
		join_line(o, m, LINE_AGAIN);
		tell(o, FACT_COMPLAINT, .text = mq_xstrdup(answer->error));
	} else {
		/* The message goes back instead, and the consumer ends; its next start
		 * names the key. */
		message_note(m, "returned: a key of %s has the wrong type",
		    m->outcome == MQ_OUTCOME_PUSH ? m->to : "the queue");
		m->outcome = MQ_OUTCOME_FRONT;
		send_settlement(o, m);
		tell(o, FACT_MUST_END, .status = MQ_EXIT_WRONGTYPE);
	}
}

static void
receive_settled(struct outbox *o, struct message *m, enum mq_settled how)
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
		/* An unstarted message that was deleted is not worth a line. */
		if (m->outcome != MQ_OUTCOME_FRONT || o->opt->verbose)
			say_overtaken(m, "gone: the message was deleted");
		end_settlement(o, m, false);
		break;
	case MQ_SETTLED_TOO_LONG:
		reject_pushed(o, m,
		    mq_xasprintf("push: too long for the queue %s", m->to));
		break;
	}
}

/* The message is no longer in flight.  alone: the batch did not settle the message, which is sent
 * by itself now. */
static void
receive_answer(struct batch *b, struct message *m,
    const struct mq_answer *answer, enum mq_settled how, bool alone)
{
	struct outbox *o = b->outbox;

	m->in_flight = false;
	/* If the answer NULL comes while the batch is being sent, there is no connection, and
	 * the server has not got the batch; but an earlier settlement may have arrived. */
	if (alone || (answer == NULL && b == o->sending && !b->again))
		m->sent = false;
	if (m->lost)
		end_settlement(o, m, false);
	else if (alone)
		send_settlement(o, m);
	else if (answer != NULL && answer->error != NULL)
		receive_refusal(o, m, answer);
	else if (answer != NULL)
		receive_settled(o, m, how);
	else if (m->in_line != LINE_BACK)
		join_line(o, m, LINE_AGAIN);
}

static void
end_batch(const struct batch *b)
{
	b->outbox->queues[b->m[0]->queue].in_flight -= b->n;
	b->outbox->copying -= b->copied;
}

/* If some messages of a batch are no longer ours, each is settled by itself.  Without an answer, the
 * engine is not woken: the end of the session follows, and nothing may be sent before it. */
static void
on_settled(void *arg, const struct mq_answer *answer)
{
	struct batch *b = arg;
	struct outbox *o = b->outbox;
	bool good = mq_answer_good(answer);
	enum mq_settled how =
	    answer != NULL ? (enum mq_settled)answer->n : MQ_SETTLED;
	bool one_by_one = good && how != MQ_SETTLED && b->n > 1;
	int i;

	end_batch(b);
	if (b->next)
		next_answered(b, answer);
	if (b->oldest && (!good || one_by_one))
		hand_disorder(o->hand, b->m[0]->queue);
	for (i = 0; i < b->n; i++) {
		b->m[i]->alone |= one_by_one && !b->oldest;
		receive_answer(b, b->m[i], answer, how, one_by_one);
	}
	free(b);
	if (answer != NULL)
		tell(o, FACT_WAKE);
}

static void
note_pausing(struct outbox_queue *q, int change)
{
	struct outbox *o = q->outbox;

	q->pausing += change;
	hand_bar(o->hand, (int)(q - o->queues), BAR_PAUSING, q->pausing > 0);
}

/* An error does not concern the message that asked for the pause. */
static void
on_paused(void *arg, const struct mq_answer *answer)
{
	struct outbox_queue *q = arg;
	struct outbox *o = q->outbox;

	note_pausing(q, -1);
	if (answer != NULL && answer->error != NULL)
		tell(o, FACT_COMPLAINT, .text = mq_xstrdup(answer->error));
	else if (answer != NULL)
		tell(o, FACT_PAUSE_SET, .queue = (int)(q - o->queues));
}

/* --- sending one ------------------------------------------------------------- */

static void
note_sent(struct batch *b)
{
	struct outbox *o = b->outbox;
	struct message *m;
	int i;

	o->queues[b->m[0]->queue].in_flight += b->n;
	o->sending = b;
	for (i = 0; i < b->n; i++) {
		m = b->m[i];
		if (m->in_line != LINE_BACK)
			outbox_drop(o, m);
		b->again |= m->sent;
		m->sent = m->in_flight = true;
		if (b->plain)
			continue;
		b->copied += settlement_copies(m);
		if (!b->next)
			next_sent(o, m);
	}
	if (b->plain && rules_of(o->opt, b->m[0]->queue)->slots_shared > 0)
		next_sent(o, b->m[0]);
	o->copying += b->copied;
}

/* Whether the server has room to copy this many bytes, beside those in flight: a full disk would
 * end a private server.  If not, the next tick tries again. */
static bool
has_room(struct outbox *o, size_t bytes)
{
	char why[512];

	if (bytes == 0 ||
	    mq_server_room(o->server, o->copying + bytes, why, sizeof(why)) ==
		0)
		return true;
	tell(o, FACT_NO_ROOM, .text = mq_xstrdup(why));
	return false;
}

/* Sends a settlement at once, even if equal messages are in flight. */
static void
send_alone(struct outbox *o, struct message *m)
{
	struct mq_result result;
	struct mq_notice notice = {.queue = NULL};
	struct mq_settlement how;
	struct batch *b;

	if (!has_room(o, settlement_copies(m))) {
		join_line(o, m, LINE_AGAIN);
		return;
	}
	settlement_describe(o, m, &how);
	result_add(o, m, &how, &result, &notice);
	/* Until the pause is answered, no message of the queue starts. */
	if (m->pause_ms > 0) {
		note_pausing(&o->queues[m->queue], 1);
		mq_consumer_pause(o->consumer, m->queue_name, m->pause_ms,
		    on_paused, &o->queues[m->queue]);
	}
	b = make_batch(o, 1);
	b->m[b->n++] = m;
	b->next = how.next = next_allowed(o, m);
	note_sent(b);
	mq_consumer_settle(o->consumer, m->queue, &how, 1, on_settled, b);
	o->sending = NULL;
	mq_buf_free(&notice.element);
}

/* A message that has equal ones waits in LINE_EQUAL. */
static void
send_settlement(struct outbox *o, struct message *m)
{
	if (!m->equal) {
		send_alone(o, m);
		return;
	}
	join_line(o, m, LINE_EQUAL);
	tell(o, FACT_WAKE);
}

/* --- equal messages ------------------------------------------------------------ */

/* The server cannot tell messages with the same bytes apart: it removes the oldest, whichever has
 * ended.  So at most one settlement of such messages is under way in a queue, and after a lost
 * connection nothing has to be guessed.  The others wait for its answer, and go together. */

/* Messages that are settled together, at most. */
#define EQUAL_MAX 250

/* Whether a settlement of a message that has equal ones is under way in a queue.  If its answer was
 * lost, it counts as under way until the server has listed its messages. */
static bool
equal_under_way(const struct outbox *o, int queue)
{
	const struct message *m = NULL;

	if (o->queues[queue].in_flight == 0 && o->in_line[LINE_AGAIN] == 0)
		return false;
	while ((m = hand_after(o->hand, queue, m)) != NULL)
		if (m->equal &&
		    (m->in_flight || (m->sent && m->in_line == LINE_AGAIN)))
			return true;
	return false;
}

/* Batches settlements that need no script features, nor make other messages need them by their
 * headers.  The headers of an unstarted message are not parsed yet. */
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

	/* The server may remove another one of the equal elements than ours. */
	hand_disorder(o->hand, queue);
	TAILQ_FOREACH(m, line, line) {
		special = mq_envelope_signed(m->element, m->len) &&
		    (m->envelope.payload == NULL ||
			mq_message_has(
			    &m->envelope, MQ_TRAIT_OBEYED | MQ_TRAIT_ORDER));
		if (special || m->alone || m->outcome == MQ_OUTCOME_PUSH ||
		    m->pause_ms != 0 || result_is_wanted(m) ||
		    !add_to_batch(b, m, EQUAL_MAX))
			break;
		bytes += settlement_copies(m);
	}
	if (b->n <= 1 || !has_room(o, bytes)) {
		free(b);
		send_alone(o, TAILQ_FIRST(line));
		return;
	}
	for (i = 0; i < b->n; i++)
		settlement_describe(o, b->m[i], &how[i]);
	note_sent(b);
	mq_consumer_settle(o->consumer, queue, how, b->n, on_settled, b);
	o->sending = NULL;
}

/* Sends messages in LINE_EQUAL, in queues where no settlement of equal messages is under way. */
static void
send_equal(struct outbox *o)
{
	int queue;

	for (queue = 0;
	     queue < o->opt->queue_count && o->in_line[LINE_EQUAL] > 0; queue++)
		if (o->up && !TAILQ_EMPTY(&o->queues[queue].equal) &&
		    !equal_under_way(o, queue))
			send_equal_of(o, queue);
}

/* --- acks ---------------------------------------------------------------------- */

/* Acks wait for others, so that one command acks the oldest messages of a queue without their
 * bytes.  After a crash, messages whose acks wait run again.  So at most ENOUGH acks wait for
 * ENOUGH_S seconds, and no more than there are slots; for HOLDING_S seconds if one of them holds
 * a key or a group, for which other messages may wait.  If messages end many at a time, at most
 * ENOUGH_MANY acks wait for MANY_S seconds, and MANY_MAX within a turn. */
#define ENOUGH	    64
#define ENOUGH_S    0.05
#define HOLDING_S   0.02
#define ENOUGH_MANY 250
#define MANY_S	    0.005
#define MANY_MAX    1000
/* Acks of one command, at most; more never wait. */
#define MOST 1024
/* Acks of one command, at least; fewer are sent one by one. */
#define TOGETHER_MIN 4

static void
send_acks_of(struct outbox *o, int queue, bool all)
{
	int places[MOST], i, most = MIN(o->queues[queue].acks, MOST);
	struct mq_part elements[MOST];
	struct mq_acks acks = {.elements = elements, .places = places};
	struct batch *b = make_batch(o, most);

	acks_collect(b, queue, all, &acks, places, most);
	if (acks.n < TOGETHER_MIN) {
		free(b);
		return;
	}
	for (i = 0; i < acks.n; i++)
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
	mq_id_make(o->ids, 0, acks.unique);
	b->oldest = true;
	b->plain = !acks.holds;
	note_sent(b);
	mq_consumer_ack_oldest(o->consumer, queue, &acks, on_settled, b);
	o->sending = NULL;
}

/* Sends acks that can go together; unless all, only as far as few other messages are between
 * them. */
static void
send_acks(struct outbox *o, bool all)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count &&
	     o->in_line[LINE_ACKS] >= TOGETHER_MIN;
	     queue++)
		if (o->queues[queue].acks >= TOGETHER_MIN &&
		    hand_in_order(o->hand, queue))
			send_acks_of(o, queue, all);
}

static void
send_all_acks(struct outbox *o)
{
	mq_timer_stop(&o->timer);
	o->due = false;
	send_acks(o, true);
	o->holding = false;
	while (!TAILQ_EMPTY(&o->acks))
		send_settlement(o, TAILQ_FIRST(&o->acks));
}

/* Unless all: acks with unfinished messages between them wait. */
void
outbox_flush(struct outbox *o, enum outbox_acks acks)
{
	bool claims = acks == OUTBOX_CLAIM;
	bool all = acks >= OUTBOX_NEXT || o->due ||
	    (acks == OUTBOX_HOLDERS && o->holding) ||
	    (claims && (!o->many || o->holding));

	/* After the next join, all acks are sent again. */
	if (!o->up)
		return;
	if (!all && !o->holding &&
	    (claims || o->in_line[LINE_ACKS] >= o->enough))
		send_acks(o, false);
	o->may_bring = acks == OUTBOX_NEXT;
	if (all || o->in_line[LINE_ACKS] >= o->enough)
		send_all_acks(o);
	o->may_bring = false;
	send_equal(o);
}

static void
on_due(void *arg)
{
	struct outbox *o = arg;

	o->due = true;
	tell(o, FACT_WAKE);
}

void
outbox_settle(struct outbox *o, struct message *m)
{
	bool held = o->holding;
	int most;

	if (m->outcome == MQ_OUTCOME_FRONT &&
	    !TAILQ_EMPTY(&o->queues[m->queue].back)) {
		outbox_give_back(o, m);
		return;
	}
	hand_settle(o->hand, m);
	if (!o->up) {
		join_line(o, m, LINE_AGAIN);
		return;
	}
	/* The acks of a window are of messages that are done. */
	if (m->outcome != MQ_OUTCOME_ACK || m->stopped) {
		send_settlement(o, m);
		return;
	}
	most = o->many ? MANY_MAX : rules_slots(o->opt, NULL);
	if (!o->many)
		most = MIN(most, ENOUGH);
	join_line(o, m, LINE_ACKS);
	o->holding = o->holding || mq_message_has(&m->envelope, MQ_TRAIT_LOCK);
	if (o->in_line[LINE_ACKS] > most || m->awaited)
		outbox_flush(o, OUTBOX_ALL);
	else if (!mq_timer_runs(&o->timer) || o->holding != held)
		mq_timer_start(&o->timer,
		    o->many	   ? MANY_S :
			o->holding ? HOLDING_S :
				     ENOUGH_S,
		    0);
}

/* --- back ------------------------------------------------------------------- */

/*
 * Messages go back unstarted to the front of their queue: the newest goes first, so the oldest
 * ends up in front.  One command gives back the newest messages of a queue that the server holds
 * for us.  The next command waits for its answer, so that other clients have their turn.
 *
 * If a newer message has not ended yet, the messages go one by one.
 */

/* Messages that go back by one command, at most: a few milliseconds of the server's time. */
#define BACK_MAX 500
/* Messages that go back by one command, at least; but from BACK_LONG bytes on, even one: sent by
 * itself, it would be copied. */
#define BACK_MIN  4
#define BACK_LONG 4096

void
outbox_give_back(struct outbox *o, struct message *m)
{
	m->outcome = MQ_OUTCOME_FRONT;
	hand_settle(o->hand, m);
	join_line(o, m, LINE_BACK);
	tell(o, FACT_WAKE);
}

bool
outbox_gives_back(const struct outbox *o, int queue)
{
	return !TAILQ_EMPTY(&o->queues[queue].back);
}

/* The server gave back the first `done` messages.  The others stay in line; but if it gave back none,
 * each is sent by itself. */
static void
on_given_back(void *arg, const struct mq_answer *answer)
{
	long long done = answer != NULL ? answer->n : 0;
	struct batch *b = arg;
	struct outbox *o = b->outbox;
	struct message *m;
	int i;

	o->giving_back = false;
	end_batch(b);
	for (i = 0; i < b->n; i++) {
		m = b->m[i];
		if (i < done) {
			receive_answer(b, m, answer, MQ_SETTLED, false);
		} else if (answer == NULL || done > 0) {
			m->sent &= answer == NULL;
			receive_answer(b, m, NULL, MQ_SETTLED_LOST, false);
		} else {
			outbox_drop(o, m);
			receive_answer(b, m, answer, MQ_SETTLED_LOST, true);
		}
	}
	free(b);
	if (answer != NULL)
		tell(o, FACT_WAKE);
}

static void
send_newest(struct outbox *o, int queue)
{
	struct batch *b = make_batch(o, BACK_MAX);
	struct mq_part elements[BACK_MAX];
	struct mq_newest newest = {
	    .elements = elements, .each = !hand_in_order(o->hand, queue)};
	struct message *m;
	int i;

	TAILQ_FOREACH(m, &o->queues[queue].back, line)
		if (!add_to_batch(b, m, BACK_MAX))
			break;
	if (b->n < BACK_MIN && b->m[0]->len < BACK_LONG) {
		for (i = 0; i < b->n; i++) {
			outbox_drop(o, b->m[i]);
			send_settlement(o, b->m[i]);
		}
		free(b);
		return;
	}
	for (i = 0; i < b->n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		newest.each |= b->m[i]->equal;
	}
	newest.n = b->n;
	o->giving_back = true;
	note_sent(b);
	mq_consumer_give_back(o->consumer, queue, &newest, on_given_back, b);
	o->sending = NULL;
}

void
outbox_send_back(struct outbox *o)
{
	int queue, before;

	for (queue = 0;
	     queue < o->opt->queue_count && o->in_line[LINE_BACK] > 0; queue++)
		while (o->up && !o->giving_back &&
		    !TAILQ_EMPTY(&o->queues[queue].back) &&
		    !equal_under_way(o, queue)) {
			before = o->in_line[LINE_BACK];
			send_newest(o, queue);
			/* The connection is lost: its end follows. */
			if (!o->giving_back && o->in_line[LINE_BACK] == before)
				return;
		}
}

/* --- once more --------------------------------------------------------------- */

void
outbox_send_again(struct outbox *o)
{
	struct message *m, *next;

	if (!o->up)
		return;
	send_all_acks(o);
	TAILQ_FOREACH_SAFE(m, &o->again, line, next)
		if (m->outcome != MQ_OUTCOME_FRONT)
			send_settlement(o, m);
	/* The oldest message goes back last, and so is in front. */
	TAILQ_FOREACH_REVERSE_SAFE(m, &o->again, messages, line, next)
		if (m->outcome == MQ_OUTCOME_FRONT)
			send_settlement(o, m);
	send_equal(o);
	outbox_send_back(o);
}

/* The server may have lost the report of long runs, too. */
void
outbox_up(struct outbox *o)
{
	o->up = true;
	o->reported = false;
	outbox_send_again(o);
}

void
outbox_down(struct outbox *o)
{
	o->up = o->due = false;
	mq_timer_stop(&o->timer);
}

bool
outbox_refused(const struct outbox *o)
{
	return o->in_line[LINE_AGAIN] > 0;
}

size_t
outbox_copying(const struct outbox *o)
{
	return o->copying;
}

/* --- beginning and end ------------------------------------------------------ */

struct outbox *
outbox_new(struct ev_loop *loop, const struct options *opt, struct hand *hand,
    struct facts *facts, struct mq_consumer *consumer, struct mq_server *server,
    struct mq_idgen *ids, bool many)
{
	struct outbox *o = mq_xcalloc(1, sizeof(*o));
	int i, n = opt->queue_count;

	o->opt = opt;
	o->hand = hand;
	o->facts = facts;
	o->consumer = consumer;
	o->server = server;
	o->ids = ids;
	o->many = many;
	o->enough = many ? ENOUGH_MANY : ENOUGH;
	TAILQ_INIT(&o->acks);
	TAILQ_INIT(&o->again);
	STAILQ_INIT(&o->ready);
	o->queues = mq_xcalloc((size_t)n, sizeof(*o->queues));
	for (i = 0; i < n; i++) {
		o->queues[i].outbox = o;
		TAILQ_INIT(&o->queues[i].back);
		TAILQ_INIT(&o->queues[i].equal);
	}
	mq_timer_init(&o->timer, loop, on_due, o);
	return o;
}

void
outbox_free(struct outbox *o)
{
	int i;

	mq_timer_stop(&o->timer);
	for (i = 0; i < o->opt->queue_count; i++) {
		free(o->queues[i].to);
		free(o->queues[i].group);
	}
	free(o->queues);
	mq_buf_free(&o->runs);
	free(o);
}
