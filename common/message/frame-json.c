/* The writer, and the members of jsonl. */
#include "frame.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "headers.h"
#include "json.h"

static const char *
decode_payload(const json_t *object, struct mq_buf *payload)
{
	const json_t *text = json_object_get(object, "payload");
	const json_t *base64 = json_object_get(object, "payload_base64");

	if (text != NULL && base64 != NULL)
		return "both payload and payload_base64";
	if (text == NULL && base64 == NULL)
		return "neither payload nor payload_base64";
	if (text != NULL && !json_is_string(text))
		return "payload is not a string";
	if (text != NULL)
		mq_buf_add(
		    payload, json_string_value(text), json_string_length(text));
	else if (!json_is_string(base64) ||
	    mq_base64_decode(payload, json_string_value(base64),
		json_string_length(base64)) == -1)
		return "payload_base64 is not base64";
	return NULL;
}

static bool
is_list_of_strings(const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, item)
		if (!json_is_string(item))
			return false;
	return true;
}

/* Makes every lone string a list of one. */
static const char *
normalize_headers(json_t *headers)
{
	const char *name;
	json_t *v;

	if (headers == NULL || json_is_null(headers))
		return NULL;
	if (!json_is_object(headers))
		return "headers is not an object";
	json_object_foreach(headers, name, v) {
		if (json_is_string(v))
			mq_json_must(json_object_iter_set_new(headers,
					 json_object_key_to_iter(name),
					 json_pack("[O]", v)) == 0);
		else if (!json_is_null(v) && !is_list_of_strings(v))
			return "a header is neither a string nor a list "
			       "of strings";
	}
	return NULL;
}

/* Reads the members that mq-consume writes and nobody else. */
static void
note_facts(const json_t *object, struct mq_frame_line *out)
{
	json_int_t due = json_integer_value(json_object_get(object, "due_ms"));

	if (json_object_get(object, "queue") == NULL)
		return;
	out->copied = true;
	out->raw = json_object_get(object, "headers") == NULL;
	out->due_ms = due > 0 ? due : 0;
}

int
mq_frame_decode_json(const char *line, size_t n, struct mq_buf *payload,
    struct mq_frame_line *out, const char **why)
{
	json_t *object = mq_json_load(line, n);
	json_t *found = json_object_get(object, "headers");

	*out = (struct mq_frame_line){0};
	if (!json_is_object(object))
		*why = object == NULL ? "invalid JSON" : "not a JSON object";
	else
		*why = normalize_headers(found);
	/* Last, so that a bad line adds nothing to the payload. */
	if (*why == NULL)
		*why = decode_payload(object, payload);
	if (*why == NULL) {
		note_facts(object, out);
		if (json_is_object(found))
			out->headers = json_incref(found);
	}
	json_decref(object);
	return *why == NULL ? 0 : -1;
}

/* Each member begins with its comma; the first one's becomes the brace. */
static void
add_string(struct mq_buf *out, const char *name, const char *s)
{
	json_t *text;

	mq_buf_addstr(out, name);
	if (mq_json_add_text(out, s, strlen(s)))
		return;
	text = mq_json_name(s);
	mq_json_dump(text, out);
	json_decref(text);
}

static void
add_attempt(struct mq_buf *out, long attempt)
{
	char text[40];

	mq_buf_add(out, text,
	    (size_t)snprintf(text, sizeof(text), ",\"attempt\":%ld", attempt));
}

static void
add_more(struct mq_buf *out, json_t *more)
{
	const char *name;
	json_t *v;

	json_object_foreach(more, name, v) {
		mq_buf_addstr(out, ",\"");
		mq_buf_addstr(out, name);
		mq_buf_addstr(out, "\":");
		mq_json_dump(v, out);
	}
}

/* A stamp is as parsing and writing the only header would have it. */
static void
add_headers(struct mq_buf *out, const json_t *headers, const char *stamp)
{
	if (headers != NULL) {
		mq_buf_addstr(out, ",\"headers\":");
		mq_json_dump(headers, out);
	} else if (stamp != NULL) {
		mq_buf_addstr(out, ",\"headers\":{\"" MQ_HEADER_ID "\":[\"");
		mq_buf_addstr(out, stamp);
		mq_buf_addstr(out, "\"]}");
	}
}

static void
add_payload(struct mq_buf *out, const char *p, size_t n)
{
	size_t from = out->len;

	mq_buf_addstr(out, ",\"payload\":");
	if (mq_json_add_text(out, p, n))
		return;
	out->len = from;
	mq_buf_addstr(out, ",\"payload_base64\":\"");
	mq_base64_encode(out, p, n);
	mq_buf_addstr(out, "\"");
}

/* Not by way of a json_t: a message has a dozen strings to copy and to check. */
static void
write_json(struct mq_buf *out, const struct mq_envelope *e,
    const struct mq_frame_meta *meta)
{
	size_t from = out->len;

	if (meta->id != NULL)
		add_string(out, ",\"id\":", meta->id);
	if (meta->queue != NULL)
		add_string(out, ",\"queue\":", meta->queue);
	if (meta->attempt > 0)
		add_attempt(out, meta->attempt);
	add_more(out, meta->more);
	add_headers(out, e->headers, meta->stamp);
	add_payload(out, e->payload, e->payload_len);
	out->data[from] = '{';
	mq_buf_addstr(out, "}\n");
}

void
mq_frame_write(struct mq_buf *out, enum mq_framing framing,
    const struct mq_envelope *e, const struct mq_frame_meta *meta)
{
	if (framing == MQ_FRAME_JSONL) {
		write_json(out, e, meta);
		return;
	}
	if (framing == MQ_FRAME_NETSTRING)
		mq_buf_printf(out, "%zu:", e->payload_len);
	mq_buf_add(out, e->payload, e->payload_len);
	if (framing == MQ_FRAME_LINES)
		mq_buf_add(out, "\n", 1);
	else if (framing == MQ_FRAME_NULL)
		mq_buf_add(out, "", 1);
	else if (framing == MQ_FRAME_NETSTRING)
		mq_buf_add(out, ",", 1);
}
