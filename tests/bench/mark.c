/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Writes the moment at which it was started to stdout: nanoseconds of
 * CLOCK_MONOTONIC, as a binary int64_t.
 */
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int
main(void)
{
	struct timespec ts;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	return write(STDOUT_FILENO, &ns, sizeof(ns)) != sizeof(ns);
}
