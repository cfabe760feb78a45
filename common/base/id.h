/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Message ids, in the format of RSMQ: 10 base-36 digits (0-9a-z, lower case) of the
 * unix time in microseconds and 22 random characters of [A-Za-z0-9].  Ids sort by the
 * time of publishing. */
#ifndef MQ_ID_H
#define MQ_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQ_ID_LEN 32

/* A source of ids; starts zeroed.  After fork(2), parent and child must not both use one
 * pool: they would make equal ids. */
struct mq_idgen {
	unsigned char pool[1024];
	size_t left; /* unused bytes at the end of pool */
};

/* Writes the id of a message published at us (unix time in microseconds), and a NUL.  Ten
 * digits last until the year 2085; then the order of ids starts again. */
void mq_id_make(struct mq_idgen *, uint64_t us, char out[MQ_ID_LEN + 1]);

/* Writes n random characters of [A-Za-z0-9] and a NUL. */
void mq_id_random(struct mq_idgen *, char *out, size_t n);

/* Whether the n bytes at p have the form of an id: [A-Za-z0-9:]{32}. */
bool mq_id_valid(const char *p, size_t n);

/* Whether the n bytes at p can be the id of another program's message: 1 to MQ_ID_MAX of
 * [A-Za-z0-9:_-], the first not '-'.  Such an id can be a word, a file name and part of a
 * URL. */
#define MQ_ID_MAX 128
bool mq_id_safe(const char *p, size_t n);

/* The unix time in microseconds that a valid id carries; 0: another program made the id,
 * and its first ten characters are no base-36 digits. */
uint64_t mq_id_time(const char *id);

#endif
