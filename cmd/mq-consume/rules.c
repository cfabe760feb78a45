/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

static const struct mq_settings defaults = {.attempts = MQ_ATTEMPTS,
    .backoff_min_ms = 1000,
    .backoff_max_ms = 600000,
    .slots = 1};

static int
compare_names(const void *a, const void *b)
{
	const struct queue_name *x = a, *y = b;
	int order = memcmp(x->name, y->name, MIN(x->len, y->len));

	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

int
options_queue(const struct options *opt, const char *name, size_t len)
{
	const struct queue_name wanted = {.name = name, .len = len},
				*found = bsearch(&wanted, opt->by_name,
				    (size_t)opt->queue_count, sizeof(wanted),
				    compare_names);

	return found != NULL ? found->queue : -1;
}

void
rules_init(struct options *opt)
{
	size_t i, n = (size_t)opt->queue_count;

	opt->rules = mq_xcalloc(n, sizeof(*opt->rules));
	opt->by_name = mq_xcalloc(n, sizeof(*opt->by_name));
	for (i = 0; i < n; i++) {
		opt->rules[i].effective = defaults;
		mq_settings_overlay(&opt->rules[i].effective, &opt->given);
		opt->by_name[i] = (struct queue_name){
		    opt->queues[i], strlen(opt->queues[i]), (int)i};
	}
	qsort(opt->by_name, n, sizeof(*opt->by_name), compare_names);
}

void
rules_free(struct options *opt)
{
	int i;

	for (i = 0; i < opt->queue_count && opt->rules != NULL; i++)
		mq_setting_texts_free(&opt->rules[i].stored);
	free(opt->rules);
	free(opt->by_name);
}

/* Adds a setting to *set, if it is valid for the queue and the layout. */
static bool
parse_setting(const struct options *opt, int queue, struct mq_settings *set,
    int which, const char *text)
{
	struct mq_settings one = MQ_SETTINGS_NONE;
	const char *to;

	if (!mq_setting_parse(&one, which, text, true))
		return false;
	to = one.push != NULL ? one.push : one.notify;
	if (to != NULL &&
	    (opt->layout->queue_error(to) != NULL ||
		strcmp(to, opt->queues[queue]) == 0))
		return false;
	if ((one.notify != NULL || one.keep_ms != -1 || one.trims) &&
	    !(opt->layout->has & MQ_HAS_RESULTS))
		return false;
	mq_settings_overlay(set, &one);
	return true;
}

bool
rules_take(const struct options *opt, int queue, struct mq_setting_texts *texts)
{
	struct rules *r = &opt->rules[queue];
	struct mq_settings set = MQ_SETTINGS_NONE;
	bool any = false;
	int i;

	for (i = 0; i < MQ_SETTINGS; i++)
		any |= texts->text[i] != NULL || r->stored.text[i] != NULL;
	if (!any)
		return false;
	r->effective = defaults;
	mq_setting_texts_free(&r->stored);
	r->stored = *texts;
	*texts = (struct mq_setting_texts){{NULL}};
	for (i = 0; i < MQ_SETTINGS; i++)
		if (r->stored.text[i] != NULL &&
		    !parse_setting(opt, queue, &set, i, r->stored.text[i]) &&
		    !opt->quiet)
			mq_say(
			    "%s: setting %s=%s: not valid here, ignored; see "
			    "mq-set(1)",
			    opt->queues[queue], mq_setting_list[i].name,
			    r->stored.text[i]);
	mq_settings_overlay(&r->effective, &set);
	mq_settings_overlay(&r->effective, &opt->given);
	return true;
}

int
rules_slots(const struct options *opt, bool *differ)
{
	int i, most = 1;

	for (i = 0; i < opt->queue_count; i++)
		most = MAX(most, rules_of(opt, i)->slots);
	for (i = 0; i < opt->queue_count && differ != NULL; i++)
		*differ |= rules_of(opt, i)->slots != most;
	return most;
}

bool
rules_share_slots(const struct options *opt)
{
	int i;

	for (i = 0; i < opt->queue_count; i++)
		if (rules_of(opt, i)->slots_shared > 0)
			return true;
	return false;
}

bool
rules_share(const struct options *opt)
{
	int i;

	for (i = 0; i < opt->queue_count; i++)
		if (rules_of(opt, i)->rate.per_s > 0 ||
		    rules_of(opt, i)->slots_shared > 0)
			return true;
	return false;
}
