/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "headers.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "json.h"

/* A header without a row has no trait.  embed.awk takes the letters of asking.lua from
 * these rows. */
static const struct {
	const char *name;
	unsigned traits;
} table[] = {
    {MQ_HEADER_PRIORITY, MQ_TRAIT_ORDER},
    {MQ_HEADER_FROM_TICK, MQ_TRAIT_ORDER},
    {MQ_HEADER_UNTIL_TICK, MQ_TRAIT_OBEYED},
    {MQ_HEADER_EXPIRES, MQ_TRAIT_OBEYED},
    {MQ_HEADER_GROUP, MQ_TRAIT_OBEYED | MQ_TRAIT_LOCK},
    {MQ_HEADER_KEY, MQ_TRAIT_OBEYED | MQ_TRAIT_LOCK | MQ_TRAIT_OWN},
    {MQ_HEADER_UNIQUE, MQ_TRAIT_OBEYED | MQ_TRAIT_OWN},
    {MQ_HEADER_REPLY_TO, MQ_TRAIT_OBEYED | MQ_TRAIT_OWN},
    {MQ_HEADER_BATCH, MQ_TRAIT_OBEYED | MQ_TRAIT_LOCK | MQ_TRAIT_OWN},
    {MQ_HEADER_AFTER, MQ_TRAIT_OBEYED | MQ_TRAIT_OWN},
    {MQ_HEADER_AFTER_OK, MQ_TRAIT_OBEYED | MQ_TRAIT_OWN},
    {MQ_HEADER_TO, MQ_TRAIT_OWN},
    {MQ_HEADER_ENDED, MQ_TRAIT_OWN},
    {MQ_HEADER_ATTEMPT, MQ_TRAIT_OWN},
    {MQ_HEADER_ERROR, MQ_TRAIT_OWN},
    {MQ_HEADER_HISTORY, MQ_TRAIT_OWN},
    {MQ_HEADER_DUE, MQ_TRAIT_OWN},
    {MQ_HEADER_DEST, MQ_TRAIT_OWN},
    {MQ_HEADER_COPY, MQ_TRAIT_OWN},
};
#define HEADERS (sizeof(table) / sizeof(table[0]))

bool
mq_message_has(const struct mq_envelope *e, unsigned traits)
{
	size_t i;

	if (e->headers == NULL)
		return false;
	for (i = 0; i < HEADERS; i++)
		if (table[i].traits & traits &&
		    mq_envelope_get(e, table[i].name) != NULL)
			return true;
	return false;
}

const char *
mq_message_id(const struct mq_envelope *e)
{
	const char *id = mq_envelope_get(e, MQ_HEADER_ID);

	return id != NULL && mq_id_valid(id, strlen(id)) ? id : NULL;
}

const char *
mq_message_name(const struct mq_envelope *e)
{
	const char *id = mq_envelope_get(e, MQ_HEADER_ID);

	if (id == NULL || !mq_id_safe(id, strlen(id)))
		id = mq_envelope_get(e, MQ_HEADER_NAME);
	return id != NULL && mq_id_safe(id, strlen(id)) ? id : NULL;
}

bool
mq_message_plain(const char *element, size_t len, char id[MQ_ID_LEN + 1],
    struct mq_envelope *e)
{
	/* The second byte of head is a NUL. */
	static const char head[] = "\xff\0\xbe\xbe"
				   "J{\"Mq-Id\":[\"";
	static const char tail[] = "\"]}\n";
	const size_t before = sizeof(head) - 1, after = sizeof(tail) - 1;
	size_t skip = before + MQ_ID_LEN + after;

	id[0] = '\0';
	if (len == 0 || element[0] != head[0])
		skip = 0;
	else if (len < skip || memcmp(element, head, before) != 0 ||
	    memcmp(element + before + MQ_ID_LEN, tail, after) != 0 ||
	    !mq_id_valid(element + before, MQ_ID_LEN))
		return false;
	if (skip > 0) {
		memcpy(id, element + before, MQ_ID_LEN);
		id[MQ_ID_LEN] = '\0';
	}
	*e = (struct mq_envelope){NULL, element + skip, len - skip};
	return true;
}

void
mq_message_record(
    struct mq_envelope *e, const char *id, long attempts, const char *error)
{
	char cut[MQ_ERROR_MAX + 1];

	mq_envelope_set(e, MQ_HEADER_ID, id);
	mq_envelope_set_number(e, MQ_HEADER_ATTEMPT, attempts);
	if (error == NULL)
		return;
	snprintf(cut, sizeof(cut), "%s", error);
	mq_envelope_set(e, MQ_HEADER_ERROR, cut);
}

int64_t
mq_message_since_ms(const struct mq_envelope *e)
{
	const char *id = mq_message_id(e);
	int64_t published = id != NULL ? (int64_t)mq_id_time(id) / 1000 : 0;
	int64_t due = mq_envelope_get_long(e, MQ_HEADER_DUE, 0);

	return due > published ? due : published;
}

bool
mq_message_unique_good(const struct mq_envelope *e)
{
	const char *unique = mq_envelope_get(e, MQ_HEADER_UNIQUE);
	long ms = mq_envelope_get_long(e, MQ_HEADER_UNIQUE, 0);

	return unique == NULL || strcmp(unique, "queued") == 0 ||
	    strcmp(unique, "done") == 0 || (ms > 0 && ms <= 1L << 48);
}

long
mq_message_attempts(const struct mq_envelope *e, long most)
{
	long own = mq_envelope_get_long(e, MQ_HEADER_ATTEMPTS, 0);

	return own > 0 && own < most ? own : most;
}

int64_t
mq_message_timeout_ms(const struct mq_envelope *e, int64_t most)
{
	long own = mq_envelope_get_long(e, MQ_HEADER_TIMEOUT, 0);

	return own > 0 && (most == 0 || own < most) ? own : most;
}

#define BATCH_MAX 256 /* bytes of the name of a batch */

const char *
mq_message_batches_error(const char *names, bool several)
{
	const char *p = names;
	size_t n;

	for (; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f ||
		    (*p == ',' && !several) || strchr("\"\\[]{}", *p) != NULL)
			return "a name must not contain blanks, commas, "
			       "quotes, \\ [ ] { }";
	for (p = names;; p += n + 1) {
		n = strcspn(p, ",");
		if (n == 0)
			return "a name must not be empty";
		if (n > BATCH_MAX)
			return "a name has at most 256 bytes";
		if (p[n] == '\0')
			return NULL;
	}
}

bool
mq_message_batches_good(const struct mq_envelope *e)
{
	const char *batch = mq_envelope_get(e, MQ_HEADER_BATCH);
	const char *after = mq_envelope_get(e, MQ_HEADER_AFTER);

	return (batch == NULL ||
		   mq_message_batches_error(batch, false) == NULL) &&
	    (after == NULL || mq_message_batches_error(after, true) == NULL);
}

bool
mq_message_batch_failed(const struct mq_envelope *e, char *why, size_t size)
{
	const json_t *list = json_object_get(e->headers, MQ_HEADER_ENDED), *v;
	const char *text;
	char *rest;
	long long total, failed;
	size_t i, name;

	if (mq_envelope_get(e, MQ_HEADER_AFTER_OK) == NULL)
		return false;
	json_array_foreach(list, i, v) {
		text = json_is_string(v) ? json_string_value(v) : "";
		name = strcspn(text, " ");
		total = strtoll(text + name, &rest, 10);
		(void)strtoll(rest, &rest, 10);
		failed = strtoll(rest, &rest, 10);
		failed += strtoll(rest, &rest, 10);
		if (failed <= 0)
			continue;
		snprintf(why, size, "batch %.*s: %lld of %lld rejected",
		    name < BATCH_MAX ? (int)name : BATCH_MAX, text, failed,
		    total);
		return true;
	}
	return false;
}

const char *
mq_message_to(const struct mq_envelope *e, const char *queue)
{
	const char *to = mq_envelope_get(e, MQ_HEADER_TO);

	return to == NULL || strcmp(to, queue) == 0 ||
		mq_envelope_get(e, MQ_HEADER_AFTER) == NULL ?
	    NULL :
	    to;
}

void
mq_message_pass(const struct mq_envelope *from, struct mq_buf *header)
{
	static const char *const dropped[] = {MQ_HEADER_AFTER,
	    MQ_HEADER_AFTER_OK, MQ_HEADER_TO, MQ_HEADER_ATTEMPT};
	struct mq_envelope e = {.headers = json_copy(from->headers)};
	size_t i;

	for (i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		json_object_del(e.headers, dropped[i]);
	mq_envelope_write_header(&e, header);
	mq_envelope_free(&e);
}

bool
mq_message_limits_good(const struct mq_envelope *e)
{
	static const char *const limits[] = {
	    MQ_HEADER_ATTEMPTS, MQ_HEADER_TIMEOUT};
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (mq_envelope_get(e, limits[i]) != NULL &&
		    mq_envelope_get_long(e, limits[i], 0) <= 0)
			return false;
	return true;
}

void
mq_message_duplicate(const struct mq_envelope *from,
    const struct mq_duplicate *how, struct mq_envelope *e)
{
	size_t i;

	*e = (struct mq_envelope){NULL, from->payload, from->payload_len};
	if (from->headers == NULL && !how->stamped && how->web == NULL)
		return;
	if (from->headers != NULL)
		e->headers = json_deep_copy(from->headers);
	mq_envelope_set(e, MQ_HEADER_ID, how->id);
	for (i = 0; i < HEADERS; i++)
		if (table[i].traits & MQ_TRAIT_OWN)
			json_object_del(e->headers, table[i].name);
	if (how->origin != NULL && mq_envelope_get(e, MQ_HEADER_ORIGIN) == NULL)
		mq_envelope_set(e, MQ_HEADER_ORIGIN, how->origin);
	if (how->web != NULL)
		mq_envelope_set(e, MQ_HEADER_DEST, how->web);
	if (how->due_ms > 0)
		mq_envelope_set_number(e, MQ_HEADER_DUE, how->due_ms);
}

bool
mq_message_over(const struct mq_envelope *e, int64_t now_ms, int64_t tick,
    char *why, size_t size)
{
	long expires = mq_envelope_get_long(e, MQ_HEADER_EXPIRES, 0);
	long last = mq_envelope_get_long(e, MQ_HEADER_UNTIL_TICK, LONG_MAX);

	if (expires > 0 && now_ms > expires)
		snprintf(why, size, "expired");
	else if (last < tick)
		snprintf(why, size, "stale: tick %ld is over", last);
	else
		return false;
	return true;
}

/* --- history ------------------------------------------------------------------ */

/* At most max bytes from the beginning or the end of a text, in whole characters; invalid
 * bytes become '?'.  NULL for NULL. */
static json_t *
cut_text(const char *text, size_t max, bool from_end)
{
	size_t n = text != NULL ? strlen(text) : 0, cut_off = 0;
	char *copy;
	json_t *v;

	if (text == NULL)
		return NULL;
	/* At most three bytes continue a character. */
	if (from_end && n > max) {
		for (text += n - max; mq_utf8_inside(*text) && cut_off < 3;
		     text++)
			cut_off++;
		n = max - cut_off;
	} else if (n > max) {
		for (n = max; mq_utf8_inside(text[n]) && cut_off < 3; n--)
			cut_off++;
	}
	copy = mq_xstrndup(text, n);
	v = mq_json_text(copy);
	free(copy);
	return v;
}

void
mq_history_add(struct mq_envelope *e, const struct mq_failure *f)
{
	json_t *v = json_object(), *list;
	struct mq_buf text = {0};

	if (f->at_ms > 0)
		mq_json_set(v, "at_ms", json_integer(f->at_ms));
	if (f->attempt > 0)
		mq_json_set(v, "attempt", json_integer(f->attempt));
	mq_json_set(v, "host", cut_text(f->host, MQ_HISTORY_TEXT, false));
	mq_json_set(v, "signal", mq_json_text(f->signal));
	if (f->signal == NULL && f->status >= 0)
		mq_json_set(v, "status", json_integer(f->status));
	mq_json_set(v, "text", cut_text(f->text, MQ_HISTORY_TEXT, false));
	if (f->errors != NULL && *f->errors != '\0')
		mq_json_set(
		    v, "stderr", cut_text(f->errors, MQ_HISTORY_STDERR, true));
	mq_json_dump(v, &text);
	json_decref(v);
	mq_envelope_add(e, MQ_HEADER_HISTORY, mq_buf_str(&text));
	mq_buf_free(&text);
	list = json_object_get(e->headers, MQ_HEADER_HISTORY);
	while (json_array_size(list) > MQ_HISTORY_MAX)
		json_array_remove(list, 0);
}

json_t *
mq_history_list(const struct mq_envelope *e, bool last)
{
	/* Another program may have written the header. */
	static const struct {
		const char *name;
		json_type type;
	} members[] = {{"at_ms", JSON_INTEGER}, {"attempt", JSON_INTEGER},
	    {"host", JSON_STRING}, {"status", JSON_INTEGER},
	    {"signal", JSON_STRING}, {"text", JSON_STRING},
	    {"stderr", JSON_STRING}};
	const json_t *list = json_object_get(e->headers, MQ_HEADER_HISTORY);
	const json_t *value;
	json_t *from, *to, *v, *out = json_array();
	size_t i, k, n = json_array_size(list);

	for (i = 0; i < n && !(last && json_array_size(out) > 0); i++) {
		value = json_array_get(list, last ? n - 1 - i : i);
		from = mq_json_load(
		    json_string_value(value), json_string_length(value), false);
		to = json_is_object(from) ? json_object() : NULL;
		for (k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
			v = json_object_get(from, members[k].name);
			if (v != NULL && json_typeof(v) == members[k].type)
				json_object_set(to, members[k].name, v);
		}
		if (to != NULL)
			json_array_append_new(out, to);
		json_decref(from);
	}
	return out;
}

json_int_t
mq_history_last_number(const struct mq_envelope *e, const char *name)
{
	json_t *last = mq_history_list(e, true);
	json_int_t n =
	    json_integer_value(json_object_get(json_array_get(last, 0), name));

	json_decref(last);
	return n < 0 ? 0 : n > 1LL << 48 ? 1LL << 48 : n;
}

#define CRASHED "its consumer died while it ran"

void
mq_history_crash(
    struct mq_envelope *e, long attempt, bool last, const char *host)
{
	const struct mq_failure failure = {.at_ms = mq_clock_unix_us() / 1000,
	    .attempt = attempt,
	    .status = -1,
	    .host = host,
	    .text = last ? "attempts exhausted: " CRASHED : CRASHED};
	struct mq_idgen ids = {0};
	char id[MQ_ID_LEN + 1];

	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), id);
	if (mq_message_id(e) != NULL)
		memcpy(id, mq_message_id(e), sizeof(id));
	mq_message_record(e, id, attempt, failure.text);
	mq_history_add(e, &failure);
}
