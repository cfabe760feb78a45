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

/* With fewer digits, seconds since 1970 are rather something else. */
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

/* The n digits behind a decimal point, times unit, rounded down.  From the last digit
 * to the first no step loses anything, whatever the number of digits. */
static int64_t
parse_fraction(const char *s, size_t n, int64_t unit)
{
	int64_t r = 0;

	while (n-- > 0)
		r = ((s[n] - '0') * unit + r) / 10;
	return r;
}

/* Length of "DIGITS[.DIGITS]" at s, 0 when there is none. */
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
		/* Each unit is smaller than the one before; none is alone. */
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

/* Takes exactly n digits off *s. */
static bool
take_number(const char **s, size_t n, int *v)
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

/* Takes one character out of set off *s. */
static bool
take_char(const char **s, const char *set)
{
	if (**s == '\0' || strchr(set, **s) == NULL)
		return false;
	++*s;
	return true;
}

/* Z or +HH:MM: the milliseconds that the clock is ahead of UTC. */
static bool
take_zone(const char **s, int64_t *ahead)
{
	int sign = **s == '-' ? -1 : 1, h, m;

	*ahead = 0;
	if (take_char(s, "Zz"))
		return true;
	if (!take_char(s, "+-") || !take_number(s, 2, &h) ||
	    !take_char(s, ":") || !take_number(s, 2, &m))
		return false;
	*ahead = sign * (h * HOUR + m * MINUTE);
	return h < 24 && m < 60;
}

/* The time that the fields name, whose tm_isdst says which one of an hour that comes
 * twice.  mktime(3) and timegm(3) move what does not exist to what does, and the fields
 * with it: false if that was the hour, the minute or the second. */
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

	if (!take_number(&s, 4, &tm.tm_year) || !take_char(&s, "-") ||
	    !take_number(&s, 2, &month) || !take_char(&s, "-") ||
	    !take_number(&s, 2, &day))
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	if (*s != '\0') {
		if (!take_char(&s, "Tt ") || !take_number(&s, 2, &tm.tm_hour) ||
		    !take_char(&s, ":") || !take_number(&s, 2, &tm.tm_min) ||
		    (take_char(&s, ":") && !take_number(&s, 2, &tm.tm_sec)))
			return -1;
		if (take_char(&s, ".")) {
			n = strspn(s, DIGITS);
			frac = parse_fraction(s, n, SECOND);
			s += n;
			if (n == 0)
				return -1;
		}
		utc = *s != '\0';
		if (utc && !take_zone(&s, &ahead))
			return -1;
	}
	/* No day was moved, either. */
	if (*s != '\0' || !resolve_time(&tm, utc, &v) ||
	    tm.tm_mon != month - 1 || tm.tm_mday != day)
		return -1;
	v += frac - ahead;
	if (v < 0 || v > MQ_TIME_MAX)
		return -1;
	*ms = v;
	return 0;
}

/* A time of the day as people write it: HHMM or H:MM[:SS], or with am or pm behind it,
 * and then H alone will do. */
static bool
take_day_time(const char **s, struct tm *tm)
{
	size_t digits = strspn(*s, DIGITS);
	bool afternoon, minutes = false;

	tm->tm_min = tm->tm_sec = 0;
	if (digits == 4)
		return take_number(s, 2, &tm->tm_hour) &&
		    take_number(s, 2, &tm->tm_min);
	if (digits < 1 || digits > 2 || !take_number(s, digits, &tm->tm_hour))
		return false;
	if (take_char(s, ":")) {
		minutes = true;
		if (!take_number(s, 2, &tm->tm_min) ||
		    (take_char(s, ":") && !take_number(s, 2, &tm->tm_sec)))
			return false;
	}
	if (**s == '\0')
		return minutes;
	(void)take_char(s, " ");
	afternoon = take_char(s, "pP");
	if ((!afternoon && !take_char(s, "aA")) || !take_char(s, "mM") ||
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
	if (localtime_r(&t, &tm) == NULL || !take_day_time(&s, &tm) ||
	    *s != '\0')
		return -1;
	/* Tomorrow may lack the hour, too, when the clocks change. */
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
