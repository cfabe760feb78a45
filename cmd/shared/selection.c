/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

#include <poll.h>

#define PIECE	    1000	      /* messages in a call of the layout */
#define PIECE_BYTES ((size_t)2 << 20) /* disk space for one, with its log */

/* Walks through messages that get another time: new ones may come all the while. */
#define WALKS_MAX 100

#define FIRST_S 1.0 /* before the bar is drawn */
#define AGAIN_S 0.1 /* before the bar is drawn again */

static const struct mq_attributes usual = MQ_ATTRIBUTES_NONE;

/* --- copies ------------------------------------------------------------------- */

static void
note_verdict(void *arg, enum mq_published how, long long number, const char *id)
{
	(void)number;
	(void)id;
	((struct clones *)arg)->how = how;
}

static int
publish_copy(struct clones *c, const struct mq_envelope *e, const char *id)
{
	const struct mq_publishing how = {
	    .when.said = true, .has_options = true, .limits = MQ_UNLIMITED};
	struct mq_buf header = {0};
	enum mq_call result;

	if (e->headers != NULL)
		mq_envelope_write_header(e, &header);
	mq_publisher_add(
	    &c->publisher, &how, id, NULL, &header, e->payload, e->payload_len);
	do
		result = mq_publisher_send(&c->publisher) == -1 ?
		    MQ_CALL_LOST :
		    mq_publisher_answer(&c->publisher);
	while (result == MQ_CALL_AGAIN);
	mq_buf_free(&header);
	c->incomplete = result == MQ_CALL_LOST;
	return result == MQ_CALL_DONE ? 0 : -1;
}

/* The copy of a message without a header gets one for its id, unless the layout has ids. */
static int
make_copy(struct selection *s, const struct mq_item *item, long *made)
{
	const struct mq_attachments *files = s->layout->attachments;
	struct clones *c = &s->clones;
	uint64_t now = (uint64_t)(mq_clock_steady_us() + c->clock_us);
	struct mq_envelope e, copy;
	char id[MQ_ID_LEN + 1];
	const struct mq_duplicate as = {.stamped = true, .id = id};
	const char *why, *old, *set;
	int rv = 0;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		e = (struct mq_envelope){NULL, item->element, item->len};
	old = mq_message_id(&e);
	if (old == NULL || mq_id_time(old) < c->start_us) {
		c->last_us = now > c->last_us ? now : c->last_us + 1;
		mq_id_make(&c->random, c->last_us, id);
		set = mq_envelope_get(&e, MQ_HEADER_ATTACH);
		mq_message_duplicate(&e, &as, &copy);
		/* A consumer may see the copy at once: its attachments come before. */
		if (set != NULL && files != NULL)
			rv = mq_attach_refer(s->redis, files, set, id);
		if (rv == 0)
			rv = publish_copy(c, &copy, id);
		mq_envelope_free(&copy);
		if (rv == 0 && c->how == MQ_PUBLISHED) {
			(*made)++;
			if (c->ids == NULL)
				puts(id);
			else
				json_array_append_new(c->ids, json_string(id));
		}
	}
	mq_envelope_free(&e);
	return rv;
}

/*
 * layout->take() for copies: publishes and counts those of some messages of the slice.
 * Messages published since the first call are skipped: they may be copies.
 */
static int
make_copies(struct selection *s, const bool *some, long *made)
{
	struct clones *c = &s->clones;
	bool missing;
	int i, rv = 0;

	*made = 0;
	if (!c->open) {
		c->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
		mq_publisher_init(&c->publisher, s->redis, s->layout, s->to,
		    &usual, note_verdict, c);
		c->open = true;
		if (mq_publisher_open(&c->publisher, true, true, &c->clock_us,
			&missing) != MQ_CALL_DONE)
			rv = -1;
		c->start_us = c->last_us =
		    (uint64_t)(mq_clock_steady_us() + c->clock_us);
	}
	for (i = 0; i < s->scan.count && rv == 0; i++)
		if (some[i])
			rv = make_copy(s, &s->scan.items[i], made);
	/* A signal may end the program without a flush. */
	(void)fflush(stdout);
	return rv;
}

/* --- the bar ------------------------------------------------------------------ */

static void
show_progress(struct selection *s)
{
	struct progress *p = &s->progress;
	double now = mq_clock_s(CLOCK_MONOTONIC), part = -1;
	char text[64], percent[16] = "", line[PROGRESS_LINE];

	if (!p->on || now - p->start < FIRST_S || now - p->last < AGAIN_S)
		return;
	if (p->total > 0) {
		part = MIN(1, (double)s->seen / (double)p->total);
		snprintf(percent, sizeof(percent), "%3.0f%%  ", part * 100);
	}
	snprintf(text, sizeof(text), "%s%ld ", percent, s->done);
	progress_line(line, text, part);
	fprintf(stderr, "\r%s", line);
	p->last = now;
}

/* Erases the bar, before anything else is printed. */
static void
end_progress(struct selection *s)
{
	if (s->progress.last > 0)
		fprintf(stderr, "\r%*s\r", progress_columns(), "");
	s->progress.last = 0;
}

/* --- the selection ------------------------------------------------------------ */

const struct mq_option selection_options[] = {
    {'n', "--limit", "N", "at most N messages",
	MQ_LONG(struct selection, limit, 1, LONG_MAX)},
    {0, "--dry-run", NULL, "+only print how many it would be",
	MQ_FLAG(struct selection, dry_run)},
    {0},
};

void
selection_begin(struct selection *s, bool quiet)
{
	s->done = s->seen = s->in_line = s->too_long = 0;
	s->made = false;
	s->progress = (struct progress){.on = !quiet && isatty(STDERR_FILENO),
	    .start = mq_clock_s(CLOCK_MONOTONIC)};
}

static char *
result_text(const struct selection *s)
{
	return mq_xasprintf("%s%s%ld message%s %s%s",
	    s->queue != NULL ? s->queue : "", s->queue != NULL ? ": " : "",
	    s->done, s->done == 1 ? "" : "s", s->dry_run ? "would be " : "",
	    s->word);
}

/* If the server has failed or refused a step (rv -1), ends the program.  under_way: number of
 * messages whose outcome is unknown; -1: all that are left. */
static void
check_step(struct selection *s, int rv, long under_way)
{
	char *result;

	if (rv != -1)
		return;
	result = result_text(s);
	end_progress(s);
	mq_say("%s", s->redis->error);
	/* A refused step has not happened. */
	if (s->redis->status != MQ_EXIT_UNAVAILABLE || under_way == 0)
		mq_say("%s", result);
	else if (under_way == -1)
		mq_say("%s, and maybe all others", result);
	else
		mq_say("%s, and up to %ld more", result, under_way);
	exit(s->redis->status);
}

/* Lets the layout restore the order of messages, after an interrupted walk, too. */
static void
end_walk(struct selection *s)
{
	s->scan.over = true;
	check_step(s, s->layout->scan(s->redis, &s->scan), 0);
}

static void
check_signal(struct selection *s)
{
	char *result;

	if (interrupt_signal() == 0)
		return;
	end_walk(s);
	end_progress(s);
	result = result_text(s);
	mq_say("interrupted");
	mq_say("%s", result);
	free(result);
	mq_end_by(interrupt_signal());
}

void
selection_unknown(const struct selection *s, const char *queue)
{
	struct mq_stats stats;

	if (s->done > 0)
		return;
	mq_option_must(
	    s->redis, s->layout->stats(s->redis, &queue, 1, 0, &stats));
	if (!stats.queues[0].known)
		mq_option_unknown(s->redis, s->layout, queue);
	mq_stats_free(&stats);
}

/* Waits until the rate allows the next messages, and returns their number, at most max. */
static long
next_piece(struct selection *s, long max)
{
	long piece = MIN(max, PIECE), n;
	double wait, now;

	check_signal(s);
	if (s->to != NULL)
		check_step(s, mq_redis_room(s->redis, PIECE_BYTES), 0);
	if (s->rate.per_s == 0)
		return piece;
	while ((wait = mq_bucket_wait(
		    &s->bucket, &s->rate, mq_clock_s(CLOCK_MONOTONIC))) > 0) {
		(void)interrupt_wait(
		    -1, wait < 0.5 ? (int64_t)(wait * 1000) + 1 : 500);
		check_signal(s);
		show_progress(s);
	}
	now = mq_clock_s(CLOCK_MONOTONIC);
	piece = MIN(piece, (long)mq_bucket_tokens(&s->bucket, &s->rate, now));
	for (n = 0; n < piece; n++)
		mq_bucket_take(&s->bucket, &s->rate, now);
	return n;
}

static bool
goes_elsewhere(const struct selection *s)
{
	return s->to != NULL && strcmp(s->to, s->place.queue) != 0;
}

/* Makes the target, which must exist before its first message. */
static void
open_target(struct selection *s)
{
	if (s->opened || !goes_elsewhere(s))
		return;
	check_step(s,
	    mq_queue_make(
		s->redis, s->layout, s->to, &s->like, MQ_MAKE_TO_PUT, &s->made),
	    0);
	s->opened = true;
}

/* Whether a message that waits is as the change would make it. */
static bool
is_changed(const struct selection *s, const struct mq_item *item)
{
	const struct mq_change *change = s->change;
	struct mq_envelope e;
	const char *why, *priority;
	int64_t due;
	bool rv;

	if (goes_elsewhere(s) || s->place.state == MQ_REJECTED)
		return false;
	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		e = (struct mq_envelope){NULL, item->element, item->len};
	due = item->in_line || item->follows || s->place.state == MQ_READY ?
	    mq_envelope_get_long(&e, MQ_HEADER_DUE, 0) :
	    item->due_ms;
	priority = mq_envelope_get(&e, MQ_HEADER_PRIORITY);
	rv = (!change->ordered ||
		 strtol(priority != NULL ? priority : "0", NULL, 10) ==
		     change->priority) &&
	    (change->due_ms < 0 || due == change->due_ms);
	mq_envelope_free(&e);
	return rv;
}

static bool
is_meant(struct selection *s, const struct mq_item *item)
{
	bool in_line = item->in_line && s->to != NULL && !goes_elsewhere(s) &&
	    !s->clone && s->change == NULL;
	bool too_long = false;
	struct mq_envelope e;
	const char *why;

	if (!mq_filter_match(s->filter, item->element, item->len) ||
	    (s->change != NULL && is_changed(s, item)))
		return false;
	if (s->maxsize != -1 && item->len > (size_t)s->maxsize &&
	    mq_envelope_parse(item->element, item->len, &e, &why) == 0) {
		too_long =
		    mq_utf16_units(e.payload, e.payload_len) > s->maxsize;
		mq_envelope_free(&e);
	}
	s->too_long += too_long;
	s->in_line += !too_long && in_line;
	return !too_long && !in_line;
}

/* Whether a message has attachments; with release, removes them: the message is gone. */
static bool
release_files(struct selection *s, const struct mq_item *item, bool release)
{
	struct mq_envelope e;
	const char *why, *set, *id;
	bool has;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		return false;
	set = mq_envelope_get(&e, MQ_HEADER_ATTACH);
	id = mq_message_id(&e);
	has = set != NULL && id != NULL && mq_id_valid(set, strlen(set));
	/* After a failure, mq-clean removes them. */
	if (has && release)
		(void)s->layout->attachments->release(s->redis, set, id);
	mq_envelope_free(&e);
	return has;
}

/* Moves, removes or copies the n messages at these places of the slice.  A message with
 * attachments goes alone: they are removed only if it is gone. */
static void
take_chosen(struct selection *s, const int *at, long n)
{
	long piece, taken, i;
	bool *some;
	int rv;

	if (n > 0)
		open_target(s);
	for (; n > 0; n -= piece, at += piece) {
		i = s->files ? 0 : n;
		while (i < n && !release_files(s, &s->scan.items[at[i]], false))
			i++;
		piece = next_piece(s, MAX(i, 1));
		some = mq_xcalloc((size_t)s->scan.count, sizeof(*some));
		for (i = 0; i < piece; i++)
			some[at[i]] = true;
		rv = s->clone ?
		    make_copies(s, some, &taken) :
		    s->layout->take(s->redis, &s->scan, some, s->to, &taken);
		free(some);
		s->done += taken;
		check_step(
		    s, rv, s->clone ? s->clones.incomplete : piece - taken);
		if (s->files && piece == 1 && taken == 1)
			(void)release_files(s, &s->scan.items[*at], true);
	}
}

/* Looks at each of the messages that are there now. */
static void
walk_place(struct selection *s, const char *needle)
{
	struct mq_scan *scan = &s->scan;
	long n, before = s->seen, max;
	int *chosen = NULL, i;

	*scan = (struct mq_scan){.place = s->place, .needle = needle};
	while (!scan->end && s->done < s->limit) {
		check_signal(s);
		check_step(s, s->layout->scan(s->redis, scan), 0);
		chosen = mq_xreallocarray(
		    chosen, (size_t)scan->count + 1, sizeof(*chosen));
		max = s->limit - s->done;
		for (i = 0, n = 0; i < scan->count; i++)
			if (n < max && is_meant(s, &scan->items[i]))
				chosen[n++] = i;
		if (s->dry_run)
			s->done += n;
		else
			take_chosen(s, chosen, n);
		s->seen = before + scan->seen;
		show_progress(s);
	}
	end_walk(s);
	mq_scan_free(scan);
	free(chosen);
}

/* Moves at most max messages without looking at them: returned ones may fail, and come back as
 * quickly as they go.  A place that is dropped whole may go at once. */
static void
move_place(struct selection *s, long max)
{
	long piece, moved = 1;

	open_target(s);
	for (; moved > 0 && max > 0; max -= moved) {
		piece = next_piece(s, max);
		check_step(s,
		    s->layout->move(s->redis, &s->place, piece, s->to, &moved),
		    s->place.drop_all ? -1 : piece);
		s->done += moved;
		s->seen += moved;
		show_progress(s);
	}
}

/* The number of messages that can move, or be copied; without a filter, counts those that stay
 * in line.  The messages of a live connection are refused. */
static long
count_place(struct selection *s)
{
	struct mq_stats stats;
	const struct mq_queue_stats *q;
	long n = 0;
	int rv = 0;

	if (!s->clone)
		rv = s->layout->move(s->redis, &s->place, 0, s->to, &n);
	if (s->done > 0)
		check_step(s, rv, 0);
	mq_option_must(s->redis, rv);
	if (!s->clone &&
	    (s->place.state != MQ_DELAYED || s->to == NULL ||
		s->change != NULL || goes_elsewhere(s) ||
		mq_filter_given(s->filter)))
		return n;
	check_step(
	    s, s->layout->stats(s->redis, &s->place.queue, 1, 0, &stats), 0);
	q = &stats.queues[0];
	if (!s->clone)
		s->in_line += (long)q->in_line;
	else
		n = (long)(s->place.state == MQ_READY ? q->ready :
			s->place.state == MQ_DELAYED  ? q->delayed :
			s->place.state == MQ_UNACKED  ? q->unacked :
							q->rejected);
	mq_stats_free(&stats);
	return n;
}

/* Reads the maxsize of the target, if that is another queue, and of the source, whose maxsize
 * a new target gets. */
static void
ask_attributes(struct selection *s)
{
	const char *const names[] = {s->to, s->place.queue};
	struct mq_stats stats;

	s->maxsize = -1;
	s->like = usual;
	if (!goes_elsewhere(s) || !(s->layout->has & MQ_HAS_ATTRIBUTES))
		return;
	check_step(s, s->layout->stats(s->redis, names, 2, 0, &stats), 0);
	if (stats.queues[0].attributed)
		s->maxsize = stats.queues[0].attributes.maxsize;
	if (stats.queues[1].attributed)
		s->like.maxsize = stats.queues[1].attributes.maxsize;
	mq_stats_free(&stats);
}

long
selection_place(struct selection *s, const struct mq_place *where)
{
	long before = s->done, total, most, last;
	int walks = 0;
	bool all = s->to == NULL && s->limit == LONG_MAX;

	s->place = *where;
	s->place.change = s->change;
	total = count_place(s);
	most = MIN(total, s->limit - before);
	s->place.drop_all = all;
	s->progress.total += total;
	ask_attributes(s);
	if (mq_filter_given(s->filter) || s->maxsize != -1 || s->clone ||
	    s->change != NULL || (s->files && !all)) {
		/* A message that gets a later time goes where the walk comes yet, and the
		 * walk ends as many messages too early. */
		do {
			last = s->done;
			walk_place(s, s->filter->id);
		} while (s->change != NULL && s->place.state == MQ_DELAYED &&
		    !s->dry_run && s->done > last && s->done < s->limit &&
		    ++walks < WALKS_MAX);
	} else if (s->dry_run) {
		s->done += most;
	} else if (most > 0) {
		if (s->files)
			walk_place(s, "\"" MQ_HEADER_ATTACH "\"");
		move_place(s, most);
	}
	end_progress(s);
	return s->done - before;
}

void
selection_print(const struct selection *s)
{
	char *result = result_text(s);
	struct mq_buf line = {0};

	if (s->clone && !s->dry_run) {
		mq_say("%s", result);
	} else {
		mq_buf_visible(&line, result, strlen(result));
		puts(mq_buf_str(&line));
	}
	mq_buf_free(&line);
	free(result);
}

/* --- running messages ----------------------------------------------------------- */

/* Consumers report a run after 1 s, or in the next round of 1 s. */
#define REPORTED_S 2.5
#define LOOK_MS	   100 /* pause between two looks */

static const struct mq_run *
find_run(const struct selection *s, const char *queue, struct mq_runs *runs)
{
	int i;

	mq_runs_free(runs);
	mq_option_must(s->redis, s->layout->running(s->redis, runs));
	for (i = 0; i < runs->count; i++)
		if (strcmp(runs->runs[i].queue, queue) == 0 &&
		    strcmp(runs->runs[i].id, s->filter->id) == 0)
			return &runs->runs[i];
	return NULL;
}

/* Finds the run of the message, which its consumer may not have reported yet.  Without a run,
 * ends the program with the reason. */
static const struct mq_run *
await_run(const struct selection *s, const char *queue, struct mq_runs *runs)
{
	double until = mq_clock_steady_s() + REPORTED_S;
	const char *id = s->filter->id;
	const struct mq_search begin = {s->layout, s->redis, s->filter,
	    .scan = {
		.place = {.queue = queue, .state = MQ_UNACKED}, .needle = id}};
	struct mq_search search = begin;
	const struct mq_item *held = NULL;
	const struct mq_run *run;
	bool known;

	while ((run = find_run(s, queue, runs)) == NULL) {
		mq_scan_free(&search.scan);
		search = begin;
		held = mq_search_next(&search);
		if (held == NULL || mq_clock_steady_s() > until)
			break;
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (run == NULL) {
		mq_option_must(s->redis,
		    mq_queue_known(s->redis, s->layout, queue, &known));
		if (!known)
			mq_option_unknown(s->redis, s->layout, queue);
		else if (held == NULL)
			mq_say("%s: %s: not running; it may have ended already",
			    queue, id);
		else
			mq_say("%s: %s: cannot be stopped; %s has it, and "
			       "runs no script of mq-consume with it",
			    queue, id,
			    held->connection != NULL ? held->connection :
						       "a client");
		exit(MQ_EXIT_NO);
	}
	mq_scan_free(&search.scan);
	if (run->grace_ms < 0)
		mq_die(MQ_EXIT_NO,
		    "%s: %s: cannot be stopped; the mq-consume of %s is too "
		    "old: stop process %ld on %s",
		    queue, id, run->connection, run->pid,
		    run->host != NULL ? run->host : "its host");
	return run;
}

void
selection_stop(struct selection *s, const char *queue, enum mq_stop what)
{
	struct mq_runs runs = {0};
	const struct mq_run *run = await_run(s, queue, &runs);
	enum mq_stop answer = MQ_STOP_NONE;

	/* After a lost connection, the request stays until it expires. */
	if (!s->dry_run &&
	    mq_stop_run(s->redis, s->layout, run, what, &answer) == -1)
		mq_die(s->redis->status, "%s%s", s->redis->error,
		    mq_redis_lost(s->redis) ? "; the run may still be stopped" :
					      "");
	if (answer == MQ_STOP_OVER)
		mq_die(MQ_EXIT_NO, "%s: %s: it had ended already", queue,
		    s->filter->id);
	if (answer == MQ_STOP_NONE && !s->dry_run)
		mq_die(MQ_EXIT_AGAIN,
		    "%s: %s: no answer from %s; the request is withdrawn",
		    queue, s->filter->id, run->connection);
	if (answer == MQ_STOP_REJECTED)
		mq_say("%s: %s: rejected, as that was its last attempt", queue,
		    s->filter->id);
	s->done = answer != MQ_STOP_REJECTED;
	mq_runs_free(&runs);
}

void
selection_check_running(
    const struct selection *s, int queues, const char *other)
{
	if (s->filter->option != NULL)
		other = s->filter->option;
	forbid(
	    other != NULL, "--running and %s cannot be used together", other);
	forbid(s->filter->id == NULL, "--running: needs --id");
	forbid(queues != 1, "--running: needs exactly one queue");
}
