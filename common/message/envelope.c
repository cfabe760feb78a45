/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "headers.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "json.h"

/* The second byte is a NUL: not a string. */
static const char signature[] = {'\xff', '\0', '\xbe', '\xbe', '\x4a'};

bool
mq_envelope_signed(const char *p, size_t n)
{
	return n >= sizeof(signature) &&
	    memcmp(p, signature, sizeof(signature)) == 0;
}

int
mq_envelope_parse(
    const char *element, size_t len, struct mq_envelope *e, const char **why)
{
	const char *json, *end, *name;
	json_t *list, *item;
	bool good = true;
	size_t i;

	*e = (struct mq_envelope){NULL, element, len};
	if (!mq_envelope_signed(element, len))
		return 0;
	json = element + sizeof(signature);
	end = memchr(json, '\n', len - sizeof(signature));
	if (end == NULL) {
		*why = "header without end";
		return -1;
	}
	e->headers = mq_json_load(json, (size_t)(end - json), true);
	json_object_foreach(e->headers, name, list) {
		good &= json_is_array(list) || json_is_null(list);
		/* Go decodes a null inside a list as "".  Replacing it here, readers of
		 * headers can rely on strings. */
		json_array_foreach(list, i, item)
			if (json_is_null(item))
				json_array_set_new(list, i, json_string(""));
			else
				good &= json_is_string(item);
	}
	*why = NULL;
	if (e->headers == NULL)
		*why = "header is not JSON";
	else if (!json_is_object(e->headers) && !json_is_null(e->headers))
		*why = "header is not a JSON object";
	else if (!good)
		*why = "header has a value that is not a list of strings";
	if (*why != NULL) {
		mq_envelope_free(e);
		return -1;
	}
	e->payload = end + 1;
	e->payload_len = len - (size_t)(e->payload - element);
	return 0;
}

void
mq_envelope_free(struct mq_envelope *e)
{
	json_decref(e->headers);
	e->headers = NULL;
}

static const json_t *
first_value(const struct mq_envelope *e, const char *name)
{
	return json_array_get(json_object_get(e->headers, name), 0);
}

const char *
mq_envelope_get(const struct mq_envelope *e, const char *name)
{
	/* Fast for most messages, which have none. */
	if (e->headers == NULL)
		return NULL;
	return json_string_value(first_value(e, name));
}

long
mq_envelope_get_long(
    const struct mq_envelope *e, const char *name, long fallback)
{
	const json_t *v = first_value(e, name);
	int64_t max =
	    strcmp(name, MQ_HEADER_ATTEMPT) == 0 ? MQ_ATTEMPTS_MAX : LONG_MAX;
	int64_t n = v == NULL ?
	    -1 :
	    mq_number(json_string_value(v), json_string_length(v), max);

	return n == -1 ? fallback : (long)n;
}

void
mq_envelope_set(struct mq_envelope *e, const char *name, const char *value)
{
	if (!json_is_object(e->headers)) {
		json_decref(e->headers);
		e->headers = json_object();
	}
	mq_json_set(e->headers, name, json_pack("[o]", mq_json_text(value)));
}

void
mq_envelope_set_number(struct mq_envelope *e, const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%jd", (intmax_t)n);
	mq_envelope_set(e, name, text);
}

void
mq_envelope_add(struct mq_envelope *e, const char *name, const char *value)
{
	json_t *list = json_object_get(e->headers, name);

	if (json_is_array(list))
		json_array_append_new(list, mq_json_text(value));
	else
		mq_envelope_set(e, name, value);
}

void
mq_envelope_write_header(const struct mq_envelope *e, struct mq_buf *out)
{
	mq_buf_add(out, signature, sizeof(signature));
	mq_json_dump(e->headers, out);
	mq_buf_add(out, "\n", 1);
}

void
mq_envelope_write(const struct mq_envelope *e, struct mq_buf *out)
{
	if (e->headers != NULL)
		mq_envelope_write_header(e, out);
	mq_buf_add(out, e->payload, e->payload_len);
}

int
mq_header_split(const char *s, char **name, char **value, const char **why)
{
	const char *colon = strchr(s, ':'), *v;
	size_t len = strspn(s, MQ_TOKEN), i, n, size;
	bool first = true;

	*why = NULL;
	if (colon == NULL)
		*why = "no colon";
	else if (colon != s + len)
		*why = "invalid character in the name";
	else if (len == 0)
		*why = "the name is empty";
	if (*why != NULL)
		return -1;
	v = colon + 1;
	v += strspn(v, " \t");
	n = strlen(v);
	while (n > 0 && (v[n - 1] == ' ' || v[n - 1] == '\t'))
		n--;
	for (i = 0; i < n && *why == NULL; i += size) {
		size = mq_utf8_len(v + i, n - i);
		/* C1 controls drive a terminal like ESC. */
		if (size == 0)
			*why = "the value is not UTF-8";
		else if ((unsigned char)v[i] < ' ' || v[i] == '\x7f' ||
		    (v[i] == '\xc2' && (unsigned char)v[i + 1] < 0xa0))
			*why = "the value holds a control character";
	}
	if (*why != NULL)
		return -1;
	*name = mq_xstrndup(s, len);
	for (i = 0; i < len; i++) {
		if (first && (*name)[i] >= 'a' && (*name)[i] <= 'z')
			(*name)[i] -= 'a' - 'A';
		else if (!first && (*name)[i] >= 'A' && (*name)[i] <= 'Z')
			(*name)[i] += 'a' - 'A';
		first = (*name)[i] == '-';
	}
	*value = mq_xstrndup(v, n);
	return 0;
}
