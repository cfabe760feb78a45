/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Texts that others leave in the server, or may have changed there: common/message/headers.c
 * and result.c, common/queue/running.c.
 */
#include "message/headers.h"

#include "message/json.h"
#include "queue/stats.h"
#include "unit.h"

#define ID "0123456789ABCDEFGHIJKLMNOPQRSTab"

/* --- what went wrong before ----------------------------------------------- */

static void
parse(struct mq_envelope *e, const char *json, struct mq_buf *element)
{
	const char *why;

	mq_buf_clear(element);
	mq_buf_add(element, "\xff\0\xbe\xbeJ", 5);
	mq_buf_addstr(element, json);
	mq_buf_addstr(element, "\npayload");
	assert_int_equal(
	    mq_envelope_parse(element->data, element->len, e, &why), 0);
}

TEST(histories_of_others)
{
	static const struct {
		const char *header, *want;
	} cases[] = {
	    {"{}", "[]"},
	    {"null", "[]"},
	    {"{\"Mq-History\":null}", "[]"},
	    {"{\"Mq-History\":[]}", "[]"},
	    {"{\"mq-history\":[\"{}\"]}", "[]"},
	    {"{\"Mq-History\":[null,\"\",\"x\",\"1\",\"[]\",\"null\",\"{\"]}",
		"[]"},
	    {"{\"Mq-History\":[\"{}\"]}", "[{}]"},
	    {"{\"Mq-History\":[\"{\\\"at_ms\\\":\\\"1\\\","
	     "\\\"attempt\\\":1.5,\\\"host\\\":1,\\\"status\\\":null,"
	     "\\\"signal\\\":[],\\\"text\\\":{},\\\"stderr\\\":true}\"]}",
		"[{}]"},
	    {"{\"Mq-History\":[\"{\\\"more\\\":1,\\\"text\\\":\\\"t\\\","
	     "\\\"at_ms\\\":-5}\",\"x\",\"{\\\"status\\\":7}\"]}",
		"[{\"at_ms\":-5,\"text\":\"t\"},{\"status\":7}]"},
	    {"{\"Mq-History\":[\"{\\\"at_ms\\\":99999999999999999999}\"]}",
		"[]"},
	    {"{\"Mq-History\":[\"{\\\"text\\\":\\\"a\\\\u0000b\\\"}\"]}",
		"[{\"text\":\"a\\u0000b\"}]"},
	};
	struct mq_buf element = {0}, got = {0};
	struct mq_envelope e;
	json_t *list;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		parse(&e, cases[i].header, &element);
		list = mq_history_list(&e, false);
		mq_buf_clear(&got);
		mq_json_dump(list, &got);
		assert_string_equal(mq_buf_str(&got), cases[i].want);
		json_decref(list);
		mq_envelope_free(&e);
	}
	mq_buf_free(&element);
	mq_buf_free(&got);
}

/* Ours joins what is there, of whatever kind. */
TEST(a_failure_joins_them)
{
	static const char *const headers[] = {"{\"Mq-History\":null}",
	    "{\"Mq-History\":[\"x\"]}",
	    "{\"Mq-History\":[\"{\\\"at_ms\\\":7}\"]}"};
	const struct mq_failure f = {.status = 1, .at_ms = 5};
	struct mq_buf element = {0};
	struct mq_envelope e;
	size_t i;

	for (i = 0; i < COUNT(headers); i++) {
		parse(&e, headers[i], &element);
		mq_history_add(&e, &f);
		assert_int_equal(mq_history_last_number(&e, "at_ms"), 5);
		if (i == 0)
			assert_string_equal(
			    mq_envelope_get(&e, MQ_HEADER_HISTORY),
			    "{\"at_ms\":5,\"status\":1}");
		mq_envelope_free(&e);
	}
	mq_buf_free(&element);
}

/* --- what became of a message --------------------------------------------- */

/* As they are written again. */
TEST(endings)
{
	static const char *const good[][2] = {
	    /* As Lua wrote it. */
	    {"{\"finished_ms\":1.7952077250e12,\"state\":\"purged\","
	     "\"id\":\"" ID "\",\"attempts\":3}",
		"{\"id\":\"" ID "\",\"state\":\"purged\",\"attempts\":3,"
		"\"finished_ms\":1795207725000}"},
	    /* What is no sensible number or text counts as not there. */
	    {"{\"id\":\"" ID "\",\"state\":\"done\",\"text\":\"a\\u0000b\","
	     "\"status\":-3,\"attempts\":1e300,\"host\":[],"
	     "\"finished_ms\":\"x\"}",
		"{\"id\":\"" ID "\",\"state\":\"done\",\"attempts\":0}"},
	    {"{\"id\":\"" ID "\",\"state\":\"done\",\"result\":\"a\\u0000\"}",
		"{\"id\":\"" ID "\",\"state\":\"done\",\"attempts\":0,"
		"\"result_base64\":\"YQA=\"}"},
	    {"{\"id\":\"" ID "\",\"state\":\"done\","
	     "\"result_base64\":\"YQ==\",\"result_cut\":true}",
		"{\"id\":\"" ID "\",\"state\":\"done\",\"attempts\":0,"
		"\"result\":\"a\",\"result_cut\":true}"},
	    {"{\"id\":\"" ID "\",\"state\":\"done\",\"result_base64\":\"?\"}",
		"{\"id\":\"" ID "\",\"state\":\"done\",\"attempts\":0}"},
	};
	static const char *const bad[] = {"", "null", "[]", "{}",
	    "{\"id\":\"" ID "\"}", "{\"id\":\"short\",\"state\":\"done\"}",
	    "{\"id\":\"" ID "\",\"state\":\"lost\"}",
	    "{\"id\":\"" ID "\",\"state\":7}", "{\"id\":\"0123"};
	struct mq_buf out = {0};
	struct mq_ending e;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(
		    mq_ending_read(good[i][0], strlen(good[i][0]), &e), 0);
		mq_buf_clear(&out);
		mq_ending_write(&e, &out);
		assert_string_equal(mq_buf_str(&out), good[i][1]);
		mq_ending_free(&e);
	}
	for (i = 0; i < COUNT(bad); i++)
		assert_int_equal(
		    mq_ending_read(bad[i], strlen(bad[i]), &e), -1);
	mq_buf_free(&out);
}

/* --- what runs ------------------------------------------------------------ */

static void
expect_runs(const char *text, const char *want)
{
	struct mq_runs runs = {0};
	struct mq_buf out = {0};

	mq_runs_read(&runs, text, strlen(text), "c-1", "web1");
	mq_runs_write(runs.runs, runs.count, &out);
	assert_string_equal(mq_buf_str(&out), want);
	mq_runs_free(&runs);
	mq_buf_free(&out);
}

TEST(runs)
{
	static const char *const none[] = {"", "x", "null", "1", "{}", "[]",
	    "\"a\"", "[", "[{}]", "[1,null,\"a\",[]]", "{\"queue\":\"q\"}",
	    "[{\"queue\":\"q\"}]", "[{\"id\":\"i\"}]",
	    "[{\"queue\":1,\"id\":\"i\"}]", "[{\"queue\":\"q\",\"id\":null}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"pid\":\"1\"}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"attempt\":1.5}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"text\":{}}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"pid\":99999999999999999999}]"};
	size_t i;

	for (i = 0; i < COUNT(none); i++)
		expect_runs(none[i], "[]");
	expect_runs(
	    "[1,{\"id\":\"i\",\"more\":[{}],\"queue\":\"q\"},{\"queue\":{}}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"attempt\":0,\"pid\":0,\"script\":\"\","
	    "\"started_ms\":0,\"grace_ms\":-1,\"text\":\"\"}]");
	expect_runs(
	    "[{\"queue\":\"q\",\"id\":\"i\",\"started_ms\":-9223372036854775808,"
	    "\"grace_ms\":9223372036854775807}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"attempt\":0,\"pid\":0,\"script\":\"\","
	    "\"started_ms\":0,\"grace_ms\":281474976710656,\"text\":\"\"}]");
}
