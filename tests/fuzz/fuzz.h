/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What the fuzz targets share.  A target takes an input apart and asserts what
 * must hold; see run.sh for how they are run.
 */
#ifndef MQ_FUZZ_H
#define MQ_FUZZ_H

#undef NDEBUG /* what is asserted is what is tested */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct fuzz_input {
	const uint8_t *p;
	size_t n;
};

/* The next byte; 0 when there is none. */
static inline uint8_t
fuzz_byte(struct fuzz_input *in)
{
	if (in->n == 0)
		return 0;
	in->n--;
	return *in->p++;
}

/* The next n bytes, or what is left of them, as a string of their own size
 * (up to a NUL); the caller frees. */
static inline char *
fuzz_string(struct fuzz_input *in, size_t n)
{
	char *s;

	if (n > in->n)
		n = in->n;
	s = mq_xcalloc(n + 1, 1);
	if (n > 0)
		memcpy(s, in->p, n);
	in->p += n;
	in->n -= n;
	return s;
}

/* Sizes of the pieces that an input comes in, 1 to 64; the first state is the
 * seed. */
static inline size_t
fuzz_piece(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return 1 + (*state >> 24) % (1 + (*state >> 8) % 64);
}

/* Whether the strings are the same, or both NULL. */
static inline int
fuzz_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

#endif
