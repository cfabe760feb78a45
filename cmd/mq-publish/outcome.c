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
	o->safe = o->accepted;
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

/* The other message may not be safe yet, and somebody else's. */
static void
rely_on_another(struct outcome *o)
{
	o->unsure = true;
	o->ours = false;
}

void
outcome_take(struct outcome *o, const char *id, enum mq_published verdict)
{
	switch (verdict) {
	case MQ_PUBLISHED:
		o->accepted++;
		o->unsure = o->ours = true;
		take_id(o, id);
		break;
	case MQ_PUBLISHED_JOINED:
		o->joined++;
		rely_on_another(o);
		take_id(o, id);
		break;
	case MQ_PUBLISHED_DUPLICATE:
		o->duplicates++;
		rely_on_another(o);
		break;
	case MQ_PUBLISHED_STALE:
		o->stale++;
		break;
	case MQ_PUBLISHED_TOO_LONG:
		o->too_long++;
		break;
	default:
		o->full = true;
		break;
	}
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
	return o->full;
}

const char *
outcome_ids(const struct outcome *o, size_t *count)
{
	*count = o->ids.len / MQ_ID_LEN;
	return o->ids.data;
}

/* ", N duplicates", when there are any; appended to a line. */
static void
add_count(
    char *line, size_t size, unsigned long n, const char *one, const char *many)
{
	size_t len = strlen(line);

	if (n > 0)
		snprintf(
		    line + len, size - len, ", %lu %s", n, n == 1 ? one : many);
}

/* How many of the accepted ones are safe. */
static void
add_safe(const struct outcome *o, char *line, size_t size)
{
	unsigned long unsure = o->accepted - o->safe;
	size_t len = strlen(line);

	if (unsure > 0)
		snprintf(line + len, size - len,
		    ", %lu of them in the queue but not known to be%s; "
		    "published again without -k they come twice",
		    unsure, o->where);
	else if (o->accepted > 0)
		snprintf(line + len, size - len, ",%s", o->where);
}

static void
report(const struct outcome *o, unsigned long unknown)
{
	char more[256] = "";
	size_t len;

	add_count(more, sizeof(more), o->joined, "joined", "joined");
	add_count(more, sizeof(more), o->duplicates, "duplicate", "duplicates");
	add_count(more, sizeof(more), o->stale, "too late", "too late");
	add_count(more, sizeof(more), o->too_long, "too long", "too long");
	len = strlen(more);
	if (unknown > 0)
		snprintf(more + len, sizeof(more) - len, ", and up to %lu more",
		    unknown);
	if (o->publisher != NULL)
		add_safe(o, more, sizeof(more));
	mq_say("%lu message%s accepted%s", o->accepted,
	    o->accepted == 1 ? "" : "s", more);
}

static void
tell_refused(const struct outcome *o, unsigned long unknown)
{
	if (o->refused != NULL && o->accepted == 0 && unknown == 0 &&
	    (o->full || o->joined + o->duplicates + o->stale + o->too_long > 0))
		o->refused(o->refused_arg);
}

void
outcome_end(const struct outcome *o, unsigned long unknown, int status)
{
	tell_refused(o, unknown);
	report(o, unknown);
	exit(o->http && o->full ? HTTP_EXIT(429) : status);
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
	o->accepted -= n < o->accepted ? n : o->accepted;
	outcome_end(o, 0, MQ_EXIT_AGAIN);
}

int
outcome_finish(const struct outcome *o, bool quiet, bool verbose)
{
	unsigned long refused = o->duplicates + o->stale + o->too_long;
	char why[64];

	snprintf(why, sizeof(why), "another message has its %s", o->what);
	tell_refused(o, 0);
	if (o->too_long > 0)
		strlcpy(
		    why, "it is longer than the queue's maxsize", sizeof(why));
	else if (o->stale > 0)
		strlcpy(why, "its last tick is over", sizeof(why));
	if (refused == 1 && o->accepted == 0 && !quiet)
		mq_say("%s: not published: %s", o->queue, why);
	else if (verbose || (refused > 0 && !quiet))
		report(o, 0);
	if (o->too_long > 0)
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
