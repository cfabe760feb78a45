/*
 * mq-stats --check: a monitoring plugin.  One line on stdout says how things
 * are, the exit status says it, too; perfdata follows a '|'.
 */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "shared/options.h"

enum { OK, WARNING, CRITICAL, UNKNOWN };
static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

enum { READY, DELAYED, UNACKED, REJECTED, AGE, CONSUMERS, KEYS };
static const char *const keys[KEYS] = {
    "ready", "delayed", "unacked", "rejected", "age", "consumers"};

/* age is in milliseconds, as it is given; -1: no limit. */
struct limit {
	bool wanted;
	int64_t warning, critical;
};

struct checks {
	struct limit limit[KEYS];
};

/* --- limits ------------------------------------------------------------------ */

static int64_t
parse_number(int key, const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "--check: %s", keys[key]);
	if (key == AGE)
		return mq_option_duration(name, text);
	return mq_option_number(name, text, 0, INT32_MAX);
}

/* "CRITICAL" or "WARNING:CRITICAL". */
static void
parse_limit(struct limit *limit, int key, char *value)
{
	char *critical = strchr(value, ':');

	*limit = (struct limit){true, -1, -1};
	if (critical != NULL) {
		*critical++ = '\0';
		limit->warning = parse_number(key, value);
		value = critical;
	}
	limit->critical = parse_number(key, value);
	if (key == CONSUMERS && (limit->warning == 0 || limit->critical == 0))
		mq_die(MQ_EXIT_USAGE,
		    "--check: consumers=0: never fails; use consumers=1 to "
		    "require a consumer");
}

static void
parse_check(struct checks *checks, char *text)
{
	char *value = strchr(text, '=');
	int key;

	if (value != NULL)
		*value++ = '\0';
	for (key = 0; key < KEYS && strcmp(text, keys[key]) != 0; key++)
		;
	if (key == KEYS)
		mq_die(MQ_EXIT_USAGE,
		    "--check: %s: must be one of ready, delayed, unacked, "
		    "rejected, age, consumers",
		    text);
	if (value == NULL)
		mq_die(MQ_EXIT_USAGE, "--check: %s: needs a limit: %s=N", text,
		    text);
	if (checks->limit[key].wanted)
		mq_die(MQ_EXIT_USAGE, "--check: %s: given twice", text);
	parse_limit(&checks->limit[key], key, value);
}

struct checks *
checks_parse(const char *text)
{
	struct checks *checks = mq_xcalloc(1, sizeof(*checks));
	char *copy = mq_xstrdup(text), *rest = copy, *one;

	while ((one = strsep(&rest, ",")) != NULL)
		parse_check(checks, one);
	free(copy);
	return checks;
}

void
checks_free(struct checks *checks)
{
	free(checks);
}

/* --- judging ------------------------------------------------------------------ */

/* CRITICAL is worst, then WARNING, then UNKNOWN. */
static int
worse_status(int a, int b)
{
	static const int rank[] = {0, 2, 3, 1};

	return rank[a] >= rank[b] ? a : b;
}

/* The number for a key, an age in milliseconds; -1: not known. */
static int64_t
value_of(const struct model *m, const struct mq_queue_stats *q, int key)
{
	switch (key) {
	case READY:
		return q->ready;
	case DELAYED:
		return q->delayed;
	case UNACKED:
		return q->unacked;
	case REJECTED:
		return q->rejected;
	case CONSUMERS:
		return q->consumers;
	default:
		if (q->oldest_ms <= 0)
			return q->oldest_ms;
		return q->oldest_ms < m->stats.now_ms ?
		    m->stats.now_ms - q->oldest_ms :
		    0;
	}
}

static bool
is_beyond(int key, int64_t value, int64_t limit)
{
	if (limit < 0)
		return false;
	return key == CONSUMERS ? value < limit : value > limit;
}

static int
judge_value(const struct limit *limit, int key, int64_t value)
{
	if (value < 0)
		return UNKNOWN;
	if (is_beyond(key, value, limit->critical))
		return CRITICAL;
	return is_beyond(key, value, limit->warning) ? WARNING : OK;
}

static void
add_number(struct mq_buf *out, int key, int64_t value)
{
	if (key == AGE)
		mq_buf_printf(out, "%.10g", (double)value / 1000);
	else
		mq_buf_printf(out, "%lld", (long long)value);
}

/* "ready 300 (more than 100)" */
static void
add_value(struct mq_buf *out, const struct limit *limit, int key, int64_t value)
{
	int status = judge_value(limit, key, value);
	const char *unit = key == AGE ? "s" : "";

	mq_buf_printf(out, "%s ", keys[key]);
	if (status == UNKNOWN) {
		mq_buf_addstr(out, "not known");
		return;
	}
	add_number(out, key, value);
	mq_buf_addstr(out, unit);
	if (status == OK)
		return;
	mq_buf_addstr(out, key == CONSUMERS ? " (fewer than " : " (more than ");
	add_number(
	    out, key, status == CRITICAL ? limit->critical : limit->warning);
	mq_buf_printf(out, "%s)", unit);
}

/* The text before the '|' may hold neither that nor control characters. */
static void
add_name(struct mq_buf *out, const char *name)
{
	char *visible = text_visible(name, strlen(name)), *p;

	for (p = visible; (p = strchr(p, '|')) != NULL; p++)
		*p = '!';
	mq_buf_addstr(out, visible);
	free(visible);
}

/* A label may hold neither '=' nor '|', and has each quote twice. */
static void
add_label(struct mq_buf *out, const char *name, const char *key)
{
	struct mq_buf label = {0};
	const char *p;

	add_name(&label, name);
	mq_buf_addstr(out, " '");
	for (p = mq_buf_str(&label); *p != '\0'; p++)
		if (*p == '\'')
			mq_buf_addstr(out, "''");
		else
			mq_buf_add(out, *p == '=' ? "_" : p, 1);
	mq_buf_printf(out, "_%s'=", key);
	mq_buf_free(&label);
}

/* 'label'=value[unit];warning;critical;least.  A range "N" is up to N, "N:" is
 * from N on. */
static void
add_perfdata(struct mq_buf *out, const char *name, const struct limit *limit,
    int key, int64_t value)
{
	const char *range = key == CONSUMERS ? ":" : "";

	add_label(out, name, keys[key]);
	if (value < 0)
		mq_buf_addstr(out, "U");
	else
		add_number(out, key, value);
	mq_buf_addstr(out, key == AGE && value >= 0 ? "s;" : ";");
	if (limit->warning >= 0) {
		add_number(out, key, limit->warning);
		mq_buf_addstr(out, range);
	}
	mq_buf_addstr(out, ";");
	add_number(out, key, limit->critical);
	mq_buf_printf(out, "%s;0", range);
}

/* --- the line ------------------------------------------------------------------ */

struct report {
	int status;
	struct mq_buf text, perfdata;
};

static int
judge_queue(const struct checks *checks, const struct model *m,
    const struct mq_queue_stats *q)
{
	int key, status = OK;

	for (key = 0; key < KEYS; key++)
		if (checks->limit[key].wanted)
			status = worse_status(status,
			    judge_value(
				&checks->limit[key], key, value_of(m, q, key)));
	return q->known ? status : UNKNOWN;
}

static void
report_queue(
    struct report *r, const struct checks *checks, const struct model *m, int i)
{
	const struct mq_queue_stats *q = &m->stats.queues[i];
	const char *separator = ": ";
	int key;

	if (r->text.len > 0)
		mq_buf_addstr(&r->text, "; ");
	add_name(&r->text, q->name);
	if (!q->known) {
		mq_buf_addstr(&r->text, ": no such queue");
		add_name(&r->text, m->elsewhere[i]);
		return;
	}
	for (key = 0; key < KEYS; key++) {
		if (!checks->limit[key].wanted)
			continue;
		mq_buf_addstr(&r->text, separator);
		add_value(
		    &r->text, &checks->limit[key], key, value_of(m, q, key));
		separator = ", ";
	}
}

/* Of several queues, the text has only those where something is wrong. */
static void
report_queues(
    struct report *r, const struct checks *checks, const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	const struct mq_queue_stats *q;
	int i, key, status;

	for (i = 0; i < stats->count; i++) {
		q = &stats->queues[i];
		status = judge_queue(checks, m, q);
		r->status = worse_status(r->status, status);
		if (status != OK || stats->count == 1)
			report_queue(r, checks, m, i);
		for (key = 0; key < KEYS && q->known; key++)
			if (checks->limit[key].wanted)
				add_perfdata(&r->perfdata, q->name,
				    &checks->limit[key], key,
				    value_of(m, q, key));
	}
	if (stats->count == 0) {
		r->status = UNKNOWN;
		mq_buf_addstr(&r->text, "no queues");
	} else if (r->text.len == 0) {
		mq_buf_printf(&r->text, "%d queues", stats->count);
	}
}

static int
print_report(struct report *r)
{
	printf("MQ %s - %s", words[r->status], mq_buf_str(&r->text));
	if (r->perfdata.len > 0)
		printf(" |%s", mq_buf_str(&r->perfdata));
	putchar('\n');
	mq_buf_free(&r->text);
	mq_buf_free(&r->perfdata);
	return r->status;
}

/* Some queues of a lost node may not even have a name here. */
static void
report_lost(struct report *r, const struct model *m, bool all)
{
	size_t i;

	for (i = 0; i < m->lost.n; i++) {
		mq_buf_addstr(&r->text, "; ");
		add_name(&r->text, m->lost.list[i].name);
	}
	if (all && m->lost.n > 0)
		r->status = worse_status(r->status, UNKNOWN);
}

int
checks_print(const struct checks *checks, const struct model *m, bool all)
{
	struct report r = {.status = OK};

	if (m->error[0] != '\0') {
		r.status = UNKNOWN;
		add_name(&r.text, m->error);
	} else {
		report_queues(&r, checks, m);
		report_lost(&r, m, all);
	}
	return print_report(&r);
}
