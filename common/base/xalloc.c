/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "say.h"

static void *
checked_memory(void *p)
{
	if (p == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	return p;
}

void *
mq_xmalloc(size_t n)
{
	return checked_memory(malloc(n));
}

void *
mq_xcalloc(size_t n, size_t size)
{
	return checked_memory(calloc(n, size));
}

void *
mq_xreallocarray(void *p, size_t n, size_t size)
{
	return checked_memory(reallocarray(p, n, size));
}

char *
mq_xstrdup(const char *s)
{
	return s == NULL ? NULL : checked_memory(strdup(s));
}

char *
mq_xstrndup(const char *s, size_t n)
{
	return checked_memory(strndup(s, n));
}

char *
mq_xvasprintf(const char *fmt, va_list ap)
{
	char *s;
	int n = vasprintf(&s, fmt, ap);

	return checked_memory(n == -1 ? NULL : s);
}

char *
mq_xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = mq_xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}
