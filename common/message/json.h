/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * JSON text to a value and back.  Programs let jansson allocate with mq_xmalloc(), which
 * never fails, so that a lack of memory is never taken for bad data.
 */
#ifndef MQ_JSON_H
#define MQ_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "base/names.h"

/*
 * Parses any JSON value; strings may hold NULs.  NULL: the text is no JSON.  jansson has no
 * names with NUL: there, NUL becomes U+FDD0 and a 0, and U+FDD0 becomes two of it.
 * lenient, like Go: in strings, each byte that is not UTF-8 and each half of a surrogate
 * pair becomes U+FFFD.
 */
json_t *mq_json_load(const char *, size_t n, bool lenient);

/* Appends the value on one compact line, members in their order, names as mq_json_load()
 * read them. */
void mq_json_dump(const json_t *, struct mq_buf *out);

/* Appends the bytes as a JSON string.  False, and nothing is appended: the bytes are not
 * UTF-8. */
bool mq_json_add_text(struct mq_buf *out, const char *, size_t n);

/* A JSON string; bytes that are not UTF-8 become '?'.  NULL for NULL. */
json_t *mq_json_text(const char *);

/* A JSON string of a name, as mq_name shows it.  NULL for NULL. */
json_t *mq_json_name(const char *);

/* The names of a list, without their queues. */
json_t *mq_json_names(const struct mq_names *);

/* Sets a member of an object, which takes the value; NULL: does nothing. */
void mq_json_set(json_t *object, const char *name, json_t *value);

#endif
