/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "headers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json.h"

static const char *const names[] = {[MQ_END_DONE] = "done",
    [MQ_END_REJECTED] = "rejected",
    [MQ_END_PUSHED] = "pushed",
    [MQ_END_PURGED] = "purged",
    [MQ_END_EXPIRED] = "expired"};

#define ENDS (sizeof(names) / sizeof(names[0]))

const char *
mq_end_name(enum mq_end end)
{
	return names[end];
}

static void
set_result(json_t *v, const struct mq_ending *e)
{
	struct mq_buf text = {0};

	if (e->result == NULL)
		return;
	if (mq_utf8(e->result, e->result_len) &&
	    memchr(e->result, '\0', e->result_len) == NULL) {
		mq_json_set(
		    v, "result", json_stringn(e->result, e->result_len));
	} else {
		mq_base64_encode(&text, e->result, e->result_len);
		mq_json_set(
		    v, "result_base64", json_stringn(text.data, text.len));
	}
	if (e->result_cut)
		mq_json_set(v, "result_cut", json_true());
	mq_buf_free(&text);
}

void
mq_ending_write(const struct mq_ending *e, struct mq_buf *out)
{
	json_t *v = json_object();

	if (e->id[0] != '\0')
		mq_json_set(v, "id", mq_json_text(e->id));
	mq_json_set(v, "queue", mq_json_text(e->queue));
	mq_json_set(v, "state", json_string(names[e->state]));
	mq_json_set(v, "text", mq_json_text(e->text));
	mq_json_set(v, "signal", mq_json_text(e->signal));
	if (e->signal == NULL && e->status >= 0)
		mq_json_set(v, "status", json_integer(e->status));
	if (e->seconds > 0)
		mq_json_set(v, "seconds",
		    json_real(
			(double)(int64_t)(e->seconds * 1000 + 0.5) / 1000));
	mq_json_set(v, "attempts", json_integer(e->attempts));
	mq_json_set(v, "host", mq_json_text(e->host));
	mq_json_set(v, "to", mq_json_text(e->to));
	if (e->finished_ms > 0)
		mq_json_set(v, "finished_ms", json_integer(e->finished_ms));
	set_result(v, e);
	mq_json_dump(v, out);
	json_decref(v);
}

void
mq_notice_write(const char id[MQ_ID_LEN + 1], const char *queue,
    const struct mq_buf *text, struct mq_buf *out)
{
	struct mq_envelope e = {
	    .payload = text->data, .payload_len = text->len};

	mq_envelope_set(&e, MQ_HEADER_ID, id);
	mq_envelope_set(&e, MQ_HEADER_NOTICE, queue);
	mq_envelope_write(&e, out);
	mq_envelope_free(&e);
}

/* The string of a member; NULL: there is none, or it holds a NUL. */
static const char *
text_of(const json_t *v, const char *name)
{
	const json_t *text = json_object_get(v, name);
	const char *s = json_string_value(text);

	return s != NULL && strlen(s) == json_string_length(text) ? s : NULL;
}

static json_int_t
number_of(const json_t *v, const char *name, json_int_t max, json_int_t none)
{
	const json_t *n = json_object_get(v, name);

	/* Lua may write integers as reals. */
	if (!json_is_number(n) || !(json_number_value(n) >= 0) ||
	    json_number_value(n) > (double)max)
		return none;
	return (json_int_t)json_number_value(n);
}

/* Takes the bytes of the result, which may hold NULs. */
static void
read_result(struct mq_ending *e)
{
	const json_t *text = json_object_get(e->json, "result");
	const json_t *coded = json_object_get(e->json, "result_base64");
	struct mq_buf bytes = {0};

	e->result = json_string_value(text);
	e->result_len = json_string_length(text);
	e->result_cut = json_is_true(json_object_get(e->json, "result_cut"));
	if (coded == NULL || !json_is_string(coded) ||
	    mq_base64_decode(&bytes, json_string_value(coded),
		json_string_length(coded)) == -1)
		return;
	e->result_len = bytes.len;
	e->result = e->decoded = mq_buf_str(&bytes);
}

int
mq_ending_read(const char *p, size_t n, struct mq_ending *e)
{
	json_t *v = mq_json_load(p, n, false);
	const char *id = text_of(v, "id"), *state = text_of(v, "state");
	size_t i = 0;

	*e = (struct mq_ending){.json = v};
	while (state != NULL && i < ENDS && strcmp(state, names[i]) != 0)
		i++;
	if (id == NULL || state == NULL || i == ENDS ||
	    !mq_id_valid(id, strlen(id))) {
		mq_ending_free(e);
		return -1;
	}
	memcpy(e->id, id, sizeof(e->id));
	e->state = (enum mq_end)i;
	e->text = text_of(v, "text");
	e->status = (int)number_of(v, "status", INT_MAX, -1);
	e->signal = text_of(v, "signal");
	e->seconds = json_number_value(json_object_get(v, "seconds"));
	e->attempts = (long)number_of(v, "attempts", INT_MAX, 0);
	e->host = text_of(v, "host");
	e->to = text_of(v, "to");
	e->finished_ms = number_of(v, "finished_ms", 1LL << 52, 0);
	read_result(e);
	return 0;
}

void
mq_ending_free(struct mq_ending *e)
{
	json_decref(e->json);
	free(e->decoded);
	e->json = NULL;
	e->decoded = NULL;
}

bool
mq_result_wanted(const struct mq_envelope *e)
{
	const char *id = mq_message_id(e);
	const char *to = mq_envelope_get(e, MQ_HEADER_REPLY_TO);

	return id != NULL && to != NULL && strcmp(id, to) == 0;
}
