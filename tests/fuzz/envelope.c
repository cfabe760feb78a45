/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * An element of a queue: what parses is written and parsed again as the same,
 * and what the input says as -H does comes back out of an envelope.
 */
#include "message/headers.h"

#include "fuzz.h"

static void
same(const struct mq_envelope *a, const struct mq_envelope *b)
{
	assert((a->headers == NULL) == (b->headers == NULL));
	assert(a->headers == NULL || json_equal(a->headers, b->headers));
	assert(a->payload_len == b->payload_len &&
	    memcmp(a->payload, b->payload, a->payload_len) == 0);
}

static void
again(const struct mq_envelope *e)
{
	struct mq_buf once = {0}, twice = {0};
	struct mq_envelope back;
	const char *why;

	mq_envelope_write(e, &once);
	/* A payload that looks like a header is never written bare: what
	 * parsed as raw was not one. */
	assert(
	    mq_envelope_parse(mq_buf_str(&once), once.len, &back, &why) == 0);
	same(e, &back);
	mq_envelope_write(&back, &twice);
	assert(once.len == twice.len &&
	    memcmp(mq_buf_str(&once), mq_buf_str(&twice), once.len) == 0);
	mq_envelope_free(&back);
	mq_buf_free(&once);
	mq_buf_free(&twice);
}

/* What is known without parsing is what parsing says. */
static void
plain(const char *element, size_t n, const struct mq_envelope *e)
{
	struct mq_envelope quick;
	char id[MQ_ID_LEN + 1];

	if (!mq_message_plain(element, n, id, &quick))
		return;
	assert(e != NULL && quick.payload == e->payload &&
	    quick.payload_len == e->payload_len);
	assert(fuzz_same(id[0] != '\0' ? id : NULL, mq_message_id(e)));
	assert(!mq_message_has(e, MQ_TRAIT_OBEYED | MQ_TRAIT_ORDER) &&
	    !mq_message_has(e, MQ_TRAIT_LOCK));
}

static void
record(struct mq_envelope *e)
{
	const struct mq_failure f = {.status = 1, .text = "\xff why"};
	const struct mq_duplicate how = {
	    .id = "0123456789abcdefghijklmnopqrstuv", .origin = "q@h/1"};
	struct mq_envelope copy;
	json_t *list;
	char why[64];

	(void)mq_message_over(e, 1, 1, why, sizeof(why));
	(void)mq_message_since_ms(e);
	(void)mq_result_wanted(e);
	(void)mq_history_last_number(e, "at_ms");
	mq_message_duplicate(e, &how, &copy);
	again(&copy);
	mq_envelope_free(&copy);
	mq_message_record(e, how.id, 3, "\xff why");
	assert(strcmp(mq_envelope_get(e, MQ_HEADER_ERROR), "? why") == 0);
	assert(mq_envelope_get_long(e, MQ_HEADER_ATTEMPT, 0) == 3);
	mq_history_add(e, &f);
	list = mq_history_list(e, false);
	assert(json_array_size(list) > 0 &&
	    json_array_size(list) <= MQ_HISTORY_MAX);
	json_decref(list);
	again(e);
}

static void
element(const char *p, size_t n)
{
	struct mq_envelope e;
	const char *why = NULL;

	if (mq_envelope_parse(p, n, &e, &why) == -1) {
		assert(why != NULL && e.headers == NULL);
		plain(p, n, NULL);
		return;
	}
	plain(p, n, &e);
	again(&e);
	record(&e);
	mq_envelope_free(&e);
}

/* -H 'Name: value' */
static void
header(const char *s)
{
	struct mq_envelope e = {.payload = ""};
	char *name, *value, *name2, *value2, *text;
	const char *why = NULL;

	if (mq_header_split(s, &name, &value, &why) == -1) {
		assert(why != NULL);
		return;
	}
	mq_envelope_set(&e, name, value);
	mq_envelope_add(&e, name, "more");
	assert(strcmp(mq_envelope_get(&e, name), value) == 0);
	again(&e);
	text = mq_xasprintf("%s:\t%s ", name, value);
	assert(mq_header_split(text, &name2, &value2, &why) == 0);
	assert(strcmp(name, name2) == 0 && strcmp(value, value2) == 0);
	json_object_del(e.headers, name);
	assert(mq_envelope_get(&e, name) == NULL);
	mq_envelope_free(&e);
	free(text);
	free(name);
	free(value);
	free(name2);
	free(value2);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	char *s = fuzz_string(&in, n);

	element((const char *)data, n);
	header(s);
	free(s);
	return 0;
}
