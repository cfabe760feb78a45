/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

/* Room for "*N $7 EVALSHA $40 sha $n keys" with its line ends. */
#define HEAD 128

void
mq_command_plain(struct mq_command *c, const char *words)
{
	mq_command_script(c, NULL);
	mq_command_words(c, words);
}

void
mq_command_script(struct mq_command *c, const struct mq_script *script)
{
	c->script = script;
	c->keys = c->args = c->owner = 0;
	c->optional = c->transaction = c->repeats = false;
	c->slot = -1;
	mq_buf_clear(&c->wire);
	mq_buf_reserve(&c->wire, HEAD);
	c->wire.len = HEAD;
}

/* Writes "$n\r\n", or "*n\r\n", and returns its end. */
static char *
put_number(char *to, char kind, size_t n)
{
	*to++ = kind;
	return mempcpy(mq_digits(to, n), "\r\n", 2);
}

size_t
mq_command_parts(struct mq_command *c, const struct mq_part *part, int n)
{
	size_t total = 0;
	char *to;
	int i;

	for (i = 0; i < n; i++)
		total += part[i].n;
	to = put_number(mq_buf_reserve(&c->wire, total + 32), '$', total);
	for (i = 0; i < n; i++)
		if (part[i].n > 0)
			to = mempcpy(to, part[i].p, part[i].n);
	to = mempcpy(to, "\r\n", 2);
	/* hiredis 0.14 reads one byte behind the last argument. */
	*to = '\0';
	c->wire.len = (size_t)(to - c->wire.data);
	c->args++;
	return total;
}

void
mq_command_key(struct mq_command *c, const struct mq_part *part, int n)
{
	size_t total;

	c->keys += c->keys == c->args;
	total = mq_command_parts(c, part, n);
	if (c->cluster && c->slot == -1)
		c->slot = mq_slot_of(
		    c->wire.data + c->wire.len - strlen("\r\n") - total, total);
}

const char *
mq_command_keys(struct mq_command *c)
{
	assert(c->owner < MQ_KEY_OWNERS && c->script->keys[c->owner] != NULL);
	return c->script->keys[c->owner++];
}

void
mq_command_arg(struct mq_command *c, const void *p, size_t n)
{
	mq_command_parts(c, &(struct mq_part){p, n}, 1);
}

struct mq_arg
mq_bytes(const void *p, size_t n)
{
	return (struct mq_arg){MQ_ARG_BYTES, {.bytes = {p, n}}};
}

struct mq_arg
mq_str(const char *s)
{
	return mq_bytes(s, strlen(s));
}

struct mq_arg
mq_int(long long number)
{
	return (struct mq_arg){MQ_ARG_INT, {.number = number}};
}

struct mq_arg
mq_real(double real)
{
	return (struct mq_arg){MQ_ARG_REAL, {.real = real}};
}

static void
add_arg(struct mq_command *c, const struct mq_arg *arg)
{
	switch (arg->kind) {
	case MQ_ARG_NONE:
		break;
	case MQ_ARG_BYTES:
		mq_command_arg(c, arg->as.bytes.p, arg->as.bytes.n);
		break;
	case MQ_ARG_INT:
		mq_command_int(c, arg->as.number);
		break;
	case MQ_ARG_REAL:
		mq_command_fmt(c, "%.6f", arg->as.real);
		break;
	}
}

void
mq_command_argv(struct mq_command *c, const void *argv, size_t size)
{
	const struct mq_script *script = c->script;
	const struct mq_arg *arg = argv;
	int i, n = 0, most = (int)(size / sizeof(*arg));

	for (i = 0; i < most; i++) {
		assert(arg[i].kind == MQ_ARG_NONE || n == i);
		n += arg[i].kind != MQ_ARG_NONE;
		add_arg(c, &arg[i]);
	}
	assert(most == script->most_args && n >= script->fewest_args);
	assert(c->keys >= script->fewest_keys && c->keys <= script->most_keys);
}

void
mq_command_str(struct mq_command *c, const char *s)
{
	mq_command_arg(c, s, strlen(s));
}

void
mq_command_words(struct mq_command *c, const char *words)
{
	size_t n;

	do {
		n = strcspn(words, " ");
		mq_command_arg(c, words, n);
		words += n;
	} while (*words++ != '\0');
}

void
mq_command_fmt(struct mq_command *c, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_command_str(c, s);
	free(s);
}

void
mq_command_int(struct mq_command *c, long long v)
{
	char s[32];

	mq_command_arg(c, s, (size_t)snprintf(s, sizeof(s), "%lld", v));
}

/* The head grows backwards from the arguments into the gap. */
const char *
mq_command_wire(struct mq_command *c, size_t *n)
{
	char head[HEAD];
	int len;

	if (c->script == NULL)
		len = (int)(put_number(head, '*', (size_t)c->args) - head);
	else
		len = snprintf(head, sizeof(head),
		    "*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$%d\r\n%d\r\n",
		    c->args + 3, c->script->sha,
		    snprintf(NULL, 0, "%d", c->keys), c->keys);
	memcpy(c->wire.data + HEAD - len, head, (size_t)len);
	*n = c->wire.len - HEAD + (size_t)len;
	return c->wire.data + HEAD - len;
}

void
mq_command_tail(
    struct mq_command *c, const struct mq_command *of, size_t from, int n)
{
	mq_buf_add(&c->wire, of->wire.data + from, of->wire.len - from);
	/* hiredis 0.14 reads one byte behind the last argument. */
	(void)mq_buf_str(&c->wire);
	c->args += n;
}

struct mq_command
mq_command_eval(const struct mq_command *c)
{
	struct mq_command eval = {.cluster = c->cluster};

	mq_command_plain(&eval, "EVAL");
	mq_command_str(&eval, c->script->text);
	mq_command_int(&eval, c->keys);
	mq_command_tail(&eval, c, HEAD, c->args);
	eval.slot = c->slot;
	eval.optional = c->optional;
	return eval;
}

void
mq_command_free(struct mq_command *c)
{
	mq_buf_free(&c->wire);
	c->args = 0;
}

/* --- slot ---------------------------------------------------------------- */

int
mq_slot_of(const char *key, size_t n)
{
	const char *open = memchr(key, '{', n), *close = NULL;
	uint16_t crc = 0;
	int bit;

	if (open != NULL)
		close = memchr(open, '}', n - (size_t)(open - key));
	if (close != NULL && close > open + 1) {
		key = open + 1;
		n = (size_t)(close - key);
	}
	for (; n > 0; key++, n--) {
		crc ^= (uint16_t)((unsigned char)*key << 8);
		for (bit = 0; bit < 8; bit++)
			crc =
			    (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
	}
	return crc % MQ_SLOTS;
}
