/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The progress of --drain: done, rejected, rate and time left, in one line on a terminal, which is
 * erased before anything else is written, and at the end. */
#include "parts.h"

#include "shared/options.h"

#define BAR_FIRST_S 0.5
#define BAR_AGAIN_S 0.25
#define PIECE	    48

/* Adds a piece of text, unless the line would be too long. */
static void __attribute__((format(printf, 2, 3)))
add_piece(char text[static PROGRESS_LINE], const char *fmt, ...)
{
	char piece[PIECE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	if (strlen(text) + strlen(piece) < (size_t)progress_columns())
		strlcat(text, piece, PROGRESS_LINE);
}

static void
on_bar(void *arg)
{
	struct engine *e = arg;
	pid_t front = tcgetpgrp(STDERR_FILENO);
	const struct mq_counts n = counters_totals(e->outbox, NULL);
	char text[PROGRESS_LINE] = "", line[PROGRESS_LINE], time[PROGRESS_TIME];
	long long ended = n.done + n.failed;
	double part = -1,
	       rate =
		   (double)ended / (mq_clock_s(CLOCK_MONOTONIC) - e->bar_began);

	/* In the background, the line would overwrite the prompt of the shell. */
	if (front != -1 && front != getpgrp())
		return;
	if (e->bar_total > 0) {
		part = ended < e->bar_total ?
		    (double)ended / (double)e->bar_total :
		    1;
		add_piece(text, "%.0f%% ", part * 100);
	}
	add_piece(text, "%lld done", n.done);
	add_piece(text, ", %lld rejected", n.failed);
	if (rate >= 1)
		add_piece(text, ", %.*f/s", rate >= 10 ? 0 : 1, rate);
	else
		add_piece(text, ", %.1f/min", rate * 60);
	if (rate > 0 && ended < e->bar_total) {
		/* Rounded up: never "0s left" before the end. */
		progress_time(
		    time, (double)(e->bar_total - ended) / rate + 0.9);
		add_piece(text, ", %s left", time);
	}
	add_piece(text, " ");
	progress_line(line, text, part);
	target_show(&e->process.errors, line);
}

void
bar_count(struct engine *e, long long ready)
{
	const struct mq_counts n = counters_totals(e->outbox, NULL);

	e->bar_total = n.done + n.failed + ready + hand_size(e->hand, -1);
}

void
bar_begin(struct engine *e)
{
	const struct options *opt = e->opt;

	e->bar_began = mq_clock_s(CLOCK_MONOTONIC);
	e->bar_total = -1;
	mq_timer_init(&e->bar, e->loop, on_bar, e);
	/* Messages printed on a terminal show the progress themselves. */
	if (opt->drain && !opt->quiet && progress_can_draw(STDERR_FILENO) &&
	    (executor_way(e->executor)->runs || !isatty(STDOUT_FILENO)))
		mq_timer_start(&e->bar, BAR_FIRST_S, BAR_AGAIN_S);
}

void
bar_end(struct engine *e)
{
	mq_timer_stop(&e->bar);
	target_show(&e->process.errors, NULL);
}
