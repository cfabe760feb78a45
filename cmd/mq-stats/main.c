/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats: shows what is in the queues.
 *
 * collect.c asks the server and fills a model, which outputs read.  Outputs do not know each
 * other; some walk through messages:
 *
 *	watch	json	prometheus	check	list	ended	reasons	one	html	server	spool
 *
 * With --http, options.c makes options of a request first.
 *
 * fields.c has the facts of queues, connections and runs for all outputs, text.c and table.c
 * write texts and columns, and message.c parses messages.
 */
#include "stats.h"

#include <locale.h>
#include <stdlib.h>

/* Collects the named queues; returns whether all of them exist. */
static bool
find_queues(struct collector *c, int wanted, struct model *m)
{
	collect_stats(c, wanted, m);
	collect_elsewhere(c, m);
	return model_report_missing(m);
}

static void
print_queues(const struct collector *c, const struct stats_options *o,
    const struct model *m)
{
	bool quiet = o->shared.quiet;
	const char *form =
	    c->server.url.kind == MQ_URL_CLUSTER ? "plain" : "cluster";
	const struct mq_queue_stats *q = m->stats.queues;
	size_t n = m->stats.cluster.n, i;
	struct table table;
	char *policy;

	tables_fill(m, o->connections, 0, &table);
	table_print(&table);
	if (!o->connections && o->count == 1 && q->attributed) {
		printf("vt %ld s, delay %ld s, ", q->attributes.vt_s,
		    q->attributes.delay_s);
		if (q->attributes.maxsize == -1)
			printf("any size");
		else
			printf("maxsize %ld", q->attributes.maxsize);
		printf("; %lld sent, %lld received\n", q->sent, q->received);
	}
	if (n > 0 && !quiet)
		mq_say("%zu %s rmq's %s layout; %s messages are not counted", n,
		    n == 1 ? "connection uses" : "connections use", form,
		    n == 1 ? "its" : "their");
	for (i = 0; i < m->stats.odd.n && !quiet; i++)
		mq_say("'%s': a name for which only Go programs find messages",
		    m->stats.odd.list[i].name);
	for (; q < m->stats.queues + m->stats.count && !quiet; q++)
		if (q->scattered)
			mq_say("'%s': a name for which only Go programs find "
			       "messages on a cluster",
			    q->name);
		else if (q->other)
			mq_say("%s: its messages in rmq's %s layout are not "
			       "counted",
			    q->name, form);
	if (m->info.evicts) {
		policy = mq_visible(m->info.policy, strlen(m->info.policy));
		printf("maxmemory-policy is %s: the server may drop queues or "
		       "leases\n",
		    policy);
		free(policy);
	}
}

/* JSON has the past of at most this number of queues, unless queues were named: the
 * past of thousands would be larger than everything else. */
#define PAST_QUEUES 100

static bool
show_queues(struct collector *c, const struct stats_options *o, struct model *m)
{
	int wanted = MQ_STATS_UNLISTED;

	if (o->format != FORMAT_TABLE)
		wanted |= MQ_STATS_COUNTS;
	if (o->format == FORMAT_PROMETHEUS || o->connections)
		wanted |= MQ_STATS_CONNECTIONS;
	if (o->format == FORMAT_JSON)
		c->past = o->count > 0 ? INT_MAX : PAST_QUEUES;
	collect_stats(c, wanted, m);
	mq_option_must(&c->redis, mq_info_ask_policy(&c->redis, &m->info));
	collect_elsewhere(c, m);
	if (o->format == FORMAT_JSON)
		json_print(m, o->connections);
	else if (o->format == FORMAT_PROMETHEUS)
		prometheus_print(m);
	else
		print_queues(c, o, m);
	return model_report_missing(m);
}

/* Prints --list or --reasons; returns whether any message was shown. */
static bool
show_messages(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	bool list = o->subject == SUBJECT_LIST, known, any = false;
	enum mq_state state = list ? o->list.state : MQ_REJECTED;
	long seen = 0;

	if (list && o->list.ends != ENDS_NONE) {
		mq_option_needs(&o->shared, "--list done", MQ_HAS_RESULTS);
		mq_filter_check_ended(&o->list.filter, "--list done");
		return find_queues(c, 0, m) && ended_print(c, o, m);
	}
	known =
	    find_queues(c, state == MQ_UNACKED ? MQ_STATS_CONNECTIONS : 0, m);
	if (list)
		any = list_print(c, o, m, &seen);
	else if (known)
		any = reasons_print(c, o, m, &seen);
	if (!known || any || o->shared.quiet)
		return any;
	if (seen == 0)
		mq_say(
		    "%s: no message is %s", o->queues[0], mq_state_name(state));
	else
		mq_say("%s: none of %ld %s message%s matched", o->queues[0],
		    seen, mq_state_name(state), seen == 1 ? "" : "s");
	return false;
}

static void
print_runs(const struct model *m, bool json)
{
	int64_t now_ms = mq_clock_unix_us() / 1000;
	struct table table;

	if (json) {
		output_json_line(fields_list(run_fields, m->runs.runs,
		    sizeof(*m->runs.runs), m->runs.count, now_ms));
	} else if (m->runs.count > 0) {
		running_fill(m, now_ms, &table);
		table_print(&table);
	}
}

/* Tells how many of the slots that consumers share are taken, of queues that were named. */
static void
tell_slots(const struct model *m)
{
	const struct mq_queue_stats *q;
	int i;

	for (i = 0; i < m->stats.count; i++) {
		q = &m->stats.queues[i];
		if (q->slots_shared > 0)
			mq_say("%s: %lld of %lld run", q->name, q->slots_taken,
			    q->slots_shared);
	}
}

/* Prints the counts of a batch; returns whether it exists. */
static bool
print_batch(struct collector *c, const struct stats_options *o)
{
	struct batch b = {o->queues[0], o->list.filter.batch, {0}};
	bool known;
	int i;

	mq_option_needs(&o->shared, "--batch", MQ_HAS_BATCHES);
	mq_option_must(&c->redis,
	    mq_queue_batch(
		&c->redis, c->layout, b.queue, b.name, &known, b.counts));
	if (!known && !o->shared.quiet)
		mq_say("%s: no batch %s", b.queue, b.name);
	if (known && o->format == FORMAT_JSON)
		output_json_line(fields_json(batch_fields, &b, 0));
	else
		for (i = 0; known && i < MQ_BATCH_COUNTS; i++)
			printf("%-12s%lld\n", mq_batch_words[i], b.counts[i]);
	return known;
}

/* Prints the subject of the options; returns whether the subject exists. */
static bool
show_subject(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	bool known;

	switch (o->subject) {
	case SUBJECT_LIST:
	case SUBJECT_REASONS:
		return show_messages(c, o, m);
	case SUBJECT_RUNNING:
		known = o->count == 0 || find_queues(c, 0, m);
		collect_runs(c, m);
		print_runs(m, o->format == FORMAT_JSON);
		if (!o->shared.quiet)
			tell_slots(m);
		if (m->runs.count == 0 && known && !o->shared.quiet)
			mq_say("no script is running");
		return m->runs.count > 0 && known;
	case SUBJECT_ONE:
		return o->output && !o->requested ? output_print(c, o, m) :
						    one_print(c, o, m);
	case SUBJECT_BATCH:
		return find_queues(c, 0, m) && print_batch(c, o);
	case SUBJECT_HTML:
		c->past = o->again ? 0 : INT_MAX;
		collect_stats(c, MQ_STATS_CONNECTIONS | MQ_STATS_UNLISTED, m);
		collect_runs(c, m);
		rejected_collect(c, m);
		collect_batches(c, m);
		collect_elsewhere(c, m);
		html_print(m, o->refresh, o->requested);
		return model_report_missing(m);
	case SUBJECT_SERVER:
		server_print(c, o->format == FORMAT_JSON);
		return true;
	case SUBJECT_CONTENTS:
		if (!find_queues(c, MQ_STATS_COUNTS, m))
			return false;
		rejected_collect(c, m);
		contents_print(c, m, o->payloads);
		return true;
	case SUBJECT_HEALTH:
		collect_stats(c, 0, m);
		puts("MQ OK - the server answers");
		return true;
	default:
		return show_queues(c, o, m);
	}
}

static int
show(struct collector *c, struct stats_options *o, struct model *m)
{
	int status;

	if (o->format == FORMAT_CHECK)
		return checks_print(c, o, m);
	if (o->subject == SUBJECT_SPOOL)
		return spool_print(o->format == FORMAT_JSON, o->shared.quiet);
	/* The page is UTF-8, whatever the terminal is.  The environment must change
	 * before a thread resolves an address. */
	if (o->subject == SUBJECT_HTML)
		setenv("LC_ALL", "C.UTF-8", 1);
	(void)mq_option_server(&o->shared, &c->server);
	collect_queues(c, o);
	mq_filter_check(&o->list.filter, c->layout);
	if (o->interval_ms > 0) {
		watch(c, o, m);
		return MQ_EXIT_OK;
	}
	/* The locale decides the ellipsis of cut texts.  Regular expressions were
	 * compiled before, without it. */
	if (o->subject != SUBJECT_QUEUES)
		setlocale(LC_CTYPE, "");
	status = show_subject(c, o, m) ? MQ_EXIT_OK : MQ_EXIT_NO;
	collect_lacks(c, m);
	model_report_lacks(m);
	return m->lost > 0 ? MQ_EXIT_UNAVAILABLE :
	    m->lacks.n > 0 ? MQ_EXIT_WRONGTYPE :
			     status;
}

int
main(int argc, char *argv[])
{
	struct stats_options options = {0};
	struct collector collector = {0};
	struct model model = {0};
	int status;

	mq_option_begin();
	options_parse(&options, argc, argv);
	if (options.subject == SUBJECT_HTTP)
		options_serve(&options);
	model.order = options.order;
	mq_option_prints(true);
	status = show(&collector, &options, &model);
	model_free(&model);
	mq_redis_close(&collector.redis);
	mq_server_free(&collector.server);
	options_free(&options);
	mq_close_stdout();
	return status;
}
