#include "stats.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vis.h>

#include "base/xalloc.h"

static void
print_char(char c)
{
	switch (c) {
	case '&':
		fputs("&amp;", stdout);
		break;
	case '<':
		fputs("&lt;", stdout);
		break;
	case '>':
		fputs("&gt;", stdout);
		break;
	case '"':
		fputs("&quot;", stdout);
		break;
	default:
		putchar(c);
	}
}

/* Visible on a terminal; a page shows what nobody sees there, too. */
static void
print_visible(const char *s)
{
	size_t n = strlen(s), len;
	uint32_t c;

	while (n > 0) {
		len = text_char(s, n, &c);
		if (len > 1 && text_odd(c))
			printf("\\u%04x", (unsigned)c);
		else if (len > 1)
			fwrite(s, 1, len, stdout);
		else
			print_char(*s);
		len = len > 0 ? len : 1;
		s += len;
		n -= len;
	}
}

void
html_text(const char *s)
{
	char *text = text_visible(s, strlen(s));

	print_visible(text);
	free(text);
}

static void
print_digits(const char *s)
{
	for (; *s != '\0'; s++) {
		putchar(*s);
		if (s[1] != '\0' && strlen(s + 1) % 3 == 0)
			putchar(',');
	}
}

void
html_grouped(long long n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", n);
	print_digits(digits);
}

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

static void
print_heads(const struct table *t, const bool *has)
{
	int j;

	fputs("<thead><tr>", stdout);
	for (j = 0; j < t->count; j++)
		if (has[j]) {
			printf("<th scope=\"col\" class=\"%c\">",
			    t->columns[j]->kind <= KIND_TEXTS ? 't' : 'n');
			print_title(t->columns[j]->title);
			fputs("</th>", stdout);
		}
	fputs("</tr></thead>\n", stdout);
}

static void
print_table(const struct table *t)
{
	size_t rows = table_rows(t);
	bool *has = mq_xcalloc((size_t)t->count, sizeof(*has));
	int j;

	for (j = 0; j < t->count; j++)
		has[j] = t->columns[j]->kind != KIND_SPARK && table_has(t, j);
	fputs("<div class=\"card\"><table>\n", stdout);
	print_heads(t, has);
	fputs("<tbody>\n", stdout);
	print_rows(t, has, 0, rows);
	fputs("</tbody>\n<tfoot>\n", stdout);
	print_rows(t, has, rows, rows + t->rest + t->total);
	fputs("</tfoot>\n</table></div>\n", stdout);
	free(has);
}

void
html_section(
    const char *title, const char *id, const char *note, struct table *t)
{
	size_t rows = table_rows(t);

	printf("<section id=\"%s\">\n", id);
	if (rows > 0) {
		printf("<h2>%s <small>", title);
		html_grouped((long long)rows);
		fputs("</small></h2>\n", stdout);
		print_table(t);
	} else if (note != NULL) {
		printf("<p class=\"note\">%s</p>\n", note);
	}
	table_free(t);
}
