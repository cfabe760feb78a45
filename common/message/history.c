#include "history.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "headers.h"
#include "json.h"

/* A text of at most max bytes, from its beginning or its end, in whole
 * characters; what is no UTF-8 becomes '?'. */
static json_t *
cut_text(const char *text, size_t max, bool from_end)
{
	size_t n = strlen(text), cut_off = 0;
	char *copy;
	json_t *v;

	/* A character is cut in at most three of its bytes. */
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
	if (f->host != NULL)
		mq_json_set(
		    v, "host", cut_text(f->host, MQ_HISTORY_TEXT, false));
	if (f->signal != NULL)
		mq_json_set(v, "signal", mq_json_text(f->signal));
	else if (f->status >= 0)
		mq_json_set(v, "status", json_integer(f->status));
	if (f->text != NULL)
		mq_json_set(
		    v, "text", cut_text(f->text, MQ_HISTORY_TEXT, false));
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

/* Copies the members of the right type; others may have written the header. */
static json_t *
checked_failure(const json_t *from)
{
	static const struct {
		const char *name;
		json_type type;
	} members[] = {{"at_ms", JSON_INTEGER}, {"attempt", JSON_INTEGER},
	    {"host", JSON_STRING}, {"status", JSON_INTEGER},
	    {"signal", JSON_STRING}, {"text", JSON_STRING},
	    {"stderr", JSON_STRING}};
	json_t *to = json_object(), *v;
	size_t i;

	mq_json_must(to != NULL);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		v = json_object_get(from, members[i].name);
		if (v != NULL && json_typeof(v) == members[i].type)
			mq_json_must(
			    json_object_set(to, members[i].name, v) == 0);
	}
	return to;
}

json_t *
mq_history_list(const struct mq_envelope *e)
{
	json_t *out = json_array(), *value, *v;
	size_t i;

	mq_json_must(out != NULL);
	json_array_foreach(
	    json_object_get(e->headers, MQ_HEADER_HISTORY), i, value) {
		v = mq_json_load(
		    json_string_value(value), json_string_length(value), false);
		if (json_is_object(v))
			mq_json_must(json_array_append_new(
					 out, checked_failure(v)) == 0);
		json_decref(v);
	}
	return out;
}

json_t *
mq_history_last(const struct mq_envelope *e)
{
	const json_t *list = json_object_get(e->headers, MQ_HEADER_HISTORY);
	const json_t *value;
	json_t *v, *out = NULL;
	size_t i = json_array_size(list);

	while (i > 0 && out == NULL) {
		value = json_array_get(list, --i);
		v = mq_json_load(
		    json_string_value(value), json_string_length(value), false);
		if (json_is_object(v))
			out = checked_failure(v);
		json_decref(v);
	}
	return out;
}

json_int_t
mq_history_last_number(const struct mq_envelope *e, const char *name)
{
	json_t *last = mq_history_last(e);
	json_int_t n = json_integer_value(json_object_get(last, name));

	json_decref(last);
	return n;
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
