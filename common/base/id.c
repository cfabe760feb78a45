/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "id.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX 10

static const char digits36[] = "0123456789abcdefghijklmnopqrstuvwxyz";
static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Skips the values 62 and 63 of six random bits: 62 characters are then equally likely. */
void
mq_id_random(struct mq_idgen *g, char *out, size_t n)
{
	unsigned char c;
	size_t i = 0;

	while (i < n) {
		if (g->left == 0) {
			arc4random_buf(g->pool, sizeof(g->pool));
			g->left = sizeof(g->pool);
		}
		c = g->pool[sizeof(g->pool) - g->left--] & 63;
		if (c < 62)
			out[i++] = alphabet[c];
	}
	out[n] = '\0';
}

void
mq_id_make(struct mq_idgen *g, uint64_t us, char out[MQ_ID_LEN + 1])
{
	int i;

	for (i = PREFIX; i-- > 0; us /= 36)
		out[i] = digits36[us % 36];
	mq_id_random(g, out + PREFIX, MQ_ID_LEN - PREFIX);
}

/* isalnum(3) would depend on the locale.  In ASCII the colon follows the 9. */
static bool
in_id(char c)
{
	unsigned char letter = (unsigned char)((c | 0x20) - 'a');
	unsigned char digit = (unsigned char)(c - '0');

	return (letter < 26) | (digit <= 10);
}

/* The ids of all messages are checked here: without branches, the compiler vectorises. */
bool
mq_id_valid(const char *p, size_t n)
{
	unsigned char bad = 0;
	size_t i;

	if (n != MQ_ID_LEN)
		return false;
	for (i = 0; i < MQ_ID_LEN; i++)
		bad |= !in_id(p[i]);
	return bad == 0;
}

bool
mq_id_safe(const char *p, size_t n)
{
	size_t i;

	if (n == 0 || n > MQ_ID_MAX || p[0] == '-')
		return false;
	for (i = 0; i < n; i++)
		if (!in_id(p[i]) && p[i] != '_' && p[i] != '-')
			return false;
	return true;
}

uint64_t
mq_id_time(const char *id)
{
	const char *digit;
	uint64_t us = 0;
	int i;

	for (i = 0; i < PREFIX; i++) {
		digit = strchr(digits36, id[i]);
		if (digit == NULL || *digit == '\0')
			return 0;
		us = us * 36 + (uint64_t)(digit - digits36);
	}
	return us;
}
