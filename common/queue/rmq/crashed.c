/*
 * The rmq layout: messages whose consumer died while they ran.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "clean.h"
#include "keys.h"
#include "message/headers.h"
#include "message/history.h"

/*
 * A message with a bad header goes back as it is, and whoever claims it next
 * rejects it.
 */
enum rmq_charge
rmq_charge(
    const redisReply *header, int limit, const char *host, struct mq_buf *out)
{
	struct mq_envelope e;
	const char *why;
	long attempt;
	bool last;

	if (header->len == 1 ||
	    mq_envelope_parse(header->str, header->len, &e, &why) == -1) {
		mq_buf_add(out, header->str, header->len);
		return RMQ_CHARGE_NONE;
	}
	attempt = mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0) + 1;
	last = attempt >= limit;
	mq_history_crash(&e, attempt, last, host);
	mq_envelope_write_header(&e, out);
	mq_envelope_free(&e);
	return last ? RMQ_CHARGE_REJECT : RMQ_CHARGE_BACK;
}

void
rmq_tally(struct rmq_round *w, const char *queue, long crashed, long rejected,
    long expired)
{
	struct rmq_tally *t;

	if (crashed == 0 && expired == 0)
		return;
	if (w->tally_count > 0) {
		t = &w->tallies[w->tally_count - 1];
		if (strcmp(t->queue, queue) == 0) {
			t->crashed += crashed;
			t->rejected += rejected;
			t->expired += expired;
			return;
		}
	}
	if (w->tally_count == w->tally_cap) {
		w->tally_cap = w->tally_cap == 0 ? 16 : w->tally_cap * 2;
		w->tallies = mq_xreallocarray(
		    w->tallies, w->tally_cap, sizeof(*w->tallies));
	}
	w->tallies[w->tally_count++] =
	    (struct rmq_tally){mq_xstrdup(queue), crashed, rejected, expired};
}

static int
by_queue(const void *a, const void *b)
{
	const struct rmq_tally *x = a, *y = b;

	return strcmp(x->queue, y->queue);
}

static int
flush(struct rmq_round *w)
{
	int rv = mq_pipe_run(w->r, &w->pipe);

	mq_pipe_clear(&w->pipe);
	return rv;
}

int
rmq_tally_send(struct rmq_round *w)
{
	const struct rmq_tally *t = w->tallies, *end;
	const char *queue;
	struct mq_counts n;

	if (w->tally_count == 0)
		return 0;
	qsort(w->tallies, w->tally_count, sizeof(*t), by_queue);
	end = t + w->tally_count;
	while (t < end) {
		n = (struct mq_counts){0};
		queue = t->queue;
		for (; t < end && strcmp(t->queue, queue) == 0; t++) {
			n.runs += t->crashed;
			n.crashed += t->crashed;
			n.failed += t->rejected + t->expired;
			n.expired += t->expired;
		}
		mq_layout_rmq.count(mq_pipe_next(&w->pipe), queue, &n);
		if (w->pipe.n == MQ_PIPE_MAX && flush(w) == -1)
			return -1;
	}
	return flush(w);
}
