/*
 * Taking a message's envelope apart when it is about to start, and whether it
 * still may: that is judged by the server's clock and the queue's tick, as the
 * last claim or look of that queue told them.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "consume.h"
#include "executor.h"
#include "message/headers.h"
#include "message/history.h"

/* The boot time clock goes on while the machine sleeps, as the server does. */
static int64_t
boot_ms(void)
{
	return (int64_t)(mq_clock_steady_s() * 1000);
}

void
message_clock(struct consumer *c, int queue, const struct mq_claimed *claimed)
{
	c->server_ahead_ms = claimed->now_ms - boot_ms();
	c->queues[queue].tick = claimed->missing ? 0 : claimed->tick;
}

/* It has not run, so it has no attempt more than before. */
static void
reject_late(struct message *m, const char *why)
{
	const struct mq_failure f = {.status = -1, .text = why};

	message_note(m, "rejected: %s", why);
	mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, why);
	mq_envelope_write_header(&m->envelope, &m->header);
	m->late = true;
	result_note(m, MQ_END_EXPIRED, &f);
	settle(m, MQ_OUTCOME_REJECT, 0);
}

/* Nobody has told how its last run has ended: there was nobody left to. */
static void
reject_crashed(struct message *m)
{
	struct mq_counts *n = &m->c->queues[m->queue].counts;

	mq_history_crash(&m->envelope, m->attempts, true, NULL);
	message_note(
	    m, "rejected: %s", mq_envelope_get(&m->envelope, MQ_HEADER_ERROR));
	mq_envelope_write_header(&m->envelope, &m->header);
	n->runs++;
	n->crashed++;
	settle(m, MQ_OUTCOME_REJECT, 0);
}

/* All that a dead consumer had claimed is charged with a run then, not only
 * what ran. */
static bool
claims_count(const struct consumer *c)
{
	return c->layout->has & MQ_HAS_CLAIMS && c->executor->runs;
}

/* What had its last run was rejected then, unless its consumer has died. */
static bool
has_crashed(const struct message *m)
{
	return claims_count(m->c) && m->attempts >= m->c->opt->attempts;
}

/* If this one kills its consumers, those behind it must not come to the end of
 * their attempts with it. */
static bool
runs_alone(const struct message *m)
{
	return claims_count(m->c) &&
	    (m->attempts + 1) * 2 > m->c->opt->attempts;
}

/* Most have nothing but an id, of which printing the payload needs no more. */
static bool
open_plain(struct message *m)
{
	const struct options *opt = m->c->opt;

	return !m->c->executor->runs && opt->framing != MQ_FRAME_JSONL &&
	    mq_message_plain(m->element, m->len, m->id, &m->envelope);
}

bool
message_open(struct message *m)
{
	const char *id, *bad;
	char why[64];

	if (open_plain(m))
		return true;
	if (mq_envelope_parse(m->element, m->len, &m->envelope, &bad) == -1) {
		m->envelope = (struct mq_envelope){0};
		message_note(m, "rejected: bad header: %s", bad);
		settle(m, MQ_OUTCOME_REJECT, 0);
		return false;
	}
	m->attempts = mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0);
	if (m->attempts > 0) {
		policy_be_careful(&m->c->policy, false);
		acks_send(m->c);
	}
	if (runs_alone(m))
		policy_be_careful(&m->c->policy, true);
	m->awaited = mq_result_wanted(&m->envelope);
	id = m->c->layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
					      mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	else
		mq_id_make(&m->c->ids, (uint64_t)mq_clock_unix_us(), m->id);
	if (mq_message_over(&m->envelope, boot_ms() + m->c->server_ahead_ms,
		m->c->queues[m->queue].tick, why, sizeof(why))) {
		reject_late(m, why);
		return false;
	}
	if (has_crashed(m)) {
		reject_crashed(m);
		return false;
	}
	return true;
}
