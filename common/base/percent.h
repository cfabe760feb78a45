/* Percent-encoding of URLs: %XX is the byte with that hexadecimal number. */
#ifndef MQ_PERCENT_H
#define MQ_PERCENT_H

#include <stddef.h>

/*
 * Decodes the n bytes at s, which hold no NUL.  *out is a text that the caller frees;
 * for n 0 it stays unchanged.  Returns NULL, or a constant text that says what is
 * wrong (free *out anyway).
 */
const char *mq_percent_decode(const char *s, size_t n, char **out);

/*
 * Encodes blanks, control characters and the special ones.  Other bytes, those over
 * 127 too, stay as they are.  The caller frees.
 */
char *mq_percent_encode(const char *s, const char *special);

#endif
