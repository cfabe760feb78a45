/*
 * UTF-8.
 */
#ifndef MQ_UTF8_H
#define MQ_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character that starts here; 0 when none does. */
size_t mq_utf8_len(const char *, size_t n);
/* Whether all n bytes are UTF-8. */
bool mq_utf8(const char *, size_t n);
/* The length in units of UTF-16, as node counts it. */
long long mq_utf16_units(const char *, size_t n);

#endif
