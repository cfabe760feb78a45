/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Messages whose runs, or settlements, have ended. */
#include "parts.h"

void
outcome_activity(struct engine *e)
{
	jobs_drain_soon(e->jobs);
	policy_active(e->policy);
}

static void
settle_message(struct engine *e, struct message *m)
{
	outbox_settle(e->outbox, m);
	outcome_activity(e);
}

void
outcome_unfit(
    struct engine *e, struct message *m, enum unfit unfit, const char *why)
{
	verdict_unfit(e->opt, e->process.host, m, unfit, why);
	if (m->crashed)
		counters_crashed(e->outbox, m->queue);
	settle_message(e, m);
}

bool
outcome_passed(struct engine *e, struct message *m)
{
	const char *to = mq_message_to(&m->envelope, m->queue_name);

	if (to == NULL)
		return false;
	verdict_passed(e->opt, e->process.host, m, to);
	settle_message(e, m);
	return true;
}

/* --- runs ----------------------------------------------------------------------- */

static const char *const outcome_words[] = {[MQ_OUTCOME_ACK] = "done",
    [MQ_OUTCOME_PUSH] = "pushed",
    [MQ_OUTCOME_AGAIN] = "retried",
    [MQ_OUTCOME_REJECT] = "rejected",
    [MQ_OUTCOME_FRONT] = "returned"};

/* Writes a line of --joblog.  verdict: in a word; ending: as in a fact. */
static void
log_run(struct engine *e, const struct message *m, const struct ending *ending,
    const char *verdict)
{
	const struct mq_verdict *v = ending != NULL ? &ending->verdict : NULL;
	char reason[MQ_ERROR_MAX + 1];

	if (e->opt->joblog == NULL)
		return;
	if (v != NULL && v->kind != MQ_VERDICT_DONE)
		mq_verdict_reason(v, ending->errors, reason, sizeof(reason));
	joblog_write(&e->process.joblog, m, v != NULL ? v->status : 0, verdict,
	    v == NULL			   ? "" :
		v->kind != MQ_VERDICT_DONE ? reason :
					     v->text);
}

void
outcome_ended(struct engine *e, const struct fact *f)
{
	struct message *m = f->message;
	bool purged;

	if (m->lost) {
		log_run(e, m, f->ending, "lost");
		hand_forget(e->hand, m);
		return;
	}
	verdict_ended(e->opt, e->process.host, inbox_tick(e->inbox, m->queue),
	    m, f->ending);
	policy_ran(e->policy, m);
	purged = m->stopped && m->outcome == MQ_OUTCOME_ACK;
	log_run(e, m, f->ending, purged ? "purged" : outcome_words[m->outcome]);
	if (m->outcome == MQ_OUTCOME_ACK || m->outcome == MQ_OUTCOME_PUSH)
		process_remove_dir(&e->process, m->id);
	settle_message(e, m);
}

void
outcome_too_long(struct engine *e, const struct fact *f)
{
	if (f->message->lost)
		hand_forget(e->hand, f->message);
	else
		outcome_unfit(e, f->message, UNFIT_RUN, f->text);
}

void
outcome_broken_off(struct engine *e, const struct fact *f)
{
	log_run(e, f->message, f->ending, outcome_words[MQ_OUTCOME_FRONT]);
}

/* --- settlements ------------------------------------------------------------------ */

static void
note_confirmed(struct engine *e, struct message *m)
{
	const struct mq_run run = {.id = m->id, .attempt = m->attempts + 1};
	enum mq_stop answer = !m->stopped  ? MQ_STOP_OVER :
	    m->outcome == MQ_OUTCOME_ACK   ? MQ_STOP_PURGED :
	    m->outcome == MQ_OUTCOME_AGAIN ? MQ_STOP_RETURNED :
					     MQ_STOP_REJECTED;

	policy_settled(e->policy, m);
	if (m->stop != MQ_STOP_NONE)
		mq_consumer_tell_stop(e->consumer, m->queue, answer, &run);
	if (m->outcome == MQ_OUTCOME_ACK) {
		message_let_go(m, true);
		executor_acked(e->executor, m);
	}
	if (m->outcome == MQ_OUTCOME_PUSH || m->notified != NULL)
		jobs_transfer(e->jobs);
}

void
outcome_settled(struct engine *e, const struct fact *f)
{
	if (f->yes)
		note_confirmed(e, f->message);
	hand_forget(e->hand, f->message);
}
