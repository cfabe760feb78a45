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

/* Negative: none. */
struct limit {
	const struct field *field; /* NULL: it is not checked */
	double warning, critical;
};

struct checks {
	struct limit limit[FIELD_CHECKS]; /* by the places of the fields */
};

/* --- limits ------------------------------------------------------------------ */

static double
parse_number(const struct field *f, const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "--check: %s", f->key);
	if (f->kind == KIND_AGE)
		return (double)mq_option_duration(name, text) / 1000;
	return (double)mq_option_number(name, text, 0, INT32_MAX);
}

/* "CRITICAL" or "WARNING:CRITICAL". */
static void
parse_limit(struct limit *limit, const struct field *f, char *value)
{
	char *critical = strchr(value, ':');

	*limit = (struct limit){f, -1, -1};
	if (critical != NULL) {
		*critical++ = '\0';
		limit->warning = parse_number(f, value);
		value = critical;
	}
	limit->critical = parse_number(f, value);
	if (f->least && (limit->warning == 0 || limit->critical == 0))
		mq_die(MQ_EXIT_USAGE,
		    "--check: consumers=0: never fails; use consumers=1 to "
		    "require a consumer");
}

static void
parse_check(struct checks *checks, char *text)
{
	char *value = strchr(text, '=');
	const struct field *f;

	if (value != NULL)
		*value++ = '\0';
	f = field_by_key(text);
	if (f == NULL || f->check == 0)
		mq_die(MQ_EXIT_USAGE,
		    "--check: %s: must be one of ready, delayed, unacked, "
		    "rejected, age, consumers",
		    text);
	if (value == NULL)
		mq_die(MQ_EXIT_USAGE, "--check: %s: needs a limit: %s=N", text,
		    text);
	if (checks->limit[f->check].field != NULL)
		mq_die(MQ_EXIT_USAGE, "--check: %s: given twice", text);
	parse_limit(&checks->limit[f->check], f, value);
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

/* --- judging ------------------------------------------------------------------ */

/* CRITICAL is worst, then WARNING, then UNKNOWN. */
static int
worse_status(int a, int b)
{
	static const int rank[] = {0, 2, 3, 1};

	return rank[a] >= rank[b] ? a : b;
}

static bool
is_beyond(const struct limit *limit, double value, double most)
{
	if (most < 0)
		return false;
	return limit->field->least ? value < most : value > most;
}

/* Returns how a queue is, and the number that says so. */
static int
judge_value(const struct limit *limit, const struct model *m,
    const struct mq_queue_stats *q, double *value)
{
	struct value v = field_get(limit->field, q, m->stats.now_ms);

	*value = v.real;
	if (v.type == VALUE_UNKNOWN)
		return UNKNOWN;
	if (is_beyond(limit, *value, limit->critical))
		return CRITICAL;
	return is_beyond(limit, *value, limit->warning) ? WARNING : OK;
}

static void
add_number(struct mq_buf *out, const struct field *f, double value)
{
	mq_buf_printf(out, f->kind == KIND_AGE ? "%.10g" : "%.0f", value);
}

/* "ready 300 (more than 100)" */
static void
add_value(struct mq_buf *out, const struct limit *limit, const struct model *m,
    const struct mq_queue_stats *q)
{
	const struct field *f = limit->field;
	const char *unit = f->kind == KIND_AGE ? "s" : "";
	double value;
	int status = judge_value(limit, m, q, &value);

	mq_buf_printf(out, "%s ", f->key);
	if (status == UNKNOWN) {
		mq_buf_addstr(out, "not known");
		return;
	}
	add_number(out, f, value);
	mq_buf_addstr(out, unit);
	if (status == OK)
		return;
	mq_buf_addstr(out, f->least ? " (fewer than " : " (more than ");
	add_number(
	    out, f, status == CRITICAL ? limit->critical : limit->warning);
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
add_perfdata(struct mq_buf *out, const struct limit *limit,
    const struct model *m, const struct mq_queue_stats *q)
{
	const struct field *f = limit->field;
	const char *range = f->least ? ":" : "";
	double value;
	bool known = judge_value(limit, m, q, &value) != UNKNOWN;

	add_label(out, q->name, f->key);
	if (known)
		add_number(out, f, value);
	else
		mq_buf_addstr(out, "U");
	mq_buf_addstr(out, f->kind == KIND_AGE && known ? "s;" : ";");
	if (limit->warning >= 0) {
		add_number(out, f, limit->warning);
		mq_buf_addstr(out, range);
	}
	mq_buf_addstr(out, ";");
	add_number(out, f, limit->critical);
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
	int place, status = OK;
	double value;

	for (place = 0; place < FIELD_CHECKS; place++)
		if (checks->limit[place].field != NULL)
			status = worse_status(status,
			    judge_value(&checks->limit[place], m, q, &value));
	return q->known ? status : UNKNOWN;
}

static void
report_queue(
    struct report *r, const struct checks *checks, const struct model *m, int i)
{
	const struct mq_queue_stats *q = &m->stats.queues[i];
	const char *separator = ": ";
	int place;

	if (r->text.len > 0)
		mq_buf_addstr(&r->text, "; ");
	add_name(&r->text, q->name);
	if (!q->known) {
		mq_buf_addstr(&r->text, ": no such queue");
		add_name(&r->text, m->elsewhere[i]);
		return;
	}
	for (place = 0; place < FIELD_CHECKS; place++) {
		if (checks->limit[place].field == NULL)
			continue;
		mq_buf_addstr(&r->text, separator);
		add_value(&r->text, &checks->limit[place], m, q);
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
	int i, place, status;

	for (i = 0; i < stats->count; i++) {
		q = &stats->queues[i];
		status = judge_queue(checks, m, q);
		r->status = worse_status(r->status, status);
		if (status != OK || stats->count == 1)
			report_queue(r, checks, m, i);
		for (place = 0; place < FIELD_CHECKS && q->known; place++)
			if (checks->limit[place].field != NULL)
				add_perfdata(
				    &r->perfdata, &checks->limit[place], m, q);
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
checks_print(struct checks *checks, const struct model *m, bool all)
{
	struct report r = {.status = OK};

	if (m->error[0] != '\0') {
		r.status = UNKNOWN;
		add_name(&r.text, m->error);
	} else {
		report_queues(&r, checks, m);
		report_lost(&r, m, all);
	}
	free(checks);
	return print_report(&r);
}
