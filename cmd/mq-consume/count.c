/*
 * Counting what was done.  The counts are kept here and told to the server
 * once a second.  When the connection is lost before it has answered they may
 * be lost, too: better that than counted twice.
 */
#include <string.h>

#include "base/say.h"
#include "consume.h"

void
count_run(struct consumer *c, int queue, double seconds)
{
	struct queue *q = &c->queues[queue];
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

void
count_settled(const struct message *m)
{
	struct mq_counts *n = &m->c->queues[m->queue].counts;

	switch (m->outcome) {
	case MQ_OUTCOME_PUSH:
		m->c->pushed++;
		n->done++;
		break;
	case MQ_OUTCOME_ACK:
		n->done++;
		break;
	case MQ_OUTCOME_REJECT:
		n->failed++;
		n->expired += m->late;
		break;
	case MQ_OUTCOME_AGAIN:
		n->retried++;
		break;
	case MQ_OUTCOME_FRONT:
		m->c->returned++;
		break;
	}
}

void
count_lost(const struct message *m)
{
	m->c->queues[m->queue].counts.lease_lost++;
}

/* The counts of one queue begin anew; what the summary says is kept. */
static void
put_away(struct consumer *c, struct mq_counts *n)
{
	c->counts.done += n->done;
	c->counts.failed += n->failed;
	c->counts.retried += n->retried;
	c->counts.lease_lost += n->lease_lost;
	*n = (struct mq_counts){0};
}

static void
on_counted(void *arg, const struct mq_answer *answer)
{
	struct consumer *c = arg;

	if (answer == NULL || answer->error == NULL || c->count_refused)
		return;
	c->count_refused = true;
	if (c->opt->verbose)
		mq_say("%s: counters: %s", c->server.name, answer->error);
}

void
count_tell(struct consumer *c)
{
	static const struct mq_counts none;
	const struct mq_counts pushed = {.published = c->pushed};
	struct mq_counts *n;
	int i;

	for (i = 0; i < c->opt->queue_count; i++) {
		n = &c->queues[i].counts;
		if (memcmp(n, &none, sizeof(none)) == 0)
			continue;
		mq_consumer_count(
		    &c->self, c->opt->queues[i], n, on_counted, c);
		put_away(c, n);
	}
	if (c->pushed > 0)
		mq_consumer_count(
		    &c->self, c->opt->push, &pushed, on_counted, c);
	c->pushed = 0;
}

void
count_summary(struct consumer *c)
{
	const struct mq_counts *n = &c->counts;
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		put_away(c, &c->queues[i].counts);
	if (c->opt->verbose || n->lease_lost > 0)
		mq_say("%lld done, %lld rejected, %lld to be tried again, "
		       "%ld returned, %lld lease%s lost",
		    n->done, n->failed, n->retried, c->returned, n->lease_lost,
		    n->lease_lost == 1 ? "" : "s");
}
