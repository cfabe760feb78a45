/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-stats --id ID --output: the kept output of a message, and what follows. */
#include "stats.h"

#define WAIT_MS	  2000 /* for the next entry, until the consumer is looked for */
#define SHOWN_MAX ((size_t)4096) /* bytes of output on a page of HTML */
/* Waits without an entry, after which a run is looked for whose end may be missing. */
#define WAITS_MAX 15

struct follower {
	struct collector *collector;
	const struct stats_options *options;
	const char *id, *queue;
	struct mq_output output;
	bool terminal;
	bool ended;	      /* the last part says how a run has ended */
	char run[64];	      /* attempt, pid and start of the last run */
	char connection[128]; /* consumer of the last run */
};

static void
say_gap(const struct follower *f, const char *bytes, size_t n)
{
	fflush(stdout);
	if (!f->options->shared.quiet)
		mq_say(
		    "%s: %.*s bytes are left out here", f->id, (int)n, bytes);
}

/* The run of an entry: "ATTEMPT PID STARTED_MS OFFSET CONNECTION HOST".  If the first entries of a run
 * are dropped, its offset is the number of their bytes. */
static void
print_run(struct follower *f, const struct mq_output_part *p)
{
	char *text = mq_xstrndup(p->bytes, p->n), *rest = text;
	const char *attempt = strsep(&rest, " "), *pid = strsep(&rest, " ");
	const char *started = strsep(&rest, " "), *offset = strsep(&rest, " ");
	const char *connection = strsep(&rest, " ");
	char run[sizeof(f->run)];

	if (rest == NULL) {
		free(text);
		return;
	}
	strlcpy(f->connection, connection, sizeof(f->connection));
	snprintf(run, sizeof(run), "%s %s %s", attempt, pid, started);
	if (strcmp(run, f->run) != 0) {
		if (f->terminal && !f->options->shared.quiet)
			mq_say("%s: attempt %s, pid %s on %s", f->id, attempt,
			    pid, rest);
		if (strcmp(offset, "0") != 0)
			say_gap(f, offset, strlen(offset));
		strlcpy(f->run, run, sizeof(f->run));
	}
	free(text);
}

static void
print_part(struct follower *f, const struct mq_output_part *p)
{
	bool quiet = f->options->shared.quiet;
	struct mq_buf text = {0};

	f->ended = strcmp(p->name, "end") == 0;
	if (strcmp(p->name, "run") == 0) {
		print_run(f, p);
	} else if (strcmp(p->name, "gap") == 0) {
		say_gap(f, p->bytes, p->n);
	} else if (f->ended) {
		fflush(stdout);
		if (f->terminal && !quiet)
			mq_say("%s: %.*s", f->id, (int)p->n, p->bytes);
	} else {
		if (f->terminal)
			mq_buf_visible(&text, p->bytes, p->n);
		else
			mq_buf_add(&text, p->bytes, p->n);
		fwrite(text.data, 1, text.len, stdout);
		mq_buf_free(&text);
	}
}

/* Whether the run goes on, although this many waits brought nothing. */
static bool
goes_on(struct follower *f, int waits)
{
	struct collector *c = f->collector;
	struct mq_runs runs = {0};
	bool alive = true, listed = true;
	int i;

	mq_option_must(&c->redis,
	    mq_output_alive(
		&c->redis, c->layout, f->queue, f->connection, &alive));
	if (!alive)
		mq_say("%s: its consumer is gone", f->id);
	if (alive && waits % WAITS_MAX == 0) {
		mq_option_must(&c->redis, c->layout->running(&c->redis, &runs));
		listed = false;
		for (i = 0; i < runs.count; i++)
			listed |= strcmp(runs.runs[i].id, f->id) == 0;
		mq_runs_free(&runs);
	}
	if (!listed)
		mq_say("%s: does not run any more", f->id);
	return alive && listed;
}

/* Prints all entries; with --follow, until the run is over.  Returns whether its end is known, or not
 * awaited. */
static bool
print_entries(struct follower *f)
{
	struct collector *c = f->collector;
	bool waits = false;
	int idle = 0, i;

	for (;;) {
		mq_option_must(&c->redis,
		    mq_output_read(&c->redis, c->layout, f->queue, f->id,
			waits ? WAIT_MS : 0, &f->output));
		for (i = 0; i < f->output.count; i++)
			print_part(f, &f->output.parts[i]);
		fflush(stdout);
		if (f->output.count > 0) {
			idle = 0;
			waits = false;
			continue;
		}
		if (!f->options->follow || f->ended)
			return true;
		if (waits && !goes_on(f, ++idle))
			return false;
		waits = true;
	}
}

bool
output_print(
    struct collector *c, const struct stats_options *o, struct model *m)
{
	struct follower f = {.collector = c,
	    .options = o,
	    .id = o->list.filter.id,
	    .terminal = isatty(STDOUT_FILENO)};
	bool good;

	collect_stats(c, 0, m);
	collect_elsewhere(c, m);
	mq_option_must(&c->redis,
	    mq_output_find(&c->redis, c->layout, &m->stats, f.id, &f.queue));
	if (f.queue == NULL) {
		if (model_report_missing(m) && !o->shared.quiet)
			mq_say("%s: no output is kept (mq-consume "
			       "--output-keep)",
			    f.id);
		return false;
	}
	good = print_entries(&f);
	mq_output_free(&f.output);
	return good;
}

json_t *
output_member(struct collector *c, const struct model *m, const char *id)
{
	struct mq_buf all = {0}, text = {0};
	struct mq_output o = {0};
	const char *queue;
	json_t *v = NULL;
	size_t from;
	int i;

	mq_option_must(&c->redis,
	    mq_output_find(&c->redis, c->layout, &m->stats, id, &queue));
	if (queue == NULL)
		return NULL;
	mq_option_must(
	    &c->redis, mq_output_last(&c->redis, c->layout, queue, id, &o));
	for (i = 0; i < o.count; i++)
		if (strcmp(o.parts[i].name, "1") == 0 ||
		    strcmp(o.parts[i].name, "2") == 0)
			mq_buf_add(&all, o.parts[i].bytes, o.parts[i].n);
		else if (strcmp(o.parts[i].name, "gap") == 0)
			mq_buf_printf(&all, "\n[%.*s bytes are left out]\n",
			    (int)o.parts[i].n, o.parts[i].bytes);
	from = all.len > SHOWN_MAX ? all.len - SHOWN_MAX : 0;
	while (from > 0 && from < all.len &&
	    ((unsigned char)all.data[from] & 0xc0) == 0x80)
		from++;
	if (all.len > 0)
		mq_buf_visible(&text, all.data + from, all.len - from);
	v = mq_json_text(mq_buf_str(&text));
	mq_output_free(&o);
	mq_buf_free(&all);
	mq_buf_free(&text);
	return v;
}
