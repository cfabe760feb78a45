/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Reports of messages that have ended: counters, and results. */
#include "parts.h"

/* --- counters --------------------------------------------------------------- */

void
counters_ran(struct outbox *o, int queue, double seconds)
{
	struct outbox_queue *q = &o->queues[queue];
	int i = 0;

	while (i < MQ_BUCKETS - 1 && seconds > mq_bucket_s[i])
		i++;
	q->counts.runs++;
	q->counts.bucket[i]++;
	/* Fractions count: most runs may be shorter than a millisecond. */
	q->run_ms += seconds * 1000;
	q->counts.run_ms += (long long)q->run_ms;
	q->run_ms -= (double)(long long)q->run_ms;
}

static void
on_counted(void *arg, const struct mq_answer *answer)
{
	struct outbox *o = arg;

	if (answer == NULL || answer->error == NULL || o->refused)
		return;
	o->refused = true;
	if (o->opt->verbose)
		mq_say("%s: counters: %s", o->server->name, answer->error);
}

static void
send_pushed(struct outbox *o, struct outbox_queue *q)
{
	const struct mq_counts pushed = {.published = q->pushed};

	if (q->pushed > 0)
		mq_consumer_count(o->consumer, q->to, &pushed, on_counted, o);
	q->pushed = 0;
}

void
counters_settled(struct outbox *o, const struct message *m)
{
	struct outbox_queue *q = &o->queues[m->queue];
	struct mq_counts *n = &q->counts;

	switch (m->outcome) {
	case MQ_OUTCOME_PUSH:
		/* The target of pushes is a setting, which may change. */
		if (q->to == NULL || strcmp(q->to, m->to) != 0) {
			send_pushed(o, q);
			free(q->to);
			q->to = mq_xstrdup(m->to);
		}
		q->pushed++;
		n->done++;
		break;
	case MQ_OUTCOME_ACK:
		/* A message that an operator purges is not done. */
		n->done += !m->stopped;
		break;
	case MQ_OUTCOME_REJECT:
		n->failed++;
		n->expired += m->expired;
		break;
	case MQ_OUTCOME_AGAIN:
		n->retried++;
		break;
	case MQ_OUTCOME_FRONT:
		o->returned++;
		break;
	}
}

static void
add_counts(struct mq_counts *sum, const struct mq_counts *n)
{
	sum->done += n->done;
	sum->failed += n->failed;
	sum->retried += n->retried;
	sum->lease_lost += n->lease_lost;
}

struct mq_counts
counters_totals(const struct outbox *o, long *returned)
{
	struct mq_counts sum = o->sent;
	int i;

	for (i = 0; i < o->opt->queue_count; i++)
		add_counts(&sum, &o->queues[i].counts);
	if (returned != NULL)
		*returned = o->returned;
	return sum;
}

void
counters_send(struct outbox *o)
{
	static const struct mq_counts none;
	struct mq_counts *n;
	int i;

	for (i = 0; i < o->opt->queue_count; i++) {
		send_pushed(o, &o->queues[i]);
		n = &o->queues[i].counts;
		if (memcmp(n, &none, sizeof(none)) == 0)
			continue;
		mq_consumer_count(
		    o->consumer, o->opt->queues[i], n, on_counted, o);
		add_counts(&o->sent, n);
		*n = none;
	}
}

static void
on_reported(void *arg, const struct mq_answer *answer)
{
	struct outbox *o = arg;

	/* After an error, as of a full memory, the next tick tries again. */
	if (!mq_answer_good(answer))
		o->reported = false;
}

void
counters_tell_runs(struct outbox *o, struct mq_buf *text)
{
	bool same = text->len == o->runs.len &&
	    (text->len == 0 ||
		memcmp(text->data, o->runs.data, text->len) == 0);

	if (!o->reported || !same) {
		mq_consumer_tell_running(o->consumer, text, on_reported, o);
		mq_buf_free(&o->runs);
		o->runs = *text;
		*text = (struct mq_buf){0};
		o->reported = true;
	}
	mq_buf_free(text);
}

void
counters_crashed(struct outbox *o, int queue)
{
	o->queues[queue].counts.runs++;
	o->queues[queue].counts.crashed++;
}

/* --- settlements ------------------------------------------------------------ */

void
settlement_describe(
    struct outbox *o, const struct message *m, struct mq_settlement *how)
{
	*how = (struct mq_settlement){.outcome = m->outcome,
	    .element = m->element,
	    .len = m->len,
	    .delay_ms = m->delay_ms,
	    .push = m->to,
	    .unrun = m->expired,
	    .purged = m->stopped && m->outcome == MQ_OUTCOME_ACK,
	    .holds = mq_message_has(&m->envelope, MQ_TRAIT_LOCK),
	    .header = m->header.len > 0 ? m->header.data : NULL,
	    .header_len = m->header.len};
	if (m->envelope.payload != NULL)
		how->payload_at = (size_t)(m->envelope.payload - m->element);
	/* Messages pushed to another node arrive in the order of these ids. */
	if (m->outcome != MQ_OUTCOME_ACK)
		mq_id_make(o->ids, (uint64_t)mq_clock_unix_us(), how->unique);
}

size_t
settlement_copies(const struct message *m)
{
	if (m->outcome != MQ_OUTCOME_ACK)
		return m->len + m->header.len;
	return mq_message_has(&m->envelope, MQ_TRAIT_LOCK) ? 2 * m->len : 0;
}

/* --- results ---------------------------------------------------------------- */

bool
result_is_wanted(const struct message *m)
{
	return m->result.len > 0 && m->outcome != MQ_OUTCOME_FRONT &&
	    m->outcome != MQ_OUTCOME_AGAIN;
}

void
result_add(struct outbox *o, const struct message *m, struct mq_settlement *how,
    struct mq_result *result, struct mq_notice *notice)
{
	if (!result_is_wanted(m))
		return;
	if (m->keep_ms > 0) {
		*result = (struct mq_result){.id = m->id,
		    .text = m->result.data,
		    .len = m->result.len,
		    .keep_ms = m->keep_ms,
		    .listed = rules_of(o->opt, m->queue)->keep_ms > 0};
		how->result = result;
	}
	notice->queue = m->notified;
	if (notice->queue == NULL)
		return;
	mq_id_make(o->ids, (uint64_t)mq_clock_unix_us(), notice->unique);
	mq_notice_write(
	    notice->unique, m->queue_name, &m->result, &notice->element);
	how->notice = notice;
}
