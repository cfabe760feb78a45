/* What the page has of running scripts and of rejected messages. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "markup.h"
#include "page.h"
#include "rejected.h"

#define REASONS_PER_QUEUE 10
#define NEWEST_PER_QUEUE  5

/* The bytes of rejected messages that one page may cost. */
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)

/* --- scripts ------------------------------------------------------------------ */

static void
print_run(const struct mq_run *run, int64_t now_ms)
{
	fputs("<tr><th scope=\"row\">", stdout);
	html_name(run->queue);
	fputs("</th>", stdout);
	html_cell("wrap", "last said", run->text);
	html_cell("wrap id", "script", run->script);
	html_cell("", "host", run->host);
	printf("<td class=\"n\" data-l=\"pid\" data-v=\"%ld\">%ld</td>",
	    run->pid, run->pid);
	html_number("attempt", run->attempt, "");
	html_age("for", now_ms, run->started_ms);
	html_cell("id wrap", "message", run->id);
	fputs("</tr>\n", stdout);
}

void
page_runs(const struct mq_runs *runs, int64_t now_ms)
{
	static const char *const head[] = {"r-queue", "queue", "r-text",
	    "last said", "r-script", "script", "r-host", "host", "r-pid",
	    "#pid", "r-attempt", "#attempt", "r-for", "#for", "r-id", "message",
	    NULL};
	int i;

	page_section("Running", runs->count);
	if (runs->count == 0) {
		fputs("<p class=\"note\">No script is known to run.</p>\n"
		      "</section>\n",
		    stdout);
		return;
	}
	fputs("<div class=\"card\"><table id=\"running\">\n", stdout);
	html_head(head);
	for (i = 0; i < runs->count; i++)
		print_run(&runs->runs[i], now_ms);
	fputs("</tbody></table></div>\n</section>\n", stdout);
}

/* --- rejected messages --------------------------------------------------------- */

/* As one queue's rejected messages stand on the page. */
struct rejected_queue {
	const char *name;
	struct rejections r;
};

static void
print_reason(const char *queue, const struct reason *reason, int64_t now_ms)
{
	fputs("<tr><th scope=\"row\">", stdout);
	html_name(queue);
	fputs("</th>", stdout);
	if (reason->text[0] != '\0')
		html_cell("wrap", "reason", reason->text);
	else
		html_cell("wrap zero", "reason", "none was recorded");
	html_number("messages", reason->count, "");
	html_age("latest", now_ms, reason->newest_ms);
	fputs("</tr>\n", stdout);
}

static void
print_reasons(const struct rejected_queue *q, int64_t now_ms)
{
	int i;

	for (i = 0; i < q->r.reasons.count && i < REASONS_PER_QUEUE; i++)
		print_reason(q->name, &q->r.reasons.list[i], now_ms);
}

static void
print_newest(const struct rejected_queue *q, int64_t now_ms)
{
	const struct rejected *one;
	int i, n;

	n = q->r.count < NEWEST_PER_QUEUE ? q->r.count : NEWEST_PER_QUEUE;
	fputs("<details><summary>The newest of <b>", stdout);
	html_name(q->name);
	fputs("</b></summary>\n<div class=\"card\"><table>\n<thead><tr>"
	      "<th scope=\"col\">message</th><th scope=\"col\">reason</th>"
	      "<th scope=\"col\" class=\"n\">attempts</th>"
	      "<th scope=\"col\" class=\"n\">rejected</th></tr></thead>\n"
	      "<tbody>\n",
	    stdout);
	for (i = 0; i < n; i++) {
		one = &q->r.all[i];
		fputs("<tr>", stdout);
		html_cell("id wrap", "message",
		    one->id != NULL ? one->id : "without an id");
		html_cell("wrap", "reason", one->reason);
		html_number("attempts", one->attempts, "");
		html_age("rejected", now_ms, one->at_ms);
		fputs("</tr>\n", stdout);
	}
	fputs("</tbody></table></div></details>\n", stdout);
}

/* What the tables do not show. */
static void
print_limits(const struct rejected_queue *q, const struct mq_queue_stats *stats)
{
	long rest = 0;
	int i;

	if (q->r.cut) {
		fputs("<p class=\"note\">", stdout);
		html_name(q->name);
		fputs(": only the newest ", stdout);
		html_grouped(q->r.count);
		fputs(" of ", stdout);
		html_grouped(stats->rejected);
		fputs(" rejected messages were looked at.</p>\n", stdout);
	}
	for (i = REASONS_PER_QUEUE; i < q->r.reasons.count; i++)
		rest += q->r.reasons.list[i].count;
	if (rest == 0)
		return;
	fputs("<p class=\"note\">", stdout);
	html_name(q->name);
	fputs(": ", stdout);
	html_grouped(q->r.reasons.count - REASONS_PER_QUEUE);
	fputs(" rarer reasons, of ", stdout);
	html_grouped(rest);
	fputs(" messages, are not shown.</p>\n", stdout);
}

static void
print_rejected_table(const struct rejected_queue *all, int n, int64_t now_ms)
{
	static const char *const head[] = {"j-queue", "queue", "j-reason",
	    "reason", "j-count", "#messages", "j-latest", "#latest", NULL};
	int i;

	fputs("<div class=\"card\"><table id=\"rejected\">\n", stdout);
	html_head(head);
	for (i = 0; i < n; i++)
		print_reasons(&all[i], now_ms);
	fputs("</tbody></table></div>\n", stdout);
}

/* Reads what was rejected; the number of queues that have any. */
static int
read_rejected(struct look *look, const struct mq_stats *stats,
    struct rejected_queue *all, const struct mq_queue_stats **of)
{
	size_t left = PAGE_BYTES;
	const struct mq_queue_stats *q;
	int i, n = 0;

	for (i = 0; i < stats->count; i++) {
		q = &stats->queues[i];
		if (q->rejected == 0)
			continue;
		all[n].name = q->name;
		of[n] = q;
		rejections_read(look, q->name, q->rejected, &left, &all[n].r);
		n++;
	}
	return n;
}

void
page_rejected(struct look *look, const struct mq_stats *stats)
{
	size_t most = (size_t)stats->count + 1;
	struct rejected_queue *all = mq_xcalloc(most, sizeof(*all));
	const struct mq_queue_stats **of = mq_xcalloc(most, sizeof(*of));
	long long sum = 0;
	int i, n = read_rejected(look, stats, all, of);

	for (i = 0; i < n; i++)
		sum += of[i]->rejected;
	page_section("Rejected", sum);
	if (n == 0)
		fputs("<p class=\"note\">No message is.</p>\n", stdout);
	else
		print_rejected_table(all, n, stats->now_ms);
	for (i = 0; i < n; i++)
		print_limits(&all[i], of[i]);
	for (i = 0; i < n; i++) {
		if (all[i].r.count > 0)
			print_newest(&all[i], stats->now_ms);
		rejections_free(&all[i].r);
	}
	fputs("</section>\n", stdout);
	free(all);
	free(of);
}
