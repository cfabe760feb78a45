/*
 * One page that needs nothing else: what stands in it cannot load anything but the
 * page itself, and cannot run anything but the page's own script.  The page can be
 * read without the script, which sorts, filters, refreshes and plots.
 */
#include "stats.h"

#include <ctype.h>
#include <vis.h>

/* --- text ---------------------------------------------------------------- */

static char *
escape_html(char *to, const char *p, size_t n, uint32_t odd)
{
	(void)n;
	if (odd != 0)
		return to + sprintf(to, "\\u%04x", (unsigned)odd);
	return stpcpy(to,
	    *p == '&'	  ? "&amp;" :
		*p == '<' ? "&lt;" :
		*p == '>' ? "&gt;" :
			    "&quot;");
}

/* Text that is visible on a terminal, for content and for values in double quotes: what
 * means something to HTML, and what nobody sees on a page, is escaped. */
static void
print_visible(const char *s)
{
	const struct mq_view page = {mq_utf8_odd, "&<>\"", escape_html};
	char *text = mq_show(&page, s, strlen(s));

	fputs(text, stdout);
	free(text);
}

/* The same for text from anywhere. */
static void
print_text(const char *s)
{
	char *text = mq_visible(s, strlen(s));

	print_visible(text);
	free(text);
}

/* "12,345" */
static void
print_digits(const char *s)
{
	for (; *s != '\0'; s++) {
		putchar(*s);
		if (s[1] != '\0' && strlen(s + 1) % 3 == 0)
			putchar(',');
	}
}

static void
print_number(long long n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", n);
	print_digits(digits);
}

/* --- tables -------------------------------------------------------------- */

static void
print_title(const char *title)
{
	for (; *title != '\0'; title++)
		putchar(tolower((unsigned char)*title));
}

/* The text as a part of a URL, if the page may show it in another way. */
static void
print_address(const char *text)
{
	char *name = mq_xcalloc(strlen(text) + 1, 1);
	const char *p = text;

	while (*p >= ' ' && *p <= '~' && *p != '\\')
		p++;
	if (*p != '\0' && strunvis(name, text) != -1) {
		fputs("\" data-name=\"", stdout);
		for (p = name; *p != '\0'; p++)
			printf(isalnum((unsigned char)*p) ? "%c" : "%%%02X",
			    (unsigned char)*p);
	}
	free(name);
}

/* The row's name is its head.  Each cell repeats the title of its column, which it
 * stands under where there is no room for columns. */
static void
print_cell(const struct field *column, const struct cell *cell,
    const char *text, bool head)
{
	static const char *const styles[] = {
	    [STYLE_RED] = " bad", [STYLE_YELLOW] = " warn", [STYLE_GROWS] = ""};
	bool number = column->kind > KIND_TEXTS,
	     zero = number && cell->age_s < 0 &&
	    strpbrk(text, "123456789?") == NULL;

	fputs(head ? "<th scope=\"row\"" : "<td", stdout);
	printf(" class=\"%s%s\" data-l=\"", number ? "n" : "t",
	    zero			   ? " zero" :
		cell->style == STYLE_PLAIN ? "" :
					     styles[cell->style]);
	print_title(column->title);
	if (cell->age_s >= 0)
		printf("\" data-v=\"%.0f", cell->age_s);
	if (!number)
		print_address(text);
	fputs("\">", stdout);
	if (number && !column->id && text[strspn(text, "0123456789")] == '\0')
		print_digits(text);
	else
		print_visible(text);
	fputs(head ? "</th>" : "</td>", stdout);
}

static void
print_rows(const struct table *t, const bool *has, size_t from, size_t to)
{
	const struct cell *cell = t->cells + from * (size_t)t->count;
	int j;

	for (; from < to; from++) {
		fputs("<tr>", stdout);
		for (j = 0; j < t->count; j++, cell++)
			if (has[j])
				print_cell(t->columns[j], cell,
				    t->text.data + cell->at, j == 0);
		fputs("</tr>\n", stdout);
	}
}

/* A table, which is freed; where it has no rows, a note, or (NULL) nothing.  cuts: with
 * notes of queues of which more was rejected than was looked at; NULL: none. */
static void
print_section(const char *title, const char *id, const char *note,
    struct table *t, const struct model *cuts)
{
	size_t rows = table_rows(t), i;
	bool has[COLUMNS_MAX] = {0};
	int j;

	printf("<section id=\"%s\">\n", id);
	if (rows == 0 && note != NULL)
		printf("<p class=\"note\">%s</p>\n", note);
	if (rows > 0) {
		printf("<h2>%s <small>", title);
		print_number((long long)rows);
		fputs("</small></h2>\n<div class=\"card\"><table>\n"
		      "<thead><tr>",
		    stdout);
		for (j = 0; j < t->count; j++) {
			has[j] = !t->columns[j]->sparse;
			for (i = (size_t)j; i < t->used && !has[j] &&
			     t->columns[j]->kind != KIND_SPARK;
			     i += (size_t)t->count)
				has[j] = t->cells[i].width > 0;
			if (!has[j])
				continue;
			printf("<th scope=\"col\" class=\"%c\">",
			    t->columns[j]->kind <= KIND_TEXTS ? 't' : 'n');
			print_title(t->columns[j]->title);
			fputs("</th>", stdout);
		}
		fputs("</tr></thead>\n<tbody>\n", stdout);
		print_rows(t, has, 0, rows);
		fputs("</tbody>\n<tfoot>\n", stdout);
		print_rows(t, has, rows, rows + t->rest + t->total);
		fputs("</tfoot>\n</table></div>\n", stdout);
	}
	table_free(t);
	for (j = 0; cuts != NULL && j < cuts->stats.count; j++)
		if (cuts->rejected[j].cut) {
			fputs("<p class=\"note\">", stdout);
			print_text(cuts->stats.queues[j].name);
			fputs(": only the newest ", stdout);
			print_number(cuts->rejected[j].count);
			fputs(" of ", stdout);
			print_number(cuts->stats.queues[j].rejected);
			fputs(
			    " rejected messages were looked at.</p>\n", stdout);
		}
	fputs("</section>\n", stdout);
}

/* --- page ---------------------------------------------------------------- */

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
	fputs("</p>\n", stdout);
	gmtime_r(&t, &tm);
	strftime(machine, sizeof(machine), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strftime(person, sizeof(person), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("<time datetime=\"%s\">%s</time>", machine, person);
	fputs("\n</header>\n<main>\n", stdout);
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

void
html_print(const struct model *m, long refresh, bool served)
{
	const struct mq_queue_stats *q = m->stats.queues;
	const struct mq_queue_stats **rows;
	struct table t;
	size_t k;
	int i, n = m->stats.count;

	print_head(m, refresh, served);
	/* What the numbers lack. */
	fputs("<section id=\"missing\">\n", stdout);
	for (k = 0; k < m->lacks.n; k++)
		print_note(m->lacks.list[k].name, "", "");
	for (i = 0; i < n; i++)
		if (!q[i].known)
			print_note(q[i].name, ": no such queue",
			    m->elsewhere.list[i].name);
	fputs("</section>\n", stdout);
	tables_fill(m, false, 0, &t);
	print_section("Queues", "queues",
	    n > 0 ? "No queue has a message." : "There is no queue yet.", &t,
	    NULL);
	running_fill(m, m->stats.now_ms, &t);
	print_section("Running", "running", NULL, &t, NULL);
	reasons_fill(m, &t);
	print_section("Reasons of rejected messages", "reasons", NULL, &t, m);
	rejected_fill(m, &t);
	print_section("Newest rejected messages", "newest", NULL, &t, NULL);
	tables_fill(m, true, 0, &t);
	print_section(
	    "Connections and their queues", "connections", NULL, &t, NULL);
	/* What was, for the script: of each queue as in the table, whether another
	 * one counts what is in it, minutes, and hours. */
	rows = order_rows(m, &n, &i);
	fputs("<p id=\"past\" hidden>[", stdout);
	for (i = 0; i < n && m->stats.past; i++) {
		printf("%s[%d", i > 0 ? ",\n" : "", rows[i]->refuse);
		print_past(&rows[i]->past[MQ_MINUTES]);
		print_past(&rows[i]->past[MQ_HOURS]);
		fputs("]", stdout);
	}
	fputs("]</p>\n", stdout);
	free(rows);
	printf("</main>\n<footer>mq-tools " MQ_VERSION "</footer>\n"
	       "<script>%s</script>\n</body>\n</html>\n",
	    page_js);
}
