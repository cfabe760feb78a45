#include "layout.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "scripts.h"

/* The hashes: of how many seconds a note is, and how many notes there are. */
static const struct {
	long long unit_s, count;
} spans[MQ_PASTS] = {[MQ_MINUTES] = {60, 60}, [MQ_HOURS] = {3600, 48}};

struct pass {
	const struct mq_side *side;
	struct mq_stats *stats;
};

/* --- writing -------------------------------------------------------------------- */

/* A note is its numbers as text; later versions may add some behind. */
static void
ask_to_note(void *arg, size_t i, struct mq_command *c)
{
	const struct pass *p = arg;
	const struct mq_queue_stats *q = &p->stats->queues[i];
	long long now_s = p->stats->now_ms / 1000, age_s = q->oldest_ms;
	int k;

	if (age_s > 0)
		age_s = age_s / 1000 < now_s ? now_s - age_s / 1000 : 0;
	mq_command_script(c, &mq_script_note);
	for (k = 0; k < MQ_PASTS; k++)
		p->side->key(c, q->name, p->side->past[k]);
	mq_command_fmt(c, "%lld %lld %lld %lld %lld %lld %lld %lld %lld", now_s,
	    q->ready, q->delayed, q->unacked, q->rejected, q->consumers, age_s,
	    q->counted ? q->counts.published : -1,
	    q->counted ? q->counts.done + q->counts.failed : -1);
	for (k = 0; k < MQ_PASTS; k++) {
		mq_command_int(c, now_s / spans[k].unit_s % spans[k].count);
		mq_command_int(c, (spans[k].count + 2) * spans[k].unit_s);
	}
}

/* A minute that is missing is no reason to fail. */
static int
ignore_reply(void *arg, size_t i, redisReply *reply)
{
	(void)arg, (void)i, (void)reply;
	return 0;
}

void
mq_past_note(struct mq_redis *r, const struct mq_layout *layout,
    const char *const *queues, int count)
{
	struct mq_stats stats;
	struct pass p = {layout->side, &stats};
	struct mq_queue_stats *q, row;
	int i, n = 0;

	if (layout->stats(r, queues, count, MQ_STATS_FEW, &stats) == -1)
		return;
	for (i = 0; i < stats.count; i++) {
		q = &stats.queues[i];
		/* Thousands of queues may be but names. */
		if (q->scattered ||
		    (!q->counted && q->ready <= 0 && q->delayed <= 0 &&
			q->unacked <= 0 && q->rejected <= 0))
			continue;
		row = stats.queues[n];
		stats.queues[n++] = *q;
		*q = row;
	}
	(void)mq_ask_each(r, (size_t)n, ask_to_note, ignore_reply, &p);
	mq_stats_free(&stats);
}

/* --- reading -------------------------------------------------------------------- */

static void
ask_past(void *arg, size_t i, struct mq_command *c)
{
	const struct pass *p = arg;

	mq_command_plain(c, "HVALS");
	p->side->key(c, p->stats->queues[i / MQ_PASTS].name,
	    p->side->past[i % MQ_PASTS]);
}

static int
by_time(const void *a, const void *b)
{
	const struct mq_note *x = a, *y = b;

	return x->n[MQ_NOTED_AT_S] < y->n[MQ_NOTED_AT_S] ? -1 : 1;
}

/* Who may not see it is told nothing. */
static int
take_past(void *arg, size_t i, redisReply *reply)
{
	struct mq_stats *stats = ((const struct pass *)arg)->stats;
	struct mq_past *out = &stats->queues[i / MQ_PASTS].past[i % MQ_PASTS];
	long long unit_s = spans[i % MQ_PASTS].unit_s, *n;
	long long begun_s =
	    stats->now_ms / 1000 - spans[i % MQ_PASTS].count * unit_s;
	const char *text;
	char *end;
	size_t k, m;

	if (!mq_reply_strings(reply))
		return 0;
	out->notes = mq_xcalloc(reply->elements + 1, sizeof(*out->notes));
	for (k = 0; k < reply->elements; k++) {
		text = reply->element[k]->str;
		n = out->notes[out->count].n;
		for (m = 0; m < MQ_NOTED; m++, text = end) {
			n[m] = strtoll(text, &end, 10);
			if (end == text)
				n[m] = -1;
		}
		/* One of another turn of the hash is none, nor one that is ahead
		 * of the clock. */
		out->count += n[MQ_NOTED_AT_S] > begun_s &&
		    n[MQ_NOTED_AT_S] <= stats->now_ms / 1000 + unit_s;
	}
	qsort(out->notes, (size_t)out->count, sizeof(*out->notes), by_time);
	return 0;
}

int
mq_past_ask(
    struct mq_redis *r, const struct mq_layout *layout, struct mq_stats *stats)
{
	struct pass p = {layout->side, stats};

	stats->past = true;
	return mq_ask_each(
	    r, (size_t)stats->count * MQ_PASTS, ask_past, take_past, &p);
}
