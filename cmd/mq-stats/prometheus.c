/*
 * mq-stats --prometheus: the text exposition format, version 0.0.4.  The first
 * five metrics have the names that rmqprom, the exporter of Go's library, uses.
 */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/xalloc.h"

/* One queue. */
struct series {
	const struct model *model;
	const struct mq_queue_stats *q;
	long long connections; /* live ones that consume it */
	char *label;
};

/* The number; false: there is none of this queue. */
typedef bool value_fn(const struct series *, double *);

static void
print_family(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* {queue="NAME"} without its end.  A byte that is no text becomes \xNN: two
 * names that differ must not become one. */
static char *
make_label(const char *name)
{
	struct mq_buf out = {0};
	size_t n = strlen(name), i, len;

	mq_buf_addstr(&out, "{queue=\"");
	for (i = 0; i < n; i += len) {
		len = mq_utf8_len(name + i, n - i);
		if (name[i] == '\\' || name[i] == '"') {
			mq_buf_printf(&out, "\\%c", name[i]);
		} else if (name[i] == '\n') {
			mq_buf_addstr(&out, "\\n");
		} else if (len == 0) {
			mq_buf_printf(
			    &out, "\\\\x%02x", (unsigned char)name[i]);
			len = 1;
		} else {
			mq_buf_add(&out, name + i, len);
		}
	}
	mq_buf_addstr(&out, "\"");
	(void)mq_buf_str(&out);
	return out.data;
}

#define NUMBER(name, member)                                                   \
	static bool name(const struct series *k, double *v)                    \
	{                                                                      \
		*v = (double)k->member;                                        \
		return *v >= 0;                                                \
	}

/* Only what somebody has counted. */
#define COUNTER(name, member)                                                  \
	static bool name(const struct series *k, double *v)                    \
	{                                                                      \
		*v = (double)k->q->counts.member;                              \
		return k->q->counted;                                          \
	}

NUMBER(ready, q->ready)
NUMBER(rejected, q->rejected)
NUMBER(consumers, q->consumers)
NUMBER(dead_consumers, q->dead_consumers)
NUMBER(unacked, q->unacked)
NUMBER(delayed, q->delayed)
COUNTER(published, published)
COUNTER(attempts, runs)
COUNTER(done, done)
COUNTER(failed, failed)
COUNTER(expired, expired)
COUNTER(retried, retried)
COUNTER(crashed, crashed)
COUNTER(lease_lost, lease_lost)

static bool
connections(const struct series *k, double *v)
{
	*v = (double)k->connections;
	return k->q->consumers >= 0;
}

static bool
paused(const struct series *k, double *v)
{
	*v = k->q->paused_ms != 0;
	return k->q->ready >= 0;
}

static bool
age_value(const struct series *k, double *v)
{
	*v = k->q->oldest_ms > 0 ? model_age_s(k->model, k->q->oldest_ms) : 0;
	return k->q->oldest_ms >= 0;
}

static const struct metric {
	const char *name, *type, *help;
	value_fn *value;
} metrics[] = {
    {"rmq_ready", "gauge", "Messages that a consumer can have now.", ready},
    {"rmq_rejected", "gauge", "Messages that failed for good.", rejected},
    {"rmq_connection", "gauge", "Live connections that consume the queue.",
	connections},
    {"rmq_consumer", "gauge", "Consumers whose lease holds.", consumers},
    {"rmq_unacked", "gauge", "Messages claimed and not settled yet.", unacked},
    {"mq_dead_consumers", "gauge",
	"Consumers that have died and are not cleaned up yet.", dead_consumers},
    {"mq_delayed", "gauge", "Messages that become ready later.", delayed},
    {"mq_oldest_age_seconds", "gauge",
	"How long the oldest claimable message has been claimable.", age_value},
    {"mq_paused", "gauge", "1 while the queue is paused.", paused},
    {"mq_published_total", "counter", "Messages published.", published},
    {"mq_attempts_total", "counter", "Runs that ended, however they did.",
	attempts},
    {"mq_done_total", "counter", "Messages that are done.", done},
    {"mq_failed_total", "counter", "Messages rejected.", failed},
    {"mq_expired_total", "counter", "Messages rejected for being too late.",
	expired},
    {"mq_retried_total", "counter", "Messages put back for another attempt.",
	retried},
    {"mq_crashed_total", "counter", "Runs whose consumer died.", crashed},
    {"mq_lease_lost_total", "counter", "Runs whose consumer lost its lease.",
	lease_lost},
};

static void
print_metric(const struct metric *m, const struct series *series, int count)
{
	double v;
	int i;

	print_family(m->name, m->type, m->help);
	for (i = 0; i < count; i++)
		if (m->value(&series[i], &v))
			printf("%s%s} %.15g\n", m->name, series[i].label, v);
}

static void
print_histogram(const struct series *series, int count)
{
	const char *name = "mq_run_duration_seconds";
	const struct mq_counts *counts;
	long long sum;
	int i, b;

	print_family(name, "histogram", "How long runs took.");
	for (i = 0; i < count; i++) {
		if (!series[i].q->counted)
			continue;
		counts = &series[i].q->counts;
		for (sum = 0, b = 0; b < MQ_BUCKETS - 1; b++) {
			sum += counts->bucket[b];
			printf("%s_bucket%s,le=\"%g\"} %lld\n", name,
			    series[i].label, mq_bucket_s[b], sum);
		}
		sum += counts->bucket[b];
		printf("%s_bucket%s,le=\"+Inf\"} %lld\n", name, series[i].label,
		    sum);
		printf("%s_sum%s} %.15g\n", name, series[i].label,
		    (double)counts->run_ms / 1000);
		printf("%s_count%s} %lld\n", name, series[i].label, sum);
	}
}

static int
by_name(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	return strcmp(x->q->name, y->q->name);
}

static void
count_live(
    const struct mq_connection_stats *c, struct series *series, int count)
{
	struct mq_queue_stats q;
	const struct series key = {.q = &q};
	struct series *k;
	int i;

	for (i = 0; i < c->count && c->ttl_ms > 0; i++) {
		q.name = c->consumed[i].queue;
		k = bsearch(
		    &key, series, (size_t)count, sizeof(*series), by_name);
		if (k != NULL)
			k->connections++;
	}
}

/* Labels of the other metrics stay when a queue moves to another node. */
static void
print_nodes(const struct series *series, int count, size_t lost)
{
	int i;

	if (count == 0 || series[0].q->node == NULL)
		return;
	print_family("mq_queue_node", "gauge",
	    "1, with the node of the cluster that has the queue.");
	for (i = 0; i < count; i++)
		if (series[i].q->node != NULL)
			printf("mq_queue_node%s,node=\"%s\"} 1\n",
			    series[i].label, series[i].q->node);
	print_family("mq_lost_nodes", "gauge",
	    "Nodes of the cluster whose queues are missing here.");
	printf("mq_lost_nodes %zu\n", lost);
}

static void
print_evicts(const struct mq_info *info)
{
	if (*info->policy == '\0')
		return;
	printf("# HELP mq_evicts 1 while the server may drop queues.\n"
	       "# TYPE mq_evicts gauge\n"
	       "mq_evicts %d\n",
	    mq_info_evicts(info));
}

void
prometheus_print(const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	struct series *series =
	    mq_xcalloc((size_t)stats->count + 1, sizeof(*series));
	int i, count = 0;
	size_t k;

	for (i = 0; i < stats->count; i++)
		series[i] = (struct series){m, &stats->queues[i], 0, NULL};
	qsort(series, (size_t)stats->count, sizeof(*series), by_name);
	/* A series must not be there twice. */
	for (i = 0; i < stats->count; i++)
		if (count == 0 || by_name(&series[count - 1], &series[i]) != 0)
			series[count++] = series[i];
	for (i = 0; i < count; i++)
		series[i].label = make_label(series[i].q->name);
	for (i = 0; i < stats->connection_count; i++)
		count_live(&stats->connections[i], series, count);
	for (k = 0; k < sizeof(metrics) / sizeof(metrics[0]); k++)
		print_metric(&metrics[k], series, count);
	print_histogram(series, count);
	print_nodes(series, count, m->lost.n);
	print_evicts(&m->info);
	for (i = 0; i < count; i++)
		free(series[i].label);
	free(series);
}
