/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publish.h"

/* The number of messages without a verdict. */
static unsigned long
count_unknown(const struct transport *t)
{
	unsigned long n = 0;
	unsigned i;

	for (i = 0; i < t->publisher.under_way; i++)
		n += (unsigned long)t->publisher.batches[i].count;
	return n;
}

static void
report(struct transport *t)
{
	static const struct {
		enum mq_published verdict;
		const char *one, *many;
	} others[] = {{MQ_PUBLISHED_REPLACED, "replaced", "replaced"},
	    {MQ_PUBLISHED_JOINED, "joined", "joined"},
	    {MQ_PUBLISHED_DUPLICATE, "duplicate", "duplicates"},
	    {MQ_PUBLISHED_STALE, "too late", "too late"},
	    {MQ_PUBLISHED_TOO_LONG, "too long", "too long"},
	    {MQ_PUBLISHED_NO_BATCH, "without its batch",
		"without their batch"}};
	unsigned long accepted = t->count[MQ_PUBLISHED], other;
	unsigned long n = accepted - t->behind, unsafe = accepted - t->safe;
	unsigned long unknown = count_unknown(t);
	struct mq_buf more = {0};
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if ((other = t->count[others[i].verdict]) > 0)
			mq_buf_printf(&more, ", %lu %s", other,
			    other == 1 ? others[i].one : others[i].many);
	if (t->behind > 0)
		mq_buf_printf(&more, ", and %lu behind those that were refused",
		    t->behind);
	if (t->spooled > 0)
		mq_buf_printf(&more, ", %lu spooled", t->spooled);
	if (unknown > 0)
		mq_buf_printf(&more, ", and up to %lu more", unknown);
	if (t->opt->durable && unsafe > 0)
		mq_buf_printf(&more,
		    ", %lu of them in the queue but not known to be%s; "
		    "published again without -k they come twice",
		    unsafe, t->where);
	else if (t->opt->durable && accepted > 0)
		mq_buf_printf(&more, ",%s", t->where);
	mq_say("%lu message%s accepted%s", n, n == 1 ? "" : "s",
	    mq_buf_str(&more));
	mq_buf_free(&more);
}

/* Messages that were duplicates, too late or too long, or have nothing to wait for. */
static unsigned long
count_refused(const struct transport *t)
{
	return t->count[MQ_PUBLISHED_DUPLICATE] + t->count[MQ_PUBLISHED_STALE] +
	    t->count[MQ_PUBLISHED_TOO_LONG] + t->count[MQ_PUBLISHED_NO_BATCH];
}

/* If the only message was certainly refused, removes its attachments; after a failure,
 * mq-clean does. */
static void
drop_attachments(struct transport *t)
{
	const struct attachments *a = &t->opt->attachments;

	if (a->id[0] != '\0' && t->count[MQ_PUBLISHED] == 0 &&
	    count_unknown(t) == 0 &&
	    (t->count[MQ_PUBLISHED_FULL] > 0 ||
		t->count[MQ_PUBLISHED_JOINED] + count_refused(t) > 0))
		(void)t->opt->shared.layout->attachments->release(
		    &t->redis, a->set.set, a->id);
}

void
outcome_progress(struct transport *t, const char *text, double part)
{
	char line[PROGRESS_LINE];

	if (t->drawn)
		fprintf(stderr, "\r%*s\r", progress_columns(), "");
	t->drawn = text != NULL;
	if (text == NULL)
		return;
	progress_line(line, text, part);
	fputs(line, stderr);
}

void
outcome_end(struct transport *t, int status)
{
	drop_attachments(t);
	if (t->opt->flush)
		spool_note(t, status, t->redis.error);
	else
		report(t);
	exit(t->opt->http && t->count[MQ_PUBLISHED_FULL] > 0 ? HTTP_EXIT(429) :
							       status);
}

void
outcome_interrupt(struct transport *t)
{
	fflush(stdout);
	outcome_progress(t, NULL, -1);
	mq_say("interrupted");
	report(t);
	mq_end_by(interrupt_signal());
}

int
outcome_finish(struct transport *t)
{
	unsigned long refused = count_refused(t);
	bool too_long = t->count[MQ_PUBLISHED_TOO_LONG] > 0;
	const struct mq_shared *shared = &t->opt->shared;
	const char *after = mq_envelope_get(&t->opt->headers, MQ_HEADER_AFTER);
	const char *why = shared->layout->has & MQ_HAS_IDS ?
	    "another message has its id" :
	    "another message has its key";
	char no_batch[512];

	drop_attachments(t);
	if (t->spooled > 0 && !shared->quiet)
		mq_say("spooled: %lu message%s", t->spooled,
		    t->spooled == 1 ? "" : "s");
	if (too_long)
		why = "it is longer than the queue's maxsize";
	else if (t->count[MQ_PUBLISHED_STALE] > 0)
		why = "its last tick is over";
	else if (t->count[MQ_PUBLISHED_NO_BATCH] > 0) {
		snprintf(no_batch, sizeof(no_batch), "no batch %s",
		    after != NULL ? after : "of this name");
		why = no_batch;
	}
	if (refused == 1 && t->count[MQ_PUBLISHED] == 0 && !t->reported &&
	    !shared->quiet)
		mq_say("%s: not published: %s", t->opt->queue, why);
	else if (t->reported || shared->verbose ||
	    (refused + t->count[MQ_PUBLISHED_REPLACED] > 0 && !shared->quiet))
		report(t);
	if (too_long)
		return t->opt->http ? HTTP_EXIT(413) : MQ_EXIT_DATA;
	if (refused > 0)
		return t->opt->http ? HTTP_EXIT(409) : MQ_EXIT_NO;
	return MQ_EXIT_OK;
}
