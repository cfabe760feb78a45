#include "sections.h"

#include <stdio.h>
#include <stdlib.h>

#include "markup.h"
#include "text.h"

#define REASONS_PER_QUEUE 10
#define NEWEST_PER_QUEUE  5

/* --- queues ------------------------------------------------------------------- */

static void
print_paused(const struct mq_queue_stats *q, int64_t now_ms)
{
	char left[TEXT_AGE];

	if (q->paused_ms == 0 || (q->paused_ms > 0 && q->paused_ms <= now_ms))
		return;
	fputs(" <span class=\"badge paused\">paused", stdout);
	if (q->paused_ms > 0) {
		text_age_since(left, q->paused_ms, now_ms);
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

void
section_queues(const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	static const char *const head[] = {"queue", "queue", "ready", "#ready",
	    "delayed", "#delayed", "unacked", "#unacked", "rejected",
	    "#rejected", "consumers", "#consumers", "oldest", "#oldest", "in",
	    "#in/s", "out", "#out/s", NULL};
	int i, n, shown, *rows = order_rows(m, &n);

	shown =
	    m->order.limit > 0 && m->order.limit < n ? (int)m->order.limit : n;
	html_section("Queues", n,
	    stats->count > 0 ? "None has a message." : "There are none.",
	    "queues", head);
	for (i = 0; i < shown; i++)
		print_queue(&stats->queues[rows[i]], stats->now_ms);
	html_table_end(shown);
	free(rows);
	if (shown < n)
		printf("<p class=\"note\">%d more %s not shown.</p>\n",
		    n - shown, n - shown == 1 ? "is" : "are");
	fputs("</section>\n", stdout);
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
	const char *state = c->unsure ? "unknown" : live ? "live" : "dead";
	int i;

	for (i = 0; i < c->count; i++) {
		model_add(&unacked, c->consumed[i].unacked);
		model_add(&consumers, c->consumed[i].consumers);
	}
	fputs("<tr><th scope=\"row\">", stdout);
	html_name(c->name);
	printf("</th><td data-l=\"state\"><span class=\"badge %s\">%s</span>"
	       "</td>",
	    state, state);
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
	html_number("unacked", unacked, live || c->unsure ? "" : " bad");
	fputs("</tr>\n", stdout);
}

void
section_connections(const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	static const char *const head[] = {"c-name", "connection", "c-state",
	    "state", "c-host", "host", "c-pid", "#pid", "c-queues", "queues",
	    "c-consumers", "#consumers", "c-unacked", "#unacked", NULL};
	int i;

	html_section("Connections", stats->connection_count, "There are none.",
	    "connections", head);
	for (i = 0; i < stats->connection_count; i++)
		print_connection(&stats->connections[i]);
	html_table_end(stats->connection_count);
	fputs("</section>\n", stdout);
}

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
section_runs(const struct model *m)
{
	const struct mq_runs *runs = &m->runs;
	static const char *const head[] = {"r-queue", "queue", "r-text",
	    "last said", "r-script", "script", "r-host", "host", "r-pid",
	    "#pid", "r-attempt", "#attempt", "r-for", "#for", "r-id", "message",
	    NULL};
	int i;

	html_section("Running", runs->count, "No script is known to run.",
	    "running", head);
	for (i = 0; i < runs->count; i++)
		print_run(&runs->runs[i], m->stats.now_ms);
	html_table_end(runs->count);
	fputs("</section>\n", stdout);
}

/* --- rejected messages --------------------------------------------------------- */

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
print_reasons(const struct model *m, int queue)
{
	const struct reasons *r = &m->rejected[queue].reasons;
	int i;

	for (i = 0; i < r->count && i < REASONS_PER_QUEUE; i++)
		print_reason(
		    m->stats.queues[queue].name, &r->list[i], m->stats.now_ms);
}

static void
print_newest(const struct model *m, int queue)
{
	const struct rejections *r = &m->rejected[queue];
	const struct rejected *one;
	int i, n = r->count < NEWEST_PER_QUEUE ? r->count : NEWEST_PER_QUEUE;

	if (n == 0)
		return;
	fputs("<details><summary>The newest of <b>", stdout);
	html_name(m->stats.queues[queue].name);
	fputs("</b></summary>\n<div class=\"card\"><table>\n<thead><tr>"
	      "<th scope=\"col\">message</th><th scope=\"col\">reason</th>"
	      "<th scope=\"col\" class=\"n\">attempts</th>"
	      "<th scope=\"col\" class=\"n\">rejected</th></tr></thead>\n"
	      "<tbody>\n",
	    stdout);
	for (i = 0; i < n; i++) {
		one = &r->all[i];
		fputs("<tr>", stdout);
		html_cell("id wrap", "message",
		    one->id != NULL ? one->id : "without an id");
		html_cell("wrap", "reason", one->reason);
		html_number("attempts", one->attempts, "");
		html_age("rejected", m->stats.now_ms, one->at_ms);
		fputs("</tr>\n", stdout);
	}
	fputs("</tbody></table></div></details>\n", stdout);
}

static void
print_note(const char *queue)
{
	fputs("<p class=\"note\">", stdout);
	html_name(queue);
	fputs(": ", stdout);
}

/* Messages and reasons that the tables do not show. */
static void
print_limits(const struct model *m, int queue)
{
	const struct mq_queue_stats *q = &m->stats.queues[queue];
	const struct rejections *r = &m->rejected[queue];
	long rest = 0;
	int i;

	if (r->cut) {
		print_note(q->name);
		fputs("only the newest ", stdout);
		html_grouped(r->count);
		fputs(" of ", stdout);
		html_grouped(q->rejected);
		fputs(" rejected messages were looked at.</p>\n", stdout);
	}
	for (i = REASONS_PER_QUEUE; i < r->reasons.count; i++)
		rest += r->reasons.list[i].count;
	if (rest == 0)
		return;
	print_note(q->name);
	html_grouped(r->reasons.count - REASONS_PER_QUEUE);
	fputs(" rarer reasons, of ", stdout);
	html_grouped(rest);
	fputs(" messages, are not shown.</p>\n", stdout);
}

void
section_rejected(const struct model *m)
{
	static const char *const head[] = {"j-queue", "queue", "j-reason",
	    "reason", "j-count", "#messages", "j-latest", "#latest", NULL};
	long long sum = 0;
	int i;

	for (i = 0; i < m->stats.count; i++)
		if (m->stats.queues[i].rejected > 0)
			sum += m->stats.queues[i].rejected;
	html_section("Rejected", sum, "No message is.", "rejected", head);
	for (i = 0; i < m->stats.count; i++)
		print_reasons(m, i);
	html_table_end(sum);
	for (i = 0; i < m->stats.count; i++)
		print_limits(m, i);
	for (i = 0; i < m->stats.count; i++)
		print_newest(m, i);
	fputs("</section>\n", stdout);
}
