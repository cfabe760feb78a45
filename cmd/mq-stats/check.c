/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats --check: a monitoring plugin.  One line on stdout says how things
 * are, the exit status says it, too; perfdata follows a '|'.
 */
#include "stats.h"

enum { OK, WARNING, CRITICAL, UNKNOWN };
static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

/* A negative limit is none. */
struct limit {
	const struct field *field; /* NULL: nothing is checked */
	double warning, critical;
};

/* The age of messages on this host, in the place behind the facts of queues. */
static const struct field spool_field = {"spool", KIND_AGE,
    .size = sizeof(int64_t), .key = "spool", .check = FIELD_CHECKS};

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

static void
parse_limits(const char *list, struct limit *limits)
{
	char *copy = mq_xstrdup(list), *rest = copy, *text, *value, *critical;
	const struct field *f;
	struct limit *limit;

	/* KEY=CRITICAL or KEY=WARNING:CRITICAL */
	while ((text = strsep(&rest, ",")) != NULL) {
		value = strchr(text, '=');
		if (value != NULL)
			*value++ = '\0';
		f = strcmp(text, "spool") == 0 ? &spool_field :
						 field_by_key(text);
		forbid(f == NULL || f->check == 0,
		    "--check: %s: must be one of ready, delayed, unacked, "
		    "rejected, age, consumers, done-within, spool",
		    text);
		forbid(value == NULL, "--check: %s: needs a limit: %s=N", text,
		    text);
		limit = &limits[f->check];
		forbid(limit->field != NULL, "--check: %s: given twice", text);
		*limit = (struct limit){f, -1, -1};
		critical = strchr(value, ':');
		if (critical != NULL) {
			*critical++ = '\0';
			limit->warning = parse_number(f, value);
			value = critical;
		}
		limit->critical = parse_number(f, value);
		forbid(
		    f->least && (limit->warning == 0 || limit->critical == 0),
		    "--check: consumers=0: never fails; use consumers=1 to "
		    "require a consumer");
	}
	free(copy);
}

/* --- judging ------------------------------------------------------------------ */

/* Returns the worse status: CRITICAL is worst, then WARNING, then UNKNOWN. */
static int
worse_status(int a, int b)
{
	static const int rank[] = {0, 2, 3, 1};

	return rank[a] >= rank[b] ? a : b;
}

static bool
is_beyond(const struct field *f, double value, double most)
{
	return most >= 0 && (f->least ? value < most : value > most);
}

static void
add_number(struct mq_buf *out, const struct field *f, double value)
{
	mq_buf_printf(out, f->kind == KIND_AGE ? "%.10g" : "%.0f", value);
}

/* Appends "ready 300 (more than 100)". */
static void
add_value(struct mq_buf *out, const struct limit *limit, int status,
    const struct value *v)
{
	const struct field *f = limit->field;
	const char *unit = f->kind == KIND_AGE ? "s" : "";

	mq_buf_printf(out, "%s ", f->key);
	if (status == UNKNOWN || (f->needed && v->type == VALUE_NONE)) {
		mq_buf_addstr(out, status == UNKNOWN ? "not known" : "never");
		return;
	}
	add_number(out, f, v->real);
	mq_buf_addstr(out, unit);
	if (status == OK)
		return;
	mq_buf_addstr(out, f->least ? " (fewer than " : " (more than ");
	add_number(
	    out, f, status == CRITICAL ? limit->critical : limit->warning);
	mq_buf_printf(out, "%s)", unit);
}

/* A plugin's text may hold neither '|' nor control characters. */
static void
add_name(struct mq_buf *out, const char *name)
{
	char *visible = mq_visible(name, strlen(name)), *p;

	for (p = visible; (p = strchr(p, '|')) != NULL; p++)
		*p = '!';
	mq_buf_addstr(out, visible);
	free(visible);
}

/* Appends 'label'=value[unit];warning;critical;least.  A label may hold neither '='
 * nor '|', and has each quote twice.  A range "N" is up to N, "N:" is from N on. */
static void
add_perfdata(struct mq_buf *out, const struct limit *limit, const char *name,
    const struct value *v)
{
	const struct field *f = limit->field;
	const char *range = f->least ? ":" : "", *p;
	struct mq_buf label = {0};
	bool known =
	    v->type != VALUE_UNKNOWN && !(f->needed && v->type == VALUE_NONE);

	add_name(&label, name);
	mq_buf_addstr(out, " '");
	for (p = mq_buf_str(&label); *p != '\0'; p++)
		if (*p == '\'')
			mq_buf_addstr(out, "''");
		else
			mq_buf_add(out, *p == '=' ? "_" : p, 1);
	mq_buf_free(&label);
	mq_buf_printf(out, "_%s'=", f->key);
	if (known)
		add_number(out, f, v->real);
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
judge(const struct limit *limit, const struct value *v)
{
	if (v->type == VALUE_UNKNOWN)
		return UNKNOWN;
	if (is_beyond(limit->field, v->real, limit->critical))
		return CRITICAL;
	return is_beyond(limit->field, v->real, limit->warning) ||
		(limit->field->needed && v->type == VALUE_NONE) ?
	    WARNING :
	    OK;
}

/* If there are several queues, the text names only those where something is wrong. */
static void
report_queue(
    struct report *r, const struct limit *limit, const struct model *m, int i)
{
	const struct mq_queue_stats *q = &m->stats.queues[i];
	int status = q->known ? OK : UNKNOWN, one, place;
	const char *separator = ": ";
	struct mq_buf text = {0};
	struct value v;

	add_name(&text, q->name);
	if (!q->known) {
		mq_buf_addstr(&text, ": no such queue");
		add_name(&text, m->elsewhere.list[i].name);
	}
	for (place = 0; place < FIELD_CHECKS && q->known; place++, limit++) {
		if (limit->field == NULL)
			continue;
		v = field_get(limit->field, q, m->stats.now_ms);
		one = judge(limit, &v);
		status = worse_status(status, one);
		mq_buf_addstr(&text, separator);
		add_value(&text, limit, one, &v);
		add_perfdata(&r->perfdata, limit, q->name, &v);
		separator = ", ";
	}
	r->status = worse_status(r->status, status);
	if (status != OK || m->stats.count == 1)
		mq_buf_printf(&r->text, "%s%s", r->text.len > 0 ? "; " : "",
		    mq_buf_str(&text));
	mq_buf_free(&text);
}

static void
report_spool(struct report *r, const struct limit *limit)
{
	int64_t since_ms = spool_since();
	struct value v =
	    field_get(limit->field, &since_ms, mq_clock_unix_us() / 1000);
	int status = judge(limit, &v);

	r->status = worse_status(r->status, status);
	mq_buf_addstr(&r->text, r->text.len > 0 ? "; " : "");
	add_value(&r->text, limit, status, &v);
	add_perfdata(&r->perfdata, limit, "host", &v);
}

/* Whether a limit is of queues. */
static bool
any_of_queues(const struct limit *limits)
{
	int i = 0;

	while (i < FIELD_CHECKS && limits[i].field == NULL)
		i++;
	return i < FIELD_CHECKS;
}

static void
collect_all(struct collector *c, struct stats_options *o, struct model *m)
{
	/* A plugin reports each error as a line on stdout. */
	if (mq_option_find(&o->shared, &c->server) == 0) {
		collect_queues(c, o);
		if (collect_try(c, MQ_STATS_UNLISTED, m) == 0)
			collect_elsewhere(c, m);
	} else {
		strlcpy(m->error, c->server.error, sizeof(m->error));
	}
}

int
checks_print(struct collector *c, struct stats_options *o, struct model *m)
{
	struct limit limits[FIELD_CHECKS + 1] = {0};
	struct report r = {.status = OK};
	bool asks;
	size_t k;
	int i;

	parse_limits(o->checks, limits);
	asks = any_of_queues(limits) || o->count > 0;
	if (asks)
		collect_all(c, o, m);
	for (i = 0; i < m->stats.count; i++)
		report_queue(&r, limits, m, i);
	if (asks && (m->error[0] != '\0' || i == 0)) {
		r.status = UNKNOWN;
		add_name(&r.text, m->error[0] != '\0' ? m->error : "no queues");
	} else if (asks && r.text.len == 0) {
		mq_buf_printf(&r.text, "%d queues", i);
	}
	if (limits[FIELD_CHECKS].field != NULL)
		report_spool(&r, &limits[FIELD_CHECKS]);
	/* Queues on a lost node may lack even their names. */
	if (asks && c->count == 0 && m->lacks.n > 0)
		r.status = worse_status(r.status, UNKNOWN);
	for (k = 0; k < m->lacks.n; k++) {
		mq_buf_addstr(&r.text, "; ");
		add_name(&r.text, m->lacks.list[k].name);
	}
	printf("MQ %s - %s", words[r.status], mq_buf_str(&r.text));
	if (r.perfdata.len > 0)
		printf(" |%s", mq_buf_str(&r.perfdata));
	putchar('\n');
	mq_buf_free(&r.text);
	mq_buf_free(&r.perfdata);
	return r.status;
}
