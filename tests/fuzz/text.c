/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Texts that others leave in the server: what became of a message, what runs,
 * what went wrong before; and base64.  What is read is written and read again
 * as the same.
 */
#include "base/id.h"
#include "base/text.h"
#include "fuzz.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/stats.h"

static void
ending(const char *p, size_t n)
{
	struct mq_ending e, again;
	struct mq_buf text = {0};

	if (mq_ending_read(p, n, &e) == -1) {
		assert(e.json == NULL);
		return;
	}
	assert(mq_id_valid(e.id, strlen(e.id)));
	assert(e.status >= -1 && e.attempts >= 0 && e.finished_ms >= 0);
	mq_ending_write(&e, &text);
	assert(mq_ending_read(text.data, text.len, &again) == 0);
	assert(strcmp(e.id, again.id) == 0 && e.state == again.state &&
	    e.attempts == again.attempts &&
	    e.finished_ms == again.finished_ms &&
	    (e.signal != NULL || e.status == again.status));
	assert(fuzz_same(e.text, again.text) && fuzz_same(e.to, again.to) &&
	    fuzz_same(e.host, again.host) && fuzz_same(e.signal, again.signal));
	(void)mq_end_name(e.state);
	mq_ending_free(&e);
	mq_ending_free(&again);
	mq_buf_free(&text);
}

static void
running(const char *p, size_t n)
{
	struct mq_runs runs = {0}, again = {0};
	struct mq_buf text = {0};
	int i;

	mq_runs_read(&runs, p, n, "connection", NULL);
	mq_runs_write(runs.runs, runs.count, &text);
	mq_runs_read(&again, text.data, text.len, "connection", "host");
	assert(runs.count == again.count);
	for (i = 0; i < runs.count; i++)
		assert(strcmp(runs.runs[i].id, again.runs[i].id) == 0 &&
		    strcmp(runs.runs[i].queue, again.runs[i].queue) == 0 &&
		    strcmp(runs.runs[i].text, again.runs[i].text) == 0 &&
		    runs.runs[i].started_ms == again.runs[i].started_ms);
	mq_runs_free(&runs);
	mq_runs_free(&again);
	mq_buf_free(&text);
}

/* The input as all the strings of a failure. */
static void
failure(const char *s)
{
	struct mq_failure f = {.status = (int)strlen(s) % 3 - 1,
	    .signal = strlen(s) % 2 == 0 ? s : NULL,
	    .host = s,
	    .text = s,
	    .errors = s};
	struct mq_envelope e = {.payload = ""};
	json_t *list;

	mq_history_add(&e, &f);
	list = mq_history_list(&e, false);
	assert(json_array_size(list) == 1);
	assert(json_string_length(json_object_get(
		   json_array_get(list, 0), "text")) <= MQ_HISTORY_TEXT);
	assert(json_string_length(json_object_get(
		   json_array_get(list, 0), "stderr")) <= MQ_HISTORY_STDERR);
	json_decref(list);
	mq_envelope_free(&e);
}

/* The input as one value of a history that somebody else wrote. */
static void
history(const char *s)
{
	struct mq_envelope e = {.payload = ""};
	json_t *list;

	mq_envelope_set(&e, MQ_HEADER_HISTORY, s);
	list = mq_history_list(&e, false);
	assert(json_array_size(list) <= 1);
	json_decref(list);
	(void)mq_history_last_number(&e, "at_ms");
	mq_envelope_free(&e);
}

static void
base64(const char *p, size_t n)
{
	struct mq_buf bytes = {0}, text = {0};

	if (mq_base64_decode(&bytes, p, n) == 0) {
		mq_base64_encode(&text, mq_buf_str(&bytes), bytes.len);
		assert(
		    text.len == n && (n == 0 || memcmp(text.data, p, n) == 0));
	}
	mq_buf_clear(&bytes);
	mq_buf_clear(&text);
	mq_base64_encode(&text, p, n);
	assert(mq_base64_decode(&bytes, text.data, text.len) == 0);
	assert(bytes.len == n && (n == 0 || memcmp(bytes.data, p, n) == 0));
	mq_buf_free(&bytes);
	mq_buf_free(&text);
}

static void
id(const char *p, size_t n)
{
	struct mq_idgen ids = {0};
	char again[MQ_ID_LEN + 1];
	uint64_t us;

	if (!mq_id_valid(p, n))
		return;
	us = mq_id_time(p);
	mq_id_make(&ids, us, again);
	assert(mq_id_time(again) == us);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	char *s = fuzz_string(&in, n);

	ending((const char *)data, n);
	running((const char *)data, n);
	base64((const char *)data, n);
	id((const char *)data, n);
	failure(s);
	history(s);
	free(s);
	return 0;
}
