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
#include "shared/progress.h"

struct watch {
	const struct watch_options *options;
	struct model *model;
	bool screen;
	double next; /* when to ask again, monotonic seconds */
};

/* A line that may be too long; it is text from elsewhere. */
static void
write_line(const char *text, const struct view *view, struct mq_buf *out)
{
	char *visible = text_visible(text, strlen(text));

	text_cut(out, visible, view->width > 0 ? view->width : 80);
	free(visible);
	mq_buf_add(out, "\n", 1);
}

static void
write_heading(
    const struct watch *w, const struct view *view, struct mq_buf *out)
{
	char text[640], now[64];
	time_t t = time(NULL);

	strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&t));
	snprintf(text, sizeof(text), "%s  every %gs  %s  (q: quit)", now,
	    (double)w->options->interval_ms / 1000, w->model->server);
	write_line(text, view, out);
	if (w->model->error[0] == '\0' && w->model->lost.n == 0) {
		mq_buf_add(out, "\n", 1);
		return;
	}
	snprintf(text, sizeof(text), "%s (trying again)",
	    w->model->error[0] != '\0' ? w->model->error :
					 w->model->lost.list->name);
	if (view->colour)
		mq_buf_addstr(out, "\033[31m");
	write_line(text, view, out);
	if (view->colour)
		mq_buf_addstr(out, "\033[0m");
}

/* Over what was there, line by line, so that nothing flickers. */
static void
write_frame(struct mq_buf *lines, int height)
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
		/* A newline after the last line would scroll the screen. */
		if (*end == '\0' || end[1] == '\0' || height == 0)
			break;
		mq_buf_addstr(&out, "\r\n");
	}
	mq_buf_addstr(&out, "\033[J");
	while (done < out.len) {
		n = write(STDOUT_FILENO, out.data + done, out.len - done);
		if (n == -1 && errno != EINTR) {
			screen_leave();
			mq_die(
			    MQ_EXIT_IO, "standard output: %s", strerror(errno));
		}
		done += n > 0 ? (size_t)n : 0;
	}
	mq_buf_free(&out);
}

static void
draw_screen(const struct watch *w)
{
	struct view view = text_view();
	struct winsize size = {0};
	struct mq_buf lines = {0};
	struct table table;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_row == 0)
		size.ws_row = 24;
	write_heading(w, &view, &lines);
	/* Two lines are the heading. */
	view.height = size.ws_row > 4 ? size.ws_row - 2 : 2;
	tables_fill(w->model, w->options->connections, view.height, &table);
	table_write(&table, &view, &lines);
	table_free(&table);
	write_frame(&lines, size.ws_row);
	mq_buf_free(&lines);
}

/* Where nothing can be drawn: one table after the other. */
static void
print_next_table(const struct watch *w, bool first)
{
	struct table table;

	if (w->model->error[0] != '\0') {
		mq_say("%s", w->model->error);
		return;
	}
	if (!first)
		putchar('\n');
	model_report_lost(w->model);
	tables_fill(w->model, w->options->connections, 0, &table);
	table_print(&table);
	if (fflush(stdout) == EOF) {
		mq_close_stdout();
		exit(MQ_EXIT_IO);
	}
}

/* Until it is time to ask again; false: the user wants no more. */
static bool
wait_for_next(const struct watch *w)
{
	double left;
	int key;

	while ((left = w->next - mq_clock_s(CLOCK_MONOTONIC)) > 0) {
		key = screen_wait((int64_t)(left * 1000) + 1);
		if (key == 'q' || key == 'Q')
			return false;
		if (key == 0)
			draw_screen(w);
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

static void
set_next(struct watch *w)
{
	w->next = mq_clock_s(CLOCK_MONOTONIC) +
	    (double)w->options->interval_ms / 1000;
}

void
watch(struct collector *c, const struct watch_options *o, struct model *m)
{
	struct watch w = {.options = o,
	    .model = m,
	    .screen = progress_can_draw(STDOUT_FILENO)};
	int wanted =
	    MQ_STATS_UNLISTED | (o->connections ? MQ_STATS_CONNECTIONS : 0);
	bool first = true;

	set_next(&w);
	collect_stats(c, wanted, m);
	if (w.screen)
		screen_enter();
	for (;; first = false) {
		if (!w.screen) {
			print_next_table(&w, first);
			sleep_until(w.next);
		} else {
			draw_screen(&w);
			if (!wait_for_next(&w))
				break;
		}
		set_next(&w);
		(void)collect_again(c, wanted, m);
	}
	screen_leave();
}
