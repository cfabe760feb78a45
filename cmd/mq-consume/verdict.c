#include "engine.h"

#define EXHAUSTED "attempts exhausted"

/* Doubling with each run, at random between half of that and all of it, and
 * never outside MIN..MAX. */
static int64_t
backoff_of(const struct outbox *o, const struct message *m)
{
	const struct mq_settings *s = rules_of(o->opt, m->queue);
	int64_t min = s->backoff_min_ms, max = s->backoff_max_ms;
	int64_t top = min > 0 ? min * 2 : 1, low;
	long attempts = m->attempts;

	for (; attempts > 0 && top < max; attempts--)
		top *= 2;
	top = MIN(top, max);
	low = MAX(top / 2, min);
	return low +
	    (int64_t)((double)(top - low + 1) *
		((double)arc4random() / ((double)UINT32_MAX + 1)));
}

/* Records the failure and the delay in the header, and whether the attempt counts. */
static void
record_failure(const struct outbox *o, struct message *m, struct mq_failure *f,
    int64_t delay_ms, bool counts)
{
	f->at_ms = mq_clock_unix_us() / 1000;
	f->attempt = m->attempts + 1;
	f->host = o->host;
	mq_message_record(&m->envelope, m->id, m->attempts + counts, f->text);
	mq_history_add(&m->envelope, f);
	if (delay_ms > 0)
		mq_envelope_set_number(
		    &m->envelope, MQ_HEADER_DUE, f->at_ms + delay_ms);
	mq_envelope_write_header(&m->envelope, &m->header);
}

static enum mq_outcome
reject_message(const struct outbox *o, struct message *m, struct mq_failure *f)
{
	message_note(m, "rejected: %s", f->text);
	record_failure(o, m, f, 0, true);
	result_note(o, m, MQ_END_REJECTED, f);
	return MQ_OUTCOME_REJECT;
}

/* --- trying again ----------------------------------------------------------- */

static bool
is_last_run(const struct outbox *o, const struct message *m)
{
	return m->attempts + 1 >= rules_of(o->opt, m->queue)->attempts;
}

/* After ms; or at a tick, unless that is -1. */
static enum mq_outcome
send_back(const struct outbox *o, struct message *m, struct mq_failure *f,
    int64_t ms, int64_t tick, bool counts)
{
	if (o->opt->verbose && tick != -1)
		message_note(m, "again at tick %jd%s%s", (intmax_t)tick,
		    f->text[0] != '\0' ? ": " : "", f->text);
	else if (o->opt->verbose)
		message_note(m, "again in %.1f s%s%s", (double)ms / 1000,
		    f->text[0] != '\0' ? ": " : "", f->text);
	if (tick != -1)
		mq_envelope_set_number(&m->envelope, MQ_HEADER_FROM_TICK, tick);
	record_failure(o, m, f, ms, counts);
	m->delay_ms = ms;
	return MQ_OUTCOME_AGAIN;
}

/* text: the reason of the last run, or NULL. */
static const char *
write_exhausted(char reason[MQ_ERROR_MAX + 1], const char *text)
{
	if (text == NULL)
		text = "";
	snprintf(reason, MQ_ERROR_MAX + 1, EXHAUSTED "%s%s",
	    *text != '\0' ? ": " : "", text);
	return reason;
}

/* As send_back(), unless the attempts are used up. */
static enum mq_outcome
try_again(const struct outbox *o, struct message *m, struct mq_failure *f,
    int64_t ms, int64_t tick)
{
	char reason[MQ_ERROR_MAX + 1];
	struct mq_failure last = *f;

	if (!is_last_run(o, m))
		return send_back(o, m, f, ms, tick, true);
	last.text = write_exhausted(reason, f->text);
	return reject_message(o, m, &last);
}

/* --- ends ------------------------------------------------------------------- */

/* The attempts of a pushed message begin anew.  Without any, the message stays
 * as it is, byte for byte. */
static enum mq_outcome
push_message(const struct outbox *o, struct message *m,
    const struct mq_verdict *v, struct mq_failure *f)
{
	const char *to = rules_of(o->opt, m->queue)->push;

	if (to == NULL) {
		f->text = v->text[0] != '\0' ? v->text : "push";
		return reject_message(o, m, f);
	}
	if (o->opt->verbose)
		message_note(m, "pushed to %s%s%s", to,
		    v->text[0] != '\0' ? ": " : "", v->text);
	m->to = mq_xstrdup(to);
	if (mq_envelope_get(&m->envelope, MQ_HEADER_ATTEMPT) != NULL) {
		json_object_del(m->envelope.headers, MQ_HEADER_ATTEMPT);
		mq_envelope_write_header(&m->envelope, &m->header);
	}
	return MQ_OUTCOME_PUSH;
}

enum mq_outcome
verdict_unfit(
    struct outbox *o, struct message *m, enum unfit unfit, const char *why)
{
	struct mq_failure f = {.status = -1, .text = why};
	char reason[MQ_ERROR_MAX + 1];

	if (unfit == UNFIT_SPENT)
		f.text = write_exhausted(
		    reason, mq_envelope_get(&m->envelope, MQ_HEADER_ERROR));
	switch (unfit) {
	case UNFIT_SPENT:
	case UNFIT_EXPIRED:
		/* A message that did not run has no attempt more than before. */
		message_note(m, "rejected: %s", f.text);
		mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, f.text);
		mq_envelope_write_header(&m->envelope, &m->header);
		m->expired = unfit == UNFIT_EXPIRED;
		result_note(
		    o, m, m->expired ? MQ_END_EXPIRED : MQ_END_REJECTED, &f);
		break;
	case UNFIT_RUN:
		return reject_message(o, m, &f);
	case UNFIT_HEADER:
		message_note(m, "rejected: bad header: %s", why);
		break;
	case UNFIT_CRASHED:
		/* The consumer of the last run died without a verdict. */
		m->crashed = true;
		counters_crashed(o, m->queue);
		mq_history_crash(&m->envelope, m->attempts, true, NULL);
		message_note(m, "rejected: %s",
		    mq_envelope_get(&m->envelope, MQ_HEADER_ERROR));
		mq_envelope_write_header(&m->envelope, &m->header);
		break;
	}
	return MQ_OUTCOME_REJECT;
}

static enum mq_outcome
outcome_of(const struct outbox *o, struct message *m,
    const struct mq_verdict *v, struct mq_failure *f)
{
	int64_t tick;

	switch (v->kind) {
	case MQ_VERDICT_DONE:
		if (o->opt->verbose)
			message_note(m, "done%s%s",
			    v->text[0] != '\0' ? ": " : "", v->text);
		result_note(o, m, MQ_END_DONE, f);
		return MQ_OUTCOME_ACK;
	case MQ_VERDICT_ERR:
		return rules_of(o->opt, m->queue)->retry_err ?
		    try_again(o, m, f, backoff_of(o, m), -1) :
		    reject_message(o, m, f);
	case MQ_VERDICT_PAUSE:
		m->pause_ms = v->resend_s * 1000;
		return try_again(o, m, f, v->resend_s * 1000, -1);
	case MQ_VERDICT_RESEND:
		return try_again(o, m, f, v->resend_s * 1000, -1);
	case MQ_VERDICT_TICK:
		if (!(o->opt->layout->has & MQ_HAS_TICKS))
			break;
		/* The one after the last that was seen: if it has come by now, the
		 * message is ready. */
		tick = o->inbox->queues[m->queue].tick + 1;
		if (mq_envelope_get_long(
			&m->envelope, MQ_HEADER_UNTIL_TICK, LONG_MAX) >= tick)
			return try_again(o, m, f, 0, tick);
		f->text = "no next tick";
		return reject_message(o, m, f);
	case MQ_VERDICT_PUSH:
		return push_message(o, m, v, f);
	case MQ_VERDICT_STOPPED:
		/* The operator who asked for it has decided. */
		m->stopped = true;
		if (m->stop == MQ_STOP_RETURN)
			return try_again(o, m, f, 0, -1);
		message_note(m, "purged: %s", f->text);
		result_note(o, m, MQ_END_PURGED, f);
		return MQ_OUTCOME_ACK;
	case MQ_VERDICT_BROKEN:
	case MQ_VERDICT_RETRY:
		break;
	}
	return try_again(o, m, f, backoff_of(o, m), -1);
}

enum mq_outcome
verdict_outcome(const struct outbox *o, struct message *m,
    const struct mq_verdict *v, const char *errors, bool broken)
{
	struct mq_failure f = {.status = -1, .errors = errors, .text = v->text};
	char number[16], reason[MQ_ERROR_MAX + 1];
	size_t size = sizeof(reason);

	/* A worker that goes on has no status.  A signal has its name without SIG, or a
	 * number. */
	if (v->status != -1 && WIFSIGNALED(v->status)) {
		snprintf(number, sizeof(number), "%d", WTERMSIG(v->status));
		f.signal = mq_signal_name(WTERMSIG(v->status));
		if (f.signal == NULL)
			f.signal = number;
	} else if (v->status != -1) {
		f.status = WEXITSTATUS(v->status);
	}
	if (v->kind != MQ_VERDICT_DONE) {
		/* The end of the reason must not be cut off by EXHAUSTED. */
		if (is_last_run(o, m))
			size -= strlen(EXHAUSTED ": ");
		mq_verdict_reason(v, errors, reason, size);
		f.text = reason;
	}
	if (v->kind == MQ_VERDICT_BROKEN && broken)
		return send_back(o, m, &f, backoff_of(o, m), -1, false);
	return outcome_of(o, m, v, &f);
}
