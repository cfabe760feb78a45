/*
 * mq-stats: what is in the queues.
 *
 * collect.c asks the server and fills a model, which the outputs read; they
 * ask nothing, and do not know each other:
 *
 *	tables, watch (through screen)	json	prometheus	check
 *	list	reasons	running	one	html (with markup)	contents
 *
 * With --http, endpoint.c makes options of a request first.
 *
 * fields has the facts of queues, connections and runs, as all outputs show them.
 * text, table, message and grouping say how a text is shown, lines become columns, a
 * message is taken apart, and reasons become groups.
 */
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "stats.h"

/* Reports the named queues that do not exist; returns whether all do. */
static bool
report_missing(const struct model *m)
{
	bool known = true;
	int i;

	for (i = 0; i < m->stats.count; i++)
		if (m->elsewhere[i] != NULL) {
			mq_say("%s: no such queue%s", m->stats.queues[i].name,
			    m->elsewhere[i]);
			known = false;
		}
	return known;
}

/* Asks for the named queues; returns whether all exist. */
static bool
find_queues(struct collector *c, int wanted, struct model *m)
{
	collect_stats(c, wanted, m);
	collect_elsewhere(c, m);
	return report_missing(m);
}

/* Below the table of one queue. */
static void
print_attributes(const struct mq_queue_stats *q)
{
	const struct mq_attributes *a = &q->attributes;

	printf("vt %ld s, delay %ld s, ", a->vt_s, a->delay_s);
	if (a->maxsize == -1)
		printf("any size");
	else
		printf("maxsize %ld", a->maxsize);
	printf("; %lld sent, %lld received\n", q->sent, q->received);
}

/* Queues of that layout only have the same names. */
static void
report_left_alone(const struct collector *c, const struct stats_options *o,
    const struct model *m)
{
	const char *form =
	    c->server.url.kind == MQ_URL_CLUSTER ? "plain" : "cluster";
	const struct mq_queue_stats *q = m->stats.queues;
	size_t n = m->stats.cluster.n;

	if (o->shared.quiet)
		return;
	if (n > 0)
		mq_say("%zu %s rmq's %s layout; %s messages are not counted", n,
		    n == 1 ? "connection uses" : "connections use", form,
		    n == 1 ? "its" : "their");
	for (; q < m->stats.queues + m->stats.count; q++)
		if (q->scattered)
			mq_say("'%s': a name for which only Go programs find "
			       "messages on a cluster",
			    q->name);
		else if (q->other)
			mq_say("%s: its messages in rmq's %s layout are not "
			       "counted",
			    q->name, form);
}

static void
print_policy(const struct mq_info *info)
{
	char *policy;

	if (!mq_info_evicts(info))
		return;
	policy = text_visible(info->policy, strlen(info->policy));
	printf("maxmemory-policy is %s: the server may drop queues or leases\n",
	    policy);
	free(policy);
}

static void
print_queues(const struct collector *c, const struct stats_options *o,
    const struct model *m)
{
	bool connections = o->watch.connections;
	struct table table;

	tables_fill(m, connections, 0, &table);
	table_print(&table);
	if (!connections && o->count == 1 && m->stats.queues[0].attributed)
		print_attributes(&m->stats.queues[0]);
	report_left_alone(c, o, m);
	print_policy(&m->info);
}

/* Without names, the past of more queues is left out. */
#define PAST_QUEUES 100

static bool
show_queues(struct collector *c, const struct stats_options *o, struct model *m)
{
	static const int wanted[FORMATS] = {[FORMAT_JSON] = MQ_STATS_COUNTS,
	    [FORMAT_PROMETHEUS] = MQ_STATS_COUNTS | MQ_STATS_CONNECTIONS};

	/* Of very many queues at once, that would be more than everything else. */
	if (o->format == FORMAT_JSON)
		c->past = o->count > 0 ? INT_MAX : PAST_QUEUES;
	collect_stats(c,
	    MQ_STATS_UNLISTED | wanted[o->format] |
		(o->watch.connections ? MQ_STATS_CONNECTIONS : 0),
	    m);
	collect_policy(c, m);
	collect_elsewhere(c, m);
	if (o->format == FORMAT_JSON)
		json_print(m, o->watch.connections);
	else if (o->format == FORMAT_PROMETHEUS)
		prometheus_print(m);
	else
		print_queues(c, o, m);
	return report_missing(m);
}

static bool
show_html(struct collector *c, const struct stats_options *o, struct model *m)
{
	c->past = o->again ? 0 : INT_MAX;
	collect_stats(c, MQ_STATS_CONNECTIONS | MQ_STATS_UNLISTED, m);
	collect_runs(c, m);
	collect_rejected(c, m);
	collect_elsewhere(c, m);
	html_print(m, o->refresh, o->requested);
	return report_missing(m);
}

/* seen: messages that were looked at. */
static void
report_none(const struct stats_options *o, enum mq_state state, long seen)
{
	const char *queue = o->queues[0], *name = mq_state_name(state);

	if (o->shared.quiet)
		return;
	if (seen == 0)
		mq_say("%s: no message is %s", queue, name);
	else
		mq_say("%s: none of %ld %s message%s matched", queue, seen,
		    name, seen == 1 ? "" : "s");
}

static bool
show_list(struct collector *c, const struct stats_options *o, struct model *m)
{
	const struct mq_place place = {
	    .queue = o->queues[0], .state = o->list.state};
	struct list list = {.options = &o->list,
	    .model = m,
	    .queue = place.queue,
	    .json = o->format == FORMAT_JSON,
	    .quiet = o->shared.quiet};
	long skip, seen = 0;
	bool any, known;

	known = find_queues(
	    c, place.state == MQ_UNACKED ? MQ_STATS_CONNECTIONS : 0, m);
	skip = list_begin(&list);
	if (known)
		seen = collect_messages(
		    c, &place, skip, o->list.filter.id, list_slice, &list);
	any = list_end(&list);
	if (known && !any)
		report_none(o, place.state, seen);
	return any;
}

static bool
show_reasons(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	const char *queue = o->queues[0];
	struct reasons reasons = {0};
	bool any;
	long seen;

	if (!find_queues(c, 0, m))
		return false;
	seen = collect_reasons(c, queue, &o->list.filter, &reasons);
	reasons_sort(&reasons);
	reasons_print(&reasons, queue, o->list.limit, m->stats.now_ms,
	    o->format == FORMAT_JSON);
	any = reasons.count > 0;
	if (!any)
		report_none(o, MQ_REJECTED, seen);
	reasons_free(&reasons);
	return any;
}

static bool
show_running(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	bool known = true;

	if (o->count > 0)
		known = find_queues(c, 0, m);
	collect_runs(c, m);
	running_print(&m->runs, o->format == FORMAT_JSON);
	if (m->runs.count == 0 && known && !o->shared.quiet)
		mq_say("no script is running");
	return m->runs.count > 0 && known;
}

static bool
show_one(struct collector *c, const struct stats_options *o, struct model *m)
{
	const char *id = o->list.filter.id;
	struct found f;
	bool known = find_message(c, id, m, &f);
	bool found = f.exists || f.ended_in != NULL;

	if (!known)
		(void)report_missing(m);
	if (found)
		one_print(
		    &f, o->format == FORMAT_JSON, o->payloads || !o->requested);
	else if (known && !o->shared.quiet)
		mq_say("%s: no such message", id);
	found_free(&f);
	return found;
}

static bool
show_server(struct collector *c, const struct stats_options *o, struct model *m)
{
	struct mq_report report;

	collect_report(c, &report);
	server_print(m->server, &report, o->format == FORMAT_JSON);
	return true;
}

/* Everything about one queue. */
static bool
show_contents(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	struct contents contents = {.model = m, .payloads = o->payloads};

	if (!find_queues(c, MQ_STATS_COUNTS, m))
		return false;
	collect_rejected(c, m);
	contents_begin(&contents);
	while (contents_next(&contents))
		collect_messages(c, &contents.place, contents.skip, NULL,
		    contents_slice, &contents);
	contents_print(&contents);
	return true;
}

/* Whether the server answers. */
static bool
show_health(struct collector *c, const struct stats_options *o, struct model *m)
{
	(void)o;
	collect_stats(c, 0, m);
	puts("MQ OK - the server answers");
	return true;
}

static void
name_queues(struct collector *c, struct stats_options *o)
{
	c->layout = o->shared.layout;
	mq_option_queues(&o->shared, &c->server, o->queues, o->count);
	c->queues = (const char *const *)o->queues;
	c->count = o->count;
}

/* For a plugin, everything that goes wrong is a line on stdout. */
static int
show_check(struct collector *c, struct stats_options *o, struct model *m)
{
	struct checks *checks = checks_parse(o->checks);

	if (mq_option_find(
		&o->shared, &c->server, m->error, sizeof(m->error)) == 0) {
		name_queues(c, o);
		if (collect_try(c, MQ_STATS_UNLISTED, m) == 0)
			collect_elsewhere(c, m);
	}
	return checks_print(checks, m, c->count == 0);
}

static int
show_subject(struct collector *c, struct stats_options *o, struct model *m)
{
	static bool (*const shows[SUBJECTS])(struct collector *,
	    const struct stats_options *, struct model *) = {
	    [SUBJECT_QUEUES] = show_queues,
	    [SUBJECT_LIST] = show_list,
	    [SUBJECT_REASONS] = show_reasons,
	    [SUBJECT_RUNNING] = show_running,
	    [SUBJECT_ONE] = show_one,
	    [SUBJECT_HTML] = show_html,
	    [SUBJECT_SERVER] = show_server,
	    [SUBJECT_CONTENTS] = show_contents,
	    [SUBJECT_HEALTH] = show_health,
	};
	int status;

	(void)mq_option_server(&o->shared, &c->server);
	m->server = c->server.name;
	name_queues(c, o);
	mq_filter_check(&o->list.filter, c->layout);
	if (o->watch.interval_ms > 0) {
		watch(c, &o->watch, m);
		return MQ_EXIT_OK;
	}
	/* For the ellipsis of what is cut; regular expressions are compiled. */
	if (o->subject != SUBJECT_QUEUES)
		setlocale(LC_CTYPE, "");
	status = shows[o->subject](c, o, m) ? MQ_EXIT_OK : MQ_EXIT_NO;
	collect_lost(c, m);
	model_report_lost(m);
	return m->lost.n > 0 ? MQ_EXIT_UNAVAILABLE : status;
}

int
main(int argc, char *argv[])
{
	struct stats_options options;
	struct collector collector = {0};
	struct model model = {0};
	int status;

	mq_option_begin();
	options_parse(&options, argc, argv);
	if (options.subject == SUBJECT_HTTP)
		endpoint_serve(&options);
	model.order = options.order;
	mq_option_prints(true);
	if (options.format == FORMAT_CHECK)
		status = show_check(&collector, &options, &model);
	else
		status = show_subject(&collector, &options, &model);
	model_free(&model);
	collect_close(&collector);
	mq_server_free(&collector.server);
	options_free(&options);
	mq_close_stdout();
	return status;
}
