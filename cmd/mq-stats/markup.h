/* Writing HTML to stdout. */
#ifndef MQ_STATS_MARKUP_H
#define MQ_STATS_MARKUP_H

#include "table.h"

/* Text from anywhere, for content and for values in double quotes: what means
 * something to HTML, and what could drive or mislead a terminal, is escaped. */
void html_text(const char *);

/* "12,345" */
void html_grouped(long long n);

/* Opens a section, which the caller closes, with a table; where that has no rows,
 * with a note.  Frees the table. */
void html_section(
    const char *title, const char *id, const char *note, struct table *);

#endif
