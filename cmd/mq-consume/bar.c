/*
 * The bar of --drain: done, rejected, rate and time left, in one line on a terminal
 * that goes away before anything else is written, and at the end.
 */
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/stats.h"
#include "shared/options.h"

#define FIRST_S 0.5
#define AGAIN_S 0.25
#define PIECE	48

/* Adds a piece of the text, unless the line would be too long. */
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
on_time(struct ev_loop *loop, ev_timer *w, int events)
{
	struct engine *e = w->data;
	const struct bar *b = &e->bar;
	pid_t front = tcgetpgrp(STDERR_FILENO);
	const struct mq_counts n = counters_totals(&e->outbox);
	char text[PROGRESS_LINE] = "", line[PROGRESS_LINE], time[PROGRESS_TIME];
	long long ended = n.done + n.failed;
	double part = -1,
	       rate = (double)ended / (mq_clock_s(CLOCK_MONOTONIC) - b->began);

	(void)loop;
	(void)events;
	/* Not over the prompt of a shell that runs us in the background. */
	if (front != -1 && front != getpgrp())
		return;
	if (b->total > 0) {
		part = ended < b->total ? (double)ended / (double)b->total : 1;
		add_piece(text, "%.0f%% ", part * 100);
	}
	add_piece(text, "%lld done", n.done);
	add_piece(text, ", %lld rejected", n.failed);
	if (rate >= 1)
		add_piece(text, ", %.*f/s", rate >= 10 ? 0 : 1, rate);
	else
		add_piece(text, ", %.1f/min", rate * 60);
	if (rate > 0 && ended < b->total) {
		/* Not "0s left" before the end. */
		progress_time(time, (double)(b->total - ended) / rate + 0.9);
		add_piece(text, ", %s left", time);
	}
	add_piece(text, " ");
	progress_line(line, text, part);
	target_show(&e->process.errors, line);
}

void
bar_init(struct engine *e)
{
	const struct options *opt = e->opt;

	e->bar =
	    (struct bar){.began = mq_clock_s(CLOCK_MONOTONIC), .total = -1};
	ev_timer_init(&e->bar.timer, on_time, FIRST_S, AGAIN_S);
	e->bar.timer.data = e;
	/* Messages that are printed on a terminal show the progress themselves. */
	if (opt->drain && !opt->quiet && progress_can_draw(STDERR_FILENO) &&
	    (opt->command != NULL || !isatty(STDOUT_FILENO)))
		ev_timer_start(e->loop, &e->bar.timer);
}
