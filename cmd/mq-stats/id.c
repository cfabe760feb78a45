/*
 * --id: one message, wherever it is.  Its state can change while we look from
 * place to place, so nothing is said to be nowhere before a second look.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "look.h"
#include "message/headers.h"
#include "message/json.h"
#include "one.h"
#include "shared/options.h"

#define LOOKS 2

static void
check(struct look *look, int rv)
{
	if (rv == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
}

/* Keeps a message beyond its slice. */
static void
keep(struct one *one, const struct mq_item *item, const struct mq_place *place)
{
	mq_buf_clear(&one->element);
	mq_buf_add(&one->element, item->element, item->len);
	one->queue = mq_xstrdup(place->queue);
	one->state = place->state;
	one->connection =
	    item->connection != NULL ? mq_xstrdup(item->connection) : NULL;
	one->item = (struct mq_item){.element = one->element.data,
	    .len = one->element.len,
	    .in_line = item->in_line,
	    .tick = item->tick,
	    .due_ms = item->due_ms,
	    .connection = one->connection};
	one->found = true;
}

/* The needle may stand in the payload of another message, or in its headers
 * as something else. */
static bool
is_it(const struct mq_item *item, const char *id)
{
	struct mq_envelope e;
	const char *why, *has;
	bool it;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		return false;
	has = mq_message_name(&e);
	it = has != NULL && strcmp(has, id) == 0;
	mq_envelope_free(&e);
	return it;
}

static void
look_at(struct look *look, const struct mq_place *place, struct one *one)
{
	struct mq_scan scan = {.place = *place, .needle = one->id};
	int i;

	while (!one->found && !scan.end) {
		check(look, look->layout->scan(look->redis, &scan));
		for (i = 0; i < scan.count && !one->found; i++)
			if (is_it(&scan.items[i], one->id))
				keep(one, &scan.items[i], place);
	}
	mq_scan_free(&scan);
}

/* Only the connections that hold anything of the queue: to ask each of a
 * thousand about each of a thousand queues would take long.  The rest of them
 * is held by nobody that we know of. */
static void
look_at_unacked(struct look *look, const struct mq_stats *stats,
    const struct mq_queue_stats *q, struct one *one)
{
	struct mq_place place = {.queue = q->name, .state = MQ_UNACKED};
	const struct mq_connection_stats *c = stats->connections;
	const struct mq_connection_stats *end = c + stats->connection_count;
	long long rest = q->unacked;
	int i;

	for (; c < end; c++)
		for (i = 0; i < c->count && !one->found; i++)
			if (c->consumed[i].unacked > 0 &&
			    strcmp(c->consumed[i].queue, q->name) == 0) {
				place.connection = c->name;
				look_at(look, &place, one);
				rest -= c->consumed[i].unacked;
			}
	place.connection = NULL;
	if (rest > 0 && !one->found)
		look_at(look, &place, one);
}

static void
look_at_queue(struct look *look, const struct mq_stats *stats,
    const struct mq_queue_stats *q, struct one *one)
{
	struct mq_place place = {.queue = q->name};

	/* The way that most messages go. */
	place.state = MQ_DELAYED;
	if (q->delayed > 0)
		look_at(look, &place, one);
	place.state = MQ_READY;
	if (q->ready > 0 && !one->found)
		look_at(look, &place, one);
	if (!one->found)
		look_at_unacked(look, stats, q, one);
	place.state = MQ_REJECTED;
	if (q->rejected > 0 && !one->found)
		look_at(look, &place, one);
}

static bool
look_everywhere(struct look *look, struct one *one)
{
	struct mq_stats stats;
	bool known = true;
	int i;

	check(look,
	    look->layout->stats(look->redis, look->queues, look->count,
		MQ_STATS_CONNECTIONS, &stats));
	one->now_ms = stats.now_ms;
	for (i = 0; i < stats.count; i++) {
		if (stats.queues[i].known)
			look_at_queue(look, &stats, &stats.queues[i], one);
		else
			known = false;
		if (one->found)
			break;
	}
	for (i = 0; i < stats.count && !known && !one->found; i++)
		if (!stats.queues[i].known)
			mq_option_unknown(
			    look->redis, look->layout, stats.queues[i].name);
	mq_stats_free(&stats);
	return known;
}

/* A message that came without an id runs under one that only its consumer
 * knows. */
static void
found_by_run(struct one *one)
{
	/* What is told of a run may be a second old. */
	if (!one->found || one->state == MQ_UNACKED)
		one->run = show_run(&one->runs, one->id);
	if (one->found || one->run == NULL)
		return;
	one->found = true;
	one->state = MQ_UNACKED;
	one->queue = mq_xstrdup(one->run->queue);
	one->connection = mq_xstrdup(one->run->connection);
}

static void
one_free(struct one *one)
{
	free(one->queue);
	free(one->connection);
	mq_buf_free(&one->element);
	mq_runs_free(&one->runs);
}

int
look_id(struct look *look, const char *id)
{
	struct one one = {.id = id};
	bool known = true, found;
	int i;

	for (i = 0; i < LOOKS && known && !one.found; i++)
		known = look_everywhere(look, &one);
	look_runs(look, &one.runs);
	found_by_run(&one);
	found = one.found;
	if (found && look->json)
		one_print_json(&one);
	else if (found)
		one_print(&one);
	else if (known)
		found = look_result(look, id);
	if (!found && known && !look->quiet)
		mq_say("%s: no such message", id);
	one_free(&one);
	return found ? MQ_EXIT_OK : MQ_EXIT_NO;
}
