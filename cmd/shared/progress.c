#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "base/clock.h"

#define FIRST_S 1.0
#define AGAIN_S 0.1
#define BAR_MIN 10 /* columns */

void
progress_start(struct progress *p, bool quiet)
{
	*p = (struct progress){.on = !quiet && isatty(STDERR_FILENO),
	    .start = mq_clock_s(CLOCK_MONOTONIC)};
}

bool
progress_can_draw(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0;
}

/* One column stays free: some terminals begin a new line after the last. */
int
progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return 79;
	return size.ws_col < PROGRESS_LINE ? size.ws_col - 1 :
					     PROGRESS_LINE - 1;
}

void
progress_line(char line[static PROGRESS_LINE], const char *text, double part)
{
	int room, full, n, width = progress_columns();

	n = snprintf(line, (size_t)width + 1, "%s", text);
	room = width - n - 2;
	if (part < 0 || room < BAR_MIN)
		return;
	full = (int)(part * room);
	line[n] = '[';
	memset(line + n + 1, '#', (size_t)full);
	memset(line + n + 1 + full, '.', (size_t)(room - full));
	line[width - 1] = ']';
	line[width] = '\0';
}

static void
draw_bar(const struct progress *p, long at, long count)
{
	char text[64], line[PROGRESS_LINE];
	double part = p->total > 0 ? (double)at / (double)p->total : -1;

	if (part > 1)
		part = 1;
	if (part >= 0)
		snprintf(
		    text, sizeof(text), "%3.0f%%  %ld ", part * 100, count);
	else
		snprintf(text, sizeof(text), "%ld ", count);
	progress_line(line, text, part);
	fprintf(stderr, "\r%s", line);
}

void
progress_expect(struct progress *p, long more)
{
	p->total += more;
}

void
progress_show(struct progress *p, long at, long count)
{
	double now;

	if (!p->on)
		return;
	now = mq_clock_s(CLOCK_MONOTONIC);
	if (now - p->start < FIRST_S || now - p->last < AGAIN_S)
		return;
	draw_bar(p, at, count);
	p->last = now;
	p->shown = true;
}

void
progress_end(struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r%*s\r", progress_columns(), "");
	p->shown = false;
}

void
progress_time(char out[static PROGRESS_TIME], double seconds)
{
	long s = (long)seconds;

	if (s < 60)
		snprintf(out, PROGRESS_TIME, "%lds", s);
	else if (s < 3600)
		snprintf(out, PROGRESS_TIME, "%ldm%02lds", s / 60, s % 60);
	else
		snprintf(
		    out, PROGRESS_TIME, "%ldh%02ldm", s / 3600, s / 60 % 60);
}
