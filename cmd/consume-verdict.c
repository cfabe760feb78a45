/*
 * What follows from a verdict on a run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "consume.h"
#include "exit.h"
#include "message.h"
#include "say.h"

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

static void
record(struct message *m, const char *error)
{
	mq_message_record(&m->envelope, m->id, m->attempts + 1, error);
	mq_envelope_write_header(&m->envelope, &m->header);
}

void
verdict_reject(struct message *m, const char *reason)
{
	message_say(m, "rejected: %s", reason);
	record(m, reason);
	settle(m, MQ_OUTCOME_REJECT, 0);
}

static void
again(struct message *m, const struct mq_verdict *v)
{
	struct consumer *c = m->c;
	char reason[sizeof(v->reason) + 32];
	int64_t ms = v->resend_s * 1000;

	if (m->attempts + 1 >= c->opt->attempts) {
		snprintf(reason, sizeof(reason), "attempts exhausted%s%s",
		    v->reason[0] != '\0' ? ": " : "", v->reason);
		verdict_reject(m, reason);
		return;
	}
	if (v->kind == MQ_VERDICT_RETRY)
		ms = backoff_ms(c, m->attempts);
	if (c->opt->verbose)
		message_say(
		    m, "again in %.1f s: %s", (double)ms / 1000, v->reason);
	record(m, v->reason);
	settle(m, MQ_OUTCOME_AGAIN, ms);
}

void
verdict_carry_out(struct message *m, const struct mq_verdict *v)
{
	struct consumer *c = m->c;

	switch (v->kind) {
	case MQ_VERDICT_DONE:
		if (c->opt->verbose)
			message_say(m, "done%s%s",
			    v->reason[0] != '\0' ? ": " : "", v->reason);
		command_remove_work_dir(c, m);
		settle(m, MQ_OUTCOME_ACK, 0);
		break;
	case MQ_VERDICT_ERR:
		verdict_reject(m, v->reason);
		break;
	case MQ_VERDICT_RESEND:
	case MQ_VERDICT_RETRY:
		again(m, v);
		break;
	case MQ_VERDICT_STOP:
		mq_say("%s: %s; stopping, the message is returned", c->script,
		    v->reason);
		/* First the younger ones go back, then this in front. */
		stop(c, STOP_SOON, MQ_EXIT_CONFIG, 0);
		settle(m, MQ_OUTCOME_FRONT, 0);
		break;
	}
}
