/*
 * --stream: workers that stay.  Each worker reads framed messages on its standard
 * input, a window of them ahead of its verbs.  The final verbs come in the order
 * of the messages.
 */
#include "executor.h"
#include "mq-consume/rules.h"

/* Without --window: as many messages as a worker does in this time; and about so
 * many bytes, which the worker may read at once.  Workers share a number of
 * messages: acks have to be found among all that run. */
#define AHEAD_S	    0.1
#define AHEAD_BYTES ((size_t)1 << 20)
#define WINDOWS_MAX 1000
#define WINDOW_MAX  60 /* each, if there are many */

static int
window_of(const struct slot *s)
{
	const struct options *opt = s->executor->opt;
	int most = WINDOWS_MAX / s->executor->limit;
	double ahead;

	if (opt->window > 0)
		return opt->window;
	if (s->worker.message_s == 0 || rules_share_rate(opt) ||
	    opt->rest_max_ms > 0 || s->bytes >= AHEAD_BYTES)
		return 1;
	ahead = AHEAD_S / s->worker.message_s;
	if (most < WINDOW_MAX)
		most = WINDOW_MAX;
	return ahead > most ? most : ahead > 1 ? (int)ahead : 1;
}

/* How many more messages a slot can take. */
static int
slot_room(const struct slot *s)
{
	if (s - s->executor->all >= s->executor->limit)
		return 0;
	if (ev_is_active(&s->rest) || ev_is_active(&s->worker.restart))
		return 0;
	return worker_wants(s) ? window_of(s) - s->count : 0;
}

/* The slot with the fewest messages, preferably with a worker. */
static struct slot *
idlest_slot(const struct executor *x)
{
	struct slot *best = NULL, *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if ((best == NULL || s->count < best->count ||
			(s->count == best->count && best->run.pid == 0 &&
			    s->run.pid != 0)) &&
		    slot_room(s) > 0)
			best = s;
		if (best != NULL && best->count == 0 && best->run.pid != 0)
			break;
	}
	return best;
}

static void
stream_start(struct executor *x)
{
	struct message *m;
	struct slot *s;
	bool last;
	int i;

	while (slots_may_start(x) && inbox_oldest_of(x->inbox, -1) != NULL &&
	    (s = idlest_slot(x)) != NULL) {
		if (s->run.pid == 0 && !worker_start(s))
			break;
		if ((m = inbox_next(x->inbox, -1)) == NULL)
			break;
		if (slot_take(s, m, message_unframable(m, x->opt->framing)))
			worker_add(s, m);
	}
	/* At the end of their input, workers can write verbs that they have kept until
	 * then. */
	last = x->inbox->held == 0 && !x->inbox->claiming && slots_have_last(x);
	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (s->run.pid != 0)
			worker_flush(
			    s, last || (i >= x->limit && s->count == 0));
	}
}

/*
 * Without --window, another window of messages is claimed ahead: the server works
 * on them while the workers are busy.  While no worker waits, only claims of half a
 * window or more are worth it.
 */
static long
stream_room(const struct executor *x, int queue)
{
	const struct slot *s;
	long all = 0, free = 0;
	bool waits = false;
	int i, n;

	(void)queue;
	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		n = slot_room(s);
		all += window_of(s);
		free += n > 0 ? n : 0;
		if (s->run.pid != 0 && x->opt->window == 0)
			free += window_of(s) - 1;
		waits = waits || (n > 0 && s->count == 0);
	}
	free -= x->inbox->held;
	return waits || free >= all / 2 ? free : 0;
}

void
executor_stop(struct executor *x)
{
	struct slot *s;
	int i;

	for (i = 0; i < x->made && x->opt->stream; i++) {
		s = &x->all[i];
		if (s->run.pid == 0)
			continue;
		worker_return_unread(s);
		worker_flush(s, true);
	}
}

static void
stream_tick(struct executor *x)
{
	int i;

	x->starved = false;
	for (i = 0; i < x->made; i++)
		if (x->all[i].run.pid != 0)
			worker_tick(&x->all[i]);
	if (!slots_return_stale(x, idlest_slot(x) != NULL))
		return;
	/* Measure anew, with one message at a time. */
	for (i = 0; i < x->made; i++)
		x->all[i].worker.message_s = 0;
}

const struct executor_table executor_stream = {
    .flows = true,
    .acks = ACKS_AT_REST,
    .init = slots_init,
    .answered = worker_answered,
    .room = stream_room,
    .start = stream_start,
    .tick = stream_tick,
};
