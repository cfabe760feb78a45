/*
 * Base64 of RFC 4648, section 4: the standard alphabet, padded, without white
 * space.  b64_pton(3) of libresolv skips white space and is no function of
 * libc, hence our own.
 */
#ifndef MQ_BASE64_H
#define MQ_BASE64_H

#include <stddef.h>

#include "buf.h"

void mq_base64_encode(struct mq_buf *out, const char *, size_t n);

/* Appends the bytes.  Returns 0, or -1 and adds nothing when the text is not
 * exactly what an encoder writes. */
int mq_base64_decode(struct mq_buf *out, const char *, size_t n);

#endif
