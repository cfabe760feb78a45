/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "settings.h"

#include "base/duration.h"
#include "base/text.h"
#include "layout.h"

enum setting {
	ATTEMPTS,
	BACKOFF,
	TIMEOUT,
	RETRY_ON,
	RATE,
	SLOTS,
	SLOTS_SHARED,
	PUSH,
	NOTIFY,
	KEEP,
	MAX_LENGTH,
	GROUP_SLOTS,
	KEEP_REJECTED
};

const struct mq_setting mq_setting_list[MQ_SETTINGS] = {
    [ATTEMPTS] = {"attempts", "a number of runs, from 1 to 1000000"},
    [BACKOFF] = {"backoff", "two durations, MIN..MAX, as 1s..10m"},
    [TIMEOUT] = {"timeout", "a duration, as 5m"},
    [RETRY_ON] = {"retry-on", "err"},
    [RATE] = {"rate-shared", "a rate, as 10/s or 600/m:5"},
    [SLOTS] = {"slots", "a number from 1 to 1000"},
    [SLOTS_SHARED] = {"slots-shared", "a number from 1 to 100000"},
    [PUSH] = {"push", "the name of a queue"},
    [NOTIFY] = {"notify", "the name of a queue"},
    [KEEP] = {"keep", "a duration, as 1h"},
    [MAX_LENGTH] = {MQ_MAX_LENGTH, "a number of messages, or two, N:HIGH"},
    [GROUP_SLOTS] = {"group-slots", "a number from 1 to 32"},
    [KEEP_REJECTED] = {"keep-rejected",
	"a duration, a number of messages, or both, as 30d:10000"}};

/* In the hash of the queue: the rate has its first name there. */
static const char *
field_of(int which)
{
	return which == RATE ? "rate" : mq_setting_list[which].name;
}

void
mq_setting_texts_free(struct mq_setting_texts *t)
{
	int i;

	for (i = 0; i < MQ_SETTINGS; i++)
		free(t->text[i]);
	*t = (struct mq_setting_texts){{NULL}};
}

/* --- values ----------------------------------------------------------------- */

static bool
parse_number(const char *s, bool stored, int max, int *to)
{
	int64_t n = mq_number(s, strlen(s), stored ? max : INT64_MAX);
	bool good = n >= 1 && n <= max;

	if (good)
		*to = (int)n;
	return good;
}

static bool
parse_range(const char *s, int64_t *min, int64_t *max)
{
	const char *dots = strstr(s, "..");
	char *first = dots == NULL ? NULL : mq_xstrndup(s, (size_t)(dots - s));
	int64_t a, b;
	bool good = first != NULL && mq_duration_parse(first, &a) == 0 &&
	    mq_duration_parse(dots + 2, &b) == 0 && a <= b;

	free(first);
	if (!good)
		return false;
	*min = a;
	*max = b;
	return true;
}

static bool
is_max_length(const char *s)
{
	size_t len = strcspn(s, ":");
	int64_t n = mq_number(s, len, INT64_MAX);
	const char *high = s + len + 1;

	return n != -1 &&
	    (s[len] == '\0' || mq_number(high, strlen(high), INT64_MAX) >= n);
}

bool
mq_keep_rejected_parse(const char *s, int64_t *ms, int64_t *most)
{
	size_t len = strcspn(s, ":"), digits = strspn(s, "0123456789");
	const char *count = s[digits] == '\0' ? s : s + len + 1;
	char *time = count == s ? NULL : mq_xstrndup(s, len);
	bool good = time == NULL ||
	    (digits < len && mq_duration_parse(time, ms) == 0 && *ms > 0);

	if (time == NULL)
		*ms = -1;
	*most = -1;
	if (good && (count == s || s[len] == ':')) {
		*most = mq_number(count, strlen(count), INT64_MAX);
		good = *most > 0;
	}
	free(time);
	return good;
}

static bool
store_name(const char *s, const char **to)
{
	if (*s != '\0')
		*to = s;
	return *s != '\0';
}

bool
mq_setting_parse(
    struct mq_settings *s, int which, const char *value, bool stored)
{
	int64_t ms, most;
	int ignored;

	switch ((enum setting)which) {
	case ATTEMPTS:
		return parse_number(
		    value, stored, MQ_ATTEMPTS_MAX, &s->attempts);
	case BACKOFF:
		return parse_range(
		    value, &s->backoff_min_ms, &s->backoff_max_ms);
	case TIMEOUT:
		return mq_duration_parse(value, &s->timeout_ms) == 0;
	case RETRY_ON:
		s->retry_err = strcmp(value, "err") == 0 ? 1 : s->retry_err;
		return strcmp(value, "err") == 0;
	case RATE:
		return mq_rate_parse(value, &s->rate) == 0;
	case SLOTS:
		return parse_number(value, stored, MQ_SLOTS_MAX, &s->slots);
	case SLOTS_SHARED:
		return parse_number(
		    value, stored, MQ_SLOTS_SHARED_MAX, &s->slots_shared);
	case PUSH:
		return store_name(value, &s->push);
	case NOTIFY:
		return store_name(value, &s->notify);
	case KEEP:
		return mq_duration_parse(value, &s->keep_ms) == 0;
	case MAX_LENGTH:
		return is_max_length(value);
	case GROUP_SLOTS:
		return parse_number(
		    value, stored, MQ_GROUP_SLOTS_MAX, &ignored);
	case KEEP_REJECTED:
		s->trims = mq_keep_rejected_parse(value, &ms, &most);
		return s->trims;
	}
	return false;
}

void
mq_settings_overlay(struct mq_settings *s, const struct mq_settings *over)
{
	if (over->attempts != -1)
		s->attempts = over->attempts;
	if (over->backoff_max_ms != -1) {
		s->backoff_min_ms = over->backoff_min_ms;
		s->backoff_max_ms = over->backoff_max_ms;
	}
	if (over->timeout_ms != -1)
		s->timeout_ms = over->timeout_ms;
	if (over->keep_ms != -1)
		s->keep_ms = over->keep_ms;
	if (over->retry_err != -1)
		s->retry_err = over->retry_err;
	if (over->slots != -1)
		s->slots = over->slots;
	if (over->slots_shared != -1)
		s->slots_shared = over->slots_shared;
	if (over->rate.per_s != -1)
		s->rate = over->rate;
	if (over->push != NULL)
		s->push = over->push;
	if (over->notify != NULL)
		s->notify = over->notify;
	s->trims |= over->trims;
}

/* --- the server ------------------------------------------------------------- */

void
mq_settings_ask(
    const struct mq_layout *layout, const char *queue, struct mq_command *c)
{
	int i;

	mq_command_plain(c, "HMGET");
	layout->extra->key(c, queue, "settings");
	for (i = 0; i < MQ_SETTINGS; i++)
		mq_command_str(c, field_of(i));
}

/* Ignores texts with a NUL, which mq-set cannot have stored. */
void
mq_settings_read(const redisReply *reply, struct mq_setting_texts *t)
{
	const redisReply *e;
	size_t i;

	*t = (struct mq_setting_texts){{NULL}};
	for (i = 0; i < reply->elements && i < MQ_SETTINGS; i++) {
		e = reply->element[i];
		if (e->type == REDIS_REPLY_STRING && strlen(e->str) == e->len)
			t->text[i] = mq_xstrdup(e->str);
	}
}

int
mq_settings_get(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, struct mq_setting_texts *t)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *reply;

	mq_settings_ask(layout, queue, &c);
	reply = mq_call(r, &c, REDIS_REPLY_ARRAY);
	if (reply == NULL)
		return -1;
	mq_settings_read(reply, t);
	freeReplyObject(reply);
	return 0;
}

int
mq_settings_put(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const struct mq_setting_texts *t)
{
	struct mq_command c = mq_redis_command(r);
	int i;

	mq_command_script(&c, &mq_script_set);
	layout->extra->key(&c, queue, mq_command_keys(&c));
	if (t->text[GROUP_SLOTS] != NULL)
		layout->extra->key(&c, queue, "locks");
	for (i = 0; i < MQ_SETTINGS; i++)
		if (t->text[i] != NULL)
			mq_command_add(&c, "%s %s", field_of(i), t->text[i]);
	if (mq_call_done(r, &c) == -1)
		return -1;
	if (t->text[SLOTS_SHARED] == NULL || *t->text[SLOTS_SHARED] != '\0')
		return 0;
	/* The limit as of the last claim, for stats. */
	mq_command_plain(&c, "HDEL");
	layout->extra->key(&c, queue, "slots");
	mq_command_str(&c, "limit");
	return mq_call_done(r, &c);
}
