/* Writing HTML to stdout. */
#ifndef MQ_STATS_MARKUP_H
#define MQ_STATS_MARKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text from anywhere, for content and for values in double quotes: what means
 * something to HTML is escaped. */
void html_text(const char *);

/* A name, for content only, whole or nearly so: characters that cannot be seen, or
 * turn others around, and bytes that are no UTF-8 are shown as vis(3) would. */
void html_name(const char *);

#define HTML_DASH "\xe2\x80\x93"

/* Cells of a table.  label is what stands over them on a narrow screen; a
 * cell sorts by its number, if it has one, else by its text (NULL: a dash). */
void html_number(const char *label, long long n, const char *more_class);
void html_cell(const char *class, const char *label, const char *text);
void html_rate(const char *label, double per_s); /* negative: not known */
void html_age(const char *label, int64_t now_ms, int64_t since_ms);

/* "12,345" */
void html_grouped(long long n);

/* Opens a section, which the caller closes: with a table of n rows that can be
 * sorted, or with a note when n is 0.  The head has pairs of key and title, up to
 * NULL; a title that begins with '#' is of a column of numbers. */
void html_section(const char *title, long long n, const char *note,
    const char *id, const char *const *head);
/* Closes the table of n rows, if there is one. */
void html_table_end(long long n);

#endif
