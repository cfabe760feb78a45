/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Reading clocks. */
#ifndef MQ_CLOCK_H
#define MQ_CLOCK_H

#include <time.h>

#include <stdint.h>

/* Seconds by a clock of clock_gettime(2). */
static inline double
mq_clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Seconds of a clock that nobody can set and that counts while the machine sleeps. */
static inline double
mq_clock_steady_s(void)
{
	return mq_clock_s(CLOCK_BOOTTIME);
}

static inline int64_t
mq_clock_steady_us(void)
{
	return (int64_t)(mq_clock_steady_s() * 1e6);
}

static inline int64_t
mq_clock_steady_ms(void)
{
	return mq_clock_steady_us() / 1000;
}

/* Unix time in microseconds, by this machine. */
static inline int64_t
mq_clock_unix_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

#endif
