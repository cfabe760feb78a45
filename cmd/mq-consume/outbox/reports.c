/* What others hear of messages that have ended: counters, and results. */
#include "outbox.h"

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
	/* Most runs may be shorter than a millisecond. */
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
		mq_say("%s: counters: %s", o->session->server->name,
		    answer->error);
}

static void
send_pushed(struct outbox *o, struct outbox_queue *q)
{
	const struct mq_counts pushed = {.published = q->pushed};

	if (q->pushed > 0)
		mq_consumer_count(o->server, q->to, &pushed, on_counted, o);
	q->pushed = 0;
}

void
counters_settled(struct outbox *o, const struct message *m)
{
	struct outbox_queue *q = &o->queues[m->queue];
	struct mq_counts *n = &q->counts;

	switch (m->outcome) {
	case MQ_OUTCOME_PUSH:
		/* The setting that says where to may change between two. */
		if (q->to == NULL || strcmp(q->to, m->to) != 0) {
			send_pushed(o, q);
			free(q->to);
			q->to = mq_xstrdup(m->to);
		}
		q->pushed++;
		n->done++;
		break;
	case MQ_OUTCOME_ACK:
		/* What an operator purges has not ended. */
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
counters_totals(const struct outbox *o)
{
	struct mq_counts sum = o->sent;
	int i;

	for (i = 0; i < o->opt->queue_count; i++)
		add_counts(&sum, &o->queues[i].counts);
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
		    o->server, o->opt->queues[i], n, on_counted, o);
		add_counts(&o->sent, n);
		*n = none;
	}
}

static void
on_reported(void *arg, const struct mq_answer *answer)
{
	struct outbox *o = arg;

	/* If the server's memory is full, the next tick tries again. */
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
		mq_consumer_tell_running(o->server, text, on_reported, o);
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

/* --- results ---------------------------------------------------------------- */

/* The queue that hears of the end; NULL: none.  A notice has no other. */
static const char *
notified(const struct outbox *o, const struct message *m)
{
	return mq_envelope_get(&m->envelope, MQ_HEADER_NOTICE) != NULL ?
	    NULL :
	    rules_of(o->opt, m->queue)->notify;
}

static bool
is_kept(const struct outbox *o, const struct message *m)
{
	return m->id[0] != '\0' &&
	    (rules_of(o->opt, m->queue)->keep_ms > 0 || m->awaited);
}

bool
result_wanted(const struct outbox *o, const struct message *m)
{
	return is_kept(o, m) || notified(o, m) != NULL;
}

void
result_note(const struct outbox *o, struct message *m, enum mq_end state,
    const struct mq_failure *f)
{
	struct mq_ending e = {.state = state,
	    .queue = notified(o, m) != NULL ? m->queue_name : NULL,
	    .text = f != NULL && f->text[0] != '\0' ? f->text : NULL,
	    .status = f != NULL ? f->status : -1,
	    .signal = f != NULL ? f->signal : NULL,
	    .attempts = m->attempts + !m->expired,
	    .host = o->host[0] != '\0' ? o->host : NULL,
	    .to = state == MQ_END_PUSHED ? m->to : NULL,
	    .finished_ms = mq_clock_unix_us() / 1000};

	if (!result_wanted(o, m))
		return;
	strlcpy(e.id, m->id, sizeof(e.id));
	mq_buf_clear(&m->result);
	mq_ending_write(&e, &m->result);
}

void
result_add(const struct outbox *o, struct message *m, struct mq_settlement *how,
    struct mq_result *result, struct mq_notice *notice)
{
	int64_t asked = m->awaited ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep_ms = rules_of(o->opt, m->queue)->keep_ms;

	if (m->outcome == MQ_OUTCOME_FRONT || m->outcome == MQ_OUTCOME_AGAIN)
		return;
	if (m->outcome == MQ_OUTCOME_PUSH)
		result_note(o, m, MQ_END_PUSHED, NULL);
	else if (m->result.len == 0)
		result_note(o, m,
		    m->outcome == MQ_OUTCOME_ACK ? MQ_END_DONE :
						   MQ_END_REJECTED,
		    NULL);
	if (is_kept(o, m)) {
		*result = (struct mq_result){.id = m->id,
		    .text = m->result.data,
		    .len = m->result.len,
		    .keep_ms = MAX(keep_ms, asked)};
		how->result = result;
	}
	notice->queue = notified(o, m);
	if (notice->queue == NULL)
		return;
	mq_id_make(o->ids, (uint64_t)mq_clock_unix_us(), notice->unique);
	mq_notice_write(
	    notice->unique, m->queue_name, &m->result, &notice->element);
	how->notice = notice;
}
