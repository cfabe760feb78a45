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
	/* A dead worker may wait for the answers to its dups. */
	if (s->run.pid == 0 ?
		requests_awaited(&s->requests) :
		worker_is_leaving(s) || !worker_input_wants(&s->worker.input))
		return 0;
	return window_of(s) - s->count;
}

static bool
is_idler(const struct slot *s, const struct slot *than)
{
	return than == NULL || s->count < than->count ||
	    (s->count == than->count && than->run.pid == 0 && s->run.pid != 0);
}

/* The slot with the fewest messages, preferably with a worker. */
static struct slot *
idlest_slot(const struct executor *x)
{
	struct slot *best = NULL, *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (!is_idler(s, best) || slot_room(s) <= 0)
			continue;
		best = s;
		if (best->count == 0 && best->run.pid != 0)
			break;
	}
	return best;
}

static bool
write_message(struct executor *x)
{
	struct message *m;
	struct slot *s;
	const char *why;

	if (!slots_may_start(x) || inbox_oldest_of(x->inbox, -1) == NULL ||
	    (s = idlest_slot(x)) == NULL)
		return false;
	if (s->run.pid == 0 && !worker_start(s))
		return false;
	if ((m = inbox_next(x->inbox, -1)) == NULL)
		return false;
	policy_started(x->policy);
	why = message_unframable(m, x->opt->framing);
	if (why != NULL) {
		tell(x, FACT_REJECTED, .message = m, .text = why);
		return true;
	}
	slot_take(s, m);
	worker_input_write(&s->worker.input, m, x->opt->framing);
	if (s->count == 1)
		worker_next(s);
	return true;
}

/* Whether no more messages come.  Then workers find the end of their input, and
 * can write verbs that they have kept until then. */
static bool
is_input_over(const struct executor *x)
{
	if (inbox_held(x->inbox) > 0 || inbox_is_claiming(x->inbox))
		return false;
	return policy_level(x->policy) != STOP_NOT ||
	    policy_limit_reached(x->policy, 0) ||
	    (x->opt->drain && inbox_drained(x->inbox));
}

static void
stream_start(struct executor *x)
{
	struct slot *s;
	bool last;
	int i;

	while (write_message(x))
		;
	last = is_input_over(x);
	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (s->run.pid == 0)
			continue;
		worker_input_flush(&s->worker.input);
		if (last || (i >= x->limit && s->count == 0))
			worker_last(s);
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
	free -= inbox_held(x->inbox);
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
		worker_last(s);
	}
}

static void
stream_tick(struct executor *x)
{
	struct slot *s;
	int i;

	x->starved = false;
	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (s->run.pid == 0)
			continue;
		worker_input_check(&s->worker.input);
		stream_verbs_tick(s);
	}
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
    .make = worker_make,
    .room = stream_room,
    .start = stream_start,
    .tick = stream_tick,
};
