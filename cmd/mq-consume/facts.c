/* What follows from the facts that modules tell, and what they ask; and what the server is
 * asked about our messages: which of them it holds for us, and which runs an operator
 * wants stopped. */
#include "engine.h"

/* How long --drain and --limit wait for room on a disk. */
#define ROOM_S 60.0

static void
note_activity(struct engine *e)
{
	errands_soon(&e->errands, ERRAND_DRAIN);
	policy_active(&e->policy);
}

static void
settle_message(struct engine *e, struct message *m, enum mq_outcome outcome)
{
	outbox_settle(&e->outbox, m, outcome);
	note_activity(e);
}

static void
reject_message(struct engine *e, const struct fact *f)
{
	settle_message(e, f->message,
	    verdict_unfit(&e->outbox, f->message, f->unfit, f->text));
}

void
engine_give_back(struct engine *e, int queue, bool at_once)
{
	int i = queue == -1 ? 0 : queue;
	int end = queue == -1 ? e->opt->queue_count : queue + 1;
	struct message *m;

	/* A pause of all queues is told of each. */
	for (; i < end; i++)
		while ((m = inbox_take_newest(&e->inbox, i)) != NULL) {
			if (at_once)
				outbox_settle(&e->outbox, m, MQ_OUTCOME_FRONT);
			else
				outbox_give_back(&e->outbox, m);
			note_activity(e);
		}
}

static void
end_engine(struct engine *e)
{
	e->ending = true;
	ev_break(e->loop, EVBREAK_ALL);
}

static int
count_in_hand(const struct engine *e)
{
	return e->inbox.held + e->executor.running + e->outbox.settling;
}

struct question {
	struct engine *engine;
	int queue;
	/* Of a message, which may be gone meanwhile; or the moves so far. */
	unsigned long number;
};

static struct question *
make_question(struct engine *e, int queue, unsigned long number)
{
	struct question *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct question){e, queue, number};
	return q;
}

/* --- the messages that the server holds for us ------------------------------- */

/* After each join the messages are compared with ours.  A stalled server may carry out
 * a command of an old connection later.  So once a second, while no message moves, their
 * number is. */

/* Another consumer has the message now. */
static void
take_over(struct engine *e, struct message *m)
{
	outbox_lose(
	    &e->outbox, m, "lease lost: another consumer has the message now");
	m->lost = true;
	if (m->state != MESSAGE_RUNNING || !executor_take_away(&e->executor, m))
		inbox_forget(&e->inbox, m);
}

static void
on_exists(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	struct message *m;

	TAILQ_FOREACH(m, &e->inbox.all, link)
		if (m->number == q->number)
			break;
	free(q);
	/* A settling message has an answer of its own. */
	if (answer == NULL || m == NULL || m->lost ||
	    m->state == MESSAGE_SETTLING)
		return;
	if (answer->error != NULL || answer->n != 0)
		take_over(e, m);
	else if (m->state == MESSAGE_HELD)
		inbox_forget(&e->inbox, m);
	else
		m->gone = true;
}

static void
on_missing(void *arg, struct message *m)
{
	struct engine *e = arg;

	if (m->state == MESSAGE_SETTLING) {
		/* The settlement arrived; only its answer was lost. */
		if (m->sent)
			outbox_confirm(&e->outbox, m);
		return;
	}
	/* Another consumer runs the message now, or somebody deleted it. */
	if (e->opt->layout->exists == NULL)
		take_over(e, m);
	else
		mq_consumer_exists(&e->session.self, m->queue, m->element,
		    m->len, on_exists, make_question(e, m->queue, m->number));
}

static void
on_held(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	int queue = q->queue;

	free(q);
	if (!mq_answer_good(answer) || !session_is_up(&e->session))
		return;
	/* The server answers in order: no earlier answer is missing. */
	inbox_reconcile(&e->inbox, queue, answer->held, on_missing, e);
	e->marked = true;
}

static void
on_count(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	long long ours = inbox_count(&e->inbox, q->queue);

	if (q->number != e->inbox.moves + e->outbox.moves ||
	    !mq_answer_good(answer) || ours == answer->n ||
	    !session_is_up(&e->session)) {
		free(q);
		return;
	}
	if (ours < answer->n && !e->opt->quiet)
		mq_say("%s: the server has unacked messages that this consumer "
		       "does not have",
		    e->server->name);
	mq_consumer_held(&e->session.self, q->queue, on_held, q);
}

static void
count_held(struct engine *e, int queue)
{
	mq_consumer_count_held(&e->session.self, MQ_HELD_COUNT, &queue, 1,
	    on_count,
	    make_question(e, queue, e->inbox.moves + e->outbox.moves));
}

static void
on_some(void *arg, const struct mq_answer *answer)
{
	struct engine *e = arg;
	int i;

	if (!mq_answer_good(answer) || answer->n == 0)
		return;
	/* The others are counted already. */
	for (i = 0; i < e->opt->queue_count; i++)
		if (inbox_count(&e->inbox, i) == 0)
			count_held(e, i);
}

/* Once a second; all: also of the queues of which we have no message. */
static void
count_all_held(struct engine *e, bool all)
{
	int *empty, n = 0, i;

	/* An answer that comes before those to these questions spoils the
	 * comparison, and changes the moves. */
	if (e->inbox.claiming || e->outbox.settling > 0)
		return;
	empty = mq_xcalloc((size_t)e->opt->queue_count, sizeof(*empty));
	for (i = 0; i < e->opt->queue_count; i++)
		if (inbox_count(&e->inbox, i) == 0)
			empty[n++] = i;
		else
			count_held(e, i);
	if (all)
		mq_consumer_count_held(
		    &e->session.self, MQ_HELD_KEY, empty, n, on_some, e);
	free(empty);
}

/* --- runs that an operator wants stopped; see queue/stats.h ------------------- */

static void
on_request(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	int queue = q->queue;
	struct mq_run run = {0};
	enum mq_stop what = answer != NULL && answer->text != NULL ?
	    mq_stop_read(answer->text, &run) :
	    MQ_STOP_NONE;
	struct message *m;

	free(q);
	if ((what != MQ_STOP_PURGE && what != MQ_STOP_RETURN) ||
	    strcmp(run.connection, e->session.self.session.connection) != 0)
		return;
	TAILQ_FOREACH(m, &e->inbox.queues[queue].all, own)
		if (m->attempts + 1 == run.attempt &&
		    strcmp(m->id, run.id) == 0)
			break;
	/* What is lost, or stops already, has an end of its own. */
	if (m != NULL && (m->lost || m->stop != MQ_STOP_NONE))
		return;
	if (m == NULL || m->state != MESSAGE_RUNNING ||
	    !executor_stop_run(&e->executor, m, what))
		mq_consumer_tell_stop(
		    &e->session.self, queue, MQ_STOP_OVER, &run);
}

/* Looks whether an operator wants a run of a queue stopped; -1: of all with runs. */
static void
look_for_stops(struct engine *e, int queue)
{
	const struct message *m;
	int i;

	for (i = 0; i < e->opt->queue_count; i++) {
		TAILQ_FOREACH(m, &e->inbox.queues[i].all, own)
			if (m->state == MESSAGE_RUNNING)
				break;
		if (queue == -1 ? m != NULL : i == queue)
			mq_consumer_look_for_stop(&e->session.self, i,
			    on_request, make_question(e, i, 0));
	}
}

/* --- session ---------------------------------------------------------------- */

/* The outcome of all messages does not count any more. */
static void
lose_all(struct engine *e)
{
	struct message *m, *next;

	TAILQ_FOREACH_SAFE(m, &e->inbox.all, link, next) {
		if (m->lost)
			continue;
		mq_consumer_lapsed(&e->session.self, m->queue, m->element,
		    m->len, m->attempts);
		if (m->state != MESSAGE_HELD)
			outbox_lose(&e->outbox, m,
			    "lease lost: others may get the message");
		m->lost = true;
		/* One that runs or is in flight has an end of its own. */
		if (m->state == MESSAGE_RUNNING &&
		    executor_take_away(&e->executor, m))
			continue;
		if (m->state == MESSAGE_SETTLING && m->in_flight)
			continue;
		if (m->state == MESSAGE_SETTLING)
			outbox_forget(&e->outbox, m);
		inbox_forget(&e->inbox, m);
	}
	executor_kill(&e->executor, SIGKILL);
	inbox_renamed(&e->inbox);
	errands_soon(&e->errands, ERRAND_CLEAN);
}

static void
note_change(struct engine *e, const char *key, size_t n)
{
	enum mq_key kind = key == NULL ? MQ_KEY_OTHER : mq_key_of(key, n);
	int own = key == NULL ? -1 : inbox_queue_of(&e->inbox, key, n), i;

	for (i = 0; i < e->opt->queue_count && key == NULL; i++)
		session_ask_settings(&e->session, i);
	if (own != -1 && kind == MQ_KEY_SETTINGS)
		session_ask_settings(&e->session, own);
	if (key == NULL || kind == MQ_KEY_ALL_PAUSED)
		session_ask_pause(&e->session);
	if (key == NULL || own != -1)
		inbox_changed(&e->inbox, own);
}

static void
tick(struct engine *e, bool up)
{
	struct mq_buf runs = {0};
	/* A heartbeat is on its way: commands cost the server no round more. */
	bool renewing = e->session.lease.renewal_sent > 0, waits, full;

	service_report(
	    e->service, up, e->executor.running, counters_totals(&e->outbox));
	if (!up || e->ending)
		return;
	count_all_held(e, renewing);
	/* A consumer that is to end waits a minute for room on the server's disk.  What
	 * finds none stays unacked, and goes back when the lease is over. */
	if (!e->lacks_room)
		e->lacks_since = 0;
	e->lacks_room = false;
	full = (e->opt->drain || e->opt->limit > 0) && e->lacks_since != 0 &&
	    mq_clock_steady_s() - e->lacks_since >= ROOM_S;
	if (full && e->policy.stop < STOP_SOON)
		policy_stop(&e->policy, STOP_SOON, MQ_EXIT_AGAIN, 0);
	else if (full && e->executor.running == 0)
		end_engine(e);
	outbox_send_again(&e->outbox, false);
	e->executor.table->tick(&e->executor);
	inbox_look_around(&e->inbox, renewing);
	executor_describe(&e->executor, &runs);
	if (runs.len > 0 && renewing)
		look_for_stops(e, -1);
	counters_tell_runs(&e->outbox, &runs);
	counters_send(&e->outbox);
	/* --drain is not over although there is nothing to do. */
	waits =
	    e->opt->drain && engine_has_nothing(e) && inbox_drained(&e->inbox);
	errands_tick(&e->errands, ev_is_active(&e->bar), waits);
}

static void
hear_session(void *arg, const struct fact *f)
{
	struct engine *e = arg;
	int queue;

	switch (f->kind) {
	case FACT_UP:
		outbox_send_again(&e->outbox, true);
		duplicates_resume(&e->duplicates);
		inbox_look(&e->inbox, true);
		service_report(e->service, true, e->executor.running,
		    counters_totals(&e->outbox));
		break;
	case FACT_DOWN:
		inbox_down(&e->inbox);
		e->marked = true;
		break;
	case FACT_LEASE_LOST:
		lose_all(e);
		break;
	case FACT_RULES:
		executor_resize(&e->executor);
		inbox_look(&e->inbox, true);
		break;
	case FACT_ALL_PAUSED:
		inbox_pause_all(&e->inbox, f->yes);
		break;
	case FACT_HELD:
		inbox_reconcile(&e->inbox, f->queue, f->held, on_missing, e);
		break;
	case FACT_CHANGED:
		note_change(e, f->text, f->n);
		break;
	case FACT_CALLED:
		queue = inbox_queue_of(&e->inbox, f->text, f->n);
		if (queue != -1 && mq_key_of(f->text, f->n) == MQ_KEY_STOP)
			look_for_stops(e, queue);
		else if (queue != -1)
			inbox_called(&e->inbox, queue);
		break;
	case FACT_TICK:
		tick(e, f->yes);
		break;
	case FACT_LEFT:
		end_engine(e);
		break;
	case FACT_FAILED:
		service_stop(e->service);
		e->failed = f->status;
		executor_kill(&e->executor, SIGKILL);
		end_engine(e);
		break;
	default:
		break;
	}
}

static bool
has_message(void *arg, int queue)
{
	struct engine *e = arg;

	return !TAILQ_EMPTY(
	    queue == -1 ? &e->inbox.all : &e->inbox.queues[queue].all);
}

/* --- inbox ------------------------------------------------------------------ */

static int
claim_room(void *arg, int queue)
{
	struct engine *e = arg;
	int held = e->inbox.held;
	long room;

	/* What is claimed while older messages go back would go back behind
	 * them. */
	if (e->policy.stop != STOP_NOT ||
	    !TAILQ_EMPTY(&e->outbox.queues[queue].back))
		return 0;
	room = policy_room(&e->policy,
	    e->executor.table->room(&e->executor, queue), held,
	    e->inbox.queues[queue].held);
	/* While messages are held, a claim of a few is not worth a round, unless
	 * they are the last. */
	if (held > 0 && room < held &&
	    !policy_limit_reached(&e->policy, held + room) &&
	    !executor_wants_few(&e->executor, queue))
		return 0;
	return room > 0 ? (int)room : 0;
}

/* How much is free changes all the time, so this is said once. */
static void
note_lack(struct engine *e, const char *why)
{
	if (e->session.complaint[0] == '\0')
		session_complain(&e->session, why);
	e->lacks_room = true;
	if (e->lacks_since == 0)
		e->lacks_since = mq_clock_steady_s();
}

static void
hear_inbox(void *arg, const struct fact *f)
{
	struct engine *e = arg;

	switch (f->kind) {
	case FACT_CLAIMED:
		/* The complaint about a refused settlement stands until it is
		 * sent. */
		if (!outbox_refused(&e->outbox) && e->lacks_since == 0)
			session_complain(&e->session, NULL);
		if (f->status > 0)
			note_activity(e);
		else if (f->status == MQ_CLAIM_LOST)
			session_rejoin(&e->session);
		else if (f->status == MQ_CLAIM_BAD)
			session_reset(&e->session, "claim: unexpected reply");
		break;
	case FACT_CLAIM_REFUSED:
		/* A right that was revoked later may be restored. */
		if ((f->status == MQ_EXIT_NOPERM && f->yes) ||
		    f->status == MQ_EXIT_WRONGTYPE) {
			mq_say("%s: claim: %s%s", e->server->name, f->text,
			    mq_error_hint(f->text));
			policy_stop(&e->policy, STOP_SOON, f->status, 0);
			break;
		}
		/* The tick tries again. */
		if (strstr(f->text, MQ_CLAIM_NO_ROOM) != NULL)
			note_lack(e, f->text);
		session_complain(&e->session, f->text);
		if (strncmp(f->text, "READONLY", 8) == 0)
			session_reset(&e->session, f->text);
		break;
	case FACT_QUEUE_PAUSED:
		/* A consumer that stops gives everything back anyway, in order. */
		if (e->policy.stop >= STOP_SOON)
			break;
		executor_take_back(&e->executor, f->queue, false);
		engine_give_back(e, f->queue, false);
		break;
	case FACT_CAREFUL:
		policy_be_careful(&e->policy, f->yes);
		if (f->yes)
			break;
		outbox_flush(&e->outbox, true);
		mq_loop_flush(e->session.self.redis);
		break;
	case FACT_UNFIT:
		reject_message(e, f);
		break;
	default: /* FACT_WAKE */
		e->marked = true;
		break;
	}
}

/* --- executor and outbox ---------------------------------------------------- */

static void
note_confirmed(struct engine *e, struct message *m)
{
	const struct mq_run run = {.id = m->id, .attempt = m->attempts + 1};
	enum mq_stop answer = !m->stopped  ? MQ_STOP_OVER :
	    m->outcome == MQ_OUTCOME_ACK   ? MQ_STOP_PURGED :
	    m->outcome == MQ_OUTCOME_AGAIN ? MQ_STOP_RETURNED :
					     MQ_STOP_REJECTED;

	policy_settled(&e->policy, m);
	if (m->stop != MQ_STOP_NONE)
		mq_consumer_tell_stop(&e->session.self, m->queue, answer, &run);
	if (m->outcome == MQ_OUTCOME_ACK) {
		message_let_go(m, true);
		executor_acked(&e->executor, m);
	}
	if (m->outcome == MQ_OUTCOME_PUSH ||
	    rules_of(e->opt, m->queue)->notify != NULL)
		errands_transfer(&e->errands);
}

static const char *const outcome_words[] = {[MQ_OUTCOME_ACK] = "done",
    [MQ_OUTCOME_PUSH] = "pushed",
    [MQ_OUTCOME_AGAIN] = "retried",
    [MQ_OUTCOME_REJECT] = "rejected",
    [MQ_OUTCOME_FRONT] = "returned"};

static void
log_run(struct engine *e, const struct message *m, const struct mq_verdict *v,
    const char *errors, const char *verdict)
{
	char reason[MQ_ERROR_MAX + 1];

	if (e->opt->joblog == NULL)
		return;
	if (v->kind != MQ_VERDICT_DONE)
		mq_verdict_reason(v, errors, reason, sizeof(reason));
	joblog_write(&e->process.joblog, m, v->status, verdict,
	    v->kind != MQ_VERDICT_DONE ? reason : v->text);
}

static void
judge(struct engine *e, struct message *m, const struct mq_verdict *v,
    const char *errors)
{
	enum mq_outcome outcome;

	if (m->lost) {
		log_run(e, m, v, errors, "lost");
		inbox_forget(&e->inbox, m);
		return;
	}
	outcome = verdict_outcome(
	    &e->outbox, m, v, errors, policy_is_broken(&e->policy));
	log_run(e, m, v, errors,
	    m->stopped && outcome == MQ_OUTCOME_ACK ? "purged" :
						      outcome_words[outcome]);
	if (outcome == MQ_OUTCOME_ACK || outcome == MQ_OUTCOME_PUSH)
		process_remove_dir(&e->process, m->id);
	settle_message(e, m, outcome);
}

static void
hear_messages(void *arg, const struct fact *f)
{
	struct engine *e = arg;
	struct message *m = f->message;

	switch (f->kind) {
	case FACT_ENDED:
		judge(e, m, f->verdict, f->text);
		break;
	case FACT_BROKEN_OFF:
		log_run(
		    e, m, f->verdict, f->text, outcome_words[MQ_OUTCOME_FRONT]);
		break;
	case FACT_DONE:
		settle_message(e, m, MQ_OUTCOME_ACK);
		break;
	case FACT_RETURNED:
		if (m->lost || m->gone)
			inbox_forget(&e->inbox, m);
		else
			inbox_return(&e->inbox, m);
		break;
	case FACT_UNFIT:
		reject_message(e, f);
		break;
	case FACT_GIVE_BACK:
		engine_give_back(e, -1, f->yes);
		mq_loop_flush(e->session.self.redis);
		break;
	case FACT_SETTLED:
		if (f->yes)
			note_confirmed(e, m);
		inbox_forget(&e->inbox, m);
		break;
	case FACT_WRONG_KEY:
		policy_stop(&e->policy, STOP_SOON, MQ_EXIT_WRONGTYPE, 0);
		break;
	case FACT_REFUSED:
		session_complain(&e->session, f->text);
		break;
	case FACT_NO_ROOM:
		note_lack(e, f->text);
		break;
	default: /* FACT_WAKE */
		e->marked = true;
		break;
	}
}

/* --- policy and errands ----------------------------------------------------- */

static void
give_up(struct engine *e)
{
	const char *name = e->session.self.session.connection;
	int left = count_in_hand(e);

	if (e->ending)
		return;
	if (left == 0)
		mq_say("%s: connection not removed from the server; mq-clean "
		       "removes it",
		    name);
	else
		mq_say("%d message%s could not be settled; %s unacked at %s "
		       "until it is cleaned up",
		    left, left == 1 ? "" : "s",
		    left == 1 ? "it stays" : "they stay", name);
	end_engine(e);
}

static void
hear_ends(void *arg, const struct fact *f)
{
	struct engine *e = arg;
	struct mq_counts n;
	int running = e->executor.running;

	switch (f->kind) {
	case FACT_STOP:
		if (f->yes && e->policy.stop == STOP_SOON && running > 0 &&
		    e->executor.busy > 0 && !e->opt->quiet)
			mq_say("stopping; waiting for %d running %s", running,
			    running == 1 ? "message" : "messages");
		if (e->policy.stop >= STOP_SOON)
			service_stop(e->service);
		if (e->policy.stop == STOP_SOON)
			executor_stop(&e->executor);
		e->marked = true;
		break;
	case FACT_GIVE_UP:
		give_up(e);
		break;
	case FACT_REOPEN_LOGS:
		process_open_logs(&e->process);
		break;
	case FACT_IDLE:
		/* A cron job may end before the first tick.  So idle also means that
		 * the last claims found nothing and that dead connections have been
		 * cleaned up. */
		if (engine_has_nothing(e) && inbox_drained(&e->inbox) &&
		    session_is_up(&e->session) && errands_cleaned(&e->errands))
			policy_stop(&e->policy, STOP_SOON, 0, 0);
		break;
	case FACT_SIGNAL:
		/* The commands go on only under the lease, which may have
		 * lapsed. */
		if (f->status != SIGCONT || session_holds_lease(&e->session))
			executor_kill(&e->executor, f->status);
		/* After the TERM, no command is left to wait for. */
		if (f->status == SIGKILL && !e->policy.killed &&
		    e->executor.busy == 0)
			give_up(e);
		break;
	case FACT_COUNTED:
		n = counters_totals(&e->outbox);
		e->bar_total =
		    n.done + n.failed + (long long)f->n + count_in_hand(e);
		break;
	case FACT_DRAINED:
		if (TAILQ_EMPTY(&e->inbox.all))
			policy_stop(&e->policy, STOP_SOON, MQ_EXIT_OK, 0);
		break;
	case FACT_NO_PLACE:
		if (!e->ending)
			policy_stop(&e->policy, STOP_SOON, MQ_EXIT_AGAIN, 0);
		break;
	default: /* FACT_WAKE */
		e->marked = true;
		break;
	}
}

void
engine_listen(struct engine *e)
{
	e->session.hear = hear_session;
	e->session.has = has_message;
	e->inbox.hear = hear_inbox;
	e->inbox.room = claim_room;
	e->outbox.hear = hear_messages;
	e->executor.hear = hear_messages;
	e->policy.hear = hear_ends;
	e->errands.hear = hear_ends;
	e->process.hear = hear_messages;
	e->policy.arg = e->session.arg = e->inbox.arg = e->outbox.arg = e;
	e->executor.arg = e->errands.arg = e->process.arg = e;
}
