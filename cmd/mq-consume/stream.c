/*
 * --stream: workers that stay.  Each is fed messages, framed, on its standard
 * input, a window of them ahead of its verbs; the verbs come in their order,
 * one final one for each.  See consume-words.c for those.
 */
#include "consume.h"
#include "executor.h"

/* Without --window: what a worker was seen to do in this time, and about so
 * many bytes, since it may read all of them at once. */
#define AHEAD_S	    0.1
#define WINDOW_MAX  1000
#define AHEAD_BYTES ((size_t)1 << 20)

static bool
start(struct slot *s)
{
	struct consumer *c = s->c;

	s->ended = false;
	s->mute = false;
	s->urged = false;
	s->late = NULL;
	s->broken = NULL;
	s->silence_told = false;
	s->judged = 0;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = slot_dup;
	s->verbs.arg = s;
	if (!start_script(s, feed_open(s))) {
		feed_free(&s->feed);
		return false;
	}
	c->busy++;
	worker_watch(s);
	return true;
}

static int
window(const struct slot *s)
{
	const struct options *opt = s->c->opt;
	double ahead;

	if (opt->window > 0)
		return opt->window;
	if (s->pace_s == 0 || opt->rate_shared.per_s > 0 ||
	    opt->rest_max_ms > 0 || s->bytes >= AHEAD_BYTES)
		return 1;
	ahead = AHEAD_S / s->pace_s;
	return ahead > WINDOW_MAX ? WINDOW_MAX : ahead > 1 ? (int)ahead : 1;
}

/* How many more it can have. */
static int
room(const struct slot *s)
{
	if (ev_is_active(&s->rest) || ev_is_active(&s->restart))
		return 0;
	/* One that is dead waits for dups, maybe. */
	if (s->pid == 0 ? requests_awaited(&s->requests) :
			  worker_is_leaving(s) || !feed_wants(&s->feed))
		return 0;
	return window(s) - s->count;
}

/* The one that has the fewest messages; one that lives rather than a new one.
 */
static struct slot *
idlest(const struct consumer *c)
{
	struct slot *best = NULL, *s;
	int i;

	for (i = 0; i < c->opt->slots; i++) {
		s = &c->slots[i];
		if (room(s) <= 0)
			continue;
		if (best == NULL || s->count < best->count ||
		    (s->count == best->count && best->pid == 0 && s->pid != 0))
			best = s;
		if (best->count == 0 && best->pid != 0)
			break;
	}
	return best;
}

static bool
feed_one(struct consumer *c)
{
	struct message *m;
	struct slot *s;

	if (!slot_may_start(c) || (m = run_next(c)) == NULL ||
	    (s = idlest(c)) == NULL)
		return false;
	if (s->pid == 0 && !start(s))
		return false;
	if (run_take(s, m) && feed_put(&s->feed, m) && s->count == 1)
		worker_next(s);
	return true;
}

/* A worker that keeps what it has to say until the end can say it then. */
static bool
is_last(const struct consumer *c)
{
	return c->held == 0 && !c->claiming &&
	    (policy_level(&c->policy) != STOP_NOT ||
		policy_limit_reached(&c->policy, 0) ||
		(c->opt->drain && claim_nothing(c)));
}

static void
stream_start(struct consumer *c)
{
	struct slot *s;
	bool last;
	int i;

	while (feed_one(c))
		;
	last = is_last(c);
	for (i = 0; i < c->opt->slots; i++) {
		s = &c->slots[i];
		if (s->pid == 0)
			continue;
		feed_flush(&s->feed);
		if (last)
			worker_last(s);
	}
}

/*
 * While windows follow the pace, as many as they hold wait here, so that the
 * server gets the next ones ready while the workers have theirs.
 */
static long
ahead(const struct slot *s)
{
	return s->pid != 0 && s->c->opt->window == 0 ? window(s) - 1 : 0;
}

/* A good part of what they can have, while none of them waits. */
static long
stream_room(const struct consumer *c, int queue)
{
	const struct slot *s;
	long all = 0, free = 0;
	bool waits = false;
	int i, n;

	(void)queue;
	for (i = 0; i < c->opt->slots; i++) {
		s = &c->slots[i];
		n = room(s);
		all += window(s);
		free += ahead(s) + (n > 0 ? n : 0);
		waits = waits || (n > 0 && s->count == 0);
	}
	free -= c->held;
	return waits || free >= all / 2 ? free : 0;
}

static void
stream_stop(struct consumer *c)
{
	struct slot *s;
	int i;

	for (i = 0; i < c->opt->slots; i++) {
		s = &c->slots[i];
		if (s->pid == 0)
			continue;
		feed_take_back(&s->feed, &s->hand);
		worker_last(s);
	}
}

/* Does every worker read still, and speak? */
static void
stream_tick(struct consumer *c)
{
	struct slot *s;
	int i;

	for (i = 0; i < c->opt->slots; i++) {
		s = &c->slots[i];
		if (s->pid == 0)
			continue;
		feed_check(&s->feed);
		words_tick(s);
	}
	if (!slot_return_stale(c, idlest(c) != NULL))
		return;
	/* Nothing ahead until their pace is known again. */
	for (i = 0; i < c->opt->slots; i++)
		c->slots[i].pace_s = 0;
}

static bool
stream_wants_few(const struct consumer *c, int queue)
{
	(void)c;
	(void)queue;
	return true;
}

const struct executor executor_stream = {
    .runs = true,
    .stays = true,
    .flows = true,
    .many = true,
    .requests = &words_requests,
    .room = stream_room,
    .wants_few = stream_wants_few,
    .start = stream_start,
    .take_back = slot_take_back,
    .owes = slot_owes,
    .tick = stream_tick,
    .stop = stream_stop,
    .give_back = settle_held,
};
