/*
 * What others hear of messages that have ended: counters, and results.
 */
#include "outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/rules.h"

/* --- counters --------------------------------------------------------------- */

struct queue_counters {
	struct mq_counts counts; /* not sent yet */
	double run_ms;		 /* below 1: the rest of counts.run_ms */
	long long pushed;	 /* not counted at their new queue yet */
	char *to;		 /* where the last of those went; free() */
};

void
counters_init(struct counters *c, const struct options *opt,
    struct mq_consumer *server, const char *server_name)
{
	*c = (struct counters){
	    .opt = opt, .server = server, .server_name = server_name};
	c->queues = mq_xcalloc((size_t)opt->queue_count, sizeof(*c->queues));
}

void
counters_free(struct counters *c)
{
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		free(c->queues[i].to);
	free(c->queues);
	mq_buf_free(&c->runs);
}

void
counters_ran(struct counters *c, int queue, double seconds)
{
	struct queue_counters *q = &c->queues[queue];
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
	struct counters *c = arg;

	if (answer == NULL || answer->error == NULL || c->refused)
		return;
	c->refused = true;
	if (c->opt->verbose)
		mq_say("%s: counters: %s", c->server_name, answer->error);
}

static void
send_pushed(struct counters *c, struct queue_counters *q)
{
	const struct mq_counts pushed = {.published = q->pushed};

	if (q->pushed > 0)
		mq_consumer_count(c->server, q->to, &pushed, on_counted, c);
	q->pushed = 0;
}

void
counters_settled(struct counters *c, const struct message *m)
{
	struct queue_counters *q = &c->queues[m->queue];
	struct mq_counts *n = &q->counts;

	switch (m->outcome) {
	case MQ_OUTCOME_PUSH:
		/* The setting that says where to may change between two. */
		if (q->to == NULL || strcmp(q->to, m->to) != 0) {
			send_pushed(c, q);
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
		c->returned++;
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
counters_totals(const struct counters *c)
{
	struct mq_counts sum = c->sent;
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		add_counts(&sum, &c->queues[i].counts);
	return sum;
}

void
counters_send(struct counters *c)
{
	static const struct mq_counts none;
	struct mq_counts *n;
	int i;

	for (i = 0; i < c->opt->queue_count; i++) {
		send_pushed(c, &c->queues[i]);
		n = &c->queues[i].counts;
		if (memcmp(n, &none, sizeof(none)) == 0)
			continue;
		mq_consumer_count(
		    c->server, c->opt->queues[i], n, on_counted, c);
		add_counts(&c->sent, n);
		*n = none;
	}
}

void
counters_say(const struct counters *c)
{
	const struct mq_counts n = counters_totals(c);

	if (c->opt->verbose || n.lease_lost > 0)
		mq_say("%lld done, %lld rejected, %lld to be tried again, "
		       "%ld returned, %lld lease%s lost",
		    n.done, n.failed, n.retried, c->returned, n.lease_lost,
		    n.lease_lost == 1 ? "" : "s");
}

static void
on_reported(void *arg, const struct mq_answer *answer)
{
	struct counters *c = arg;

	/* If the server's memory is full, the next tick tries again. */
	if (!mq_answer_good(answer))
		c->reported = false;
}

void
counters_tell_runs(struct counters *c, struct mq_buf *text)
{
	bool same = text->len == c->runs.len &&
	    (text->len == 0 ||
		memcmp(text->data, c->runs.data, text->len) == 0);

	if (!c->reported || !same) {
		mq_consumer_tell_running(c->server, text, on_reported, c);
		mq_buf_free(&c->runs);
		c->runs = *text;
		*text = (struct mq_buf){0};
		c->reported = true;
	}
	mq_buf_free(text);
}

void
counters_runs_lost(struct counters *c)
{
	c->reported = false;
}

void
counters_lost(struct counters *c, const struct message *m)
{
	c->queues[m->queue].counts.lease_lost++;
}

void
counters_crashed(struct counters *c, int queue)
{
	c->queues[queue].counts.runs++;
	c->queues[queue].counts.crashed++;
}

/* --- results ---------------------------------------------------------------- */

/* The queue that hears of the end; NULL: none.  A notice has no other. */
static const char *
notified(const struct result_rules *r, const struct message *m)
{
	return mq_envelope_get(&m->envelope, MQ_HEADER_NOTICE) != NULL ?
	    NULL :
	    rules_of(r->opt, m->queue)->notify;
}

static bool
is_kept(const struct result_rules *r, const struct message *m)
{
	return m->id[0] != '\0' &&
	    (rules_of(r->opt, m->queue)->keep_ms > 0 || m->awaited);
}

bool
result_wanted(const struct result_rules *r, const struct message *m)
{
	return is_kept(r, m) || notified(r, m) != NULL;
}

void
result_note(const struct result_rules *r, struct message *m, enum mq_end state,
    const struct mq_failure *f)
{
	struct mq_ending e = {.state = state,
	    .queue = notified(r, m) != NULL ? m->queue_name : NULL,
	    .text = f != NULL && f->text[0] != '\0' ? f->text : NULL,
	    .status = f != NULL ? f->status : -1,
	    .signal = f != NULL ? f->signal : NULL,
	    .attempts = m->attempts + !m->expired,
	    .host = r->host,
	    .to = state == MQ_END_PUSHED ? m->to : NULL,
	    .finished_ms = mq_clock_unix_us() / 1000};

	if (!result_wanted(r, m))
		return;
	strlcpy(e.id, m->id, sizeof(e.id));
	mq_buf_clear(&m->result);
	mq_ending_write(&e, &m->result);
}

void
result_add(const struct result_rules *r, struct message *m,
    struct mq_idgen *ids, struct mq_settlement *how, struct mq_result *result,
    struct mq_notice *notice)
{
	int64_t asked = m->awaited ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep_ms = rules_of(r->opt, m->queue)->keep_ms;

	if (m->outcome == MQ_OUTCOME_FRONT || m->outcome == MQ_OUTCOME_AGAIN)
		return;
	if (m->outcome == MQ_OUTCOME_PUSH)
		result_note(r, m, MQ_END_PUSHED, NULL);
	else if (m->result.len == 0)
		result_note(r, m,
		    m->outcome == MQ_OUTCOME_ACK ? MQ_END_DONE :
						   MQ_END_REJECTED,
		    NULL);
	if (is_kept(r, m)) {
		*result = (struct mq_result){.id = m->id,
		    .text = m->result.data,
		    .len = m->result.len,
		    .keep_ms = keep_ms > asked ? keep_ms : asked};
		how->result = result;
	}
	notice->queue = notified(r, m);
	if (notice->queue == NULL)
		return;
	mq_id_make(ids, (uint64_t)mq_clock_unix_us(), notice->unique);
	mq_notice_write(
	    notice->unique, m->queue_name, &m->result, &notice->element);
	how->notice = notice;
}
