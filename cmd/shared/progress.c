#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "base/clock.h"

#define FIRST_S 1.0
#define AGAIN_S 0.1

void
progress_start(struct progress *p, bool quiet)
{
	*p = (struct progress){.on = !quiet && isatty(STDERR_FILENO),
	    .start = mq_clock_s(CLOCK_MONOTONIC)};
}

static int
terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

/* One column stays free: some terminals begin a new line after the last. */
static void
draw_bar(const struct progress *p, long at, long count)
{
	char text[64], bar[200];
	int room, full, n, width = terminal_columns() - 1;
	double part = p->total > 0 ? (double)at / (double)p->total : 0;

	if (part > 1)
		part = 1;
	n = p->total > 0 ?
	    snprintf(text, sizeof(text), "%3.0f%%  %ld ", part * 100, count) :
	    snprintf(text, sizeof(text), "%ld ", count);
	room = width - n - 2;
	if (p->total == 0 || room < 10) {
		fprintf(stderr, "\r%.*s", width, text);
		return;
	}
	if (room > (int)sizeof(bar))
		room = (int)sizeof(bar);
	full = (int)(part * room);
	memset(bar, '#', (size_t)full);
	memset(bar + full, '.', (size_t)(room - full));
	fprintf(stderr, "\r%s[%.*s]", text, room, bar);
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
		fprintf(stderr, "\r%*s\r", terminal_columns() - 1, "");
	p->shown = false;
}
