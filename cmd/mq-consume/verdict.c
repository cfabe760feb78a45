/*
 * What follows from a verdict on a run.
 */
#include <sys/wait.h>

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/signame.h"
#include "consume.h"
#include "message/headers.h"

#define EXHAUSTED "attempts exhausted"

/*
 * Doubling with each run, at random between half of that and all of it, and
 * never outside MIN..MAX.
 */
static int64_t
backoff_ms(const struct consumer *c, long attempts)
{
	int64_t min = c->opt->backoff_min_ms, max = c->opt->backoff_max_ms;
	int64_t top = min > 0 ? min * 2 : 1, low;

	for (; attempts > 0 && top < max; attempts--)
		top *= 2;
	if (top > max)
		top = max;
	low = top / 2 > min ? top / 2 : min;
	return low +
	    (int64_t)((double)(top - low + 1) *
		((double)arc4random() / ((double)UINT32_MAX + 1)));
}

/* Its name without SIG, or its number. */
static const char *
signal_name(int sig, char number[static 16])
{
	const char *name = mq_signal_name(sig);

	if (name != NULL)
		return name;
	snprintf(number, 16, "%d", sig);
	return number;
}

/* The attempt, why it failed, and for how long it has to wait now. */
static void
record(struct message *m, const struct mq_failure *f, int64_t delay_ms)
{
	struct mq_failure full = *f;
	char due[24];

	full.at_ms = mq_clock_unix_us() / 1000;
	full.attempt = m->attempts + 1;
	full.host = process_host(&m->c->process);
	mq_message_record(&m->envelope, m->id, full.attempt, full.text);
	mq_history_add(&m->envelope, &full);
	if (delay_ms > 0) {
		snprintf(
		    due, sizeof(due), "%jd", (intmax_t)(full.at_ms + delay_ms));
		mq_envelope_set(&m->envelope, MQ_HEADER_DUE, due);
	}
	mq_envelope_write_header(&m->envelope, &m->header);
}

/* A run that failed, its reason still to be filled in. */
static struct mq_failure
failure(int status, const char *errors, char number[static 16])
{
	struct mq_failure f = {.status = -1, .errors = errors};

	/* What a worker said is not how it ended. */
	if (status == -1)
		return f;
	if (WIFSIGNALED(status))
		f.signal = signal_name(WTERMSIG(status), number);
	else
		f.status = WEXITSTATUS(status);
	return f;
}

static void
reject(struct message *m, const struct mq_failure *f)
{
	message_note(m, "rejected: %s", f->text);
	record(m, f, 0);
	result_note(m, MQ_END_REJECTED, f);
	settle(m, MQ_OUTCOME_REJECT, 0);
}

void
verdict_reject(struct message *m, const char *reason)
{
	const struct mq_failure f = {.status = -1, .text = reason};

	reject(m, &f);
}

static bool
is_last_run(const struct message *m)
{
	return m->attempts + 1 >= m->c->opt->attempts;
}

/* Whether that was its last run; it is rejected then. */
static bool
exhausted(struct message *m, const struct mq_failure *f)
{
	char reason[MQ_ERROR_MAX + 1];
	struct mq_failure last = *f;

	if (!is_last_run(m))
		return false;
	snprintf(reason, sizeof(reason), EXHAUSTED "%s%s",
	    f->text[0] != '\0' ? ": " : "", f->text);
	last.text = reason;
	reject(m, &last);
	return true;
}

static void
again(struct message *m, const struct mq_failure *f, int64_t ms)
{
	if (exhausted(m, f))
		return;
	if (m->c->opt->verbose)
		message_note(m, "again in %.1f s%s%s", (double)ms / 1000,
		    f->text[0] != '\0' ? ": " : "", f->text);
	record(m, f, ms);
	settle(m, MQ_OUTCOME_AGAIN, ms);
}

/* The next tick is the one behind the last that we were told of: if that has
 * come by now, it is ready. */
static void
at_next_tick(struct message *m, const struct mq_failure *f)
{
	int64_t tick = m->c->queues[m->queue].tick + 1;
	long last =
	    mq_envelope_get_long(&m->envelope, MQ_HEADER_UNTIL_TICK, LONG_MAX);
	struct mq_failure late = *f;
	char number[24];

	if (last < tick) {
		late.text = "no next tick";
		reject(m, &late);
		return;
	}
	if (exhausted(m, f))
		return;
	if (m->c->opt->verbose)
		message_note(m, "again at tick %jd%s%s", (intmax_t)tick,
		    f->text[0] != '\0' ? ": " : "", f->text);
	snprintf(number, sizeof(number), "%jd", (intmax_t)tick);
	mq_envelope_set(&m->envelope, MQ_HEADER_FROM_TICK, number);
	record(m, f, 0);
	settle(m, MQ_OUTCOME_AGAIN, 0);
}

/* Its attempts begin anew there.  A message that has nothing to forget stays
 * as it is, byte for byte. */
static void
push(struct message *m, const struct mq_verdict *v, const struct mq_failure *f)
{
	struct consumer *c = m->c;
	struct mq_failure nowhere = *f;

	if (c->opt->push == NULL) {
		nowhere.text = v->text[0] != '\0' ? v->text : "push";
		reject(m, &nowhere);
		return;
	}
	if (c->opt->verbose)
		message_note(m, "pushed to %s%s%s", c->opt->push,
		    v->text[0] != '\0' ? ": " : "", v->text);
	if (mq_envelope_get(&m->envelope, MQ_HEADER_ATTEMPT) != NULL) {
		mq_envelope_remove(&m->envelope, MQ_HEADER_ATTEMPT);
		mq_envelope_write_header(&m->envelope, &m->header);
	}
	process_remove_dir(&c->process, m->id);
	settle(m, MQ_OUTCOME_PUSH, 0);
}

void
verdict_too_long(struct message *m)
{
	struct mq_buf why = {0};

	mq_buf_printf(&why, "push: too long for the queue %s", m->c->opt->push);
	mq_buf_clear(&m->header);
	verdict_reject(m, mq_buf_str(&why));
	mq_buf_free(&why);
}

static void
done(struct message *m, const struct mq_verdict *v, const struct mq_failure *f)
{
	if (m->c->opt->verbose)
		message_note(
		    m, "done%s%s", v->text[0] != '\0' ? ": " : "", v->text);
	process_remove_dir(&m->c->process, m->id);
	result_note(m, MQ_END_DONE, f);
	settle(m, MQ_OUTCOME_ACK, 0);
}

void
verdict_carry_out(
    struct message *m, const struct mq_verdict *v, const char *errors)
{
	struct consumer *c = m->c;
	struct mq_failure f;
	char number[16], reason[MQ_ERROR_MAX + 1];
	size_t size = sizeof(reason);

	f = failure(v->status, errors, number);
	f.text = v->text;
	if (v->kind != MQ_VERDICT_DONE) {
		/* Its end must be seen with that in front, too. */
		if (is_last_run(m))
			size -= strlen(EXHAUSTED ": ");
		mq_verdict_reason(v, errors, reason, size);
		f.text = reason;
	}
	switch (v->kind) {
	case MQ_VERDICT_DONE:
		done(m, v, &f);
		break;
	case MQ_VERDICT_ERR:
		if (c->opt->retry_err)
			again(m, &f, backoff_ms(c, m->attempts));
		else
			reject(m, &f);
		break;
	case MQ_VERDICT_RETRY:
		again(m, &f, backoff_ms(c, m->attempts));
		break;
	case MQ_VERDICT_PAUSE:
		m->pause_ms = v->resend_s * 1000;
		again(m, &f, v->resend_s * 1000);
		break;
	case MQ_VERDICT_RESEND:
		again(m, &f, v->resend_s * 1000);
		break;
	case MQ_VERDICT_TICK:
		if (c->layout->has & MQ_HAS_TICKS)
			at_next_tick(m, &f);
		else
			again(m, &f, backoff_ms(c, m->attempts));
		break;
	case MQ_VERDICT_PUSH:
		push(m, v, &f);
		break;
	case MQ_VERDICT_STOP: /* nothing is carried out then */
		break;
	}
}
