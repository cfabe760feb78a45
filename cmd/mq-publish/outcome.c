#include "publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "shared/http.h"
#include "shared/interrupt.h"

/* At most 1 MiB of ids waits until their messages are safe. */
#define HELD_BYTES ((size_t)1024 * 1024)

/* -1: there is none, with the error. */
static int
find_promise(struct outcome *o)
{
	char replicas[24] = "";
	int n;

	if (mq_durable_find(o->publisher->redis, &o->promise) == -1)
		return -1;
	n = o->promise.replicas;
	if (n > 0)
		snprintf(replicas, sizeof(replicas), "%d replica%s", n,
		    n == 1 ? "" : "s");
	snprintf(o->where, sizeof(o->where), " on %s%s%s",
	    o->promise.disk ? "disk" : "",
	    o->promise.disk && n > 0 ? " and " : "", replicas);
	o->moved = false;
	return 0;
}

void
outcome_be_durable(struct outcome *o, const struct mq_publisher *publisher)
{
	const struct mq_redis *r = publisher->redis;

	o->publisher = publisher;
	if (find_promise(o) == -1) {
		mq_say("%s", r->error);
		outcome_end(o, 0, r->status);
	}
}

bool
outcome_settle(struct outcome *o)
{
	if (o->publisher == NULL || !o->unsure)
		return true;
	if (o->moved && find_promise(o) == -1)
		return false;
	if (mq_publisher_wait_durable(o->publisher, &o->promise, o->ours) == -1)
		return false;
	o->safe = o->count[MQ_PUBLISHED];
	o->unsure = false;
	if (o->held.len > 0)
		(void)fwrite(o->held.data, 1, o->held.len, stdout);
	mq_buf_clear(&o->held);
	return true;
}

bool
outcome_unsafe(const struct outcome *o)
{
	return o->publisher != NULL && o->unsure;
}

bool
outcome_holds_many(const struct outcome *o)
{
	return o->held.len > HELD_BYTES;
}

static void
take_id(struct outcome *o, const char *id)
{
	if (o->print_ids && o->publisher == NULL) {
		printf("%.*s\n", MQ_ID_LEN, id);
	} else if (o->print_ids) {
		mq_buf_add(&o->held, id, MQ_ID_LEN);
		mq_buf_add(&o->held, "\n", 1);
	}
	if (o->collect_ids)
		mq_buf_add(&o->ids, id, MQ_ID_LEN);
}

void
outcome_take(struct outcome *o, const char *id, enum mq_published verdict)
{
	bool ours = verdict == MQ_PUBLISHED;
	bool joined = verdict == MQ_PUBLISHED_JOINED;

	o->count[verdict]++;
	/* Another message may not be safe yet, and somebody else's. */
	if (ours || joined || verdict == MQ_PUBLISHED_DUPLICATE) {
		o->unsure = true;
		o->ours = ours;
	}
	if (ours || joined)
		take_id(o, id);
}

void
outcome_reconnected(struct outcome *o, bool proven)
{
	o->ours = false;
	/* Without a mark, only the former server could make good its promise. */
	o->moved = o->publisher != NULL && proven;
}

bool
outcome_full(const struct outcome *o)
{
	return o->count[MQ_PUBLISHED_FULL] > 0;
}

const char *
outcome_ids(const struct outcome *o, size_t *count)
{
	*count = o->ids.len / MQ_ID_LEN;
	return o->ids.data;
}

/* How many of the accepted ones are safe. */
static void
add_safe(const struct outcome *o, char *line, size_t size)
{
	unsigned long accepted = o->count[MQ_PUBLISHED];
	unsigned long unsure = accepted - o->safe;
	size_t len = strlen(line);

	if (unsure > 0)
		snprintf(line + len, size - len,
		    ", %lu of them in the queue but not known to be%s; "
		    "published again without -k they come twice",
		    unsure, o->where);
	else if (accepted > 0)
		snprintf(line + len, size - len, ",%s", o->where);
}

static void
report(const struct outcome *o, unsigned long unknown)
{
	static const struct {
		enum mq_published verdict;
		const char *one, *many;
	} others[] = {{MQ_PUBLISHED_JOINED, "joined", "joined"},
	    {MQ_PUBLISHED_DUPLICATE, "duplicate", "duplicates"},
	    {MQ_PUBLISHED_STALE, "too late", "too late"},
	    {MQ_PUBLISHED_TOO_LONG, "too long", "too long"}};
	unsigned long n = o->count[MQ_PUBLISHED], other;
	char more[256] = "";
	size_t i, len = 0;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if ((other = o->count[others[i].verdict]) > 0)
			len += (size_t)snprintf(more + len, sizeof(more) - len,
			    ", %lu %s", other,
			    other == 1 ? others[i].one : others[i].many);
	if (unknown > 0)
		snprintf(more + len, sizeof(more) - len, ", and up to %lu more",
		    unknown);
	if (o->publisher != NULL)
		add_safe(o, more, sizeof(more));
	mq_say("%lu message%s accepted%s", n, n == 1 ? "" : "s", more);
}

/* Messages that are not there because of others, or of themselves. */
static unsigned long
count_refused(const struct outcome *o)
{
	return o->count[MQ_PUBLISHED_DUPLICATE] + o->count[MQ_PUBLISHED_STALE] +
	    o->count[MQ_PUBLISHED_TOO_LONG];
}

static void
tell_refused(const struct outcome *o, unsigned long unknown)
{
	if (o->refused != NULL && o->count[MQ_PUBLISHED] == 0 && unknown == 0 &&
	    (outcome_full(o) ||
		o->count[MQ_PUBLISHED_JOINED] + count_refused(o) > 0))
		o->refused(o->refused_arg);
}

void
outcome_end(const struct outcome *o, unsigned long unknown, int status)
{
	tell_refused(o, unknown);
	report(o, unknown);
	exit(o->http && outcome_full(o) ? HTTP_EXIT(429) : status);
}

void
outcome_interrupt(const struct outcome *o, unsigned long unknown)
{
	fflush(stdout);
	mq_say("interrupted");
	report(o, unknown);
	mq_end_by(interrupt_signal());
}

void
outcome_lose(struct outcome *o, long long messages)
{
	unsigned long n = (unsigned long)messages;

	mq_say("%s: the server has come back without what it had accepted: "
	       "up to %lu message%s lost",
	    o->queue, n, n == 1 ? " is" : "s are");
	o->count[MQ_PUBLISHED] -=
	    n < o->count[MQ_PUBLISHED] ? n : o->count[MQ_PUBLISHED];
	outcome_end(o, 0, MQ_EXIT_AGAIN);
}

int
outcome_finish(const struct outcome *o, bool quiet, bool verbose)
{
	unsigned long refused = count_refused(o);
	bool too_long = o->count[MQ_PUBLISHED_TOO_LONG] > 0;
	char why[64];

	snprintf(why, sizeof(why), "another message has its %s", o->what);
	tell_refused(o, 0);
	if (too_long)
		strlcpy(
		    why, "it is longer than the queue's maxsize", sizeof(why));
	else if (o->count[MQ_PUBLISHED_STALE] > 0)
		strlcpy(why, "its last tick is over", sizeof(why));
	if (refused == 1 && o->count[MQ_PUBLISHED] == 0 && !quiet)
		mq_say("%s: not published: %s", o->queue, why);
	else if (verbose || (refused > 0 && !quiet))
		report(o, 0);
	if (too_long)
		return o->http ? HTTP_EXIT(413) : MQ_EXIT_DATA;
	if (refused > 0)
		return o->http ? HTTP_EXIT(409) : MQ_EXIT_NO;
	return MQ_EXIT_OK;
}

void
outcome_free(struct outcome *o)
{
	mq_buf_free(&o->ids);
	mq_buf_free(&o->held);
}
