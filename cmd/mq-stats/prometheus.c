/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats --prometheus: the text exposition format, version 0.0.4.  The first
 * five metrics have the names that rmqprom, the exporter of Go's library, uses.
 */
#include "stats.h"

/* A queue with its label. */
struct series {
	const struct mq_queue_stats *q;
	char *label;
};

static void
print_family(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Returns {queue="NAME" without the closing brace.  For a terminal, characters that
 * could control it become \xNN, too. */
static char *
make_label(const char *name, bool terminal)
{
	char *text = mq_show(&mq_name, name, strlen(name));
	const char *p, *end = text + strlen(text);
	struct mq_buf out = {0};
	size_t len, i;
	uint32_t odd;

	mq_buf_addstr(&out, "{queue=\"");
	for (p = text; p < end; p += len) {
		len = mq_utf8_odd(p, (size_t)(end - p), &odd);
		if (*p == '\n') {
			mq_buf_addstr(&out, "\\n");
		} else if (terminal && (odd != 0 || (unsigned char)*p < ' ')) {
			for (i = 0; i < len; i++)
				mq_buf_printf(
				    &out, "\\\\x%02x", (unsigned char)p[i]);
		} else {
			if (*p == '\\' || *p == '"')
				mq_buf_addstr(&out, "\\");
			mq_buf_add(&out, p, len);
		}
	}
	mq_buf_addstr(&out, "\"");
	free(text);
	return mq_buf_str(&out);
}

/* Prints the fields that are metrics, in the order of their places. */
static void
print_metrics(const struct field *fields, const struct series *series,
    int count, int64_t now_ms)
{
	const struct field *f;
	struct value v;
	bool counter;
	int place, i;

	for (place = 1;; place++) {
		for (f = fields; f->metric.place != place; f++)
			if (f->kind == KIND_END)
				return;
		counter = f->kind == KIND_NUMBER;
		print_family(f->metric.name, counter ? "counter" : "gauge",
		    f->metric.help);
		for (i = 0; i < count; i++) {
			v = field_get(f, series[i].q, now_ms);
			/* Counters need a queue that is counted; gauges need a known
			 * value. */
			if (counter ? series[i].q->counted :
				      v.type != VALUE_UNKNOWN)
				printf("%s%s} %.15g\n", f->metric.name,
				    series[i].label, v.real);
		}
	}
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

void
prometheus_print(const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	struct series *series =
	    mq_xcalloc((size_t)stats->count + 1, sizeof(*series));
	bool terminal = isatty(STDOUT_FILENO);
	int i, count = 0;

	for (i = 0; i < stats->count; i++)
		series[i] = (struct series){&stats->queues[i], NULL};
	qsort(series, (size_t)stats->count, sizeof(*series), by_name);
	/* A queue that was named twice is one series. */
	for (i = 0; i < stats->count; i++)
		if (count == 0 || by_name(&series[count - 1], &series[i]) != 0)
			series[count++] = series[i];
	for (i = 0; i < count; i++)
		series[i].label = make_label(series[i].q->name, terminal);
	print_metrics(queue_fields, series, count, stats->now_ms);
	print_metrics(count_fields, series, count, stats->now_ms);
	print_histogram(series, count);
	if (count > 0 && series[0].q->node != NULL) {
		/* The node is a metric of its own: a label of other metrics would
		 * begin new series when a queue moves to another node. */
		print_family("mq_queue_node", "gauge",
		    "1, with the node of the cluster that has the queue.");
		for (i = 0; i < count; i++)
			if (series[i].q->node != NULL)
				printf("mq_queue_node%s,node=\"%s\"} 1\n",
				    series[i].label, series[i].q->node);
		print_family("mq_lost_nodes", "gauge",
		    "Nodes of the cluster whose queues are missing here.");
		printf("mq_lost_nodes %d\n", m->lost);
	}
	/* Without queues, a pause of all is not collected: 0. */
	print_family(
	    "mq_all_paused", "gauge", "1 while all queues are paused.");
	printf("mq_all_paused %d\n",
	    stats->count > 0 && stats->queues->all_paused);
	if (*m->info.policy != '\0') {
		print_family("mq_evicts", "gauge",
		    "1 while the server may drop queues.");
		printf("mq_evicts %d\n", m->info.evicts);
	}
	for (i = 0; i < count; i++)
		free(series[i].label);
	free(series);
}
