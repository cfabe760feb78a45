/*
 * The floor common/message: what a message is, as bytes and as a value: envelope,
 * headers, framing, history, result, the verbs of a script and the verdict.  Pure:
 * the only system call is the read(2) of frame.c.  Files here may call common/base
 * and jansson.  Nothing here knows where a message is kept, or sends anything.
 *
 * The message envelope of adjust/rmq: an element of a queue list is either
 * the bare payload, or
 *
 *	FF 00 BE BE 4A, a JSON object on one line, \n, payload
 *
 * where the object is Go's http.Header: name -> list of strings, names in
 * canonical form (X-Trace-Id).  The library accepts {}, null, and values that
 * are null or [], and takes a null inside a list for "".  It rejects a message
 * whose header has no newline, does not parse, or has any other value.  Bytes of
 * strings that are not Unicode become U+FFFD, there and here.
 * Elements and payloads are bytes and may hold NUL, and so may header names (see
 * json.h) and values.
 */
#ifndef MQ_ENVELOPE_H
#define MQ_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"

struct mq_envelope {
	/* Object or JSON null (owned), or NULL: the element is raw.  An
	 * object's values are lists of strings, or null. */
	json_t *headers;
	const char *payload; /* into the element, or whatever the user set */
	size_t payload_len;
};

/* Whether the bytes begin as a header does; every reader takes them for one. */
bool mq_envelope_signed(const char *, size_t n);

/*
 * Takes an element apart.  payload points into it; mq_envelope_free() frees
 * the headers.  Returns 0, or -1 when the header is bad: *why is then a
 * constant text ("header without end") and nothing needs freeing.
 */
int mq_envelope_parse(
    const char *element, size_t len, struct mq_envelope *, const char **why);
void mq_envelope_free(struct mq_envelope *);

/* First value of a header, or NULL; valid while the header stays as it is.
 * The name is compared byte by byte.  A NUL in the value ends it early. */
const char *mq_envelope_get(const struct mq_envelope *, const char *name);

/* A header that must be a whole number >= 0: its value, or fallback. */
long mq_envelope_get_long(
    const struct mq_envelope *, const char *name, long fallback);

/* Sets a header to this one value, making headers as needed.  The name must
 * be UTF-8; bytes of value that are not become '?'. */
void mq_envelope_set(struct mq_envelope *, const char *name, const char *value);

/* Adds one more value to a header, as mq_envelope_set() does otherwise.  The
 * name must be canonical. */
void mq_envelope_add(struct mq_envelope *, const char *name, const char *value);

/* Appends the element: the header if there is one, and the payload. */
void mq_envelope_write(const struct mq_envelope *, struct mq_buf *out);

/* Appends signature, JSON and newline only; headers must not be NULL. */
void mq_envelope_write_header(const struct mq_envelope *, struct mq_buf *out);

/*
 * Splits "Name: value" as -H takes it: the name in canonical form (first
 * letter and each letter after '-' upper case, the rest lower), the value
 * without blanks at its ends; it may be empty.  Both are allocated, the caller
 * frees.  Returns 0, or -1 with a constant *why and nothing to free when there
 * is no colon, the name is empty or has a character that RFC 9110 does not
 * allow in a token, or the value is not UTF-8 or holds control characters (a
 * tab inside it, DEL and U+0080 to U+009F included).
 */
int mq_header_split(const char *s, char **name, char **value, const char **why);

#endif
