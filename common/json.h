/*
 * JSON text to a value and back.  Out of memory ends the program (see
 * xalloc.h), so that it is never taken for bad data.
 */
#ifndef MQ_JSON_H
#define MQ_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "buf.h"

/* Any JSON value, its strings with NULs if they have any; NULL when the text
 * is no JSON.  jansson refuses an object whose names hold NUL. */
json_t *mq_json_load(const char *, size_t n);

/* Appends the value on one line, compact, members in their order. */
void mq_json_dump(const json_t *, struct mq_buf *out);

/* A JSON string; bytes that are not UTF-8 become '?'. */
json_t *mq_json_text(const char *);

/* Ends the program unless ok: the jansson call had no memory. */
void mq_json_must(bool ok);

/* Bytes of the UTF-8 character that starts here; 0 when none does. */
size_t mq_utf8_len(const char *, size_t n);
/* Whether all of it is UTF-8. */
bool mq_utf8(const char *, size_t n);

#endif
