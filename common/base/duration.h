/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Durations and points in time as users write them. */
#ifndef MQ_DURATION_H
#define MQ_DURATION_H

#include <stdint.h>

/*
 * "500ms", "10s", "5m", "2h", "1d", "1w", or several, the larger unit first
 * ("1h30m"); a bare number is seconds, and a decimal fraction is allowed
 * ("0.5s").  Stores milliseconds, 0 to 100 years, rounded down.
 * Returns 0, or -1 when s is anything else; *ms is then unchanged.
 */
int mq_duration_parse(const char *s, int64_t *ms);

#define MQ_TIME_MAX 253402300799999LL /* the end of the year 9999, unix ms */

/*
 * A point in time: RFC 3339 ("2026-11-21T08:00:00Z", "...+02:00", with or
 * without a fraction; the seconds may be missing), the same in local time
 * without a zone ("2026-11-21", "2026-11-21 08:00", "2026-11-21T08:00:05"),
 * "HH:MM", "HH:MM:SS" or "HHMM", also "9:00", "9am" or "9:30 pm" (the next such
 * local time after now_ms), and unix seconds ("@7", or of nine digits or more:
 * "1795207725.5").  Stores unix milliseconds, 1970 to 9999.  Returns 0, or -1 when s
 * is anything else or no such time exists (hour 25, February 30, an hour that summer
 * time skips); *ms is then unchanged.
 */
int mq_time_parse(const char *s, int64_t now_ms, int64_t *ms);

#endif
