/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

#include <ctype.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>

/* --- screen -------------------------------------------------------------- */

#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

/* Signal handlers restore the terminal themselves, as the program may be waiting for
 * a silent server. */
static volatile sig_atomic_t on, taken, redraw;
static struct termios before;
static bool keys; /* stdin is the terminal, and before is set */

/* Signal handlers call this function and the next one, too. */
static void
take_terminal(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	if (!taken)
		(void)output_all(ENTER, sizeof(ENTER) - 1);
	taken = 1;
}

static void
give_terminal_back(void)
{
	(void)output_all(LEAVE, sizeof(LEAVE) - 1);
	taken = 0;
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void
set_handler(int signo, void (*handler)(int))
{
	struct sigaction action = {
	    .sa_handler = handler, .sa_flags = SA_RESTART};

	sigfillset(&action.sa_mask);
	sigaction(signo, &action, NULL);
}

static void
on_end(int signo)
{
	give_terminal_back();
	mq_end_by(signo);
}

static void
on_stop(int signo)
{
	int saved = errno;
	sigset_t set;

	give_terminal_back();
	set_handler(signo, SIG_DFL);
	raise(signo);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* The program continues here; at once, if no shell had to wake it. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	set_handler(signo, on_stop);
	take_terminal();
	redraw = 1;
	errno = saved;
}

static void
on_redraw(int signo)
{
	int saved = errno;

	if (signo == SIGCONT && on)
		take_terminal();
	redraw = 1;
	errno = saved;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void
screen_leave(void)
{
	if (!on)
		return;
	on = 0;
	give_terminal_back();
}

/*
 * Takes the terminal: its alternate screen, keys without echo.  Whenever the program
 * ends or is stopped, the terminal is restored.
 */
static void
screen_enter(void)
{
	struct sigaction old;
	size_t i;

	keys = tcgetattr(STDIN_FILENO, &before) == 0;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		/* A signal that nohup(1) or the like ignores stays ignored. */
		if (sigaction(ends[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			set_handler(ends[i], on_end);
	set_handler(SIGTSTP, on_stop);
	set_handler(SIGCONT, on_redraw);
	set_handler(SIGWINCH, on_redraw);
	atexit(screen_leave);
	on = 1;
	take_terminal();
}

#define ESCAPE	  033
#define ESCAPE_MS 50 /* ms to wait for the rest of an arrow key */

/* Waits for a key, which is returned (arrows as the keys of vi(1)), for a signal
 * that requires a redraw (0), or until the time is over (-1). */
static int
screen_wait(int64_t ms)
{
	struct pollfd input = {
	    .fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
	const struct timespec time = {
	    .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	unsigned char key, rest[2];
	sigset_t set, old;
	int n = 0;

	/* SIGWINCH and SIGCONT must not arrive between the test of redraw and
	 * ppoll(). */
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (!redraw)
		n = ppoll(&input, 1, &time, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (redraw) {
		redraw = 0;
		return 0;
	}
	if (n <= 0)
		return -1;
	if (read(STDIN_FILENO, &key, 1) != 1) {
		keys = false;
		return 0;
	}
	if (key != ESCAPE || poll(&input, 1, ESCAPE_MS) != 1)
		return key;
	if (read(STDIN_FILENO, rest, sizeof(rest)) != sizeof(rest))
		return 0;
	return rest[1] == 'A' ? 'k' : rest[1] == 'B' ? 'j' : 0;
}

/* --- watch --------------------------------------------------------------- */

/* The past is read with the first table, and then with every Nth. */
#define PAST_TABLES 10

struct watch {
	struct collector *collector;
	const struct stats_options *options;
	struct model *model;
	bool screen;
	bool runs;   /* --running: the table is that of runs */
	bool help;   /* the list of keys is shown */
	bool pause;  /* the command that pauses the marked queue is shown */
	bool opened; /* one queue is shown, as it was when opened */
	struct model one;
	char *marked; /* name of the marked queue, own; NULL: the first queue */
	double next;  /* time of the next look, monotonic seconds */
};

/* Writes a line of untrusted text, cut to the width of the terminal. */
static void
write_line(const char *text, const struct view *view, struct mq_buf *out)
{
	char *visible = mq_visible(text, strlen(text));

	text_cut(out, visible, view->width > 0 ? view->width : 80);
	free(visible);
	mq_buf_add(out, "\n", 1);
}

/* Returns the queue that many rows below the marked one; NULL: no queue. */
static const struct mq_queue_stats *
marked_queue(const struct watch *w, int steps)
{
	int n, i;
	const struct mq_queue_stats **rows, *q = NULL;

	if (w->options->connections || w->runs)
		return NULL;
	rows = order_rows(w->model, &n, &i);
	i += steps;
	if (n > 0)
		q = rows[i < 0 ? 0 : i < n ? i : n - 1];
	free(rows);
	return q;
}

/* Writes the command that pauses or resumes a queue, quoted for any shell and safe
 * for a terminal. */
static void
write_pause(
    const struct mq_queue_stats *q, const struct view *view, struct mq_buf *out)
{
	char *visible = mq_visible(q->name, strlen(q->name));
	struct mq_buf line = {0};
	const char *p = q->name;

	mq_buf_addstr(
	    &line, q->paused_ms != 0 ? "mq-pause --resume" : "mq-pause");
	if (*p == '-')
		mq_buf_addstr(&line, " --");
	if (strcmp(visible, p) == 0) {
		mq_buf_add_word(&line, p);
	} else {
		for (mq_buf_addstr(&line, " \"$(printf '"); *p != '\0'; p++)
			mq_buf_printf(&line,
			    isalnum((unsigned char)*p) ? "%c" : "\\%03o",
			    (unsigned char)*p);
		mq_buf_addstr(&line, "')\"");
	}
	text_cut(out, mq_buf_str(&line), view->width > 0 ? view->width : 80);
	mq_buf_add(out, "\n", 1);
	mq_buf_free(&line);
	free(visible);
}

static void
write_heading(
    const struct watch *w, const struct view *view, struct mq_buf *out)
{
	const struct model *m = w->model;
	const struct field *key = m->order.key;
	bool bad = m->error[0] != '\0' || m->lacks.n > 0;
	const struct mq_queue_stats *q = NULL;
	const char *why;
	char text[640], now[64];
	time_t t = time(NULL);

	strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&t));
	snprintf(text, sizeof(text), "%s  every %gs  %s  (?: keys)", now,
	    (double)w->options->interval_ms / 1000, m->server);
	write_line(text, view, out);
	if (!bad && w->pause)
		q = marked_queue(w, 0);
	if (q != NULL &&
	    (why = w->collector->layout->queue_error(q->name)) != NULL) {
		write_line(why, view, out);
	} else if (q != NULL) {
		write_pause(q, view, out);
	} else if (!bad) {
		snprintf(text, sizeof(text), "%s%s%s", key != NULL ? "by " : "",
		    key != NULL ? key->key : "",
		    m->order.reverse ? ", reversed" : "");
		write_line(w->opened ? "Enter, q: back  p: pause" :
			w->help	     ? "q: quit  < >: sort  R: reverse  "
				       "j k: choose  Enter: open  p: pause  "
				       "+: grows" :
				       text,
		    view, out);
	} else {
		snprintf(text, sizeof(text), "%s (trying again)",
		    m->error[0] != '\0' ? m->error : m->lacks.list->name);
		mq_buf_addstr(out, view->colour ? "\033[31m" : "");
		write_line(text, view, out);
		mq_buf_addstr(out, view->colour ? "\033[0m" : "");
	}
}

/* Overwrites the screen line by line, without clearing it first: nothing flickers. */
static void
write_frame(struct mq_buf *lines, int height)
{
	struct mq_buf out = {0};
	const char *p = mq_buf_str(lines), *end;

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
	if (!output_all(out.data, out.len)) {
		screen_leave();
		mq_die(MQ_EXIT_IO, "standard output: %s", strerror(errno));
	}
	mq_buf_free(&out);
}

static void
write_table(struct table *t, const struct view *view, struct mq_buf *lines)
{
	if (table_rows(t) > 0) {
		mq_buf_add(lines, "\n", 1);
		table_write(t, view, lines);
	}
	table_free(t);
}

/* Fills the table that is shown again and again. */
static void
fill_table(const struct watch *w, int height, struct table *t)
{
	if (w->runs)
		running_fill(w->model, mq_clock_unix_us() / 1000, t);
	else
		tables_fill(w->model, w->options->connections, height, t);
}

static void
draw_screen(const struct watch *w)
{
	struct view view = text_view();
	int height = view.height > 0 ? view.height : 24;
	struct mq_buf lines = {0};
	struct table table;

	write_heading(w, &view, &lines);
	if (w->opened) {
		view.height = 0;
		tables_fill(&w->one, false, 0, &table);
		write_table(&table, &view, &lines);
		reasons_fill(&w->one, &table);
		write_table(&table, &view, &lines);
		rejected_fill(&w->one, &table);
		write_table(&table, &view, &lines);
	} else {
		/* The heading takes two lines. */
		view.height = MAX(height - 2, 2);
		fill_table(w, view.height, &table);
		table_write(&table, &view, &lines);
		table_free(&table);
	}
	write_frame(&lines, height);
	mq_buf_free(&lines);
}

/* Without a screen, prints one table after the other. */
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
	model_report_lacks(w->model);
	fill_table(w, 0, &table);
	table_print(&table);
	if (fflush(stdout) == EOF) {
		mq_close_stdout();
		exit(MQ_EXIT_IO);
	}
}

/* Returns the next sortable column (step -1: the previous one).  NULL, no column, is
 * behind the last and before the first. */
static const struct field *
next_key(const struct field *key, int step)
{
	int n = 0, i;

	while (queue_fields[n].kind != KIND_END)
		n++;
	i = key != NULL ? (int)(key - queue_fields) : n;
	do
		i = (i + step + n + 1) % (n + 1);
	while (i < n && queue_fields[i].key == NULL);
	return i < n ? &queue_fields[i] : NULL;
}

static void
mark_queue(struct watch *w, int steps)
{
	const struct mq_queue_stats *q = marked_queue(w, steps);

	if (q == NULL)
		return;
	free(w->marked);
	w->model->order.marked = w->marked = mq_xstrdup(q->name);
}

/* Opens the marked queue, or closes the open one. */
static void
open_queue(struct watch *w)
{
	mark_queue(w, 0);
	model_free(&w->one);
	w->one = (struct model){0};
	w->opened = !w->opened && w->marked != NULL &&
	    rejected_one(w->collector, w->marked, &w->one) == 0;
	if (w->one.error[0] != '\0')
		strlcpy(w->model->error, w->one.error, sizeof(w->model->error));
}

/* Obeys keys, as of top(1), until the time of the next look; returns false if the
 * user quits. */
static bool
wait_for_next(struct watch *w)
{
	struct order *order = &w->model->order;
	double left;
	int key;

	while ((left = w->next - mq_clock_s(CLOCK_MONOTONIC)) > 0) {
		key = screen_wait((int64_t)(left * 1000) + 1);
		if ((key == 'q' || key == 'Q') && !w->opened)
			return false;
		if (key == 'p')
			w->pause = !w->pause;
		else if (key > 0 &&
		    strchr(w->opened ? "\n\rqQ\033" : "\n\r", key) != NULL)
			open_queue(w);
		else if (w->opened)
			; /* other keys belong to the table */
		else if (key == 'j' || key == 'k')
			mark_queue(w, key == 'j' ? 1 : -1);
		else if (key == '?')
			w->help = !w->help;
		else if (key == 'R')
			order->reverse = !order->reverse;
		else if (key == '<' || key == '>')
			order->key = next_key(order->key, key == '>' ? 1 : -1);
		if (key >= 0)
			draw_screen(w);
	}
	return true;
}

void
watch(struct collector *c, const struct stats_options *o, struct model *m)
{
	struct watch w = {.collector = c,
	    .options = o,
	    .model = m,
	    .runs = o->subject == SUBJECT_RUNNING,
	    .screen = progress_can_draw(STDOUT_FILENO)};
	int wanted =
	    MQ_STATS_UNLISTED | (o->connections ? MQ_STATS_CONNECTIONS : 0);
	int tables;

	for (tables = 0; tables == 0 || wait_for_next(&w); tables++) {
		w.next =
		    mq_clock_s(CLOCK_MONOTONIC) + (double)o->interval_ms / 1000;
		c->past = w.screen && tables % PAST_TABLES == 0 ? INT_MAX : 0;
		/* A lost node may be back: connect anew. */
		if (m->lost > 0)
			mq_redis_close(&c->redis);
		if (tables > 0)
			(void)collect_try(c, wanted, m);
		else
			collect_stats(c, wanted, m);
		if (w.runs && m->error[0] == '\0')
			(void)collect_runs_try(c, m);
		if (w.screen && tables == 0) {
			m->order.marked = "";
			screen_enter();
		}
		if (w.screen)
			draw_screen(&w);
		else
			print_next_table(&w, tables == 0);
	}
	screen_leave();
	model_free(&w.one);
	m->order.marked = NULL;
	free(w.marked);
}
