/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The reader has one buffer: read(2) appends to it, records are returned from its front, and
 * an incomplete record at its end moves to the front before the next read.  A byte moves at
 * most once, and is searched for a separator once.
 */
#include "frame.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "json.h"

#define BUFFER_SIZE   ((size_t)256 * 1024)
#define READ_SIZE     ((size_t)64 * 1024) /* least room for a read(2) */
#define LENGTH_DIGITS 10

/* Returns MQ_FRAME_BAD. */
static enum mq_frame_result __attribute__((format(printf, 2, 3)))
fail_record(struct mq_frame_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	return MQ_FRAME_BAD;
}

static enum mq_frame_result
fail_too_long(struct mq_frame_reader *r)
{
	return fail_record(r, "longer than %zu bytes", r->max);
}

/* The functions below return MQ_FRAME_WAIT when they need more input. */

/* Returns a record of n bytes, and skips the framing before and behind it. */
static enum mq_frame_result
deliver_record(struct mq_frame_reader *r, size_t before, size_t n,
    size_t behind, const char **p)
{
	*p = r->buf.data + r->start + before;
	r->start += before + n + behind;
	r->scanned = 0;
	r->records++;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
read_until(struct mq_frame_reader *r, int separator, const char **p, size_t *n)
{
	const char *from = r->buf.data + r->start, *end = NULL;
	size_t have = r->buf.len - r->start;
	bool whole = r->framing == MQ_FRAME_WHOLE;

	if (!whole)
		end = memchr(from + r->scanned, separator, have - r->scanned);
	*n = end != NULL ? (size_t)(end - from) : have;
	if (*n > r->max)
		return fail_too_long(r);
	if (end != NULL)
		return deliver_record(r, 0, *n, 1, p);
	r->scanned = have;
	if (!r->eof)
		return MQ_FRAME_WAIT;
	/* An empty stream is a record only with framing whole. */
	if (have == 0 && (!whole || r->records > 0))
		return MQ_FRAME_END;
	return deliver_record(r, 0, have, 0, p);
}

/* Parses "LEN:"; *digits is the number of digits in LEN. */
static enum mq_frame_result
parse_length(struct mq_frame_reader *r, size_t *digits, size_t *n)
{
	const char *p = r->buf.data + r->start;
	size_t have = r->buf.len - r->start, i;
	uint64_t length = 0;
	const char *why = NULL;

	for (i = 0; i < have && p[i] >= '0' && p[i] <= '9'; i++) {
		if (i == LENGTH_DIGITS)
			return fail_record(
			    r, "netstring: length has more than 10 digits");
		length = length * 10 + (uint64_t)(p[i] - '0');
	}
	if (i > 1 && p[0] == '0')
		why = "has a leading zero";
	else if (i == have && !r->eof)
		return MQ_FRAME_WAIT;
	else if (i == have)
		why = "is cut off";
	else if (i == 0 || p[i] != ':')
		why = "is not a number";
	else if (length > r->max)
		return fail_too_long(r);
	if (why != NULL)
		return fail_record(r, "netstring: length %s", why);
	*digits = i;
	*n = (size_t)length;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
parse_netstring(struct mq_frame_reader *r, const char **p, size_t *n)
{
	const char *from = r->buf.data + r->start;
	size_t have = r->buf.len - r->start, digits = 0;
	enum mq_frame_result result;

	/* Editors and echo(1) leave a newline at the end. */
	if (have == 0 || (have == 1 && *from == '\n'))
		return r->eof ? MQ_FRAME_END : MQ_FRAME_WAIT;
	result = parse_length(r, &digits, n);
	if (result != MQ_FRAME_RECORD)
		return result;
	from += digits + 1;
	have -= digits + 1;
	if (have > *n && from[*n] == ',')
		return deliver_record(r, digits + 1, *n, 1, p);
	if (have > *n)
		return fail_record(r,
		    "netstring: no comma after its payload (length %zu)", *n);
	if (r->eof)
		return fail_record(r,
		    "netstring: cut off after %zu of %zu bytes%s", have, *n,
		    have == *n ? ", no comma" : "");
	return MQ_FRAME_WAIT;
}

enum mq_frame_result
mq_frame_read(struct mq_frame_reader *r, const char **p, size_t *n)
{
	struct pollfd input = {.fd = r->fd, .events = POLLIN};
	int separator = r->framing == MQ_FRAME_NULL ? '\0' : '\n', ready;
	struct mq_buf *b = &r->buf;
	enum mq_frame_result result = MQ_FRAME_WAIT;
	ssize_t got;

	for (;;) {
		/* Before the first read there is not even a buffer. */
		if (b->len > r->start || r->eof)
			result = r->framing == MQ_FRAME_NETSTRING ?
			    parse_netstring(r, p, n) :
			    read_until(r, separator, p, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		if (r->start > 0) {
			mq_buf_drop(b, r->start);
			r->start = 0;
		}
		if (b->cap - b->len < READ_SIZE)
			mq_buf_reserve(b, BUFFER_SIZE);
		ready = poll(&input, 1, 0);
		if (ready == 0)
			return MQ_FRAME_WAIT;
		got = ready == -1 ?
		    -1 :
		    read(r->fd, b->data + b->len, b->cap - b->len);
		/* EAGAIN: another reader of an O_NONBLOCK descriptor was faster. */
		if (got == -1)
			return errno == EAGAIN || errno == EINTR ?
			    MQ_FRAME_WAIT :
			    MQ_FRAME_FAILED;
		b->len += (size_t)got;
		r->eof = got == 0;
	}
}

/* --- jsonl --------------------------------------------------------------------- */

/* Replaces each value that is a string by a list of it.  Returns an error, or NULL. */
static const char *
normalize_headers(json_t *headers)
{
	const char *name;
	json_t *v, *item;
	bool good;
	size_t i;

	if (headers == NULL || json_is_null(headers))
		return NULL;
	if (!json_is_object(headers))
		return "headers is not an object";
	json_object_foreach(headers, name, v) {
		good = json_is_array(v) || json_is_string(v) || json_is_null(v);
		json_array_foreach(v, i, item)
			good &= json_is_string(item);
		if (!good)
			return "a header is neither a string nor a list "
			       "of strings";
		if (json_is_string(v))
			json_object_iter_set_new(headers,
			    json_object_key_to_iter(name), json_pack("[O]", v));
	}
	return NULL;
}

int
mq_frame_decode_json(const char *line, size_t n, struct mq_buf *payload,
    struct mq_frame_line *out, const char **why)
{
	json_t *object = mq_json_load(line, n, false);
	json_t *found = json_object_get(object, "headers");
	const json_t *text = json_object_get(object, "payload");
	const json_t *base64 = json_object_get(object, "payload_base64");
	json_int_t due = json_integer_value(json_object_get(object, "due_ms"));

	*out = (struct mq_frame_line){0};
	if (!json_is_object(object))
		*why = object == NULL ? "invalid JSON" : "not a JSON object";
	else
		*why = normalize_headers(found);
	if (*why == NULL && text != NULL && base64 != NULL)
		*why = "both payload and payload_base64";
	if (*why == NULL && text == NULL && base64 == NULL)
		*why = "neither payload nor payload_base64";
	if (*why == NULL && text != NULL && !json_is_string(text))
		*why = "payload is not a string";
	/* Only a good line may add to the payload. */
	if (*why == NULL && text != NULL)
		mq_buf_add(
		    payload, json_string_value(text), json_string_length(text));
	else if (*why == NULL &&
	    (!json_is_string(base64) ||
		mq_base64_decode(payload, json_string_value(base64),
		    json_string_length(base64)) == -1))
		*why = "payload_base64 is not base64";
	if (*why == NULL && json_is_object(found))
		out->headers = json_incref(found);
	/* Only mq-consume and mq-stats write queue. */
	if (*why == NULL && json_object_get(object, "queue") != NULL) {
		out->copied = true;
		out->raw = found == NULL;
		out->due_ms = due > 0 ? due : 0;
	}
	json_decref(object);
	return *why == NULL ? 0 : -1;
}

/* Appends a member, with a comma in front, which write_json() replaces for the first. */
static void
add_string(struct mq_buf *out, const char *name, const char *s)
{
	json_t *text;

	mq_buf_addstr(out, name);
	if (strstr(s, "\\x") == NULL && mq_json_add_text(out, s, strlen(s)))
		return;
	text = mq_json_name(s);
	mq_json_dump(text, out);
	json_decref(text);
}

/* A json_t would copy and check a dozen strings of each message once more. */
static void
write_json(struct mq_buf *out, const struct mq_envelope *e,
    const struct mq_frame_meta *meta)
{
	size_t from = out->len, behind;
	const char *name;
	char attempt[40];
	json_t *v;

	if (meta->id != NULL)
		add_string(out, ",\"id\":", meta->id);
	if (meta->queue != NULL)
		add_string(out, ",\"queue\":", meta->queue);
	if (meta->attempt > 0)
		mq_buf_add(out, attempt,
		    (size_t)snprintf(attempt, sizeof(attempt),
			",\"attempt\":%ld", meta->attempt));
	json_object_foreach(meta->more, name, v) {
		mq_buf_addstr(out, ",\"");
		mq_buf_addstr(out, name);
		mq_buf_addstr(out, "\":");
		mq_json_dump(v, out);
	}
	/* A stamp is written like the parsed header. */
	if (e->headers != NULL) {
		mq_buf_addstr(out, ",\"headers\":");
		mq_json_dump(e->headers, out);
	} else if (meta->stamp != NULL) {
		mq_buf_addstr(out, ",\"headers\":{\"" MQ_HEADER_ID "\":[\"");
		mq_buf_addstr(out, meta->stamp);
		mq_buf_addstr(out, "\"]}");
	}
	behind = out->len;
	mq_buf_addstr(out, ",\"payload\":");
	if (!mq_json_add_text(out, e->payload, e->payload_len)) {
		out->len = behind;
		mq_buf_addstr(out, ",\"payload_base64\":\"");
		mq_base64_encode(out, e->payload, e->payload_len);
		mq_buf_addstr(out, "\"");
	}
	out->data[from] = '{';
	mq_buf_addstr(out, "}\n");
}

void
mq_frame_write(struct mq_buf *out, enum mq_framing framing,
    const struct mq_envelope *e, const struct mq_frame_meta *meta)
{
	size_t n = e->payload_len;
	char *to;

	if (framing == MQ_FRAME_JSONL) {
		write_json(out, e, meta);
		return;
	}
	if (framing == MQ_FRAME_NETSTRING)
		mq_buf_printf(out, "%zu:", n);
	/* One reserve for both: batches and printers do little else. */
	to = mq_buf_reserve(out, n + 1);
	if (n > 0)
		to = mempcpy(to, e->payload, n);
	if (framing == MQ_FRAME_LINES)
		*to++ = '\n';
	else if (framing == MQ_FRAME_NULL)
		*to++ = '\0';
	else if (framing == MQ_FRAME_NETSTRING)
		*to++ = ',';
	out->len = (size_t)(to - out->data);
}
