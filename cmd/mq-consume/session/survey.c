#include "session.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "queue/stats.h"
#include "redis/connection.h"
#include "shared/progress.h"

/* Seconds between two surveys: consumers with messages renew their leases more
 * often. */
#define AGAIN_S	 4.6
#define STALE_MS 4500

struct found {
	long long ready; /* -1: not known */
	struct holder holder;
};

static long long
count_unacked(const struct mq_connection_stats *c)
{
	long long n = 0;
	int i;

	for (i = 0; i < c->count; i++)
		if (c->consumed[i].unacked > 0)
			n += c->consumed[i].unacked;
	return n;
}

/* The one whose lease ends first: a dead one, if there is any. */
static void
find_holder(
    const struct survey *s, const struct mq_stats *stats, struct holder *out)
{
	const struct mq_connection_stats *c;
	long long unacked;
	int i;

	for (i = 0; i < stats->connection_count; i++) {
		c = &stats->connections[i];
		unacked = count_unacked(c);
		if (unacked == 0 || c->unsure ||
		    strcmp(c->name, s->self) == 0 ||
		    (out->name[0] != '\0' && c->ttl_ms >= out->ttl_ms))
			continue;
		strlcpy(out->name, c->name, sizeof(out->name));
		strlcpy(out->host, c->host != NULL ? c->host : "",
		    sizeof(out->host));
		out->ttl_ms = c->ttl_ms;
		out->unacked = unacked;
	}
}

/* A user without the rights for this knows less, and that is all. */
static void
look_at_server(void *arg, void *result)
{
	const struct survey *s = arg;
	const struct options *opt = s->opt;
	struct found *found = result;
	struct mq_stats stats;
	struct mq_redis r;
	int i;

	found->ready = -1;
	if (mq_redis_open(&r, s->server) == 0 &&
	    opt->layout->stats(&r, opt->queues, opt->queue_count,
		s->waits ? MQ_STATS_CONNECTIONS : 0, &stats) == 0) {
		found->ready = 0;
		for (i = 0; i < stats.count; i++)
			if (stats.queues[i].ready > 0)
				found->ready += stats.queues[i].ready;
		find_holder(s, &stats, &found->holder);
		mq_stats_free(&stats);
	}
	mq_redis_close(&r);
}

static void
say_holder(const struct survey *s, const struct holder *h)
{
	char time[PROGRESS_TIME];
	const char *on = h->host[0] != '\0' ? " on " : "";
	const char *many = h->unacked == 1 ? "" : "s";

	progress_time(time, (double)h->ttl_ms / 1000);
	if (h->ttl_ms > 0)
		mq_say(
		    "waiting for %lld message%s at %s%s%s: that consumer does "
		    "not renew its lease, which ends in %s",
		    h->unacked, many, h->name, on, h->host, time);
	else
		mq_say(
		    "waiting for %lld message%s at %s%s%s: the lease of that "
		    "consumer is over; %s",
		    h->unacked, many, h->name, on, h->host,
		    !s->opt->no_clean ?
			"the next round of cleaning is within a "
			"minute" :
			"run mq-clean");
}

/* A consumer that goes on renews its lease between two surveys, and is not named. */
static bool
is_dead(const struct holder *now, const struct holder *last)
{
	return now->name[0] != '\0' &&
	    (now->ttl_ms <= 0 ||
		(strcmp(now->name, last->name) == 0 &&
		    last->ttl_ms - now->ttl_ms >= STALE_MS));
}

static void
name_holder(struct survey *s, const struct holder *h)
{
	bool known = strcmp(h->name, s->said.name) == 0 &&
	    (h->ttl_ms <= 0) == (s->said.ttl_ms <= 0);

	if (is_dead(h, &s->last) && !known) {
		say_holder(s, h);
		s->said = *h;
	}
	s->last = *h;
}

static void
on_found(void *arg, const void *result)
{
	struct survey *s = arg;
	const struct found *found = result;

	if (found == NULL || found->ready == -1)
		return;
	tell(s, FACT_COUNTED, .n = (size_t)found->ready);
	if (s->waits && !s->opt->quiet)
		name_holder(s, &found->holder);
}

void
survey_tick(struct survey *s, bool counts, bool waits)
{
	double now = mq_clock_steady_s();

	s->waited = waits ? s->waited + 1 : 0;
	/* Most waits are over with the next tick. */
	if (now < s->next || !(counts || s->waited > 1) ||
	    mq_helper_runs(&s->helper))
		return;
	s->waits = s->waited > 1;
	s->next = now + AGAIN_S;
	(void)mq_helper_start(&s->helper, s->children, sizeof(struct found),
	    look_at_server, on_found, s);
}

void
survey_end(struct survey *s)
{
	mq_helper_kill(&s->helper);
}
