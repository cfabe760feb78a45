#include "outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/xalloc.h"

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

void
counters_crashed(struct counters *c, int queue)
{
	c->queues[queue].counts.runs++;
	c->queues[queue].counts.crashed++;
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

/* The setting that says where to may change between two. */
static void
count_pushed(struct counters *c, const struct message *m)
{
	struct queue_counters *q = &c->queues[m->queue];

	if (q->to == NULL || strcmp(q->to, m->to) != 0) {
		send_pushed(c, q);
		free(q->to);
		q->to = mq_xstrdup(m->to);
	}
	q->pushed++;
}

void
counters_settled(struct counters *c, const struct message *m)
{
	struct mq_counts *n = &c->queues[m->queue].counts;

	switch (m->outcome) {
	case MQ_OUTCOME_PUSH:
		count_pushed(c, m);
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

void
counters_lost(struct counters *c, const struct message *m)
{
	c->queues[m->queue].counts.lease_lost++;
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
	if (answer == NULL || answer->error != NULL)
		c->reported = false;
}

void
counters_tell_runs(struct counters *c, struct mq_buf *text)
{
	if (c->reported && text->len == c->runs.len &&
	    (text->len == 0 ||
		memcmp(text->data, c->runs.data, text->len) == 0)) {
		mq_buf_free(text);
		return;
	}
	mq_consumer_tell_running(c->server, text, on_reported, c);
	mq_buf_free(&c->runs);
	c->runs = *text;
	*text = (struct mq_buf){0};
	c->reported = true;
}

void
counters_runs_lost(struct counters *c)
{
	c->reported = false;
}
