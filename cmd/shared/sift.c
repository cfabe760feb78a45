#include "sift.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/json.h"
#include "options.h"
#include "queue/calls.h"

/* With a rate, so many seconds' worth of messages go at once. */
#define TICK_S 0.05
/* Enough for one call of the layout. */
#define PIECE 1000

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	/* The second one ends us in any case. */
	if (interrupted)
		mq_end_by(sig);
	interrupted = sig;
}

void
sift_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

char *
sift_result(const struct sift *s)
{
	return mq_xasprintf("%ld message%s %s%s", s->done,
	    s->done == 1 ? "" : "s", s->dry_run ? "would be " : "", s->word);
}

void
sift_fail(struct sift *s, long under_way)
{
	char *result = sift_result(s);

	progress_end(&s->progress);
	mq_say("%s", s->redis->error);
	/* What was refused has not happened. */
	if (s->redis->status != MQ_EXIT_UNAVAILABLE || under_way == 0)
		mq_say("%s", result);
	else if (under_way == -1)
		mq_say("%s, and maybe all others", result);
	else
		mq_say("%s, and up to %ld more", result, under_way);
	exit(s->redis->status);
}

/* What was interrupted leaves the others in their order, too. */
static void
end_walk(struct sift *s)
{
	if (s->layout->scan_end(s->redis, &s->scan) == -1)
		sift_fail(s, 0);
}

static void
check_signal(struct sift *s)
{
	char *result;

	if (!interrupted)
		return;
	end_walk(s);
	progress_end(&s->progress);
	result = sift_result(s);
	mq_say("interrupted");
	mq_say("%s", result);
	free(result);
	mq_end_by(interrupted);
}

double
sift_rate(const char *option, const char *arg)
{
	size_t n = strspn(arg, "0123456789.");
	double rate = 0;
	char *end;

	if (n > 0 && (arg[n] == '\0' || strcmp(arg + n, "/s") == 0)) {
		rate = strtod(arg, &end);
		if (end != arg + n)
			rate = 0;
	}
	if (rate < 0.001 || rate > 1e6)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not a rate from 0.001/s to 1000000/s", option,
		    arg);
	return rate;
}

/* Sleeps unless a signal has come, or comes. */
static void
doze(double seconds)
{
	struct timespec ts = {.tv_sec = (time_t)seconds};
	sigset_t ours, before;

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	/* Blocked, so that none can come between the look and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	if (!interrupted)
		ppoll(NULL, 0, &ts, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void
sift_unknown(const struct sift *s, const char *queue)
{
	struct mq_stats stats;

	if (s->done > 0)
		return;
	if (s->layout->stats(s->redis, &queue, 1, 0, &stats) == -1)
		mq_die(s->redis->status, "%s", s->redis->error);
	if (!stats.queues[0].known)
		mq_option_unknown(s->redis, s->layout, queue);
	mq_stats_free(&stats);
}

/* Waits until the next messages may go; how many of up to max. */
static long
next_piece(struct sift *s, long max)
{
	long piece = max < PIECE ? max : PIECE;
	double now;

	check_signal(s);
	if (s->rate == 0)
		return piece;
	now = mq_clock_s(CLOCK_MONOTONIC);
	if (s->start == 0)
		s->start = now;
	while ((now = s->start + (double)s->done / s->rate -
		       mq_clock_s(CLOCK_MONOTONIC)) > 0) {
		doze(now < 0.5 ? now : 0.5);
		check_signal(s);
		progress_show(&s->progress, s->seen, s->done);
	}
	if ((double)piece > s->rate * TICK_S)
		piece = (long)(s->rate * TICK_S);
	return piece > 0 ? piece : 1;
}

/* The target has to be known before there is a message in it. */
static void
open_target(struct sift *s)
{
	if (!s->open || s->opened)
		return;
	if (mq_queue_open(s->redis, s->layout, s->to, &s->like, &s->made) == -1)
		sift_fail(s, 0);
	s->opened = true;
}

/* One in line stays there, unless it goes elsewhere. */
static bool
stays(const struct sift *s, const struct mq_item *item)
{
	return item->in_line && s->to != NULL &&
	    strcmp(s->to, s->scan.place.queue) == 0;
}

/* A message stays where it is if the target does not take its length. */
static bool
is_too_long(const struct sift *s, const struct mq_item *item)
{
	struct mq_envelope e;
	const char *why;
	bool rv;

	if (s->maxsize == -1 || item->len <= (size_t)s->maxsize ||
	    mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		return false;
	rv = mq_utf16_units(e.payload, e.payload_len) > s->maxsize;
	mq_envelope_free(&e);
	return rv;
}

static bool
meant(struct sift *s, const struct mq_item *item)
{
	if (!mq_filter_match(s->filter, item->element, item->len))
		return false;
	if (is_too_long(s, item)) {
		s->too_long++;
		return false;
	}
	s->in_line += stays(s, item);
	return !stays(s, item);
}

/* Chooses those of a slice that are meant; how many. */
static long
choose(struct sift *s, const struct mq_scan *scan)
{
	long n = 0, max = s->limit - s->done;
	int i;

	if (scan->count > s->cap) {
		s->cap = scan->count;
		s->chosen = mq_xreallocarray(
		    s->chosen, (size_t)s->cap, sizeof(*s->chosen));
		s->some =
		    mq_xreallocarray(s->some, (size_t)s->cap, sizeof(*s->some));
	}
	for (i = 0; i < scan->count; i++) {
		s->chosen[i] = n < max && meant(s, &scan->items[i]);
		n += s->chosen[i];
	}
	return n;
}

/* The first n of the chosen ones from *at on, alone. */
static void
pick(struct sift *s, int count, long n, int *at)
{
	memset(s->some, 0, (size_t)count * sizeof(*s->some));
	for (; *at < count && n > 0; (*at)++)
		if (s->chosen[*at]) {
			s->some[*at] = true;
			n--;
		}
}

static void
take_chosen(struct sift *s, struct mq_scan *scan, long n)
{
	long piece, taken;
	int at = 0, rv;

	if (n > 0)
		open_target(s);
	for (; n > 0; n -= piece) {
		piece = next_piece(s, n);
		pick(s, scan->count, piece, &at);
		rv = s->layout->take(s->redis, scan, s->some, s->to, &taken);
		s->done += taken;
		if (rv == -1)
			sift_fail(s, piece - taken);
	}
}

/*
 * Looks at each message, but no further than those that are there now: what is
 * returned may come back as quickly as we go on.
 */
static void
look(struct sift *s, const struct mq_place *place, long total)
{
	struct mq_scan *scan = &s->scan;
	long n, before = s->seen;

	*scan = (struct mq_scan){.place = *place, .needle = s->filter->id};
	while (!scan->end && scan->seen < total && s->done < s->limit) {
		check_signal(s);
		if (s->layout->scan(s->redis, scan) == -1)
			sift_fail(s, 0);
		n = choose(s, scan);
		if (s->dry_run)
			s->done += n;
		else
			take_chosen(s, scan, n);
		s->seen = before + scan->seen;
		progress_show(&s->progress, s->seen, s->done);
	}
	end_walk(s);
	mq_scan_free(scan);
	free(s->chosen);
	free(s->some);
	s->chosen = s->some = NULL;
	s->cap = 0;
}

/* Without a look at them; no more than max, for the same reason. */
static void
move_all(struct sift *s, const struct mq_place *place, long max)
{
	long piece, moved = 1;

	open_target(s);
	for (; moved > 0 && max > 0; max -= moved) {
		piece = next_piece(s, max);
		if (s->layout->move(s->redis, place, piece, s->to, &moved) ==
		    -1)
			sift_fail(s, piece);
		s->done += moved;
		s->seen += moved;
		progress_show(&s->progress, s->seen, s->done);
	}
}

/* At once, unless others depend on them. */
static void
purge(struct sift *s, const struct mq_place *place, long total)
{
	long removed;

	check_signal(s);
	if (s->layout->purge(s->redis, place, &removed) == -1)
		sift_fail(s, -1);
	if (removed == -1) {
		move_all(s, place, total);
		return;
	}
	s->done += removed;
	s->seen += removed;
}

/* How many there are; of a connection that is alive they are none of ours. */
static long
count(struct sift *s, const struct mq_place *place)
{
	long n;

	if (s->layout->move(s->redis, place, 0, s->to, &n) == 0)
		return n;
	if (s->done == 0)
		mq_die(s->redis->status, "%s", s->redis->error);
	sift_fail(s, 0);
}

/* How many there are to look at, those that stay in line, too. */
static long
length(struct sift *s, const struct mq_place *place, long movable)
{
	struct mq_stats stats;
	long n = movable;

	if (place->state != MQ_DELAYED || s->to == NULL)
		return n;
	if (s->layout->stats(s->redis, &place->queue, 1, 0, &stats) == -1)
		sift_fail(s, 0);
	if (strcmp(s->to, place->queue) == 0) {
		n += (long)stats.queues[0].in_line;
		if (!mq_filter_given(s->filter))
			s->in_line += (long)stats.queues[0].in_line;
	}
	mq_stats_free(&stats);
	return n;
}

/* Reads the maxsize of the target, if that is another queue, and that of the source,
 * which the target gets if it has to be made. */
static void
ask_attributes(struct sift *s, const char *from)
{
	static const struct mq_attributes usual = MQ_ATTRIBUTES_NONE;
	const char *const names[] = {s->to, from};
	struct mq_stats stats;

	s->maxsize = -1;
	s->like = usual;
	if (!s->open || !(s->layout->has & MQ_HAS_ATTRIBUTES))
		return;
	if (s->layout->stats(s->redis, names, 2, 0, &stats) == -1)
		sift_fail(s, 0);
	if (stats.queues[0].attributed)
		s->maxsize = stats.queues[0].attributes.maxsize;
	if (stats.queues[1].attributed)
		s->like.maxsize = stats.queues[1].attributes.maxsize;
	mq_stats_free(&stats);
}

long
sift_place(struct sift *s, const struct mq_place *where)
{
	long before = s->done, left = s->limit - before;
	struct mq_place place = *where;
	long total = count(s, &place), most = total < left ? total : left;
	long all = length(s, &place, total);

	place.line_first = s->to == NULL && s->limit == LONG_MAX;
	s->progress.total += total;
	ask_attributes(s, place.queue);
	if (mq_filter_given(s->filter) || s->maxsize != -1)
		look(s, &place, all);
	else if (s->dry_run)
		s->done += most;
	else if (s->to == NULL && s->limit == LONG_MAX)
		purge(s, &place, total);
	else if (most > 0)
		move_all(s, &place, most);
	progress_end(&s->progress);
	return s->done - before;
}
