/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* If there is no memory, allocation ends the program (exit 75, one line on stderr), since
 * claimed messages are safe in the server. */
#ifndef MQ_XALLOC_H
#define MQ_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

void *mq_xmalloc(size_t);
void *mq_xcalloc(size_t n, size_t size);
void *mq_xreallocarray(void *, size_t n, size_t size);
char *mq_xstrdup(const char *); /* NULL for NULL */
char *mq_xstrndup(const char *, size_t);
char *mq_xvasprintf(const char *fmt, va_list)
    __attribute__((format(printf, 1, 0)));
char *mq_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
