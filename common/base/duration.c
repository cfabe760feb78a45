/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define DIGITS "0123456789"

/* A number with fewer digits is more likely a mistake than seconds since 1970. */
#define EPOCH_DIGITS 9

#define DURATION_MAX (36525 * DAY) /* 100 years */

static const struct {
	const char *name;
	int64_t ms;
} units[] = {
    {"", SECOND},
    {"ms", 1},
    {"s", SECOND},
    {"m", MINUTE},
    {"h", HOUR},
    {"d", DAY},
    {"w", 7 * DAY},
};

/* The n digits behind a decimal point, times unit, rounded down.  Going from the last digit
 * to the first, no step overflows or loses anything. */
static int64_t
parse_fraction(const char *s, size_t n, int64_t unit)
{
	int64_t r = 0;

	while (n-- > 0)
		r = ((s[n] - '0') * unit + r) / 10;
	return r;
}

/* Bytes of "DIGITS[.DIGITS]" at s; 0: there is none. */
static size_t
decimal_length(const char *s)
{
	size_t n = strspn(s, DIGITS), m;

	if (n == 0 || s[n] != '.')
		return n;
	m = strspn(s + n + 1, DIGITS);
	return m == 0 ? 0 : n + 1 + m;
}

/* The decimal of n bytes at s times unit; -1 when that is more than max. */
static int64_t
parse_decimal(const char *s, size_t n, int64_t unit, int64_t max)
{
	int64_t v = 0;
	size_t i;

	for (i = 0; i < n && s[i] != '.'; i++) {
		v = v * 10 + (s[i] - '0');
		if (v > max / unit)
			return -1;
	}
	v *= unit;
	if (i < n)
		v += parse_fraction(s + i + 1, n - i - 1, unit);
	return v > max ? -1 : v;
}

int
mq_duration_parse(const char *s, int64_t *ms)
{
	int64_t sum = 0, last = INT64_MAX, unit, v;
	size_t n, letters, i;

	do {
		n = decimal_length(s);
		letters = strcspn(s + n, DIGITS ".");
		unit = 0;
		for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (strlen(units[i].name) == letters &&
			    memcmp(s + n, units[i].name, letters) == 0)
				unit = units[i].ms;
		/* Each unit is smaller than the one before; seconds without one are alone. */
		if (n == 0 || unit == 0 || unit >= last ||
		    (letters == 0 && last != INT64_MAX))
			return -1;
		v = parse_decimal(s, n, unit, DURATION_MAX - sum);
		if (v == -1)
			return -1;
		sum += v;
		last = unit;
		s += n + letters;
	} while (*s != '\0');
	*ms = sum;
	return 0;
}

/* Parses exactly n digits, and moves *s behind them. */
static bool
parse_number(const char **s, size_t n, int *v)
{
	size_t i;

	if (strspn(*s, DIGITS) < n)
		return false;
	*v = 0;
	for (i = 0; i < n; i++)
		*v = *v * 10 + ((*s)[i] - '0');
	*s += n;
	return true;
}

/* Moves *s behind one character, if that is in set. */
static bool
skip_char(const char **s, const char *set)
{
	if (**s == '\0' || strchr(set, **s) == NULL)
		return false;
	++*s;
	return true;
}

/* Z or +HH:MM: the milliseconds that the clock is ahead of UTC. */
static bool
parse_zone(const char **s, int64_t *ahead)
{
	int sign = **s == '-' ? -1 : 1, h, m;

	*ahead = 0;
	if (skip_char(s, "Zz"))
		return true;
	if (!skip_char(s, "+-") || !parse_number(s, 2, &h) ||
	    !skip_char(s, ":") || !parse_number(s, 2, &m))
		return false;
	*ahead = sign * (h * HOUR + m * MINUTE);
	return h < 24 && m < 60;
}

/* The time of the fields; tm_isdst chooses in an hour that comes twice.  mktime(3) and
 * timegm(3) change a time that does not exist: false if they changed hour, minute or
 * second. */
static bool
resolve_time(struct tm *tm, bool utc, int64_t *ms)
{
	const struct tm want = *tm;

	*ms = (int64_t)(utc ? timegm(tm) : mktime(tm)) * SECOND;
	return tm->tm_hour == want.tm_hour && tm->tm_min == want.tm_min &&
	    tm->tm_sec == want.tm_sec;
}

static int
parse_calendar(const char *s, int64_t *ms)
{
	struct tm tm = {.tm_isdst = -1};
	int64_t v, frac = 0, ahead = 0;
	bool utc = false;
	int month, day;
	size_t n;

	if (!parse_number(&s, 4, &tm.tm_year) || !skip_char(&s, "-") ||
	    !parse_number(&s, 2, &month) || !skip_char(&s, "-") ||
	    !parse_number(&s, 2, &day))
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	if (*s != '\0') {
		if (!skip_char(&s, "Tt ") ||
		    !parse_number(&s, 2, &tm.tm_hour) || !skip_char(&s, ":") ||
		    !parse_number(&s, 2, &tm.tm_min) ||
		    (skip_char(&s, ":") && !parse_number(&s, 2, &tm.tm_sec)))
			return -1;
		if (skip_char(&s, ".")) {
			n = strspn(s, DIGITS);
			frac = parse_fraction(s, n, SECOND);
			s += n;
			if (n == 0)
				return -1;
		}
		utc = *s != '\0';
		if (utc && !parse_zone(&s, &ahead))
			return -1;
	}
	/* February 30 would have become a day of March. */
	if (*s != '\0' || !resolve_time(&tm, utc, &v) ||
	    tm.tm_mon != month - 1 || tm.tm_mday != day)
		return -1;
	v += frac - ahead;
	if (v < 0 || v > MQ_TIME_MAX)
		return -1;
	*ms = v;
	return 0;
}

/* A time of the day: HHMM or H:MM[:SS]; with am or pm behind it, also H alone. */
static bool
parse_day_time(const char **s, struct tm *tm)
{
	size_t digits = strspn(*s, DIGITS);
	bool afternoon, minutes = false;

	tm->tm_min = tm->tm_sec = 0;
	if (digits == 4)
		return parse_number(s, 2, &tm->tm_hour) &&
		    parse_number(s, 2, &tm->tm_min);
	if (digits < 1 || digits > 2 || !parse_number(s, digits, &tm->tm_hour))
		return false;
	if (skip_char(s, ":")) {
		minutes = true;
		if (!parse_number(s, 2, &tm->tm_min) ||
		    (skip_char(s, ":") && !parse_number(s, 2, &tm->tm_sec)))
			return false;
	}
	if (**s == '\0')
		return minutes;
	(void)skip_char(s, " ");
	afternoon = skip_char(s, "pP");
	if ((!afternoon && !skip_char(s, "aA")) || !skip_char(s, "mM") ||
	    tm->tm_hour < 1 || tm->tm_hour > 12)
		return false;
	tm->tm_hour = tm->tm_hour % 12 + (afternoon ? 12 : 0);
	return true;
}

static int
parse_clock(const char *s, int64_t now, int64_t *ms)
{
	time_t t = (time_t)(now / SECOND);
	int64_t first = 0, v;
	struct tm tm, at;
	int days, dst;

	tzset();
	if (localtime_r(&t, &tm) == NULL || !parse_day_time(&s, &tm) ||
	    *s != '\0')
		return -1;
	/* When the clocks change, tomorrow may lack the hour. */
	for (days = 0; days <= 2 && first == 0; days++)
		for (dst = -1; dst <= 1; dst++) {
			at = tm;
			at.tm_mday += days;
			at.tm_isdst = dst;
			if (resolve_time(&at, false, &v) && v > now &&
			    (first == 0 || v < first))
				first = v;
		}
	if (first == 0)
		return -1;
	*ms = first;
	return 0;
}

int
mq_time_parse(const char *s, int64_t now_ms, int64_t *ms)
{
	const char *epoch = *s == '@' ? s + 1 : s;
	size_t n = decimal_length(epoch);
	int64_t v;

	if (*s == '@' || strspn(s, DIGITS) >= EPOCH_DIGITS) {
		v = n == 0 || epoch[n] != '\0' ?
		    -1 :
		    parse_decimal(epoch, n, SECOND, MQ_TIME_MAX);
		if (v != -1)
			*ms = v;
		return v == -1 ? -1 : 0;
	}
	if (parse_calendar(s, ms) == 0)
		return 0;
	return parse_clock(s, now_ms, ms);
}
