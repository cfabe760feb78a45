/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Claims.  A claim is one script call for a queue, in the order in which the queues were named.
 * A claim never waits: it takes as many messages as there is room for.  After a claim that
 * found no more, the next one comes when the queue may have more; without room then, the
 * consumer leaves the messages to others.
 *
 * A claim also shows a pause.  Without room, a claim of 0 messages looks whether unstarted
 * messages are to go back: once a second, and LOOK_S after a change.
 *
 * Each claim tells which role the consumer has then, with its queue (see
 * queue/lua/lib/role.lua), and thus how it hears of more to claim:
 *
 *	watch	The server reports changes of the queue's keys (CLIENT TRACKING),
 *		and a timer tells when a delayed message falls due.  From time to
 *		time another claim renews the watch.
 *	idle	Another consumer calls.  Looks at random times find out if nobody
 *		does: a consumer on watch may be dead, or stopped.
 *	none	Without room, claims come when there is room; else once a second,
 *		for servers that do not allow the tracking.
 *
 * A consumer that is called and has no room passes the call on.
 */
#include "inbox.h"

#include "base/timer.h"

/* Bytes of one claim, about; a single message may be longer. */
#define CLAIM_BYTES (1 << 20)
#define LOOK_S	    0.1
/* Seconds by which a timer may be early. */
#define EARLY_S 0.001
/* If a message is settled within this many seconds of its claim, the next claim is put off by
 * as many seconds for another quick settlement. */
#define QUICK_S 0.001
/* Seconds between two claims that renew a watch, about; a watch lapses after 300 s. */
#define WATCH_S 120.0
/* Seconds between two claims that keep an idle consumer known, about; the others forget it
 * after 1,800 s. */
#define IDLE_S 600.0
/* Looks per second by all idle consumers of a queue; the most seconds between two looks of one
 * consumer. */
#define LOOKS	   6
#define LOOK_MAX_S 30.0
/* If a queue has LOOKERS idle consumers, each of them waits at least LOOKERS_S seconds. */
#define LOOKERS	  4
#define LOOKERS_S 2.0
/* Seconds between two looks that check whether the consumer on watch lives; as many more for
 * each 100 queues. */
#define CHECK_S 8.0
/* Queues of one look: the server does nothing else meanwhile. */
#define LOOK_MANY 100

/* Why the next claim from a queue is made; 0: there is no reason. */
enum reason {
	REASON_MORE = 1,   /* there may be messages; set with the others, too */
	REASON_CALLED = 2, /* only we were told of messages: without room, the
			    * call is passed on */
	REASON_LOOK = 4,   /* the consumer on watch may be dead */
	REASON_WATCH = 8,  /* if the queue is empty, a watch begins, or stays */
	REASON_FREED = 16  /* without room, others may have our shared slots */
};

enum state { STATE_EXISTS = 1, STATE_PAUSED = 2 };

struct queue {
	unsigned reasons, state; /* state: as the server last said */
	enum mq_role role;	 /* as the last claim said */
	/* Steady times. */
	double due;	 /* when a delayed message may be ready; 0: none */
	double look_at;	 /* idle: the next look; on watch: the next claim */
	double check_at; /* idle: the next look that checks */
	double claim_at; /* idle: the next claim */
	/* Seconds. */
	double every;	/* idle: between two looks, about */
	double await_s; /* by which a claim that begins a watch is put off, for
			 * settlements */
	int64_t tick;
};

/* The claim under way, or the last one. */
struct claim {
	bool under_way;
	int queue, max;
	size_t bytes; /* all messages together, about */
	bool shared;  /* the queue has the setting slots-shared */
	bool changed; /* a key of the queue has changed meanwhile */
};

/* A pass goes through the queues, from the first to the last, and asks for room in each; a
 * claim interrupts the pass until its answer.  A pass with claims is followed by another. */
struct pass {
	int next;	/* queue; -1: there is no pass */
	bool claimed;	/* the pass has sent a claim */
	bool none_left; /* the queues so far had no more messages */
	bool looking;	/* the pass also looks for pauses */
};

struct inbox {
	const struct options *opt;
	struct hand *hand;
	struct facts *facts;
	struct mq_consumer *consumer;

	struct queue *queues;
	struct pass pass;
	struct claim claim;
	bool answered;	  /* some claim was answered */
	bool refused;	  /* the last claim was refused, with no news since */
	bool look_wanted; /* the next pass also looks for pauses */
	bool any_called;  /* some queue was called since the last pass */
	struct mq_timer due_timer, look_timer;
	struct mq_timer settle_first; /* before a claim that begins a watch */
	int64_t server_ahead_ms; /* server's unix time less our boot time */
};

static bool
all_paused(const struct inbox *in)
{
	return hand_barred(in->hand, -1, BAR_PAUSED);
}

/* --- news ------------------------------------------------------------------- */

static void
wake(struct inbox *in)
{
	in->refused = false;
	tell(in, FACT_WAKE);
}

/* After a reconnect or a flush, the server may know no roles. */
static void
forget_roles(struct inbox *in)
{
	struct queue *q;

	for (q = in->queues; q < in->queues + in->opt->queue_count; q++) {
		q->role = MQ_ROLE_NONE;
		q->reasons &= ~(unsigned)REASON_CALLED;
	}
}

/* A change may be a pause, which concerns the messages of the hand. */
static void
await_look(struct inbox *in)
{
	if (hand_size(in->hand, -1) > 0 && !mq_timer_runs(&in->look_timer))
		mq_timer_start(&in->look_timer, LOOK_S, 0);
}

static void
call_queue(struct inbox *in, struct queue *q)
{
	q->reasons |= REASON_MORE | REASON_CALLED;
	in->any_called = true;
	wake(in);
}

/* A claim may find messages, or at least tells how many slots of the queue we have. */
static void
expect_more(struct inbox *in, int queue)
{
	in->queues[queue].reasons |= REASON_MORE;
	if (rules_of(in->opt, queue)->slots_shared > 0)
		in->queues[queue].reasons |= REASON_FREED;
}

void
inbox_look(struct inbox *in, bool all)
{
	int i;

	for (i = 0; all && i < in->opt->queue_count; i++)
		expect_more(in, i);
	in->look_wanted = true;
	wake(in);
}

void
inbox_changed(struct inbox *in, int queue)
{
	struct queue *q;

	if (queue == -1) {
		forget_roles(in);
		inbox_look(in, true);
		return;
	}
	q = &in->queues[queue];
	await_look(in);
	/* The server tells once, after the last claim that has read the key: that may be
	 * the claim under way, whose answer tells our role. */
	if (in->claim.under_way && in->claim.max > 0 &&
	    queue == in->claim.queue)
		in->claim.changed = true;
	else if (q->role == MQ_ROLE_WATCH)
		call_queue(in, q);
}

void
inbox_called(struct inbox *in, int queue)
{
	struct queue *q = &in->queues[queue];

	if (q->role == MQ_ROLE_IDLE)
		q->role = MQ_ROLE_NONE;
	q->reasons |= REASON_WATCH;
	call_queue(in, q);
}

static void
on_settle_first(void *arg)
{
	struct inbox *in = arg;

	in->queues[in->claim.queue].await_s = 0;
	wake(in);
}

void
inbox_settling(struct inbox *in, int queue, double since)
{
	struct queue *q = &in->queues[queue];
	bool quick = mq_clock_steady_s() < since + QUICK_S;

	mq_timer_stop(&in->settle_first);
	/* After a settlement, a claim mostly finds a message: no watch yet. */
	q->reasons &= ~(unsigned)REASON_WATCH;
	expect_more(in, queue);
	q->await_s = quick ? QUICK_S : 0;
	in->refused = false;
}

static void
on_look(void *arg)
{
	inbox_look(arg, false);
}

static void
on_due(void *arg)
{
	struct inbox *in = arg;
	double now = mq_clock_steady_s() + EARLY_S;
	struct queue *q;

	for (q = in->queues; q < in->queues + in->opt->queue_count; q++)
		if (q->due != 0 && q->due <= now)
			call_queue(in, q);
	await_look(in);
}

/* --- pauses ----------------------------------------------------------------- */

static bool
is_paused(const struct inbox *in, int queue)
{
	return queue == -1 ? all_paused(in) :
			     (in->queues[queue].state & STATE_PAUSED) != 0;
}

void
inbox_pause_seen(struct inbox *in, int queue, bool paused)
{
	bool all = queue == -1, news = is_paused(in, queue) != paused;
	int i = all ? 0 : queue, end = all ? in->opt->queue_count : queue + 1;

	if (news && !in->opt->quiet)
		mq_say("%s: %s", all ? "all queues" : in->opt->queues[queue],
		    paused ? "paused" : "resumed");
	if (all && !news)
		return;
	if (!all && news)
		in->queues[queue].state ^= STATE_PAUSED;
	hand_bar(in->hand, queue, BAR_PAUSED, paused);
	for (; paused && i < end; i++)
		tell(in, FACT_PAUSED, .queue = i);
	if (all && !paused)
		inbox_look(in, true);
}

/* --- roles ------------------------------------------------------------------ */

static double
random_near(double s)
{
	return s * (0.5 + (double)arc4random() / UINT32_MAX);
}

/* No other consumer waits: the next claim may begin a watch.  Settlements of the next events,
 * or within await_s, go first, since they lead to a claim anyway. */
static void
await_settlements(struct inbox *in, struct queue *q, bool found)
{
	if (q->reasons == 0)
		q->reasons = REASON_CALLED;
	else
		q->reasons &= ~(unsigned)REASON_CALLED;
	q->reasons |= REASON_MORE | REASON_WATCH;
	in->any_called = true;
	if (found)
		mq_timer_start(&in->settle_first, q->await_s, 0);
}

/* A call received before the answer may concern a message published after the claim.  Only if
 * the claim left us no role, nobody calls, and the call is old. */
static void
store_role(struct inbox *in, struct queue *q, const struct mq_claimed *claimed)
{
	double now = mq_clock_steady_s();

	switch (claimed->role) {
	case MQ_ROLE_NONE:
		q->reasons &= ~(unsigned)REASON_CALLED;
		break;
	case MQ_ROLE_WATCH:
		if (q->role != MQ_ROLE_WATCH || now >= q->look_at)
			q->look_at = now + random_near(WATCH_S);
		if (in->claim.changed)
			call_queue(in, q);
		break;
	case MQ_ROLE_IDLE:
		q->look_at = now;
		if (q->role != MQ_ROLE_IDLE)
			q->check_at = now;
		q->claim_at = now + random_near(IDLE_S);
		break;
	case MQ_ROLE_CLAIM:
		await_settlements(in, q, claimed->n > 0);
		break;
	}
	q->role = claimed->role == MQ_ROLE_CLAIM ? MQ_ROLE_NONE : claimed->role;
}

static void
pass_on(struct inbox *in, int queue)
{
	struct queue *q = &in->queues[queue];

	if (in->consumer->session.wake != NULL)
		mq_consumer_pass(in->consumer, queue);
	q->role = MQ_ROLE_NONE;
	q->reasons &= ~(unsigned)REASON_CALLED;
	q->reasons |= REASON_MORE;
}

void
inbox_pass(struct inbox *in)
{
	const struct queue *q;
	int i;

	for (i = 0; i < in->opt->queue_count && !in->claim.under_way; i++) {
		q = &in->queues[i];
		if (q->reasons & REASON_CALLED || q->role != MQ_ROLE_NONE)
			pass_on(in, i);
	}
}

/* --- messages brought by acks ----------------------------------------------- */

bool
inbox_lets_bring(const struct inbox *in, int queue)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++)
		if (i != queue && in->queues[i].reasons != 0)
			return false;
	return !in->claim.under_way && !in->refused && !in->look_wanted &&
	    rules_of(in->opt, queue)->rate.per_s == 0 &&
	    rules_of(in->opt, queue)->slots_shared <= 0;
}

/* While acks bring messages, and so find the queue empty, the next claim is put off. */
void
inbox_brought(struct inbox *in, int queue)
{
	struct queue *q = &in->queues[queue];

	if (is_paused(in, queue) || all_paused(in))
		tell(in, FACT_PAUSED, .queue = queue);
	if (q->role == MQ_ROLE_IDLE)
		return;
	await_settlements(in, q, false);
	mq_timer_start(&in->settle_first, QUICK_S, 0);
	q->role = MQ_ROLE_NONE;
}

/* --- looks ------------------------------------------------------------------ */

struct look {
	struct inbox *inbox;
	enum mq_look how;
	int n;
	int queues[LOOK_MANY];
};

/* The more consumers wait, the rarer each of them looks, and checks.  waiting: how many do, with
 * us; 0: claim at once; -1: the queue is empty, and was not checked. */
static void
schedule_look(struct inbox *in, struct queue *q, long long waiting)
{
	double now = mq_clock_steady_s();
	double check_s = CHECK_S * (1 + in->opt->queue_count / 100.0);

	if (q->role != MQ_ROLE_IDLE)
		return;
	if (waiting == 0) {
		q->reasons |= REASON_MORE | REASON_LOOK;
		wake(in);
	} else if (waiting > 0) {
		q->every = (double)waiting / LOOKS;
		q->check_at = now + MAX(q->every, check_s);
		if (waiting >= LOOKERS)
			q->every = MAX(q->every, LOOKERS_S);
		q->every = MIN(q->every, LOOK_MAX_S);
	}
	if (q->every > 1)
		q->look_at = now - 0.5 + (q->every + random_near(q->every)) / 2;
}

static void on_looked(void *arg, const long long *waiting, int n);

static struct look *
send_look(struct inbox *in, struct look *look)
{
	if (look != NULL)
		mq_consumer_look(in->consumer, look->queues, look->n, look->how,
		    on_looked, look);
	return NULL;
}

/* If a look finds messages in any queue, a second look finds out whether they were left. */
static void
on_looked(void *arg, const long long *waiting, int n)
{
	struct look *look = arg;
	struct inbox *in = look->inbox;
	bool any = look->how == MQ_LOOK_ANY && n > 0;
	bool quiet = any && waiting[0] == 0;
	int i;

	if (any && !quiet) {
		look->how = MQ_LOOK_LEFT;
		(void)send_look(in, look);
		return;
	}
	for (i = 0; i < look->n; i++)
		schedule_look(in, &in->queues[look->queues[i]],
		    quiet     ? -1 :
			i < n ? waiting[i] :
				0);
	free(look);
}

/* Without room, our role passes to others, who can claim. */
static bool
wants_look(struct inbox *in, int queue, int room, double now, bool sending)
{
	struct queue *q = &in->queues[queue];
	/* If other commands are sent anyway, a look wakes the server up no more. */
	double early = sending && q->role == MQ_ROLE_IDLE ? q->every : 0;

	if (q->role == MQ_ROLE_NONE)
		q->reasons |= REASON_MORE;
	if (q->role == MQ_ROLE_NONE || now < q->look_at - early)
		return false;
	if (room <= 0)
		pass_on(in, queue);
	else if (q->role == MQ_ROLE_WATCH)
		q->reasons |= REASON_MORE | REASON_WATCH;
	else if (now >= q->claim_at)
		q->reasons |= REASON_MORE | REASON_LOOK;
	return q->role == MQ_ROLE_IDLE;
}

void
inbox_look_around(struct inbox *in, const int *room, bool sending)
{
	double now = mq_clock_steady_s();
	struct look *looks[2] = {NULL, NULL}, **look;
	bool check;
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		if (!wants_look(in, i, room[i], now, sending))
			continue;
		check = now >= in->queues[i].check_at;
		look = &looks[check];
		if (*look == NULL)
			*look = mq_xcalloc(1, sizeof(**look));
		(*look)->inbox = in;
		(*look)->how = check ? MQ_LOOK_CHECK : MQ_LOOK_ANY;
		(*look)->queues[(*look)->n++] = i;
		if ((*look)->n == LOOK_MANY)
			*look = send_look(in, *look);
	}
	(void)send_look(in, looks[0]);
	(void)send_look(in, looks[1]);
	inbox_look(in, false);
}

/* --- answers to claims ------------------------------------------------------- */

/* A consumer that waits does not make a deleted queue again. */
static void
note_missing(struct inbox *in, struct queue *q, bool missing)
{
	if (missing && q->state & STATE_EXISTS && !in->opt->quiet)
		mq_say("%s: the queue was deleted; waiting until it exists "
		       "again",
		    in->opt->queues[q - in->queues]);
	if (missing)
		q->state &= ~(unsigned)STATE_EXISTS;
	else
		q->state |= STATE_EXISTS;
}

/* If a claim got all that it asked for, the queue may have more. */
static void
store_messages(struct inbox *in, const struct mq_claimed *claimed)
{
	const struct claim *c = &in->claim;
	struct mq_element *element;
	size_t bytes = 0;
	int i;

	for (i = 0; i < claimed->n; i++) {
		element = &claimed->elements[i];
		bytes += element->len;
		(void)hand_add(in->hand, c->queue, element->data, element->len);
		element->data = NULL;
	}
	if (!claimed->paused && (claimed->n >= c->max || bytes >= c->bytes)) {
		in->queues[c->queue].reasons |= REASON_MORE;
		in->pass.none_left = false;
	}
}

static void
receive_claimed(struct inbox *in, const struct mq_claimed *claimed)
{
	int queue = in->claim.queue;
	struct queue *q = &in->queues[queue];
	double now = mq_clock_steady_s();
	/* A claim of 0 messages only looks for pauses. */
	bool claimed_some = in->claim.max > 0;
	bool due = claimed->due_ms >= 0 && claimed->role != MQ_ROLE_IDLE;

	in->answered = true;
	q->tick = claimed->missing ? 0 : claimed->tick;
	in->server_ahead_ms = claimed->now_ms - (int64_t)(now * 1000);
	if (claimed_some && !claimed->paused)
		note_missing(in, q, claimed->missing);
	if (claimed_some || claimed->paused)
		q->due = due ? now + (double)claimed->due_ms / 1000 : 0;
	store_messages(in, claimed);
	if (claimed_some)
		store_role(in, q, claimed);
	else if (in->claim.shared && !claimed->paused)
		q->role = MQ_ROLE_NONE;
	inbox_pause_seen(in, queue, claimed->paused);
	/* The pause of all queues began while the claim was on its way. */
	if (all_paused(in))
		tell(in, FACT_PAUSED, .queue = queue);
}

static void
on_claimed(void *arg, const struct mq_answer *answer)
{
	struct inbox *in = arg;
	struct queue *q = &in->queues[in->claim.queue];

	in->claim.under_way = false;
	if (!mq_answer_good(answer) || answer->claimed->n < 0)
		in->pass.next = -1;
	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		expect_more(in, in->claim.queue);
		q->role = MQ_ROLE_NONE;
		in->refused = true;
		tell(in, FACT_CLAIM_REFUSED, .text = mq_xstrdup(answer->error),
		    .status = answer->status, .yes = !in->answered);
		return;
	}
	tell(in, FACT_CLAIMED, .status = answer->claimed->n);
	if (answer->claimed->n >= 0)
		receive_claimed(in, answer->claimed);
}

/* --- claims ----------------------------------------------------------------- */

static void
send_claim(
    struct inbox *in, int queue, int max, const struct claim_terms *terms)
{
	struct queue *q = &in->queues[queue];
	struct mq_claim claim = {.max = max,
	    .bytes = terms->one_by_one ? 1 : CLAIM_BYTES,
	    .copied = terms->copied,
	    .rate = rules_of(in->opt, queue)->rate,
	    .shared = rules_of(in->opt, queue)->slots_shared > 0};

	claim.tracked = (max == 0 || q->reasons & REASON_WATCH) &&
	    in->consumer->session.wake != NULL;
	if (max > 0) {
		claim.why = q->reasons & REASON_LOOK  ? MQ_CLAIM_LOOK :
		    mq_clock_steady_s() >= q->look_at ? MQ_CLAIM_OWN :
							MQ_CLAIM_CALLED;
		/* From here on, reasons are news of changes after the claim. */
		q->reasons = 0;
	}
	q->reasons &= ~(unsigned)REASON_FREED;
	in->claim =
	    (struct claim){true, queue, max, claim.bytes, claim.shared, false};
	in->pass.claimed = true;
	mq_consumer_claim(in->consumer, queue, &claim, on_claimed, in);
}

/* Whether a pause would give any message back. */
static bool
pause_matters(
    const struct inbox *in, int queue, const struct claim_terms *terms)
{
	return hand_count(in->hand, queue, MESSAGE_UNSTARTED) > 0 ||
	    (is_paused(in, queue) && in->queues[queue].role == MQ_ROLE_NONE) ||
	    (terms->takes_back &&
		hand_count(in->hand, -1, MESSAGE_RUNNING) > 0);
}

/* A queue is claimed from only when the queues before it have no more messages. */
bool
inbox_offer(
    struct inbox *in, int queue, int room, const struct claim_terms *terms)
{
	struct pass *p = &in->pass;
	unsigned reasons = in->queues[queue].reasons;

	p->next = queue + 1;
	if (room <= 0 && reasons & REASON_CALLED)
		pass_on(in, queue);
	if (room > 0 || reasons & REASON_FREED ||
	    (p->looking && pause_matters(in, queue, terms))) {
		send_claim(in, queue, MAX(room, 0), terms);
		return true;
	}
	if (reasons != 0 && !hand_barred(in->hand, queue, BAR_FULL))
		p->none_left = false;
	if (!p->none_left && !p->looking && !in->any_called)
		p->next = in->opt->queue_count;
	return false;
}

static void
begin_pass(struct inbox *in)
{
	in->pass = (struct pass){
	    .next = 0, .none_left = true, .looking = in->look_wanted};
	in->look_wanted = false;
}

/* Sets the timer to the first delayed message that falls due. */
static void
await_due(struct inbox *in)
{
	double first = 0, due;
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		due = in->queues[i].due;
		if (due != 0 && (first == 0 || due < first))
			first = due;
	}
	mq_timer_stop(&in->due_timer);
	if (first == 0)
		return;
	/* Without the update, the timer would count from the beginning of this turn. */
	ev_now_update(in->due_timer.loop);
	first -= mq_clock_steady_s();
	mq_timer_start(&in->due_timer, MAX(first, 0), 0);
}

bool
inbox_ready(const struct inbox *in)
{
	/* A refused claim is repeated at the next tick, or with news. */
	return !in->claim.under_way && !in->refused &&
	    !mq_timer_runs(&in->settle_first);
}

int
inbox_asks(struct inbox *in, const struct claim_terms *terms)
{
	struct pass *p = &in->pass;
	int i, n = in->opt->queue_count;

	if (in->claim.under_way)
		return -1;
	if (p->next == -1)
		begin_pass(in);
	while (p->next < n || p->claimed) {
		if (p->next >= n) {
			await_due(in);
			begin_pass(in);
		}
		i = p->next;
		if (mq_consumer_lacks(in->consumer, i))
			p->next++;
		else if (in->queues[i].reasons != 0 && p->none_left &&
		    !all_paused(in))
			return i;
		else if (inbox_offer(in, i, 0, terms))
			return -1;
	}
	in->any_called = false;
	p->next = -1;
	return -1;
}

bool
inbox_is_claiming(const struct inbox *in)
{
	return in->claim.under_way;
}

void
inbox_down(struct inbox *in)
{
	in->claim.under_way = in->refused = false;
	in->pass.next = -1;
	forget_roles(in);
}

bool
inbox_drained(const struct inbox *in)
{
	int next;

	(void)inbox_expects(in, &next);
	return !in->claim.under_way && (next == -1 || all_paused(in));
}

int
inbox_expects(const struct inbox *in, int *next)
{
	int i = 0;

	while (i < in->opt->queue_count && in->queues[i].reasons == 0)
		i++;
	*next = i < in->opt->queue_count ? i : -1;
	return in->claim.under_way && in->claim.max > 0 ? in->claim.queue : -1;
}

int64_t
inbox_tick(const struct inbox *in, int queue)
{
	return in->queues[queue].tick;
}

int64_t
inbox_server_ms(const struct inbox *in)
{
	return (int64_t)(mq_clock_steady_s() * 1000) + in->server_ahead_ms;
}

/* --- beginning and end ------------------------------------------------------ */

struct inbox *
inbox_new(struct ev_loop *loop, const struct options *opt, struct hand *hand,
    struct facts *facts, struct mq_consumer *consumer)
{
	struct inbox *in = mq_xcalloc(1, sizeof(*in));
	int i;

	*in = (struct inbox){.opt = opt,
	    .hand = hand,
	    .facts = facts,
	    .consumer = consumer,
	    .pass = {.next = -1}};
	in->queues = mq_xcalloc((size_t)opt->queue_count, sizeof(*in->queues));
	for (i = 0; i < opt->queue_count; i++)
		in->queues[i].reasons = REASON_MORE;
	mq_timer_init(&in->due_timer, loop, on_due, in);
	mq_timer_init(&in->look_timer, loop, on_look, in);
	mq_timer_init(&in->settle_first, loop, on_settle_first, in);
	return in;
}

void
inbox_free(struct inbox *in)
{
	free(in->queues);
	free(in);
}
