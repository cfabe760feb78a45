/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

#include <regex.h>

/* The part of a message that a condition tests; from MATCH on, by a regular expression. */
enum subject { ID, BATCH, KEY, SINCE, OLDER, MATCH, STDERR, REASON, HEADER };

struct mq_condition {
	enum subject subject;
	bool negated;
	const char *text; /* ID, BATCH, KEY: as given */
	char *header;	  /* HEADER: its name */
	int64_t ms;	  /* SINCE, OLDER: unix time */
	regex_t re;
	struct mq_condition *next;
};

void
mq_filter_take(void *into, const struct mq_given *given)
{
	struct mq_filter *f = into;
	struct mq_condition *c, **end = &f->conditions;
	const char *option = given->option->name, *arg = given->arg;
	const char *re = arg, *eq = strchr(arg, '=');
	char why[256];
	int fault = 0, flags = REG_EXTENDED | REG_NOSUB;

	if (given->option->which == ID && !f->negated) {
		f->id = arg;
		return;
	}
	c = mq_xcalloc(1, sizeof(*c));
	c->subject = (enum subject)given->option->which;
	c->negated = f->negated;
	c->text = arg;
	if (c->subject == BATCH && !f->negated)
		f->batch = arg;
	f->negated = false;
	if (f->option == NULL)
		f->option = option;
	if (c->subject == SINCE || c->subject == OLDER)
		c->ms =
		    mq_clock_unix_us() / 1000 - mq_option_duration(option, arg);
	if (c->subject == STDERR)
		flags |= REG_NEWLINE;
	if (c->subject == HEADER) {
		forbid(eq == NULL || eq == arg,
		    "%s: %s: not of the form NAME=RE", option, arg);
		c->header = mq_xstrndup(arg, (size_t)(eq - arg));
		re = eq + 1;
	}
	if (c->subject >= MATCH)
		fault = regcomp(&c->re, re, flags);
	if (fault != 0) {
		regerror(fault, &c->re, why, sizeof(why));
		mq_die(fault == REG_ESPACE ? MQ_EXIT_AGAIN : MQ_EXIT_USAGE,
		    "%s: %s: %s", option, re, why);
	}
	while (*end != NULL)
		end = &(*end)->next;
	*end = c;
}

static void
take_not(void *into, const struct mq_given *given)
{
	struct mq_filter *f = into;

	forbid(f->negated, "%s: given twice before one filter", given->name);
	f->negated = true;
}

const struct mq_option mq_filter_options[] = {
    {0, "--id", "ID", "+the message with this id", .take = mq_filter_take},
    {0, "--batch", "NAME", "of this batch, or waits for it",
	.take = mq_filter_take, .which = BATCH},
    {0, "--match", "RE", "the payload matches the regular expression",
	.take = mq_filter_take, .which = MATCH},
    {0, "--reason", "RE", "+the last reason (Mq-Error) matches",
	.take = mq_filter_take, .which = REASON},
    {0, "--stderr", "RE", "the last run wrote a line that matches",
	.take = mq_filter_take, .which = STDERR},
    {0, "--header", "NAME=RE", "the header NAME matches",
	.take = mq_filter_take, .which = HEADER},
    {0, "--key", "KEY", "the key is KEY (mq-publish -k)",
	.take = mq_filter_take, .which = KEY},
    {0, "--since", "DUR", "+failed, or became ready, in the last DUR",
	.take = mq_filter_take, .which = SINCE},
    {0, "--older-than", "DUR", "failed, or became ready, longer ago",
	.take = mq_filter_take, .which = OLDER},
    {0, "--not", NULL, "before one of these: reverses it", .take = take_not},
    {0},
};

static void
check_id(const char *id, const struct mq_layout *l)
{
	size_t n = strlen(id);
	bool any = l->has & MQ_HAS_IDS;

	forbid(!mq_id_valid(id, n) && !(any && mq_id_safe(id, n)),
	    "--id: %s: not an id (%s)", id,
	    any ? "letters, digits, : _ and -, at most 128" :
		  "32 letters and digits");
}

void
mq_filter_check(const struct mq_filter *f, const struct mq_layout *l)
{
	const struct mq_condition *c;

	forbid(f->negated, "--not: needs a filter after it, such as --match");
	if (f->id != NULL)
		check_id(f->id, l);
	for (c = f->conditions; c != NULL; c = c->next)
		if (c->subject == ID)
			check_id(c->text, l);
}

void
mq_filter_check_ended(const struct mq_filter *f, const char *about)
{
	const struct mq_condition *c;
	bool kept = true;

	for (c = f->conditions; c != NULL; c = c->next)
		kept &= c->subject != BATCH && c->subject != KEY &&
		    c->subject != STDERR && c->subject != HEADER;
	forbid(!kept,
	    "%s takes only the filters --id, --match, --reason, --since and "
	    "--older-than",
	    about);
}

bool
mq_filter_given(const struct mq_filter *f)
{
	return f->id != NULL || f->option != NULL;
}

/* Whether the n bytes at p, which may hold NULs, match. */
static bool
matches_regex(const regex_t *re, const char *p, size_t n)
{
#ifdef REG_STARTEND
	regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)n};

	return regexec(re, p, 1, &range, REG_STARTEND) == 0;
#else
	/* musl searches texts that end at a NUL: here it is another control character, since no
	 * expression has one in it. */
	struct mq_buf text = {0};
	bool found;
	size_t i;

	mq_buf_add(&text, p, n);
	for (i = 0; i < n; i++)
		if (text.data[i] == '\0')
			text.data[i] = '\001';
	found = regexec(re, mq_buf_str(&text), 0, NULL, 0) == 0;
	mq_buf_free(&text);
	return found;
#endif
}

static bool
equals(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

/* Whether a message waits for a batch, by its list of names. */
static bool
awaits(const char *names, const char *batch)
{
	size_t n = strlen(batch), len;

	for (; names != NULL && *names != '\0';
	     names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		if (len == n && memcmp(names, batch, n) == 0)
			return true;
	}
	return false;
}

static bool
meets_condition(const struct mq_condition *c, const struct mq_envelope *e)
{
	const char *text;
	json_t *last, *v;
	int64_t ms;
	bool rv;

	switch (c->subject) {
	case MATCH:
		return matches_regex(&c->re, e->payload, e->payload_len);
	case STDERR:
		last = mq_history_list(e, true);
		v = json_object_get(json_array_get(last, 0), "stderr");
		rv = v != NULL &&
		    matches_regex(
			&c->re, json_string_value(v), json_string_length(v));
		json_decref(last);
		return rv;
	case REASON:
	case HEADER:
		text = mq_envelope_get(
		    e, c->subject == HEADER ? c->header : MQ_HEADER_ERROR);
		return text != NULL &&
		    matches_regex(&c->re, text, strlen(text));
	case BATCH:
		return equals(mq_envelope_get(e, MQ_HEADER_BATCH), c->text) ||
		    awaits(mq_envelope_get(e, MQ_HEADER_AFTER), c->text);
	case KEY:
		return equals(mq_envelope_get(e, MQ_HEADER_KEY), c->text);
	case ID:
		return equals(mq_message_name(e), c->text);
	default:
		/* Time of the last failure, else when it became ready; 0: unknown. */
		ms = mq_history_last_number(e, "at_ms");
		if (ms == 0)
			ms = mq_message_since_ms(e);
		return ms != 0 &&
		    (c->subject == SINCE ? ms >= c->ms : ms <= c->ms);
	}
}

bool
mq_filter_match(const struct mq_filter *f, const char *element, size_t len)
{
	const struct mq_condition *c;
	struct mq_envelope e;
	const char *why;
	bool rv;

	if (mq_envelope_parse(element, len, &e, &why) == -1)
		e = (struct mq_envelope){NULL, element, len};
	rv = f->id == NULL || equals(mq_message_name(&e), f->id);
	for (c = f->conditions; c != NULL && rv; c = c->next)
		rv = meets_condition(c, &e) != c->negated;
	mq_envelope_free(&e);
	return rv;
}

const struct mq_item *
mq_search_next(struct mq_search *s)
{
	const struct mq_item *item;

	for (;;) {
		while (s->at < s->scan.count) {
			item = &s->scan.items[s->at++];
			if (s->filter == NULL ||
			    mq_filter_match(
				s->filter, item->element, item->len))
				return item;
		}
		if (s->scan.end)
			return NULL;
		mq_option_must(s->redis, s->layout->scan(s->redis, &s->scan));
		s->at = 0;
	}
}

void
mq_filter_free(struct mq_filter *f)
{
	struct mq_condition *c;

	while ((c = f->conditions) != NULL) {
		f->conditions = c->next;
		if (c->subject >= MATCH)
			regfree(&c->re);
		free(c->header);
		free(c);
	}
	*f = (struct mq_filter){0};
}
