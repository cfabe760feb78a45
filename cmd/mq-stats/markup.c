#include "markup.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

/* Bytes of names and of texts that are shown. */
#define NAME_MAX_SHOWN 512
#define TEXT_MAX_SHOWN 300

/* The entity of a character; NULL: it stands for itself. */
static const char *
entity_of(uint32_t c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void
print_char(const char *p, uint32_t c, size_t len)
{
	const char *text = len > 0 ? entity_of(c) : NULL;

	if (len == 0)
		printf("<span class=\"esc\">\\x%02x</span>", (unsigned char)*p);
	else if (c < 0x100 && text_odd(c))
		printf("<span class=\"esc\">\\x%02x</span>", (unsigned)c);
	else if (text_odd(c))
		printf("<span class=\"esc\">\\u%04x</span>", (unsigned)c);
	else if (text != NULL)
		fputs(text, stdout);
	else
		fwrite(p, 1, len, stdout);
}

/* A text that is cut ends with an ellipsis. */
static void
print_text(const char *p, size_t n, size_t max)
{
	size_t i, len;
	uint32_t c = 0;

	for (i = 0; i < n && i<max; i += len> 0 ? len : 1) {
		len = text_char(p + i, n - i, &c);
		print_char(p + i, c, len);
	}
	if (i < n)
		fputs("\xe2\x80\xa6", stdout);
}

void
html_text(const char *s)
{
	const char *text;

	for (; *s != '\0'; s++) {
		text = entity_of((unsigned char)*s);
		if (text != NULL)
			fputs(text, stdout);
		else if ((unsigned char)*s >= ' ' && *s != 0x7f)
			putchar(*s);
		else
			putchar('?');
	}
}

void
html_name(const char *s)
{
	print_text(s, strlen(s), NAME_MAX_SHOWN);
}

void
html_cell(const char *class, const char *label, const char *text)
{
	printf("<td class=\"%s\" data-l=\"%s\">", class, label);
	if (text != NULL && *text != '\0')
		print_text(text, strlen(text), TEXT_MAX_SHOWN);
	else
		fputs(HTML_DASH, stdout);
	fputs("</td>", stdout);
}

void
html_grouped(long long n)
{
	char digits[24];
	int i, len = snprintf(digits, sizeof(digits), "%lld", n);

	if (n < 0) {
		putchar('?');
		return;
	}
	for (i = 0; i < len; i++) {
		putchar(digits[i]);
		if (i + 1 < len && (len - 1 - i) % 3 == 0)
			putchar(',');
	}
}

void
html_number(const char *label, long long n, const char *more_class)
{
	printf("<td class=\"n%s%s\" data-l=\"%s\" data-v=\"%lld\">",
	    n == 0 ? " zero" : "", n <= 0 ? "" : more_class, label, n);
	html_grouped(n);
	fputs("</td>", stdout);
}

void
html_rate(const char *label, double per_s)
{
	if (per_s < 0)
		printf(
		    "<td class=\"n zero\" data-l=\"%s\" data-v=\"-1\">" HTML_DASH
		    "</td>",
		    label);
	else
		printf("<td class=\"n%s\" data-l=\"%s\" data-v=\"%.3f\">%.1f"
		       "</td>",
		    per_s < 0.05 ? " zero" : "", label, per_s, per_s);
}

void
html_age(const char *label, int64_t now_ms, int64_t since_ms)
{
	char age[TEXT_AGE];
	long long ms = now_ms > since_ms ? now_ms - since_ms : 0;

	if (since_ms > 0) {
		text_age_since(age, now_ms, since_ms);
		printf("<td class=\"n\" data-l=\"%s\" data-v=\"%lld\">%s</td>",
		    label, ms, age);
		return;
	}
	printf("<td class=\"n zero\" data-l=\"%s\" data-v=\"%d\">%s</td>",
	    label, since_ms == 0 ? -1 : 0, since_ms == 0 ? HTML_DASH : "?");
}

static void
print_table_head(const char *const *p)
{
	bool number;

	fputs("<thead><tr>", stdout);
	for (; *p != NULL; p += 2) {
		number = p[1][0] == '#';
		printf("<th scope=\"col\" data-k=\"%s\"%s>%s</th>", p[0],
		    number ? " class=\"n\"" : "", p[1] + number);
	}
	fputs("</tr></thead>\n<tbody>\n", stdout);
}

void
html_section(const char *title, long long n, const char *note, const char *id,
    const char *const *head)
{
	printf("<section>\n<h2>%s <small>", title);
	html_grouped(n);
	fputs("</small></h2>\n", stdout);
	if (n == 0) {
		printf("<p class=\"note\">%s</p>\n", note);
		return;
	}
	printf("<div class=\"card\"><table id=\"%s\">\n", id);
	print_table_head(head);
}

void
html_table_end(long long n)
{
	if (n > 0)
		fputs("</tbody></table></div>\n", stdout);
}
