/*
 * Events of the inbox, outbox, comparison and --drain.
 */
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "engine-parts.h"
#include "redis/error.h"

/* --- inbox ------------------------------------------------------------------ */

static bool
may_claim(void *arg)
{
	struct engine *e = arg;

	return session_is_up(&e->session) &&
	    policy_level(&e->policy) < STOP_SOON;
}

static int
claim_room(void *arg, int queue)
{
	struct engine *e = arg;
	int held = inbox_held(&e->inbox);
	int batch = e->executor.table->bulk ? e->slots.batch : 0;
	long room;

	/* What is claimed while older messages go back would go back behind
	 * them. */
	if (policy_level(&e->policy) != STOP_NOT ||
	    outbox_gives_back(&e->outbox, queue))
		return 0;
	room = policy_room(&e->policy, executor_room(&e->executor, queue), held,
	    inbox_held_of(&e->inbox, queue), batch);
	/* While messages are held, a claim of a few is not worth a round, unless
	 * they are the last. */
	if (held > 0 && room < held &&
	    !policy_limit_reached(&e->policy, held + room) &&
	    !executor_wants_few(&e->executor, queue))
		return 0;
	return room > 0 ? (int)room : 0;
}

/* A disk that is full ends a private server. */
static bool
fits_disk(struct engine *e, size_t bytes, char *why, size_t size)
{
	return mq_server_room(
		   e->server, e->outbox.copying + bytes, why, size) == 0;
}

/* The longest message has 512 MiB.  Half of the room will do. */
static size_t
may_copy(void *arg)
{
	struct engine *e = arg;
	size_t bytes = (size_t)1 << 30;
	char why[512];

	if (fits_disk(e, bytes, why, sizeof(why)))
		return 0;
	while (bytes > 1 && !fits_disk(e, bytes, why, sizeof(why)))
		bytes /= 2;
	return bytes;
}

/* How much is free changes all the time, so this is said once. */
static void
note_lack(struct engine *e, const char *why)
{
	if (!session_complains(&e->session))
		session_complain(&e->session, why);
	e->lacks_room = true;
	if (e->lacks_since == 0)
		e->lacks_since = mq_clock_steady_s();
}

static void
on_claim_answered(void *arg)
{
	struct engine *e = arg;

	/* The complaint about a refused settlement stands until it is sent. */
	if (!outbox_refused(&e->outbox) && e->lacks_since == 0)
		session_works(&e->session);
}

static void
on_claim_refused(void *arg, const struct mq_answer *answer, bool first)
{
	struct engine *e = arg;
	int status = answer->status;

	/* A right that was revoked later may be restored. */
	if ((status == MQ_EXIT_NOPERM && first) ||
	    status == MQ_EXIT_WRONGTYPE) {
		mq_say("%s: claim: %s%s", e->server->name, answer->error,
		    mq_error_hint(answer->error));
		policy_stop(&e->policy, STOP_SOON, status, 0);
		return;
	}
	/* The tick tries again. */
	if (strstr(answer->error, MQ_CLAIM_NO_ROOM) != NULL)
		note_lack(e, answer->error);
	session_complain(&e->session, answer->error);
	if (strncmp(answer->error, "READONLY", 8) == 0)
		session_reset(&e->session, answer->error);
}

static void
on_claim_lost(void *arg)
{
	struct engine *e = arg;

	session_rejoin(&e->session);
}

static void
on_nonsense(void *arg)
{
	struct engine *e = arg;

	session_reset(&e->session, "claim: unexpected reply");
}

/* A consumer that stops gives everything back anyway, in order. */
static void
on_queue_paused(void *arg, int queue)
{
	struct engine *e = arg;

	if (policy_level(&e->policy) >= STOP_SOON)
		return;
	executor_take_back(&e->executor, queue);
	engine_give_back(e, queue);
}

static void
on_careful(void *arg, bool alone)
{
	struct engine *e = arg;

	policy_be_careful(&e->policy, alone);
	if (alone)
		return;
	outbox_flush(&e->outbox);
	session_flush(&e->session);
}

static void
on_unfit(void *arg, struct message *m, const struct unfit *unfit)
{
	struct engine *e = arg;

	if (unfit->kind == UNFIT_CRASHED)
		counters_crashed(&e->counters, m->queue);
	engine_settle(e, m, verdict_unfit(&e->verdicts, m, unfit));
}

const struct inbox_events engine_inbox_events = {
    .may_claim = may_claim,
    .room = claim_room,
    .copied = may_copy,
    .wake = engine_mark,
    .answered = on_claim_answered,
    .arrived = engine_note_activity,
    .refused = on_claim_refused,
    .lost = on_claim_lost,
    .nonsense = on_nonsense,
    .paused = on_queue_paused,
    .careful = on_careful,
    .unfit = on_unfit,
};

/* --- outbox ----------------------------------------------------------------- */

bool
engine_is_online(void *arg)
{
	struct engine *e = arg;

	return session_is_up(&e->session);
}

static void
on_settled(void *arg, struct message *m, bool confirmed)
{
	struct engine *e = arg;

	if (confirmed)
		policy_settled(&e->policy, m->id, m->outcome);
	if (confirmed && m->outcome == MQ_OUTCOME_ACK) {
		message_let_go(m, true);
		executor_acked(&e->executor, m);
	}
	if (confirmed &&
	    (m->outcome == MQ_OUTCOME_PUSH ||
		rules_of(e->opt, m->queue)->notify != NULL))
		transfers_begin(&e->transfers);
	inbox_forget(&e->inbox, m);
}

static void
on_too_long(void *arg, struct message *m)
{
	struct engine *e = arg;

	engine_settle(e, m, verdict_too_long(&e->verdicts, m));
}

static void
on_wrong_key(void *arg)
{
	struct engine *e = arg;

	policy_stop(&e->policy, STOP_SOON, MQ_EXIT_WRONGTYPE, 0);
}

static bool
has_room(void *arg, size_t bytes)
{
	struct engine *e = arg;
	char why[512];
	bool fits = fits_disk(e, bytes, why, sizeof(why));

	if (!fits)
		note_lack(e, why);
	return fits;
}

static void
on_settle_refused(void *arg, const char *error)
{
	struct engine *e = arg;

	session_complain(&e->session, error);
}

static void
on_pausing(void *arg, int queue, bool begins)
{
	struct engine *e = arg;

	inbox_pausing(&e->inbox, queue, begins);
}

static void
on_pause_confirmed(void *arg, int queue)
{
	struct engine *e = arg;

	inbox_pause_seen(&e->inbox, queue, true);
	inbox_look(&e->inbox, false);
}

const struct outbox_events engine_outbox_events = {
    .online = engine_is_online,
    .settled = on_settled,
    .too_long = on_too_long,
    .wrong_key = on_wrong_key,
    .has_room = has_room,
    .refused = on_settle_refused,
    .pausing = on_pausing,
    .paused = on_pause_confirmed,
    .wake = engine_mark,
};

/* --- comparison and --drain ------------------------------------------------- */

void
engine_on_taken(void *arg, struct message *m)
{
	struct engine *e = arg;

	outbox_lose(
	    &e->outbox, m, "lease lost: another consumer has the message now");
	m->lost = true;
	if (m->state != MESSAGE_RUNNING || !executor_take_away(&e->executor, m))
		inbox_forget(&e->inbox, m);
}

void
engine_on_counted(void *arg, long long ready)
{
	struct engine *e = arg;

	bar_expect(&e->bar, ready + engine_in_hand(e));
}

void
engine_on_drained(void *arg)
{
	struct engine *e = arg;

	if (inbox_empty(&e->inbox))
		policy_stop(&e->policy, STOP_SOON, MQ_EXIT_OK, 0);
}
