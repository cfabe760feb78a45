/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats --html: one page without other files.  Its policy allows only its own
 * script, which draws the page from the JSON in it.  Without JavaScript, the page
 * shows the tables as text.
 */
#include "stats.h"

static void
print_text(const char *s)
{
	struct mq_buf out = {0};
	char *text = mq_visible(s, strlen(s));

	text_html(text, &out);
	fputs(mq_buf_str(&out), stdout);
	free(text);
	mq_buf_free(&out);
}

static void
print_note(const char *name, const char *text, const char *more)
{
	fputs("<p class=\"note\">", stdout);
	print_text(name);
	fputs(text, stdout);
	print_text(more);
	fputs("</p>\n", stdout);
}

/* Prints a table and frees it; cuts: the model whose queues get a note if not all of
 * their rejected messages were read (NULL: no notes). */
static void
print_section(const char *title, const char *id, struct table *t,
    const struct model *cuts)
{
	const struct view page = {.html = true};
	const struct mq_queue_stats *q;
	struct mq_buf out = {0};
	size_t rows = table_rows(t);
	char text[128];
	int i;

	table_write(t, &page, &out);
	table_free(t);
	printf("<section id=\"%s\"%s>\n<h2>%s <small>%zu</small></h2>\n"
	       "<pre>%s</pre>\n",
	    id, rows > 0 ? "" : " hidden", title, rows, mq_buf_str(&out));
	mq_buf_free(&out);
	for (i = 0; cuts != NULL && i < cuts->stats.count; i++) {
		q = &cuts->stats.queues[i];
		snprintf(text, sizeof(text),
		    ": only the newest %d of %lld rejected messages were "
		    "looked at.",
		    cuts->rejected[i].count, q->rejected);
		if (cuts->rejected[i].cut)
			print_note(q->name, text, "");
	}
	fputs("</section>\n", stdout);
}

static void
print_head(const struct model *m, long refresh, bool served)
{
	char machine[32], person[32];
	time_t t = (time_t)(m->stats.now_ms / 1000);
	struct tm tm;

	printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	       "<meta charset=\"utf-8\">\n"
	       "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"
	       "<meta name=\"viewport\" "
	       "content=\"width=device-width, initial-scale=1\">\n"
	       "<meta name=\"color-scheme\" content=\"light dark\">\n"
	       "<meta name=\"referrer\" content=\"no-referrer\">\n"
	       "<meta name=\"robots\" content=\"noindex\">\n",
	    page_policy);
	if (refresh > 0)
		printf("<noscript><meta http-equiv=\"refresh\" "
		       "content=\"%ld\"></noscript>\n",
		    refresh);
	fputs("<title>Queues of ", stdout);
	print_text(m->server);
	printf("</title>\n<style>%s</style>\n</head>\n"
	       "<body data-refresh=\"%ld\"%s>\n<header>\n<h1>Queues</h1>\n<p>",
	    page_css, refresh, served ? " data-served" : "");
	print_text(m->server);
	gmtime_r(&t, &tm);
	strftime(machine, sizeof(machine), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strftime(person, sizeof(person), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("</p>\n<time datetime=\"%s\">%s</time>\n</header>\n<main>\n",
	    machine, person);
}

/* Prints the gaps in the numbers, or the reason why no queue is shown. */
static void
print_notes(const struct model *m)
{
	const struct mq_queue_stats *q = m->stats.queues;
	int shown, marked, i;
	size_t k;

	free(order_rows(m, &shown, &marked));
	fputs("<section id=\"missing\">\n", stdout);
	for (k = 0; k < m->lacks.n; k++)
		print_note(m->lacks.list[k].name, "", "");
	for (i = 0; i < m->stats.count; i++)
		if (!q[i].known)
			print_note(q[i].name, ": no such queue",
			    m->elsewhere.list[i].name);
	if (shown == 0)
		print_note(i > 0 ? "No queue has a message." :
				   "There is no queue yet.",
		    "", "");
	fputs("</section>\n", stdout);
}

static void
print_past(const struct mq_past *p)
{
	int i, k;

	fputs(",[", stdout);
	for (i = 0; i < p->count; i++)
		for (k = 0; k < MQ_NOTED; k++)
			printf("%s%lld%s",
			    k > 0     ? "," :
				i > 0 ? ",[" :
					"[",
			    p->notes[i].n[k], k + 1 < MQ_NOTED ? "" : "]");
	fputs("]", stdout);
}

/* Prints JSON for the script: the object of --json with more members, and the past.
 * No "<" is printed, which could end the element.  The past is an array, as objects
 * would take more memory than everything else; for each queue it has: whether
 * another queue counts the same messages, the notes of minutes, and those of hours. */
static void
print_data(const struct model *m)
{
	const struct mq_queue_stats **rows;
	struct mq_buf text = {0};
	json_t *v = model_json(m, true, true);
	char *p, *end;
	int n, i;

	mq_json_set(v, "running",
	    fields_list(run_fields, m->runs.runs, sizeof(*m->runs.runs),
		m->runs.count, m->stats.now_ms));
	mq_json_set(v, "batches",
	    fields_list(batch_fields, m->batches, sizeof(*m->batches),
		m->batch_count, 0));
	mq_json_set(v, "rejected", rejected_json(m));
	mq_json_dump(v, &text);
	json_decref(v);
	fputs("<script type=\"application/json\" id=\"data\">[", stdout);
	for (p = mq_buf_str(&text); (end = strchr(p, '<')) != NULL;
	     p = end + 1) {
		output_json(p, (size_t)(end - p));
		fputs("\\u003c", stdout);
	}
	output_json(p, strlen(p));
	mq_buf_free(&text);
	fputs(",[", stdout);
	rows = order_rows(m, &n, &i);
	for (i = 0; i < n && m->stats.past; i++) {
		printf("%s[%d", i > 0 ? ",\n" : "", rows[i]->refuse);
		print_past(&rows[i]->past[MQ_MINUTES]);
		print_past(&rows[i]->past[MQ_HOURS]);
		fputs("]", stdout);
	}
	free(rows);
	fputs("]]</script>\n", stdout);
}

void
html_print(const struct model *m, long refresh, bool served)
{
	struct table t;
	int i;

	print_head(m, refresh, served);
	print_notes(m);
	tables_fill(m, false, 0, &t);
	print_section("Queues", "queues", &t, NULL);
	running_fill(m, m->stats.now_ms, &t);
	print_section("Running", "running", &t, NULL);
	table_begin(&t, batch_fields, NULL, 0);
	for (i = 0; i < m->batch_count; i++)
		table_add(&t, &m->batches[i], NULL);
	print_section("Open batches", "batches", &t, NULL);
	reasons_fill(m, &t);
	print_section("Reasons of rejected messages", "reasons", &t, m);
	rejected_fill(m, &t);
	print_section("Newest rejected messages", "newest", &t, NULL);
	tables_fill(m, true, 0, &t);
	print_section("Connections and their queues", "connections", &t, NULL);
	puts("</main>\n<footer>mq-tools " MQ_VERSION "</footer>");
	print_data(m);
	printf("<script>%s</script>\n</body>\n</html>\n", page_js);
}
