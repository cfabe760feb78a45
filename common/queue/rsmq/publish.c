/*
 * The rsmq layout: what a message is there, and putting messages in.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/xalloc.h"
#include "message/envelope.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/layout.h"
#include "rsmq.h"

/* How each element begins: the id is what the message is known by. */
static const char start[] = "\xff\x00\xbe\xbe\x4a{\"Mq-Id\":[\"";
#define START (sizeof(start) - 1)

/* An id of whose bytes lua/lib/layout.lua has written some as \u00ff; the caller
 * frees. */
static char *
unescape(const char *p, size_t *n)
{
	const char *end = p + *n;
	char *id = mq_xstrndup(p, *n), *to = id, digits[3] = "";

	while (p < end) {
		if (*p != '\\' || end - p < 6) {
			*to++ = *p++;
			continue;
		}
		memcpy(digits, p + 4, 2);
		*to++ = (char)strtol(digits, NULL, 16);
		p += 6;
	}
	*n = (size_t)(to - id);
	return id;
}

const char *
rsmq_id(const char *element, size_t *n, size_t len, char **own)
{
	const char *end;

	*own = NULL;
	if (len < START || memcmp(element, start, START) != 0)
		return NULL;
	end = memchr(element + START, '"', len - START);
	if (end == NULL)
		return NULL;
	*n = (size_t)(end - element) - START;
	if (memchr(element + START, '\\', *n) == NULL)
		return element + START;
	*own = unescape(element + START, n);
	return *own;
}

/* The members of an object. */
static void
add_members(const json_t *headers, struct mq_buf *out)
{
	struct mq_buf text = {0};

	mq_json_dump(headers, &text);
	/* Without the braces. */
	mq_buf_add(out, text.data + 1, text.len - 2);
	mq_buf_free(&text);
}

/* Takes out the headers that are kept by themselves. */
static void
extra_of(struct mq_envelope *e, struct mq_buf *extra)
{
	mq_buf_clear(extra);
	if (!json_is_object(e->headers))
		return;
	mq_envelope_remove(e, MQ_HEADER_ID);
	mq_envelope_remove(e, MQ_HEADER_NAME);
	mq_envelope_remove(e, MQ_HEADER_ATTEMPT);
	if (json_object_size(e->headers) > 0)
		add_members(e->headers, extra);
}

void
rsmq_extra(const char *header, size_t len, struct mq_buf *extra)
{
	struct mq_envelope e;
	const char *why;

	mq_buf_clear(extra);
	if (mq_envelope_parse(header, len, &e, &why) == -1)
		return;
	extra_of(&e, extra);
	mq_envelope_free(&e);
}

void
rsmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	static const char *const kinds[] = {
	    [MQ_WHEN_NOW] = "now", [MQ_WHEN_IN] = "in", [MQ_WHEN_AT] = "at"};
	char *channel;

	mq_command_script(c, &rsmq_script_publish);
	rsmq_queue_keys(c, queue);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_key(c, queue, ":Xcounters :Xlater :Xsettings");
	if (how->mark.publisher != NULL)
		mq_side_marks(&rsmq_side, c, queue, how->mark.publisher);
	mq_command_str(c, rsmq_bare(queue));
	/* No message is delayed by its queue that has said when. */
	if (how->when.kind == MQ_WHEN_NOW && how->when.said) {
		mq_command_str(c, kinds[MQ_WHEN_IN]);
		mq_command_int(c, 0);
	} else {
		mq_command_str(c, kinds[how->when.kind]);
		mq_command_int(c, how->when.ms);
	}
	mq_layout_add_limits(c, &how->limits);
	if (how->realtime) {
		channel = mq_xasprintf(":rt:%s", rsmq_bare(queue));
		rsmq_key_common(c, queue, channel);
		free(channel);
	} else {
		mq_command_str(c, "");
	}
	mq_command_str(c, how->alike ? "1" : "");
	mq_mark_add_behind(c, &how->mark);
}

/* Nearly all messages have nothing but their id: then nothing is to be parsed. */
static bool
is_bare_id(const struct mq_buf *header)
{
	static const char tail[] = "\"]}\n";
	size_t n = START + MQ_ID_LEN + sizeof(tail) - 1;

	return header->len == n && memcmp(header->data, start, START) == 0 &&
	    memcmp(header->data + START + MQ_ID_LEN, tail, sizeof(tail) - 1) ==
	    0;
}

void
rsmq_publish_add(struct mq_command *c, const struct mq_publishing *how,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len)
{
	struct mq_envelope e = {0};
	struct mq_buf extra = {0};
	char id[MQ_ID_LEN + 1];
	const char *why;
	long priority = 0;

	(void)how;
	memcpy(id, unique, sizeof(id));
	if (is_bare_id(header)) {
		memcpy(id, header->data + START, MQ_ID_LEN);
	} else if (header->len > 0 &&
	    mq_envelope_parse(header->data, header->len, &e, &why) == 0) {
		if (mq_message_id(&e) != NULL)
			memcpy(id, mq_message_id(&e), sizeof(id));
		priority = mq_envelope_get_long(&e, MQ_HEADER_PRIORITY, 0);
		extra_of(&e, &extra);
		mq_envelope_free(&e);
	}
	mq_command_str(c, id);
	mq_command_int(c, mq_utf16_units(payload, len));
	mq_command_int(c, priority);
	mq_command_arg(c, extra.data, extra.len);
	mq_command_arg(c, payload, len);
	mq_buf_free(&extra);
}
