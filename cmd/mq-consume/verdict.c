/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "verdict.h"

#include "process/process.h"

#define EXHAUSTED "attempts exhausted"

/* A message, and all that its outcome depends on. */
struct judgement {
	const struct options *opt;
	const struct mq_settings *rules; /* the queue's */
	int64_t tick;
	bool unrun; /* the outcome comes without a run */
	struct message *m;
	struct mq_failure f;	   /* the last run, for history and result */
	struct run_result *result; /* output of the last run; NULL: none */
};

static struct judgement
make_judgement(const struct options *opt, const char *host, int64_t tick,
    struct message *m)
{
	return (struct judgement){.opt = opt,
	    .rules = rules_of(opt, m->queue),
	    .tick = tick,
	    .m = m,
	    .f = {.status = -1, .host = host}};
}

/* --- results ------------------------------------------------------------------ */

/* Writes the result of a message, if it is wanted: by a publisher that waits (Mq-Reply-To), for
 * questions later (--keep), or for a queue (--notify).  A notice leads to no other notice.  The
 * result of a pushed message has no status: it goes on in another queue.  text: may be NULL. */
static void
note_result(const struct judgement *j, enum mq_end state, const char *text)
{
	bool goes_on = state == MQ_END_PUSHED;
	struct message *m = j->m;
	const char *notify = j->rules->notify;
	struct mq_ending e;

	if (notify != NULL &&
	    mq_envelope_get(&m->envelope, MQ_HEADER_NOTICE) != NULL)
		notify = NULL;
	free(m->notified);
	m->notified = mq_xstrdup(notify);
	m->keep_ms = m->id[0] != '\0' ?
	    MAX(j->rules->keep_ms, m->awaited ? MQ_RESULT_KEEP_MS : 0) :
	    0;
	mq_buf_clear(&m->result);
	if (m->keep_ms == 0 && notify == NULL)
		return;
	e = (struct mq_ending){.state = state,
	    .queue = notify != NULL ? m->queue_name : NULL,
	    .text = text != NULL && text[0] != '\0' ? text : NULL,
	    .status = goes_on ? -1 : j->f.status,
	    .signal = goes_on ? NULL : j->f.signal,
	    .seconds = j->unrun ? 0 : m->ran_s,
	    .attempts = m->attempts + !j->unrun,
	    .host = j->f.host[0] != '\0' ? j->f.host : NULL,
	    .to = goes_on ? m->to : NULL,
	    .finished_ms = mq_clock_unix_us() / 1000};
	if (j->result != NULL && !goes_on) {
		e.result = mq_buf_str(&j->result->bytes);
		e.result_len = j->result->bytes.len;
		e.result_cut = j->result->cut;
	}
	strlcpy(e.id, m->id, sizeof(e.id));
	mq_ending_write(&e, &m->result);
}

/* --- rejected ---------------------------------------------------------------- */

/* Records the failed run in the header, with this text and delay.  counts: the run is one of the
 * attempts. */
static void
record_failure(
    const struct judgement *j, const char *text, int64_t delay_ms, bool counts)
{
	struct message *m = j->m;
	struct mq_failure f = j->f;

	f.text = text;
	f.at_ms = mq_clock_unix_us() / 1000;
	f.attempt = m->attempts + 1;
	mq_message_record(&m->envelope, m->id, m->attempts + counts, text);
	mq_history_add(&m->envelope, &f);
	if (delay_ms > 0)
		mq_envelope_set_number(
		    &m->envelope, MQ_HEADER_DUE, f.at_ms + delay_ms);
	mq_envelope_write_header(&m->envelope, &m->header);
}

static void
reject_message(const struct judgement *j, const char *why)
{
	message_note(j->m, "rejected: %s", why);
	record_failure(j, why, 0, true);
	note_result(j, MQ_END_REJECTED, why);
	j->m->outcome = MQ_OUTCOME_REJECT;
}

/* text: the reason of the last failure, or NULL. */
static const char *
write_exhausted(char reason[MQ_ERROR_MAX + 1], const char *text)
{
	if (text == NULL)
		text = "";
	snprintf(reason, MQ_ERROR_MAX + 1, EXHAUSTED "%s%s",
	    *text != '\0' ? ": " : "", text);
	return reason;
}

/* A message that did not run keeps its count of attempts. */
static void
reject_unrun(const struct judgement *j, const char *why)
{
	struct message *m = j->m;

	message_note(m, "rejected: %s", why);
	mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, why);
	mq_envelope_write_header(&m->envelope, &m->header);
	note_result(j, m->expired ? MQ_END_EXPIRED : MQ_END_REJECTED, why);
}

void
verdict_unfit(const struct options *opt, const char *host, struct message *m,
    enum unfit unfit, const char *why)
{
	struct judgement j = make_judgement(opt, host, 0, m);
	char reason[MQ_ERROR_MAX + 1];

	m->outcome = MQ_OUTCOME_REJECT;
	switch (unfit) {
	case UNFIT_SPENT:
		reject_unrun(&j,
		    write_exhausted(reason,
			mq_envelope_get(&m->envelope, MQ_HEADER_ERROR)));
		break;
	case UNFIT_EXPIRED:
	case UNFIT_BATCH:
		m->expired = unfit == UNFIT_EXPIRED;
		j.unrun = true;
		reject_unrun(&j, why);
		break;
	case UNFIT_RUN:
		reject_message(&j, why);
		break;
	case UNFIT_HEADER:
		message_note(m, "rejected: bad header: %s", why);
		note_result(&j, MQ_END_REJECTED, NULL);
		break;
	case UNFIT_CRASHED:
		m->crashed = true;
		mq_history_crash(&m->envelope, m->attempts, true, NULL);
		message_note(m, "rejected: %s",
		    mq_envelope_get(&m->envelope, MQ_HEADER_ERROR));
		mq_envelope_write_header(&m->envelope, &m->header);
		note_result(&j, MQ_END_REJECTED, NULL);
		break;
	}
}

void
verdict_passed(const struct options *opt, const char *host, struct message *m,
    const char *to)
{
	struct judgement j = make_judgement(opt, host, 0, m);

	j.unrun = true;
	if (opt->verbose)
		message_note(m, "pushed to %s", to);
	m->to = mq_xstrdup(to);
	m->passed = true;
	mq_message_pass(&m->envelope, &m->header);
	note_result(&j, MQ_END_PUSHED, NULL);
	m->outcome = MQ_OUTCOME_PUSH;
}

/* --- trying again ----------------------------------------------------------- */

/* The delay in ms: it doubles with each run, is chosen between half of that and all of it at
 * random, and stays within MIN..MAX. */
static int64_t
backoff_of(const struct judgement *j)
{
	int64_t min = j->rules->backoff_min_ms, max = j->rules->backoff_max_ms;
	int64_t top = min > 0 ? min * 2 : 1, low;
	long attempts = j->m->attempts;

	for (; attempts > 0 && top < max; attempts--)
		top *= 2;
	top = MIN(top, max);
	low = MAX(top / 2, min);
	return low +
	    (int64_t)((double)(top - low + 1) *
		((double)arc4random() / ((double)UINT32_MAX + 1)));
}

static bool
is_last_run(const struct judgement *j)
{
	return j->m->attempts + 1 >= message_attempts(j->opt, j->m);
}

/* Retries after ms; or at a tick, unless that is -1. */
static void
send_back(const struct judgement *j, int64_t ms, int64_t tick, bool counts)
{
	struct message *m = j->m;
	const char *text = j->f.text;

	if (j->opt->verbose && tick != -1)
		message_note(m, "again at tick %jd%s%s", (intmax_t)tick,
		    text[0] != '\0' ? ": " : "", text);
	else if (j->opt->verbose)
		message_note(m, "again in %.1f s%s%s", (double)ms / 1000,
		    text[0] != '\0' ? ": " : "", text);
	if (tick != -1)
		mq_envelope_set_number(&m->envelope, MQ_HEADER_FROM_TICK, tick);
	record_failure(j, text, ms, counts);
	m->delay_ms = ms;
	m->outcome = MQ_OUTCOME_AGAIN;
}

/* Retries, or rejects if this was the last attempt. */
static void
try_again(const struct judgement *j, int64_t ms, int64_t tick)
{
	char reason[MQ_ERROR_MAX + 1];

	if (!is_last_run(j))
		send_back(j, ms, tick, true);
	else
		reject_message(j, write_exhausted(reason, j->f.text));
}

/* --- ends ------------------------------------------------------------------- */

/* The attempts of a pushed message begin anew.  After a first run the message stays as it is,
 * byte for byte. */
static void
push_message(const struct judgement *j, const struct mq_verdict *v)
{
	struct message *m = j->m;
	const char *to = j->rules->push;

	if (to == NULL) {
		reject_message(j, v->text[0] != '\0' ? v->text : "push");
		return;
	}
	if (j->opt->verbose)
		message_note(m, "pushed to %s%s%s", to,
		    v->text[0] != '\0' ? ": " : "", v->text);
	m->to = mq_xstrdup(to);
	if (mq_envelope_get(&m->envelope, MQ_HEADER_ATTEMPT) != NULL) {
		json_object_del(m->envelope.headers, MQ_HEADER_ATTEMPT);
		mq_envelope_write_header(&m->envelope, &m->header);
	}
	note_result(j, MQ_END_PUSHED, NULL);
	m->outcome = MQ_OUTCOME_PUSH;
}

/* Retries at the tick after the last known one: if that tick has come meanwhile, at once. */
static void
try_at_tick(const struct judgement *j)
{
	int64_t tick = j->tick + 1;

	if (!(j->opt->layout->has & MQ_HAS_TICKS))
		try_again(j, backoff_of(j), -1);
	else if (mq_envelope_get_long(
		     &j->m->envelope, MQ_HEADER_UNTIL_TICK, LONG_MAX) >= tick)
		try_again(j, 0, tick);
	else
		reject_message(j, "no next tick");
}

static void
end_done(const struct judgement *j, const struct mq_verdict *v)
{
	if (j->opt->verbose)
		message_note(
		    j->m, "done%s%s", v->text[0] != '\0' ? ": " : "", v->text);
	note_result(j, MQ_END_DONE, v->text);
	j->m->outcome = MQ_OUTCOME_ACK;
}

static void
end_stopped(const struct judgement *j)
{
	j->m->stopped = true;
	if (j->m->stop == MQ_STOP_RETURN) {
		try_again(j, 0, -1);
		return;
	}
	message_note(j->m, "purged: %s", j->f.text);
	note_result(j, MQ_END_PURGED, j->f.text);
	j->m->outcome = MQ_OUTCOME_ACK;
}

static void
judge_run(const struct judgement *j, const struct mq_verdict *v, bool broken)
{
	switch (v->kind) {
	case MQ_VERDICT_DONE:
		end_done(j, v);
		break;
	case MQ_VERDICT_ERR:
		if (j->rules->retry_err)
			try_again(j, backoff_of(j), -1);
		else
			reject_message(j, j->f.text);
		break;
	case MQ_VERDICT_PAUSE:
		j->m->pause_ms = v->resend_s * 1000;
		try_again(j, v->resend_s * 1000, -1);
		break;
	case MQ_VERDICT_RESEND:
		try_again(j, v->resend_s * 1000, -1);
		break;
	case MQ_VERDICT_TICK:
		try_at_tick(j);
		break;
	case MQ_VERDICT_PUSH:
		push_message(j, v);
		break;
	case MQ_VERDICT_STOPPED:
		end_stopped(j);
		break;
	case MQ_VERDICT_BROKEN:
		/* If the command is to blame, the attempt does not count. */
		if (broken)
			send_back(j, backoff_of(j), -1, false);
		else
			try_again(j, backoff_of(j), -1);
		break;
	case MQ_VERDICT_RETRY:
		try_again(j, backoff_of(j), -1);
		break;
	}
}

void
verdict_ended(const struct options *opt, const char *host, int64_t tick,
    struct message *m, const struct ending *ending)
{
	const struct mq_verdict *v;
	struct judgement j = make_judgement(opt, host, tick, m);
	char number[16], reason[MQ_ERROR_MAX + 1];
	size_t size = sizeof(reason);

	if (ending == NULL) {
		note_result(&j, MQ_END_DONE, NULL);
		m->outcome = MQ_OUTCOME_ACK;
		return;
	}
	v = &ending->verdict;
	j.f.text = v->text;
	j.f.errors = ending->errors;
	j.result = ending->result;
	/* A worker that goes on has no status. */
	if (v->status != -1 && WIFSIGNALED(v->status)) {
		snprintf(number, sizeof(number), "%d", WTERMSIG(v->status));
		j.f.signal = mq_signal_name(WTERMSIG(v->status));
		if (j.f.signal == NULL)
			j.f.signal = number;
	} else if (v->status != -1) {
		j.f.status = WEXITSTATUS(v->status);
	}
	if (v->kind != MQ_VERDICT_DONE) {
		/* The end of the reason must not be cut off by EXHAUSTED. */
		if (is_last_run(&j))
			size -= strlen(EXHAUSTED ": ");
		mq_verdict_reason(v, ending->errors, reason, size);
		j.f.text = reason;
	}
	judge_run(&j, v, ending->broken);
}
