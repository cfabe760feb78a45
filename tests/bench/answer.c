/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * A worker for mq-consume --stream that does nothing: reads lines in blocks,
 * and answers each with "done".
 */
#include <err.h>
#include <string.h>
#include <unistd.h>

#define VERBS 3

static char in[65536], out[5 * sizeof(in)];

int
main(void)
{
	const char *p, *end;
	size_t len, at;
	ssize_t n;

	while ((n = read(0, in, sizeof(in))) > 0) {
		len = 0;
		end = in + n;
		for (p = in; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
		     p++) {
			memcpy(out + len, "done\n", 5);
			len += 5;
		}
		for (at = 0; at < len; at += (size_t)n) {
			n = write(VERBS, out + at, len - at);
			if (n == -1)
				err(74, "write");
		}
	}
	return 0;
}
