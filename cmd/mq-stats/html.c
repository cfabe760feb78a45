/*
 * One page that needs nothing else: what stands in it cannot load anything, and
 * cannot run anything but the page's own script.
 */
#include "outputs.h"

#include <stdio.h>
#include <time.h>

#include "markup.h"
#include "page/page.h"
#include "sections.h"

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
print_head(const struct model *m, long refresh)
{
	const char *server = m->server;

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
		printf(
		    "<meta http-equiv=\"refresh\" content=\"%ld\">\n", refresh);
	fputs("<title>Queues of ", stdout);
	html_text(server);
	printf("</title>\n<style>%s</style>\n</head>\n<body>\n", page_css);
}

static void
print_title(const struct model *m)
{
	size_t i;

	fputs("<header>\n<h1>Queues</h1>\n<p>", stdout);
	html_name(m->server);
	fputs("</p>\n", stdout);
	print_page_time(m->stats.now_ms);
	fputs("\n</header>\n<main>\n", stdout);
	for (i = 0; i < m->lost.n; i++) {
		fputs("<p class=\"note\">", stdout);
		html_name(m->lost.list[i].name);
		fputs("</p>\n", stdout);
	}
}

static void
print_total(const char *title, long long n, const char *class)
{
	printf("<div><dt>%s</dt><dd class=\"%s\">", title,
	    n == 0 ? "zero" : class);
	html_grouped(n);
	fputs("</dd></div>\n", stdout);
}

static void
print_total_rate(const char *title, double per_s)
{
	printf("<div><dt>%s</dt><dd", title);
	if (per_s >= 0)
		printf("%s>%.1f", per_s < 0.05 ? " class=\"zero\"" : "", per_s);
	else
		fputs(" class=\"zero\">" HTML_DASH, stdout);
	fputs("</dd></div>\n", stdout);
}

static void
print_totals(const struct model *m)
{
	struct mq_queue_stats sum = model_total(m);

	fputs("<dl>\n", stdout);
	print_total("ready", sum.ready, "");
	print_total("delayed", sum.delayed, "");
	print_total("unacked", sum.unacked, "");
	print_total("rejected", sum.rejected, "bad");
	print_total("consumers", sum.consumers, "");
	print_total("scripts running", m->runs.count, "");
	print_total_rate("in per second", sum.in_s);
	print_total_rate("out per second", sum.out_s);
	fputs("</dl>\n", stdout);
}

void
html_print(const struct model *m, long refresh)
{
	print_head(m, refresh);
	print_title(m);
	print_totals(m);
	section_queues(m);
	section_runs(m);
	section_rejected(m);
	section_connections(m);
	printf("</main>\n<footer>mq-tools " MQ_VERSION);
	if (refresh > 0)
		printf(", reads itself again every %ld s", refresh);
	printf("</footer>\n<script>%s</script>\n</body>\n</html>\n", page_js);
}
