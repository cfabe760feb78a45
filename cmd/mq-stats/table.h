/* Tables, for a terminal and for a page. */
#ifndef MQ_STATS_TABLE_H
#define MQ_STATS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "text.h"

enum style { STYLE_PLAIN, STYLE_RED, STYLE_YELLOW };

struct column {
	const char *title;
	bool text;     /* to the left, and cut where there is no room */
	bool optional; /* left out when all its cells are empty */
	bool name;     /* a number that counts nothing: a pid */
};

struct cell {
	size_t at; /* where its text begins */
	int width; /* columns of a terminal */
	enum style style;
	double age_s; /* negative: it is no age */
};

/* Cells are added row by row.  Starts zeroed but for columns, count and total. */
struct table {
	const struct column *columns;
	int count;
	bool total; /* the last row is one */
	bool rest;  /* so is the one before: of rows that are not there */
	struct mq_buf text;
	struct cell *cells;
	size_t used, cap;
};

/* Text from elsewhere: it is made visible. */
void table_name(struct table *, const char *name, enum style);
/* Plain ASCII of ours. */
void table_text(struct table *, const char *text, enum style);
void table_number(struct table *, long long, enum style);
/* since_ms 0: "-", there is none; negative: "?", it is not known. */
void table_age(struct table *, int64_t now_ms, int64_t since_ms);

/* The rows that are no sums. */
size_t table_rows(const struct table *);
/* Whether a column is there: an optional one is when one of its cells has a text. */
bool table_has(const struct table *, int column);

/* Appends the lines of the table; rows that have no room are counted. */
void table_write(const struct table *, const struct view *, struct mq_buf *out);
/* Writes the table to standard output, and frees it. */
void table_print(struct table *);
void table_free(struct table *);

#endif
