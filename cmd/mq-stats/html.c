/*
 * --html: everything on one page that needs nothing else: what stands in it
 * cannot load anything, and cannot run anything but the page's own script.
 */
#include <string.h>
#include <time.h>

#include "base/exit.h"
#include "base/say.h"
#include "markup.h"
#include "page.h"
#include "page/page.h"
#include "stats.h"

/* --- the head ----------------------------------------------------------------- */

static void
print_time(int64_t ms)
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
print_head(const struct look *look, long refresh)
{
	const char *server = look->redis->server->name;

	printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	       "<meta charset=\"utf-8\">\n"
	       "<meta http-equiv=\"Content-Security-Policy\" content=\""
	       "default-src 'none'; script-src 'sha256-%s'; "
	       "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">"
	       "\n<meta name=\"viewport\" "
	       "content=\"width=device-width, initial-scale=1\">\n"
	       "<meta name=\"color-scheme\" content=\"light dark\">\n"
	       "<meta name=\"referrer\" content=\"no-referrer\">\n"
	       "<meta name=\"robots\" content=\"noindex\">\n",
	    page_js_sha256, page_css_sha256);
	if (refresh > 0)
		printf(
		    "<meta http-equiv=\"refresh\" content=\"%ld\">\n", refresh);
	fputs("<title>Queues of ", stdout);
	html_text(server);
	printf("</title>\n<style>%s</style>\n</head>\n<body>\n", page_css);
}

static void
print_title(const struct look *look, const struct mq_stats *stats)
{
	fputs("<header>\n<h1>Queues</h1>\n<p>", stdout);
	html_name(look->redis->server->name);
	fputs("</p>\n", stdout);
	print_time(stats->now_ms);
	fputs("\n</header>\n<main>\n", stdout);
}

/* --- totals ------------------------------------------------------------------- */

static void
total(const char *title, long long n, const char *class)
{
	printf("<div><dt>%s</dt><dd class=\"%s\">", title,
	    n == 0 ? "zero" : class);
	html_grouped(n);
	fputs("</dd></div>\n", stdout);
}

static void
total_rate(const char *title, double per_s)
{
	printf("<div><dt>%s</dt><dd", title);
	if (per_s >= 0)
		printf("%s>%.1f", per_s < 0.05 ? " class=\"zero\"" : "", per_s);
	else
		fputs(" class=\"zero\">" HTML_DASH, stdout);
	fputs("</dd></div>\n", stdout);
}

static void
print_totals(const struct mq_stats *stats, const struct mq_runs *runs)
{
	struct mq_queue_stats sum = stats_total(stats);

	fputs("<dl>\n", stdout);
	total("ready", sum.ready, "");
	total("delayed", sum.delayed, "");
	total("unacked", sum.unacked, "");
	total("rejected", sum.rejected, "bad");
	total("consumers", sum.consumers, "");
	total("scripts running", runs->count, "");
	total_rate("in per second", sum.in_s);
	total_rate("out per second", sum.out_s);
	fputs("</dl>\n", stdout);
}

void
page_section(const char *title, long long n)
{
	printf("<section>\n<h2>%s <small>", title);
	html_grouped(n);
	fputs("</small></h2>\n", stdout);
}

/* --- queues ------------------------------------------------------------------- */

static void
print_paused(const struct mq_queue_stats *q, int64_t now_ms)
{
	char left[24];

	if (q->paused_ms == 0 || (q->paused_ms > 0 && q->paused_ms <= now_ms))
		return;
	fputs(" <span class=\"badge paused\">paused", stdout);
	if (q->paused_ms > 0) {
		show_age(left, q->paused_ms, now_ms);
		printf(" for %s", left);
	}
	fputs("</span>", stdout);
}

static void
print_dead(const struct mq_queue_stats *q)
{
	if (q->dead_consumers > 0)
		printf(
		    " <span class=\"badge dead\">%lld dead consumer%s</span>",
		    q->dead_consumers, q->dead_consumers == 1 ? "" : "s");
}

static void
print_queue(const struct mq_queue_stats *q, int64_t now_ms)
{
	fputs("<tr><th scope=\"row\">", stdout);
	html_name(q->name);
	print_paused(q, now_ms);
	print_dead(q);
	if (!q->known)
		fputs(
		    " <span class=\"badge dead\">no such queue</span>", stdout);
	fputs("</th>", stdout);
	html_number("ready", q->ready, "");
	html_number("delayed", q->delayed, "");
	html_number("unacked", q->unacked, "");
	html_number("rejected", q->rejected, " bad");
	html_number("consumers", q->consumers, "");
	html_age("oldest", now_ms, q->oldest_ms);
	html_rate("in/s", q->in_s);
	html_rate("out/s", q->out_s);
	fputs("</tr>\n", stdout);
}

static void
print_queues(const struct mq_stats *stats)
{
	static const char *const head[] = {"queue", "queue", "ready", "#ready",
	    "delayed", "#delayed", "unacked", "#unacked", "rejected",
	    "#rejected", "consumers", "#consumers", "oldest", "#oldest", "in",
	    "#in/s", "out", "#out/s", NULL};
	int i;

	page_section("Queues", stats->count);
	if (stats->count == 0) {
		fputs("<p class=\"note\">There are none.</p>\n</section>\n",
		    stdout);
		return;
	}
	fputs("<div class=\"card\"><table id=\"queues\">\n", stdout);
	html_head(head);
	for (i = 0; i < stats->count; i++)
		print_queue(&stats->queues[i], stats->now_ms);
	fputs("</tbody></table></div>\n</section>\n", stdout);
}

/* --- connections --------------------------------------------------------------- */

static void
print_consumed(const struct mq_connection_stats *c)
{
	int i;

	fputs("<td class=\"wrap\" data-l=\"queues\"><ul>", stdout);
	for (i = 0; i < c->count; i++) {
		fputs("<li>", stdout);
		html_name(c->consumed[i].queue);
		fputs("</li>", stdout);
	}
	fputs("</ul></td>", stdout);
}

static void
print_connection(const struct mq_connection_stats *c)
{
	long long unacked = 0, consumers = 0;
	bool live = c->ttl_ms > 0;
	int i;

	for (i = 0; i < c->count; i++) {
		unacked += c->consumed[i].unacked;
		consumers += c->consumed[i].consumers;
	}
	fputs("<tr><th scope=\"row\">", stdout);
	html_name(c->name);
	printf("</th><td data-l=\"state\"><span class=\"badge %s\">%s</span>"
	       "</td>",
	    live ? "live" : "dead", live ? "live" : "dead");
	html_cell("", "host", c->host);
	if (c->pid > 0)
		printf("<td class=\"n\" data-l=\"pid\" data-v=\"%ld\">%ld</td>",
		    c->pid, c->pid);
	else
		fputs(
		    "<td class=\"n zero\" data-l=\"pid\" data-v=\"0\">" HTML_DASH
		    "</td>",
		    stdout);
	print_consumed(c);
	html_number("consumers", consumers, "");
	html_number("unacked", unacked, live ? "" : " bad");
	fputs("</tr>\n", stdout);
}

static void
print_connections(const struct mq_stats *stats)
{
	static const char *const head[] = {"c-name", "connection", "c-state",
	    "state", "c-host", "host", "c-pid", "#pid", "c-queues", "queues",
	    "c-consumers", "#consumers", "c-unacked", "#unacked", NULL};
	int i;

	page_section("Connections", stats->connection_count);
	if (stats->connection_count == 0) {
		fputs("<p class=\"note\">There are none.</p>\n</section>\n",
		    stdout);
		return;
	}
	fputs("<div class=\"card\"><table id=\"connections\">\n", stdout);
	html_head(head);
	for (i = 0; i < stats->connection_count; i++)
		print_connection(&stats->connections[i]);
	fputs("</tbody></table></div>\n</section>\n", stdout);
}

/* --- all of it ----------------------------------------------------------------- */

int
look_html(struct look *look, long refresh)
{
	struct mq_stats stats;
	struct mq_runs runs;
	int status;

	if (look->layout->stats(look->redis, look->queues, look->count,
		MQ_STATS_CONNECTIONS | MQ_STATS_UNLISTED, &stats) == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
	look_runs(look, &runs);
	print_head(look, refresh);
	print_title(look, &stats);
	print_totals(&stats, &runs);
	print_queues(&stats);
	page_runs(&runs, stats.now_ms);
	page_rejected(look, &stats);
	print_connections(&stats);
	printf("</main>\n<footer>mq-tools " MQ_VERSION);
	if (refresh > 0)
		printf(", reads itself again every %ld s", refresh);
	printf("</footer>\n<script>%s</script>\n</body>\n</html>\n", page_js);
	status = stats_check_known(look->redis, look->layout, &stats);
	mq_runs_free(&runs);
	mq_stats_free(&stats);
	return status;
}
