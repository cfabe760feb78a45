/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The floor common/base: memory, buffers, text, time, ids, lists, exit statuses and
 * messages to people.  Files here call libc, libbsd and each other.
 *
 * struct mq_buf is a growable run of bytes, NULs included; only mq_buf_str() terminates
 * it.  If memory runs out, the program ends (see xalloc.h).
 */
#ifndef MQ_BUF_H
#define MQ_BUF_H

#include <stddef.h>

struct mq_buf {
	char *data; /* NULL while cap is 0 */
	size_t len; /* bytes in use */
	size_t cap; /* bytes allocated */
};

/* Makes room for n more bytes and returns where they go; len is unchanged. */
char *mq_buf_reserve(struct mq_buf *, size_t n);
void mq_buf_add(struct mq_buf *, const void *, size_t n);
/* Replaces the content. */
void mq_buf_set(struct mq_buf *, const void *, size_t n);
void mq_buf_addstr(struct mq_buf *, const char *);
void mq_buf_printf(struct mq_buf *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends n bytes as mq_visible() makes them fit for a terminal; newlines and tabs stay. */
void mq_buf_visible(struct mq_buf *, const char *p, size_t n);

/* Appends a word to a command line, quoted for a shell. */
void mq_buf_add_word(struct mq_buf *line, const char *word);

/* The content with a NUL behind it (which len does not count). */
char *mq_buf_str(struct mq_buf *);

/* Removes the first n bytes, which the buffer has. */
void mq_buf_drop(struct mq_buf *, size_t n);

/* Empties the buffer and keeps its memory. */
void mq_buf_clear(struct mq_buf *);

/* Frees the memory; the buffer can be used again. */
void mq_buf_free(struct mq_buf *);

#endif
