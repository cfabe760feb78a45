#include "layout.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "scripts.h"

/* The hashes: of how many seconds a note is, and how many notes there are. */
static const struct {
	int unit_s, count;
} spans[MQ_PASTS] = {[MQ_MINUTES] = {60, 60}, [MQ_HOURS] = {3600, 48}};

/* A note as text is these numbers, with blanks between them.  Later versions may add some
 * behind. */
enum {
	AT_S,
	READY,
	DELAYED,
	UNACKED,
	REJECTED,
	CONSUMERS,
	AGE_S,
	PUBLISHED,
	ENDED,
	NUMBERS
};

/* --- writing -------------------------------------------------------------------- */

struct noting {
	const struct mq_side *side;
	int64_t now_ms;
	const struct mq_queue_stats **rows;
	size_t n;
};

static void
ask_to_note(void *arg, size_t i, struct mq_command *c)
{
	const struct noting *all = arg;
	const struct mq_queue_stats *q = all->rows[i];
	long long now_s = all->now_ms / 1000, age_s = q->oldest_ms;
	int k;

	if (age_s > 0)
		age_s = age_s < all->now_ms ? (all->now_ms - age_s) / 1000 : 0;
	mq_command_script(c, &mq_script_note);
	for (k = 0; k < MQ_PASTS; k++)
		all->side->key(c, q->name, all->side->past[k]);
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

/* Thousands of queues may be but names. */
static bool
has_anything(const struct mq_queue_stats *q)
{
	return !q->scattered &&
	    (q->counted ||
		(q->ready | q->delayed | q->unacked | q->rejected |
		    q->consumers | q->dead_consumers) != 0);
}

void
mq_past_note(struct mq_redis *r, const struct mq_layout *layout,
    const char *const *queues, int count)
{
	struct noting all = {.side = layout->side};
	struct mq_stats stats;
	int i;

	if (layout->stats(r, queues, count, MQ_STATS_FEW, &stats) == -1)
		return;
	all.now_ms = stats.now_ms;
	all.rows = mq_xcalloc((size_t)stats.count + 1, sizeof(*all.rows));
	for (i = 0; i < stats.count; i++)
		if (has_anything(&stats.queues[i]))
			all.rows[all.n++] = &stats.queues[i];
	(void)mq_ask_each(r, all.n, ask_to_note, ignore_reply, &all);
	free(all.rows);
	mq_stats_free(&stats);
}

/* --- reading -------------------------------------------------------------------- */

struct reading {
	const struct mq_side *side;
	struct mq_stats *stats;
	int kinds; /* of hashes that are read, the first ones */
};

static void
ask_past(void *arg, size_t i, struct mq_command *c)
{
	const struct reading *all = arg;

	mq_command_plain(c, "HVALS");
	all->side->key(c, all->stats->queues[i / (size_t)all->kinds].name,
	    all->side->past[i % (size_t)all->kinds]);
}

/* One of another turn of the hash is none, nor one that is ahead of the clock. */
static bool
parse_note(const char *text, long long now_s, int kind, struct mq_note *out)
{
	long long v[NUMBERS];
	char *end;
	int i;

	for (i = 0; i < NUMBERS; i++, text = end) {
		v[i] = strtoll(text, &end, 10);
		if (end == text)
			v[i] = -1;
	}
	if (v[AT_S] > now_s + spans[kind].unit_s ||
	    v[AT_S] <=
		now_s - (long long)spans[kind].count * spans[kind].unit_s)
		return false;
	*out = (struct mq_note){.at_ms = v[AT_S] * 1000,
	    .ready = v[READY],
	    .delayed = v[DELAYED],
	    .unacked = v[UNACKED],
	    .rejected = v[REJECTED],
	    .consumers = v[CONSUMERS],
	    .age_s = (double)v[AGE_S],
	    .published = v[PUBLISHED],
	    .ended = v[ENDED],
	    .in_s = -1,
	    .out_s = -1};
	return true;
}

static int
by_time(const void *a, const void *b)
{
	const struct mq_note *x = a, *y = b;

	return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

static double
rate_of(long long from, long long to, int64_t ms)
{
	return from < 0 || to < from ? -1 :
				       (double)(to - from) * 1000 / (double)ms;
}

/* From one note to the next, unless there is a gap. */
static void
set_rates(struct mq_past *past)
{
	struct mq_note *n;
	int64_t ms;

	for (n = past->notes + 1; n < past->notes + past->count; n++) {
		ms = n->at_ms - n[-1].at_ms;
		if (ms <= 0 || ms >= past->gap_ms)
			continue;
		/* Of some publishers nobody counts any. */
		if (n->published > 0)
			n->in_s = rate_of(n[-1].published, n->published, ms);
		n->out_s = rate_of(n[-1].ended, n->ended, ms);
	}
}

/* Who may not see it is told nothing. */
static int
take_past(void *arg, size_t i, redisReply *reply)
{
	const struct reading *all = arg;
	int kind = (int)(i % (size_t)all->kinds);
	struct mq_past *out =
	    &all->stats->queues[i / (size_t)all->kinds].past[kind];
	size_t k;

	out->gap_ms = spans[kind].unit_s * INT64_C(2000);
	if (!mq_reply_strings(reply))
		return 0;
	out->notes = mq_xcalloc(reply->elements + 1, sizeof(*out->notes));
	for (k = 0; k < reply->elements; k++)
		out->count += parse_note(reply->element[k]->str,
		    all->stats->now_ms / 1000, kind, &out->notes[out->count]);
	qsort(out->notes, (size_t)out->count, sizeof(*out->notes), by_time);
	set_rates(out);
	return 0;
}

int
mq_past_ask(struct mq_redis *r, const struct mq_layout *layout, int kinds,
    struct mq_stats *stats)
{
	struct reading all = {layout->side, stats, kinds};

	stats->past = kinds;
	return mq_ask_each(
	    r, (size_t)(stats->count * kinds), ask_past, take_past, &all);
}
