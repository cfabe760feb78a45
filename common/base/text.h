/* What is written inside of texts: UTF-8, tokens, numbers, base64, URLs, passwords. */
#ifndef MQ_TEXT_H
#define MQ_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "say.h"

/* --- UTF-8 -------------------------------------------------------------- */

/* Bytes of the UTF-8 character that starts here; 0 when none does. */
size_t mq_utf8_len(const char *, size_t n);
/* Whether all n bytes are UTF-8. */
bool mq_utf8(const char *, size_t n);
/* Whether a byte is inside of a character, and begins none. */
static inline bool
mq_utf8_inside(char c)
{
	return (c & 0xc0) == 0x80;
}
/* The bytes of the character at p, 1 if there is none; *odd: its number, if it is a
 * control character beyond ASCII's first 32, is not seen, or turns the direction of what
 * stands around it; else 0. */
size_t mq_utf8_odd(const char *, size_t n, uint32_t *odd);
/* The length in units of UTF-16, as node counts it. */
long long mq_utf16_units(const char *, size_t n);

/* A name as UTF-8, no two names alike: \xNN is a byte that is not UTF-8, or a backslash
 * before what would be taken for one. */
extern const struct mq_view mq_name;

/* The characters of names of headers and methods, as RFC 9110 has them.  No <ctype.h>: its
 * answers depend on the locale. */
#define MQ_TOKEN                                                               \
	"!#$%&'*+-.^_`|~0123456789"                                            \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* The whole number of n digits at s, which anybody may have written.  A number beyond max
 * counts as max.  -1: the bytes are none. */
int64_t mq_number(const char *s, size_t n, int64_t max);

/* --- base64 ------------------------------------------------------------- */

/* Base64 of RFC 4648, section 4: the standard alphabet, padded, without white space.
 * b64_pton(3) of libresolv skips white space and is no function of libc, hence our
 * own. */
void mq_base64_encode(struct mq_buf *out, const char *, size_t n);

/* Appends the bytes.  Returns 0, or -1 and adds nothing when the text is not
 * exactly what an encoder writes. */
int mq_base64_decode(struct mq_buf *out, const char *, size_t n);

/* --- URLs --------------------------------------------------------------- */

/* Decodes the n bytes at s, which hold no NUL: %XX is the byte with that hexadecimal
 * number.  *out is a text that the caller frees; for n 0 it stays unchanged.  Returns
 * NULL, or a constant text that says what is wrong (free *out anyway). */
const char *mq_percent_decode(const char *s, size_t n, char **out);

/* Encodes blanks, control characters and the special ones.  Other bytes, those over 127
 * too, stay as they are.  The caller frees. */
char *mq_percent_encode(const char *s, const char *special);

/* Sets *start and *len, in bytes, to where the password of a URL is, which may be invalid
 * or any other text; both 0: there is none. */
void mq_password_find(const char *s, size_t *start, size_t *len);

/* Replaces the password, if there is one, by at most "***". */
void mq_password_hide(char *s);

#endif
