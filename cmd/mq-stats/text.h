/*
 * Texts as a terminal, or a person, can stand them.  A text is visible when it holds
 * nothing that could drive or mislead a terminal.
 */
#ifndef MQ_STATS_TEXT_H
#define MQ_STATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

/* Where a text is shown. */
struct view {
	int width;  /* columns; 0: any */
	int height; /* lines, the head included; 0: any */
	bool colour;
};
/* Standard output; on a terminal, the user's locale is set for characters. */
struct view text_view(void);

/* The character that starts at p and its bytes; 0 when none does. */
size_t text_char(const char *p, size_t n, uint32_t *c);
/* Whether it is a control character, is not seen, or turns the direction of
 * what stands around it. */
bool text_odd(uint32_t c);

/* Columns of a visible text. */
int text_width(const char *visible);
/* Appends a visible text, cut to a number of columns with an ellipsis; returns how
 * many it takes. */
int text_cut(struct mq_buf *out, const char *visible, int columns);
/* The end of a visible text instead, for names whose ends differ.  The caller
 * frees. */
char *text_cut_front(const char *visible, int columns);

/* n bytes made visible; the caller frees. */
char *text_visible(const char *p, size_t n);
/* The beginning of n bytes, visible, at most so many columns wide; what is cut
 * ends with an ellipsis.  The caller frees. */
char *text_clipped(const char *p, size_t n, int columns);
/* Prints "name        text", made visible; nothing when text is NULL. */
void text_line(const char *name, const char *text);

/* "12s", "3m", "2h", "1d": whole units, rounded down. */
#define TEXT_AGE 24
void text_age(char out[TEXT_AGE], double seconds);
/* The time from since_ms to now_ms, at least 0; "-" when since_ms is 0. */
void text_age_since(char out[TEXT_AGE], int64_t now_ms, int64_t since_ms);
/* As RFC 3339 has it, in local time. */
#define TEXT_TIME 40
void text_time(char out[TEXT_TIME], int64_t unix_ms);

/* Prints JSON text with characters that could drive or mislead a terminal as
 * \uXXXX, which says the same. */
void text_json(const char *p, size_t n);
/* The same for a value, which is freed, as a line. */
void text_json_line(json_t *);

#endif
