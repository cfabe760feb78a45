/*
 * One page that needs nothing else: what stands in it cannot load anything but the
 * page itself, and cannot run anything but the page's own script.  The page can be
 * read without the script, which sorts, filters, refreshes and plots.
 */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "page/page.h"

static void
print_page_time(int64_t ms)
{
	char machine[32], person[32];
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL)
		return;
	strftime(machine, sizeof(machine), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strftime(person, sizeof(person), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("<time datetime=\"%s\">%s</time>", machine, person);
}

static void
print_head(const struct model *m, long refresh, bool served)
{
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
	html_text(m->server);
	printf("</title>\n<style>%s</style>\n</head>\n"
	       "<body data-refresh=\"%ld\"%s>\n",
	    page_css, refresh, served ? " data-served" : "");
}

static void
print_title(const struct model *m)
{
	fputs("<header>\n<h1>Queues</h1>\n<p>", stdout);
	html_text(m->server);
	fputs("</p>\n", stdout);
	print_page_time(m->stats.now_ms);
	fputs("\n</header>\n<main>\n", stdout);
}

/* A note about a queue, or anything else. */
static void
print_note(const char *name, const char *text, const char *more)
{
	fputs("<p class=\"note\">", stdout);
	html_text(name);
	fputs(text, stdout);
	html_text(more);
	fputs("</p>\n", stdout);
}

/* What the numbers lack. */
static void
print_missing(const struct model *m)
{
	size_t k;
	int i;

	fputs("<section id=\"missing\">\n", stdout);
	for (k = 0; k < m->lost.n; k++)
		print_note(m->lost.list[k].name, "", "");
	for (i = 0; i < m->stats.count; i++)
		if (m->elsewhere[i] != NULL)
			print_note(m->stats.queues[i].name, ": no such queue",
			    m->elsewhere[i]);
	fputs("</section>\n", stdout);
}

static void
print_tables(const struct model *m)
{
	struct table t;

	tables_fill(m, false, 0, &t);
	html_section("Queues", "queues",
	    m->stats.count > 0 ? "No queue has a message." :
				 "There is no queue yet.",
	    &t);
	fputs("</section>\n", stdout);
	running_fill(&m->runs, m->stats.now_ms, &t);
	html_section("Running", "running", NULL, &t);
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

/* What was, for the script: of each queue as in the table, whether another one counts
 * what is in it, minutes, and hours. */
static void
print_pasts(const struct model *m)
{
	int i, n;
	const struct mq_queue_stats **rows = order_rows(m, &n);

	fputs("<p id=\"past\" hidden>[", stdout);
	for (i = 0; i < n && m->stats.past; i++) {
		printf("%s[%d", i > 0 ? ",\n" : "", rows[i]->refuse);
		print_past(&rows[i]->past[MQ_MINUTES]);
		print_past(&rows[i]->past[MQ_HOURS]);
		fputs("]", stdout);
	}
	fputs("]</p>\n", stdout);
	free(rows);
}

static void
print_rejected(const struct model *m)
{
	const struct rejections *r;
	struct table t;
	int i;

	reasons_fill(m, &t);
	html_section("Reasons of rejected messages", "reasons", NULL, &t);
	for (i = 0; i < m->stats.count; i++) {
		r = &m->rejected[i];
		if (!r->cut)
			continue;
		fputs("<p class=\"note\">", stdout);
		html_text(m->stats.queues[i].name);
		fputs(": only the newest ", stdout);
		html_grouped(r->count);
		fputs(" of ", stdout);
		html_grouped(m->stats.queues[i].rejected);
		fputs(" rejected messages were looked at.</p>\n", stdout);
	}
	fputs("</section>\n", stdout);
	rejected_fill(m, &t);
	html_section("Newest rejected messages", "newest", NULL, &t);
	fputs("</section>\n", stdout);
}

void
html_print(const struct model *m, long refresh, bool served)
{
	struct table t;

	/* The page is UTF-8, whatever the terminal is. */
	setenv("LC_ALL", "C.UTF-8", 1);
	print_head(m, refresh, served);
	print_title(m);
	print_missing(m);
	print_tables(m);
	print_rejected(m);
	tables_fill(m, true, 0, &t);
	html_section("Connections and their queues", "connections", NULL, &t);
	fputs("</section>\n", stdout);
	print_pasts(m);
	printf("</main>\n<footer>mq-tools " MQ_VERSION "</footer>\n"
	       "<script>%s</script>\n</body>\n</html>\n",
	    page_js);
}
