/*
 * mq-stats --watch: the table again and again.
 */
#include "stats.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

struct watch {
	struct stats_source *source;
	struct mq_stats stats; /* the last that there were */
	bool failed;	       /* there are none since */
	bool screen;
	double next; /* when to ask again, monotonic seconds */
};

/* --- asking -------------------------------------------------------------------- */

static const struct mq_queue_stats *
find(const struct mq_stats *stats, const char *name, int hint)
{
	int i;

	if (hint < stats->count && strcmp(stats->queues[hint].name, name) == 0)
		return &stats->queues[hint];
	for (i = 0; i < stats->count; i++)
		if (strcmp(stats->queues[i].name, name) == 0)
			return &stats->queues[i];
	return NULL;
}

static double
rate(long long from, long long to, double seconds)
{
	return to < from ? -1 : (double)(to - from) / seconds;
}

/* Rates of just this interval. */
static void
set_rates(const struct mq_stats *old, struct mq_stats *new)
{
	double seconds = (double)(new->now_ms - old->now_ms) / 1000;
	const struct mq_queue_stats *o;
	struct mq_queue_stats *q;
	int i;

	for (i = 0; i < new->count &&seconds > 0; i++) {
		q = &new->queues[i];
		if (!q->counted)
			continue;
		o = find(old, q->name, i);
		if (o == NULL || !o->counted)
			continue;
		if (q->counts.published > 0)
			q->in_s = rate(
			    o->counts.published, q->counts.published, seconds);
		q->out_s = rate(o->counts.done + o->counts.failed,
		    q->counts.done + q->counts.failed, seconds);
	}
}

static int
ask(struct watch *w)
{
	const struct stats_options *o = w->source->options;
	struct mq_stats stats;

	w->next = mq_clock_s(CLOCK_MONOTONIC) + (double)o->watch_ms / 1000;
	w->failed =
	    stats_fetch(w->source, o->connections ? MQ_STATS_CONNECTIONS : 0,
		&stats) == -1;
	if (w->failed)
		return -1;
	set_rates(&w->stats, &stats);
	mq_stats_free(&w->stats);
	w->stats = stats;
	return 0;
}

/* --- drawing -------------------------------------------------------------------- */

static void
write_table(
    const struct watch *w, const struct stats_view *view, struct mq_buf *out)
{
	struct stats_table table;

	if (w->source->options->connections)
		stats_connections_table(&w->stats, &table);
	else
		stats_queues_table(&w->stats, &table);
	stats_table_write(&table, view, out);
	stats_table_free(&table);
}

/* A line that may be too long; it is text from elsewhere. */
static void
write_line(const char *text, const struct stats_view *view, struct mq_buf *out)
{
	char *visible = mq_visible(text, strlen(text));

	if (visible == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	stats_cut(out, visible, view->width > 0 ? view->width : 80);
	free(visible);
	mq_buf_add(out, "\n", 1);
}

static void
write_heading(
    const struct watch *w, const struct stats_view *view, struct mq_buf *out)
{
	char text[640], now[64];
	time_t t = time(NULL);

	strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&t));
	snprintf(text, sizeof(text), "%s  every %gs  %s  (q: quit)", now,
	    (double)w->source->options->watch_ms / 1000,
	    w->source->server.name);
	write_line(text, view, out);
	if (!w->failed) {
		mq_buf_add(out, "\n", 1);
		return;
	}
	snprintf(
	    text, sizeof(text), "%s (trying again)", w->source->redis.error);
	if (view->colour)
		mq_buf_addstr(out, "\033[31m");
	write_line(text, view, out);
	if (view->colour)
		mq_buf_addstr(out, "\033[0m");
}

/* Over what was there, line by line, so that nothing flickers. */
static void
put_frame(struct mq_buf *lines, int height)
{
	struct mq_buf out = {0};
	const char *p = mq_buf_str(lines), *end;
	size_t done = 0;
	ssize_t n;

	mq_buf_addstr(&out, "\033[H");
	for (; *p != '\0' && height-- > 0; p = end + 1) {
		end = strchrnul(p, '\n');
		mq_buf_add(&out, p, (size_t)(end - p));
		mq_buf_addstr(&out, "\033[K");
		/* None behind the last one: the screen would scroll. */
		if (*end == '\0' || end[1] == '\0' || height == 0)
			break;
		mq_buf_addstr(&out, "\r\n");
	}
	mq_buf_addstr(&out, "\033[J");
	while (done < out.len) {
		n = write(STDOUT_FILENO, out.data + done, out.len - done);
		if (n == -1 && errno != EINTR) {
			stats_screen_leave();
			mq_die(
			    MQ_EXIT_IO, "standard output: %s", strerror(errno));
		}
		done += n > 0 ? (size_t)n : 0;
	}
	mq_buf_free(&out);
}

static void
draw(const struct watch *w)
{
	struct stats_view view = stats_view_stdout();
	struct winsize size = {0};
	struct mq_buf lines = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_row == 0)
		size.ws_row = 24;
	write_heading(w, &view, &lines);
	/* Two lines are the heading. */
	view.height = size.ws_row > 4 ? size.ws_row - 2 : 2;
	write_table(w, &view, &lines);
	put_frame(&lines, size.ws_row);
	mq_buf_free(&lines);
}

/* Where nothing can be drawn: one table after the other. */
static void
print(const struct watch *w, bool first)
{
	struct stats_view view = stats_view_stdout();
	struct mq_buf out = {0};

	if (w->failed) {
		mq_say("%s", w->source->redis.error);
		return;
	}
	if (!first)
		mq_buf_add(&out, "\n", 1);
	write_table(w, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	mq_buf_free(&out);
	if (fflush(stdout) == EOF) {
		mq_close_stdout();
		exit(MQ_EXIT_IO);
	}
}

/* --- waiting -------------------------------------------------------------------- */

/* Until it is time to ask again; false: the user wants no more. */
static bool
wait_for_next(const struct watch *w)
{
	double left;
	int key;

	while ((left = w->next - mq_clock_s(CLOCK_MONOTONIC)) > 0) {
		key = stats_screen_wait((int64_t)(left * 1000) + 1);
		if (key == 'q' || key == 'Q')
			return false;
		if (key == 0)
			draw(w);
	}
	return true;
}

static void
sleep_until(double next)
{
	double left = next - mq_clock_s(CLOCK_MONOTONIC);
	struct timespec time;

	if (left <= 0)
		return;
	time.tv_sec = (time_t)left;
	time.tv_nsec = (long)((left - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL);
}

static bool
can_draw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0;
}

void
stats_watch(struct stats_source *source)
{
	struct watch w = {.source = source, .screen = can_draw()};
	bool first = true;

	if (ask(&w) == -1)
		mq_die(source->redis.status, "%s", source->redis.error);
	if (w.screen)
		stats_screen_enter();
	for (;; ask(&w), first = false) {
		if (!w.screen) {
			print(&w, first);
			sleep_until(w.next);
			continue;
		}
		draw(&w);
		if (!wait_for_next(&w))
			break;
	}
	stats_screen_leave();
	mq_stats_free(&w.stats);
}
