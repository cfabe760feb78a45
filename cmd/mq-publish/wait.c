/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publish.h"

#define BLOCK_MS 5000 /* longest wait of a command on the server */
#define LOOK_MS	 1000 /* instead, while progress is shown */
#define TEXT_MAX 40   /* bytes of a run's text beside its bar */
#define PAUSE_MS 1000 /* after a question that the server cannot answer now */
/* Between two looks at all messages: their results must not expire during the wait for
 * one of them. */
#define SWEEP_MS (MQ_RESULT_KEEP_MS / 6)

struct awaited {
	char id[MQ_ID_LEN + 1];
	char *queue; /* where the message is; free() */
	bool ended;
	struct mq_ending ending;
};

struct waiting {
	struct transport *transport;
	const struct options *opt;
	struct awaited *all;
	size_t count, next; /* messages before next are reported */
	int64_t until_ms;   /* steady time; -1: no limit */
	int64_t sweep_ms;   /* next look at all messages, steady time */
	bool reported_lost;
	const char *batches; /* names, while progress is shown; else NULL */
	bool notes;	     /* progress of runs is shown, if it can be read */
	bool reads;	     /* the connection `reader` is open */
	struct mq_redis reader;
};

/* The time left, at most `most`; 0: it is over. */
static int64_t
left_ms(const struct waiting *w, int64_t most)
{
	int64_t left =
	    w->until_ms == -1 ? most : w->until_ms - mq_clock_steady_ms();

	return left < 0 ? 0 : MIN(left, most);
}

/* Connects again; false: the time is over. */
static bool
reconnect(struct waiting *w)
{
	int64_t pause = 0;

	outcome_progress(w->transport, NULL, -1);
	if (!w->reported_lost && !w->opt->shared.quiet)
		mq_say("%s; reconnecting", w->transport->redis.error);
	w->reported_lost = true;
	return transport_reconnect(w->transport, w->until_ms, &pause);
}

/* Asks for a message's result, for which the server waits up to block_ms.  False: the server
 * cannot say now, or cannot wait. */
static bool
ask_ending(struct waiting *w, struct awaited *a, int64_t block_ms)
{
	struct mq_redis *r = &w->transport->redis;
	const char *to;

	if (mq_redis_lost(r) && !reconnect(w))
		return true;
	switch (mq_ending_ask(r, w->opt->shared.layout, a->queue, a->id,
	    block_ms, &a->ended, &a->ending)) {
	case MQ_CALL_LOST:
		(void)reconnect(w);
		return true;
	case MQ_CALL_AGAIN:
		return false;
	case MQ_CALL_REFUSED:
		mq_die(r->status, "%s", r->error);
	case MQ_CALL_NONSENSE:
		mq_die(MQ_EXIT_DATA, "%s: %s: invalid result", a->queue, a->id);
	case MQ_CALL_DONE:
		break;
	}
	to = a->ended && a->ending.state == MQ_END_PUSHED ? a->ending.to : NULL;
	/* The message goes on in another queue, if a queue can have that name. */
	if (to != NULL && w->opt->shared.layout->queue_error(to) == NULL) {
		a->ended = false;
		free(a->queue);
		a->queue = mq_xstrdup(to);
		mq_ending_free(&a->ending);
	}
	return true;
}

/* Draws how many messages of the batches have ended.  False: none of them is open. */
static bool
show_batches(struct waiting *w)
{
	struct mq_redis *r = &w->transport->redis;
	long long counts[MQ_BATCH_COUNTS], total, open, failed;
	char text[80], more[40] = "";
	bool known;

	if (w->batches == NULL || mq_redis_lost(r) ||
	    mq_queue_batch(r, w->opt->shared.layout, w->opt->queue, w->batches,
		&known, counts) == -1)
		return false;
	total = MAX(1, counts[MQ_BATCH_TOTAL]);
	open = MIN(total, counts[MQ_BATCH_OPEN]);
	failed = counts[MQ_BATCH_REJECTED] + counts[MQ_BATCH_EXPIRED];
	if (failed > 0)
		snprintf(more, sizeof(more), ", %lld rejected", failed);
	snprintf(
	    text, sizeof(text), "%lld of %lld%s ", total - open, total, more);
	outcome_progress(w->transport, open > 0 ? text : NULL,
	    (double)(total - open) / (double)total);
	return open > 0;
}

/* Reads what runs, on a connection of its own: on a cluster, a reader of all nodes does without
 * lost ones, but the wait for an end must not.  -1: nothing can be read now; without the right
 * to read, no more is tried. */
static int
read_runs(struct waiting *w, struct mq_runs *runs)
{
	struct mq_redis *r = &w->reader;

	if (!w->reads)
		w->notes = w->reads =
		    mq_redis_open(r, w->transport->redis.server) == 0;
	if (!w->reads)
		return -1;
	mq_redis_wait_with(r, transport_wait, w->transport);
	if (w->opt->shared.layout->running(r, runs) == 0)
		return 0;
	w->notes = mq_redis_lost(r);
	w->reads = false;
	mq_redis_close(r);
	return -1;
}

/* Draws the last text of the message's run, and a bar, if the text begins with a percentage. */
static void
show_run(struct waiting *w, const struct awaited *a)
{
	struct mq_runs runs = {0};
	const struct mq_run *run;
	char *text = NULL, *line;
	double part = -1;
	size_t n;
	int i;

	if (!w->notes || mq_redis_lost(&w->transport->redis) ||
	    read_runs(w, &runs) == -1)
		return;
	for (i = 0; i < runs.count; i++) {
		run = &runs.runs[i];
		if (run->percent < 0 || strcmp(run->id, a->id) != 0 ||
		    text != NULL)
			continue;
		text = mq_visible(run->text, strlen(run->text));
		part = run->percent / 100.0;
	}
	n = text != NULL ? strnlen(text, TEXT_MAX) : 0;
	while (n > 0 && mq_utf8_inside(text[n]))
		n--;
	line = mq_xasprintf("%.*s ", (int)n, text != NULL ? text : "");
	outcome_progress(w->transport, text != NULL ? line : NULL, part);
	free(line);
	free(text);
	mq_runs_free(&runs);
}

static void
await_ending(struct waiting *w, struct awaited *a)
{
	bool waited = false; /* a shorter run has no text yet */
	int64_t block = 1, rest;
	size_t i;

	for (; !a->ended && block > 0; waited = true) {
		if (!show_batches(w) && waited)
			show_run(w, a);
		block = left_ms(
		    w, w->batches != NULL || w->notes ? LOOK_MS : BLOCK_MS);
		if (!ask_ending(w, a, block) && block > 0) {
			rest = left_ms(w, PAUSE_MS);
			if (rest > 0)
				(void)transport_wait(w->transport, -1, rest);
			(void)ask_ending(w, a, 0);
		}
		if (block == 0 || mq_clock_steady_ms() < w->sweep_ms)
			continue;
		for (i = w->next; i < w->count; i++)
			if (!w->all[i].ended)
				(void)ask_ending(w, &w->all[i], 0);
		w->sweep_ms = mq_clock_steady_ms() + SWEEP_MS;
	}
	outcome_progress(w->transport, NULL, -1);
}

static void
print_result(const struct waiting *w, const struct awaited *a)
{
	const struct mq_ending *e = &a->ending;
	struct mq_buf shown = {0};

	if (isatty(STDOUT_FILENO))
		mq_buf_visible(&shown, e->result, e->result_len);
	else
		mq_buf_add(&shown, e->result, e->result_len);
	(void)fwrite(mq_buf_str(&shown), 1, shown.len, stdout);
	fflush(stdout);
	mq_buf_free(&shown);
	if (e->result_cut && !w->opt->shared.quiet)
		mq_say("%s: %s: the result is cut after %zu bytes", a->queue,
		    a->id, e->result_len);
}

/* Prints the line of an end, with the id of -i, and the last text, for which a result stands. */
static void
print_ending(const struct waiting *w, const struct awaited *a)
{
	const char *text = a->ending.text;
	bool ids = w->opt->ids;
	char *shown = NULL;

	if (text != NULL && isatty(STDOUT_FILENO))
		shown = mq_visible(text, strlen(text));
	if (ids)
		printf("%s %s%s", a->id, mq_end_name(a->ending.state),
		    text != NULL ? " " : "");
	if (text != NULL && (ids || a->ending.result == NULL))
		fputs(shown != NULL ? shown : text, stdout);
	if (ids || (text != NULL && a->ending.result == NULL))
		putchar('\n');
	free(shown);
	if (a->ending.result != NULL)
		print_result(w, a);
}

static int
report_ending(const struct waiting *w, const struct awaited *a)
{
	const char *text = a->ending.text;

	if (w->opt->framing == MQ_FRAME_JSONL)
		output_json_line(json_incref(a->ending.json));
	else
		print_ending(w, a);
	fflush(stdout);
	if (a->ending.state == MQ_END_DONE)
		return MQ_EXIT_OK;
	if (!w->opt->shared.quiet)
		mq_say("%s: %s: %s%s%s", a->queue, a->id,
		    mq_end_name(a->ending.state), text != NULL ? ": " : "",
		    text != NULL ? text : "");
	return MQ_EXIT_NO;
}

int
wait_for_endings(struct transport *t)
{
	const struct options *opt = t->opt;
	struct waiting w = {t, opt, .until_ms = -1};
	const struct mq_buf *ids = &t->ids;
	size_t late = 0, i;
	int status = MQ_EXIT_OK, one;
	struct awaited *a;

	w.count = ids->len / MQ_ID_LEN;
	w.all = mq_xcalloc(w.count + 1, sizeof(*w.all));
	for (i = 0; i < w.count; i++) {
		memcpy(w.all[i].id, ids->data + i * MQ_ID_LEN, MQ_ID_LEN);
		w.all[i].queue = mq_xstrdup(opt->queue);
	}
	w.sweep_ms = mq_clock_steady_ms() + SWEEP_MS;
	w.notes = opt->notes;
	if (opt->notes)
		w.batches = mq_envelope_get(&opt->headers, MQ_HEADER_AFTER);
	if (opt->wait_ms >= 0)
		w.until_ms = mq_clock_steady_ms() + opt->wait_ms;
	for (; w.next < w.count; w.next++) {
		a = &w.all[w.next];
		await_ending(&w, a);
		one = a->ended ? report_ending(&w, a) : MQ_EXIT_AGAIN;
		late += !a->ended;
		status = one > status ? one : status;
		mq_ending_free(&a->ending);
		free(a->queue);
	}
	if (late > 0 && !opt->shared.quiet)
		mq_say("%s: %zu of %zu message%s not ended in time", opt->queue,
		    late, w.count, w.count == 1 ? "" : "s");
	free(w.all);
	if (w.reads)
		mq_redis_close(&w.reader);
	return status;
}
