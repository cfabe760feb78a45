/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The engine's turns.  In a turn the engine takes all facts that modules have told, in order; then
 * it sends acks, gives messages back, claims, starts, and ends.  If a module tells another fact
 * meanwhile, another turn follows before the loop sleeps.
 */
#include "parts.h"

/* --- back ------------------------------------------------------------------- */

/* Gives back the unstarted messages of a queue, or of all (-1); at_once: each by itself. */
static void
give_back(struct engine *e, int queue, bool at_once)
{
	int i = queue == -1 ? 0 : queue;
	int end = queue == -1 ? e->opt->queue_count : queue + 1;
	struct message *m;

	for (; i < end; i++)
		while ((m = hand_newest(e->hand, i)) != NULL) {
			m->outcome = MQ_OUTCOME_FRONT;
			if (at_once)
				outbox_settle(e->outbox, m);
			else
				outbox_give_back(e->outbox, m);
			outcome_activity(e);
		}
}

/* --- fit for a start ---------------------------------------------------------- */

struct unfitness {
	enum unfit kind;
	char why[MQ_UNFIT_MAX];
};

/* Sets the message's id and envelope; a header with only an id leaves the envelope without
 * headers.  False: the header cannot be read. */
static bool
unpack_message(struct engine *e, struct message *m, struct unfitness *unfit)
{
	const struct mq_layout *layout = e->opt->layout;
	const char *bad, *id = NULL;

	/* Most messages have only an id, which needs no parser. */
	if (mq_message_plain(m->element, m->len, m->id, &m->envelope)) {
		if (m->id[0] == '\0' && executor_way(e->executor)->names)
			mq_id_make(
			    &e->ids, (uint64_t)mq_clock_unix_us(), m->id);
		return true;
	}
	if (mq_envelope_parse(m->element, m->len, &m->envelope, &bad) == -1) {
		m->envelope = (struct mq_envelope){0};
		unfit->kind = UNFIT_HEADER;
		strlcpy(unfit->why, bad, sizeof(unfit->why));
		return false;
	}
	m->attempts = mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0);
	m->awaited = mq_result_wanted(&m->envelope);
	id = layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
					mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	else
		mq_id_make(&e->ids, (uint64_t)mq_clock_unix_us(), m->id);
	return true;
}

/* Whether the headers of a message allow its start.  counts_crash: crashes of consumers count as
 * attempts. */
static bool
headers_allow(struct engine *e, const struct message *m, bool counts_crash,
    struct unfitness *unfit)
{
	const struct executor_way *way = executor_way(e->executor);
	const char *to = mq_message_to(&m->envelope, m->queue_name), *bad;

	if (!way->files && to == NULL &&
	    mq_envelope_get(&m->envelope, MQ_HEADER_ATTACH) != NULL) {
		unfit->kind = UNFIT_RUN;
		strlcpy(unfit->why,
		    "attachments need a COMMAND for each message",
		    sizeof(unfit->why));
		return false;
	}
	unfit->kind = UNFIT_EXPIRED;
	if (mq_message_over(&m->envelope, inbox_server_ms(e->inbox),
		inbox_tick(e->inbox, m->queue), unfit->why, sizeof(unfit->why)))
		return false;
	unfit->kind = UNFIT_BATCH;
	if (mq_message_batch_failed(
		&m->envelope, unfit->why, sizeof(unfit->why)))
		return false;
	bad = to != NULL ? e->opt->layout->queue_error(to) : NULL;
	if (bad != NULL) {
		snprintf(unfit->why, sizeof(unfit->why), "Mq-To: %s", bad);
		return false;
	}
	unfit->kind = counts_crash ? UNFIT_CRASHED : UNFIT_SPENT;
	/* RQ looks at the attempts only when a message is to be tried again. */
	return !way->runs || (e->opt->rq && !counts_crash) ||
	    m->attempts < message_attempts(e->opt, m);
}

/* Whether the message may start; if not, it is rejected, or pushed.  After a crash, the cleaner
 * counts an attempt for every message that the consumer had claimed, so care is taken with a
 * message that has failed before. */
static bool
admit_message(struct engine *e, struct message *m)
{
	bool counts_crash = (e->opt->layout->has & MQ_HAS_CLAIMS) != 0 &&
	    executor_way(e->executor)->runs;
	struct unfitness unfit = {.why = ""};
	bool readable = unpack_message(e, m, &unfit);
	bool fit = readable &&
	    (m->envelope.headers == NULL ||
		headers_allow(e, m, counts_crash, &unfit));

	if (readable && m->attempts > 0) {
		policy_be_careful(e->policy, false);
		outbox_flush(e->outbox, OUTBOX_ALL);
		mq_loop_flush(e->consumer->redis);
	}
	/* If the message crashes its consumers, messages claimed with it must not use up
	 * their attempts, too. */
	if (readable && counts_crash &&
	    (m->attempts + 1) * 2 > rules_of(e->opt, m->queue)->attempts)
		policy_be_careful(e->policy, true);
	if (!fit)
		outcome_unfit(e, m, unfit.kind, unfit.why);
	return fit && !outcome_passed(e, m);
}

/* --- claims ------------------------------------------------------------------- */

/* How many more messages of a queue may be claimed, at least 0. */
static int
claim_room(const struct engine *e, int queue)
{
	int unstarted = hand_count(e->hand, -1, MESSAGE_UNSTARTED);
	bool alone = policy_is_careful(e->policy, true);
	long room;

	/* A message claimed while older ones go back would itself go back behind them. */
	if (policy_level(e->policy) != STOP_NOT ||
	    outbox_gives_back(e->outbox, queue))
		return 0;
	room = policy_room(
	    e->policy, queue, executor_room(e->executor, queue, alone));
	/* While messages are unstarted, a claim of a few is not worth a round, unless they are
	 * the last. */
	if (unstarted > 0 && room < unstarted &&
	    !policy_limit_reached(e->policy, unstarted + room) &&
	    !executor_wants_few(e->executor, queue))
		return 0;
	return room > 0 ? (int)room : 0;
}

/* Bytes that a claim may copy, for which the disk of a private server has room; 0: any number.
 * The longest message has 512 MiB. */
static size_t
copy_room(const struct engine *e)
{
	const size_t most = (size_t)1 << 30;
	size_t copying = outbox_copying(e->outbox), bytes = most;
	char why[512];

	while (bytes > 1 &&
	    mq_server_room(e->server, copying + bytes, why, sizeof(why)) != 0)
		bytes /= 2;
	return bytes == most ? 0 : bytes;
}

static void
claim_messages(struct engine *e)
{
	struct claim_terms terms = {
	    .one_by_one = session_one_by_one(e->session),
	    .takes_back = executor_way(e->executor)->takes_back};
	double since;
	int queue;

	while (outbox_makes_ready(e->outbox, &queue, &since))
		inbox_settling(e->inbox, queue, since);
	/* Shared slots that become free while a consumer stops are others'. */
	if (!session_is_up(e->session) || !inbox_ready(e->inbox) ||
	    outbox_brings(e->outbox) ||
	    (policy_level(e->policy) >= STOP_SOON &&
		!rules_share_slots(e->opt)))
		return;
	while ((queue = inbox_asks(e->inbox, &terms)) != -1) {
		terms.copied = copy_room(e);
		(void)inbox_offer(
		    e->inbox, queue, claim_room(e, queue), &terms);
	}
}

/* --- starts ------------------------------------------------------------------- */

/* While the session joins, no message may move: the hand is compared with the server's holdings. */
static bool
may_start(const struct engine *e)
{
	return policy_level(e->policy) < STOP_SOON &&
	    !session_is_joining(e->session) && policy_may_start(e->policy);
}

static struct start_terms
make_terms(const struct engine *e)
{
	struct start_terms t = {.may = may_start(e), .coming = {-1, -1}};
	int next;

	t.last = !inbox_is_claiming(e->inbox) && !outbox_brings(e->outbox) &&
	    (policy_level(e->policy) != STOP_NOT ||
		policy_limit_reached(
		    e->policy, hand_count(e->hand, -1, MESSAGE_UNSTARTED)) ||
		(e->opt->drain && inbox_drained(e->inbox)));
	if (!session_is_up(e->session) || session_complains(e->session))
		return t;
	t.coming[0] = inbox_expects(e->inbox, &next);
	if (next != -1 && claim_room(e, next) > 0)
		t.coming[1] = next;
	return t;
}

/* Gives the run as many messages as it wants, of a queue, or of any (-1). */
static void
fill_run(struct engine *e, int queue)
{
	struct message *m;
	const char *why;
	bool more = true;

	while (more && (m = hand_next(e->hand, queue)) != NULL) {
		if (!admit_message(e, m))
			continue;
		hand_start(e->hand, m);
		policy_start(e->policy);
		why = executor_refuses(e->executor, m);
		if (why != NULL)
			outcome_unfit(e, m, UNFIT_RUN, why);
		else
			more = executor_take(e->executor, m);
	}
}

static void
start_runs(struct engine *e)
{
	struct start_terms terms = make_terms(e);
	int queue;

	while (executor_wants(e->executor, &terms, &queue)) {
		fill_run(e, queue);
		/* Before a message starts that may crash this consumer, all messages that would
		 * not start with it go back. */
		if (policy_is_careful(e->policy, true) &&
		    hand_count(e->hand, -1, MESSAGE_UNSTARTED) >
			executor_spare(e->executor)) {
			give_back(e, -1, true);
			mq_loop_flush(e->consumer->redis);
		}
		executor_begin(e->executor);
		terms.may = may_start(e);
	}
	executor_started(e->executor, &terms);
}

/* If this consumer is killed, messages whose acks have not left run again.  So with a run for each
 * message, acks leave before the next run starts, and no run starts while nothing can be
 * settled. */
static void
start_messages(struct engine *e)
{
	const struct executor_way *way = executor_way(e->executor);
	bool stuck;

	/* The server works on the claim while messages start. */
	if (way->flows)
		claim_messages(e);
	if (way->flows || way->acks == ACKS_AT_ONCE)
		mq_loop_flush(e->consumer->redis);
	stuck = session_is_up(e->session) ?
	    outbox_refused(e->outbox) :
	    hand_count(e->hand, -1, MESSAGE_SETTLING) > 0;
	if (way->acks != ACKS_AT_ONCE || !stuck)
		start_runs(e);
}

/* --- facts ---------------------------------------------------------------------- */

static void
report_service(struct engine *e)
{
	service_report(e->service, session_is_up(e->session),
	    hand_count(e->hand, -1, MESSAGE_RUNNING),
	    counters_totals(e->outbox, NULL));
}

static void
note_change(struct engine *e, const struct fact *f)
{
	bool any = f->queue == -1 && f->yes;
	int i;

	for (i = 0; i < e->opt->queue_count && any; i++)
		session_ask_settings(e->session, i);
	if (f->queue != -1 && f->status == MQ_KEY_SETTINGS)
		session_ask_settings(e->session, f->queue);
	if (f->queue == -1)
		session_ask_pause(e->session);
	if (f->queue != -1 || any)
		inbox_changed(e->inbox, f->queue);
}

static void
tick(struct engine *e)
{
	struct mq_buf runs = {0};
	/* While a heartbeat is on its way, more commands cost the server no extra round. */
	bool renewing = session_renews(e->session), waits;
	int i;

	report_service(e);
	if (e->process.kept != NULL)
		kept_tick(e->process.kept, session_is_up(e->session));
	if (!session_is_up(e->session) || e->ending)
		return;
	holdings_count(e, renewing);
	ends_check_room(e);
	outbox_send_again(e->outbox);
	executor_tick(e->executor);
	for (i = 0; i < e->opt->queue_count; i++)
		e->room[i] = claim_room(e, i);
	inbox_look_around(e->inbox, e->room, renewing);
	executor_describe(e->executor, &runs);
	if (runs.len > 0 && renewing)
		stops_look(e, -1);
	counters_tell_runs(e->outbox, &runs);
	counters_send(e->outbox);
	/* --drain has nothing to do, but is not over. */
	waits =
	    e->opt->drain && engine_has_nothing(e) && inbox_drained(e->inbox);
	jobs_tick(e->jobs, mq_timer_runs(&e->bar), waits);
}

static void
note_claimed(struct engine *e, const struct fact *f)
{
	/* The complaint about a refused settlement stands until the settlement is sent. */
	if (!outbox_refused(e->outbox) && e->lacks_since == 0)
		session_complain(e->session, NULL);
	if (f->status > 0)
		outcome_activity(e);
	if (f->status == MQ_CLAIM_LOST) {
		holdings_lose(e);
		session_rejoin(e->session);
	}
	if (f->status == MQ_CLAIM_BAD)
		session_reset(e->session, "claim: unexpected reply");
}

static void
note_refused_claim(struct engine *e, const struct fact *f)
{
	/* A right that was there before may be restored. */
	if ((f->status == MQ_EXIT_NOPERM && f->yes) ||
	    f->status == MQ_EXIT_WRONGTYPE) {
		mq_say("%s: claim: %s%s", e->server->name, f->text,
		    mq_error_hint(f->text));
		policy_stop(e->policy, STOP_SOON, f->status, 0);
		return;
	}
	/* After other errors, the tick tries again. */
	if (strstr(f->text, MQ_CLAIM_NO_ROOM) != NULL)
		ends_lack(e, f->text);
	session_complain(e->session, f->text);
	if (strncmp(f->text, "READONLY", 8) == 0)
		session_reset(e->session, f->text);
}

/* One switch for all facts, in parts: of messages, of the server, of the session; and of the end,
 * in ends.c. */

static void
take_fact_of_messages(struct engine *e, const struct fact *f)
{
	switch (f->kind) {
	case FACT_CLAIMED:
		note_claimed(e, f);
		break;
	case FACT_CLAIM_REFUSED:
		note_refused_claim(e, f);
		break;
	case FACT_PAUSED:
		/* A stopping consumer gives everything back anyway, in order. */
		if (policy_level(e->policy) >= STOP_SOON)
			break;
		executor_take_back(e->executor, f->queue, false);
		give_back(e, f->queue, false);
		break;
	case FACT_RAN:
		counters_ran(e->outbox, f->queue, f->seconds);
		break;
	case FACT_ENDED:
		outcome_ended(e, f);
		break;
	case FACT_BROKEN_OFF:
		outcome_broken_off(e, f);
		break;
	case FACT_GIVE_BACK:
		give_back(e, -1, false);
		break;
	case FACT_ANSWERED:
		executor_answered(e->executor, (int)f->n, f->yes);
		break;
	case FACT_SETTLED:
		outcome_settled(e, f);
		break;
	case FACT_TOO_LONG:
		outcome_too_long(e, f);
		break;
	case FACT_NO_ROOM:
		ends_lack(e, f->text);
		break;
	case FACT_BROUGHT:
		outcome_activity(e);
		inbox_brought(e->inbox, f->queue);
		break;
	case FACT_PAUSE_SET:
		inbox_pause_seen(e->inbox, f->queue, true);
		inbox_look(e->inbox, false);
		break;
	default:
		ends_take(e, f);
		break;
	}
}

static void
take_fact_of_server(struct engine *e, const struct fact *f)
{
	switch (f->kind) {
	case FACT_HOLDINGS:
		holdings_compare(e, f);
		break;
	case FACT_EXISTS:
		holdings_found(e, f);
		break;
	case FACT_LEASE_LOST:
		holdings_lose(e);
		break;
	case FACT_LEASE_GONE:
		holdings_lose(e);
		session_rejoin(e->session);
		break;
	case FACT_CHANGED:
		note_change(e, f);
		break;
	case FACT_CALLED:
		inbox_called(e->inbox, f->queue);
		break;
	case FACT_ALL_PAUSED:
		inbox_pause_seen(e->inbox, -1, f->yes);
		break;
	case FACT_STOP_WANTED:
		stops_look(e, f->queue);
		break;
	case FACT_STOP_REQUEST:
		stops_take(e, f);
		break;
	case FACT_COMPLAINT:
		session_complain(e->session, f->text);
		break;
	default:
		take_fact_of_messages(e, f);
		break;
	}
}

static void
take_fact(struct engine *e, const struct fact *f)
{
	switch (f->kind) {
	case FACT_UP:
		outbox_up(e->outbox);
		duplicates_up(e->duplicates, true);
		inbox_look(e->inbox, true);
		report_service(e);
		break;
	case FACT_DOWN:
		inbox_down(e->inbox);
		outbox_down(e->outbox);
		duplicates_up(e->duplicates, false);
		break;
	case FACT_RULES:
		executor_resize(e->executor);
		session_tell_slots(e->session, executor_capacity(e->executor));
		inbox_look(e->inbox, true);
		break;
	case FACT_ENTER:
		session_enter(e->session, executor_capacity(e->executor));
		break;
	case FACT_TICK:
		tick(e);
		break;
	case FACT_FAILED:
		service_stop(e->service);
		e->failed = f->status;
		executor_kill(e->executor, SIGKILL);
		ends_now(e);
		break;
	case FACT_LEFT:
		ends_now(e);
		break;
	default:
		take_fact_of_server(e, f);
		break;
	}
}

/* The consequences of an earlier fact may have been that a message is forgotten. */
static void
take_facts(struct engine *e)
{
	struct fact f;

	while (fact_take(e->facts, &f)) {
		if (f.message == NULL || f.message->state != MESSAGE_FORGOTTEN)
			take_fact(e, &f);
		fact_free(&f);
	}
}

/* --- a turn ----------------------------------------------------------------- */

/* Whether an ack may bring the next message of its group. */
static bool
may_bring(const struct engine *e)
{
	int queue = outbox_follows(e->outbox);

	return queue != -1 && session_is_up(e->session) &&
	    !session_one_by_one(e->session) &&
	    inbox_lets_bring(e->inbox, queue) && claim_room(e, queue) > 0;
}

/* Acks wait for others while there is more to do.  If a message may crash this consumer, no
 * settlement waits, so that no finished message is counted as crashed. */
static void
flush_acks(struct engine *e)
{
	enum executor_acks acks = executor_way(e->executor)->acks;
	bool careful = policy_is_careful(e->policy, false);
	bool none_unstarted = hand_count(e->hand, -1, MESSAGE_UNSTARTED) == 0;
	bool none_runs = hand_count(e->hand, -1, MESSAGE_RUNNING) == 0;
	enum outbox_acks which = OUTBOX_ENOUGH;

	if (careful || acks == ACKS_FIRST ||
	    (none_unstarted &&
		(acks == ACKS_AT_ONCE || (acks == ACKS_AT_REST && none_runs))))
		which = OUTBOX_ALL;
	else if (acks == ACKS_FOR_OTHERS && none_unstarted && none_runs)
		which = OUTBOX_HOLDERS;
	if (which != OUTBOX_ENOUGH && may_bring(e))
		which = OUTBOX_NEXT;
	outbox_flush(e->outbox, which);
	if (careful)
		mq_loop_flush(e->consumer->redis);
}

static void
give_back_unstarted(struct engine *e)
{
	bool now = policy_level(e->policy) == STOP_NOW;

	/* A claim under way brings newer messages, which must go back first.  The messages of
	 * killed commands go back together, in order, but do not wait for a command that
	 * ignores the signal. */
	if (inbox_is_claiming(e->inbox) || outbox_brings(e->outbox) ||
	    (now && executor_busy(e->executor) > 0 &&
		policy_has_just_signalled(e->policy)) ||
	    !session_is_up(e->session))
		return;
	executor_take_back(e->executor, -1, now);
	give_back(e, -1, false);
}

static void
take_turn(struct engine *e)
{
	bool claimed;

	/* Runs that are settled below may have taken longer than the lease. */
	holdings_check_lease(e);
	take_facts(e);
	if (e->ending)
		return;
	flush_acks(e);
	if (policy_level(e->policy) != STOP_NOT && session_is_up(e->session))
		inbox_pass(e->inbox);
	if (policy_level(e->policy) >= STOP_SOON)
		give_back_unstarted(e);
	outbox_send_back(e->outbox);
	start_messages(e);
	claimed = inbox_is_claiming(e->inbox);
	claim_messages(e);
	/* Waiting acks leave with a claim: the server wakes up once for both. */
	if (!claimed && inbox_is_claiming(e->inbox))
		outbox_flush(e->outbox, OUTBOX_CLAIM);
	ends_check(e);
	/* The next turn of the loop begins with a wait: all commands leave before it. */
	mq_loop_flush(e->consumer->redis);
}

void
turn_all(struct engine *e)
{
	while (!facts_empty(e->facts))
		take_turn(e);
	hand_sweep(e->hand);
}
