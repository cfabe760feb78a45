/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Parts of texts: UTF-8, tokens, numbers, base64, URLs, passwords. */
#ifndef MQ_TEXT_H
#define MQ_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "say.h"

/* --- UTF-8 -------------------------------------------------------------- */

/* Bytes of the valid UTF-8 character at the beginning; 0: there is none. */
size_t mq_utf8_len(const char *, size_t n);
/* Whether all n bytes are UTF-8. */
bool mq_utf8(const char *, size_t n);
/* Whether a byte continues a UTF-8 character. */
static inline bool
mq_utf8_inside(char c)
{
	return (c & 0xc0) == 0x80;
}
/* Bytes of the character at p, 1 if it is invalid.  *odd becomes its number if it is a
 * control character beyond ASCII's first 32, is invisible, or turns the direction of the
 * text around it; else 0. */
size_t mq_utf8_odd(const char *, size_t n, uint32_t *odd);
/* The length in units of UTF-16, as node counts it. */
long long mq_utf16_units(const char *, size_t n);

/* Shows different names differently: \xNN is a byte that is not UTF-8, or a backslash that
 * would otherwise begin such a \xNN. */
extern const struct mq_view mq_name;

/* The characters of header names and methods (RFC 9110).  <ctype.h> depends on the
 * locale. */
#define MQ_TOKEN                                                               \
	"!#$%&'*+-.^_`|~0123456789"                                            \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* The number of n digits at s, from an untrusted source; max if it is greater.  -1: there
 * is another byte than a digit, or none at all. */
int64_t mq_number(const char *s, size_t n, int64_t max);
#define MQ_DIGITS ((size_t)20) /* at most, of a size_t */
/* Writes n's digits without a NUL, and returns their end: snprintf(3) took most of the time of
 * publishing. */
char *mq_digits(char *to, size_t n);

/* --- base64 ------------------------------------------------------------- */

/* Base64 of RFC 4648, section 4: the standard alphabet, padded, without white space, which
 * b64_pton(3) of libresolv would skip. */
void mq_base64_encode(struct mq_buf *out, const char *, size_t n);

/* Appends the bytes.  Returns 0, or -1 and adds nothing when the text is not
 * exactly what an encoder writes. */
int mq_base64_decode(struct mq_buf *out, const char *, size_t n);

/* --- URLs --------------------------------------------------------------- */

/* Decodes %XX in the n bytes at s, which hold no NUL.  The caller frees *out, which stays
 * unchanged for n 0.  Returns NULL, or a constant text that says what is wrong (free *out
 * anyway). */
const char *mq_percent_decode(const char *s, size_t n, char **out);

/* Encodes blanks, control characters and the special ones, but no bytes over 127.  The
 * caller frees. */
char *mq_percent_encode(const char *s, const char *special);

/* Finds the password in a URL, valid or not, or in any other text: it is *len bytes at
 * s + *start.  Without one, both are 0. */
void mq_password_find(const char *s, size_t *start, size_t *len);

/* Replaces the password by one '*' for each character, three at most. */
void mq_password_hide(char *s);

#endif
