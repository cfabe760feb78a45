/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq envelope: common/message/envelope.c, and json.c below it; and what we write on
 * messages: headers.c.
 */
#include "unit.h"

#include <limits.h>

#include "message/headers.h"
#include "message/json.h"

#define SIG   "\xff\0\xbe\xbe\x4a"
#define ID    "hodmyf8sioWKpTZdTJhV6jk012ArGE5x"
#define PLAIN SIG "{\"Mq-Id\":[\"" ID "\"]}\n"

static int
parse(const char *p, size_t n, struct mq_envelope *e)
{
	const char *why = NULL;
	/* A copy of the exact size, so that a sanitizer sees an overrun. */
	static char *copy;
	int result;

	free(copy);
	copy = malloc(n > 0 ? n : 1);
	memcpy(copy, p, n);
	result = mq_envelope_parse(copy, n, e, &why);
	assert_true(result == 0 ? e->payload >= copy : why != NULL);
	return result;
}

static void
expect_payload(const struct mq_envelope *e, const char *p, size_t n)
{
	assert_int_equal(e->payload_len, n);
	assert_memory_equal(e->payload, p, n);
}

static void
expect_written(const struct mq_envelope *e, const char *p, size_t n)
{
	struct mq_buf out = {0};

	mq_buf_add(&out, "before", 6);
	mq_envelope_write(e, &out);
	assert_int_equal(out.len, n + 6);
	assert_memory_equal(out.data + 6, p, n);
	mq_buf_free(&out);
}

TEST(raw_elements)
{
	static const struct bytes raw[] = {
	    {B("")},
	    {B("\0")},
	    {B("hello")},
	    {B("a\0b\nc")},
	    {B("\xff")},
	    {B("\xff\0\xbe\xbe")},
	    {B("\xff\0\xbe\xbe\x4b{}\npayload")},
	    {B(" " SIG "{}\npayload")},
	};
	struct mq_envelope e;
	size_t i;

	for (i = 0; i < COUNT(raw); i++) {
		assert_int_equal(parse(raw[i].p, raw[i].n, &e), 0);
		assert_null(e.headers);
		expect_payload(&e, raw[i].p, raw[i].n);
		expect_written(&e, raw[i].p, raw[i].n);
		assert_null(mq_envelope_get(&e, "X"));
		mq_envelope_free(&e);
	}
}

#define FFFD	"\xef\xbf\xbd"
#define FDD0	"\xef\xb7\x90"
#define PAYLOAD "\0a\nb" SIG "{}\nx\0"

static void
expect_back(const char *header, const char *want)
{
	struct mq_buf in = {0}, out = {0};
	struct mq_envelope e;

	mq_buf_add(&in, B(SIG));
	mq_buf_printf(&in, "%s\n", header);
	mq_buf_add(&in, B(PAYLOAD));
	mq_buf_add(&out, B(SIG));
	mq_buf_printf(&out, "%s\n", want);
	mq_buf_add(&out, B(PAYLOAD));
	if (parse(in.data, in.len, &e) != 0)
		fail_msg("%s: refused", header);
	assert_non_null(e.headers);
	expect_payload(&e, B(PAYLOAD));
	expect_written(&e, out.data, out.len);
	mq_envelope_free(&e);
	assert_null(e.headers);
	mq_buf_free(&in);
	mq_buf_free(&out);
}

/* As they are, or as others may write them.  What is not Unicode is replaced, character by
 * character, and NUL is one like others. */
TEST(headers_come_back)
{
	static const struct {
		const char *in, *out; /* NULL: unchanged */
	} table[] = {
	    {"{}", NULL},
	    {"null", NULL},
	    {"{\"a\":null,\"b\":[]}", NULL},
	    {"{\"z\":[\"1\",\"\"],\"a\":[\"2\"],\"\":[\"3\"]}", NULL},
	    {"{\"N\":[\"\\u0000\\n\\\"\xc3\xa4\"]}", NULL},
	    {" { \"A\" :\t[ \"\\u003c\" ] }\r", "{\"A\":[\"<\"]}"},
	    /* The last of two, and null in a list as "". */
	    {"{\"A\":[\"1\"],\"A\":[\"2\"]}", "{\"A\":[\"2\"]}"},
	    {"{\"A\":[\"1\",null]}", "{\"A\":[\"1\",\"\"]}"},
	    {"{\"a\":[\"x\xffy\"]}", "{\"a\":[\"x" FFFD "y\"]}"},
	    {"{\"\xe2\x82\":[\"\xe2\x82\"]}",
		"{\"" FFFD FFFD "\":[\"" FFFD FFFD "\"]}"},
	    {"{\"a\":[\"\xed\xa0\x80\xc0\x80\"]}",
		"{\"a\":[\"" FFFD FFFD FFFD FFFD FFFD "\"]}"},
	    {"{\"a\":[\"\\ud800\",\"\\uDFFFx\",\"\\ud800\\ud800\"]}",
		"{\"a\":[\"" FFFD "\",\"" FFFD "x\",\"" FFFD FFFD "\"]}"},
	    {"{\"a\":[\"\\ud83d\\ude00\\ud83d\\u0041\\\\ud800\"]}",
		"{\"a\":[\"\xf0\x9f\x98\x80" FFFD "A\\\\ud800\"]}"},
	    {"{\"\\ud800\":[\"\"],\"\\udc00\":[\"last\"]}",
		"{\"" FFFD "\":[\"last\"]}"},
	    {"{\"a\\u0000b\":[\"\\u0000\"]}", NULL},
	    {"{ \"\\u0000\" : [],\"\\u00000\":null,\"0\":[\"\\uFDd0\"]}",
		"{\"\\u0000\":[],\"\\u00000\":null,\"0\":[\"" FDD0 "\"]}"},
	    {"{\"" FDD0 "0\":[],\"\\ufDD0\\u0000\":[],\"x\":[\"" FDD0 "0\"]}",
		"{\"" FDD0 "0\":[],\"" FDD0 "\\u0000\":[],\"x\":[\"" FDD0
		"0\"]}"},
	    {"{\"Mq-Id\\u0000\":[\"no\"],\"Mq-Id\":[\"yes\xff\"]}",
		"{\"Mq-Id\\u0000\":[\"no\"],\"Mq-Id\":[\"yes" FFFD "\"]}"},
	};
	const char *same;
	size_t i;

	for (i = 0; i < COUNT(table); i++) {
		same = table[i].out != NULL ? table[i].out : table[i].in;
		expect_back(table[i].in, same);
		expect_back(same, same);
	}
}

TEST(bad_headers)
{
	static const struct {
		const char *why;
		struct bytes in[13];
	} bad[] = {
	    {"header without end",
		{{B(SIG)}, {B(SIG "{}")}, {B(SIG "{\"a\":[\"x\"]}payload")}}},
	    {"header is not JSON",
		{{B(SIG "\nx")}, {B(SIG "{\nx")}, {B(SIG "{}{}\nx")},
		    {B(SIG "nul\nx")}, {B(SIG "{}\0\nx")},
		    {B(SIG "{\"a\":[\"\\u12g4\"]}\nx")},
		    {B(SIG "{\"a\":[\"\\x\"]}\nx")},
		    {B(SIG "{\"a\":[\"\x1f\"]}\nx")},
		    {B(SIG "{\"a\xff\":[\"\\\n")},
		    {B(SIG "{\"a\":[\"b\"]\xff}\nx")}, {B(SIG "{'a':[]}\nx")},
		    {B(SIG "{\"a\":[\"x\n\"]}\nx")}}},
	    {"header is not a JSON object",
		{{B(SIG "[]\nx")}, {B(SIG "\"a\"\nx")}, {B(SIG "1\nx")},
		    {B(SIG "false\nx")}}},
	    {"that is not a list of strings",
		{{B(SIG "{\"a\":\"x\"}\nx")}, {B(SIG "{\"a\":1}\nx")},
		    {B(SIG "{\"a\":{}}\nx")}, {B(SIG "{\"a\":false}\nx")},
		    {B(SIG "{\"a\":[\"x\",1]}\nx")}, {B(SIG "{\"a\":[[]]}\nx")},
		    {B(SIG "{\"b\":[\"x\"],\"a\":true}\nx")}}},
	};
	const struct bytes *b;
	const char *why;
	struct mq_envelope e;
	size_t i;

	for (i = 0; i < COUNT(bad); i++)
		for (b = bad[i].in; b->p != NULL; b++) {
			assert_int_equal(parse(b->p, b->n, &e), -1);
			assert_null(e.headers);
			assert_int_equal(
			    mq_envelope_parse(b->p, b->n, &e, &why), -1);
			if (strstr(why, bad[i].why) == NULL)
				fail_msg("%s: \"%s\"", b->p, why);
		}
}

TEST(deep_nesting_does_not_crash)
{
	enum { N = 1000000 };
	char *p = malloc(N);
	struct mq_envelope e;

	memset(p, '[', N);
	memcpy(p, SIG "{\"a\":", 10);
	p[N - 1] = '\n';
	assert_int_equal(parse(p, N, &e), -1);
	free(p);
}

TEST(getting)
{
	static const char *const no_number[] = {
	    "", " 1", "1 ", "+1", "-1", "1x", "0x10", "1.0"};
	static const char *const beyond[] = {"9223372036854775807",
	    "9223372036854775808", "99999999999999999999999"};
	struct mq_envelope e;
	size_t i;

	assert_int_equal(
	    parse(B(SIG "{\"A\":[\"0007\",\"2\"],\"N\":null,\"E\":[],"
			"\"S\":[\"\"],\"Z\":[\"5\\u00006\"]}\n"),
		&e),
	    0);
	assert_string_equal(mq_envelope_get(&e, "A"), "0007");
	assert_int_equal(mq_envelope_get_long(&e, "A", -7), 7);
	assert_null(mq_envelope_get(&e, "a"));
	assert_null(mq_envelope_get(&e, "N"));
	assert_null(mq_envelope_get(&e, "E"));
	assert_int_equal(mq_envelope_get_long(&e, "E", -7), -7);
	assert_string_equal(mq_envelope_get(&e, "S"), "");
	assert_string_equal(mq_envelope_get(&e, "Z"), "5");
	assert_int_equal(mq_envelope_get_long(&e, "Z", -7), -7);
	mq_envelope_set(&e, "L", "0");
	assert_int_equal(mq_envelope_get_long(&e, "L", -7), 0);
	for (i = 0; i < COUNT(beyond); i++) {
		mq_envelope_set(&e, "L", beyond[i]);
		assert_true(mq_envelope_get_long(&e, "L", -7) == LONG_MAX);
		mq_envelope_set(&e, MQ_HEADER_ATTEMPT, beyond[i]);
		assert_int_equal(
		    mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0), 1000000);
	}
	for (i = 0; i < COUNT(no_number); i++) {
		mq_envelope_set(&e, "L", no_number[i]);
		assert_int_equal(mq_envelope_get_long(&e, "L", -7), -7);
	}
	mq_envelope_free(&e);
	assert_int_equal(parse(B(SIG "null\n"), &e), 0);
	assert_null(mq_envelope_get(&e, "A"));
	mq_envelope_free(&e);
}

TEST(setting)
{
	struct mq_envelope e = {NULL, B("a\0b")};

	mq_envelope_set(&e, "Mq-Id", "1");
	expect_written(&e, B(SIG "{\"Mq-Id\":[\"1\"]}\na\0b"));
	mq_envelope_set(&e, "A", "\"\\\n\x01");
	mq_envelope_set(&e, "Mq-Id", "2");
	expect_written(&e,
	    B(SIG "{\"Mq-Id\":[\"2\"],\"A\":[\"\\\"\\\\\\n\\u0001\"]}\na\0b"));
	mq_envelope_free(&e);

	assert_int_equal(parse(B(SIG "null\nx"), &e), 0);
	mq_envelope_set(&e, "A", "1");
	expect_written(&e, B(SIG "{\"A\":[\"1\"]}\nx"));
	mq_envelope_free(&e);

	assert_int_equal(
	    parse(B(SIG "{\"a\":null,\"b\":[],\"c\":[\"1\",\"2\"]}\nx"), &e),
	    0);
	mq_envelope_set(&e, "c", "3");
	expect_written(&e, B(SIG "{\"a\":null,\"b\":[],\"c\":[\"3\"]}\nx"));
	mq_envelope_set(&e, "a", "4");
	expect_written(&e, B(SIG "{\"a\":[\"4\"],\"b\":[],\"c\":[\"3\"]}\nx"));
	mq_envelope_free(&e);
}

TEST(adding)
{
	struct mq_envelope e = {NULL, B("x")};

	mq_envelope_add(&e, "A", "1");
	mq_envelope_add(&e, "B", "2");
	mq_envelope_add(&e, "A", "3");
	expect_written(&e, B(SIG "{\"A\":[\"1\",\"3\"],\"B\":[\"2\"]}\nx"));
	mq_envelope_free(&e);

	assert_int_equal(parse(B(SIG "{\"a\":null,\"b\":[]}\nx"), &e), 0);
	mq_envelope_add(&e, "a", "1");
	mq_envelope_add(&e, "b", "2");
	/* What is not UTF-8 is "?". */
	mq_envelope_set(&e, "a", "a\xff\xc3\xa4\xc3");
	mq_envelope_add(&e, "a", "\xed\xa0\x80");
	mq_envelope_add(&e, "a", "\xf0\x9f\x98\x80");
	expect_written(&e,
	    B(SIG "{\"a\":[\"a?\xc3\xa4?\",\"???\",\"\xf0\x9f\x98\x80\"],"
		  "\"b\":[\"2\"]}\nx"));
	mq_envelope_free(&e);
}

TEST(splitting)
{
	static const struct {
		const char *in, *name, *value;
	} good[] = {
	    {"X-Trace-Id: abc", "X-Trace-Id", "abc"},
	    {"x-trace-id:abc", "X-Trace-Id", "abc"},
	    {"X-TRACE-ID: abc", "X-Trace-Id", "abc"},
	    {"a:", "A", ""},
	    {"a: \t ", "A", ""},
	    {"a: \t b  c\t ", "A", "b  c"},
	    {"a:b:c", "A", "b:c"},
	    {"-a--b1c-: x", "-A--B1c-", "x"},
	    {"1a!#$%&'*+.^_`|~: x", "1a!#$%&'*+.^_`|~", "x"},
	    {"a: \xc3\xa4\xc2\xa0\xf0\x9f\x98\x80", "A",
		"\xc3\xa4\xc2\xa0\xf0\x9f\x98\x80"},
	    {"mq-id: \"\\", "Mq-Id", "\"\\"},
	};
	char *name, *value;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(
		    mq_header_split(good[i].in, &name, &value, &why), 0);
		assert_string_equal(name, good[i].name);
		assert_string_equal(value, good[i].value);
		free(name);
		free(value);
	}
}

TEST(splitting_hostile_input)
{
	static const struct {
		const char *why, *in[11];
	} bad[] = {
	    {"no colon", {"", "abc", "a b"}},
	    {"name is empty", {":", ": x"}},
	    {"invalid",
		{" a: x", "a : x", "a b: x", "a\n: x", "a\x1b: x", "\"a\": x",
		    "a{}: x", "a/b: x", "\xc3\xa4: x", "\xff: x"}},
	    {"control",
		{"a: x\ny", "a: x\n", "a: x\r", "a: \x1b[2J", "a: x\ty",
		    "a: \x7f",
		    "a: \xc2\x9b"
		    "2J"}},
	    {"UTF-8",
		{"a: \xff", "a: x\xc3", "a: \xc0\x80", "a: \xed\xa0\x80"}},
	};
	char *name = NULL, *value = NULL;
	const char *why;
	const char *const *in;
	size_t i;

	for (i = 0; i < COUNT(bad); i++)
		for (in = bad[i].in; *in != NULL; in++) {
			why = "";
			assert_int_equal(
			    mq_header_split(*in, &name, &value, &why), -1);
			if (strstr(why, bad[i].why) == NULL)
				fail_msg("%s: \"%s\"", *in, why);
			assert_null(name);
			assert_null(value);
		}
}

/* Whether the short way takes it; then the long one finds the same. */
static bool
plain(const char *p, size_t n)
{
	/* A copy of the exact size, so that a sanitizer sees an overrun. */
	char *copy = malloc(n > 0 ? n : 1), id[MQ_ID_LEN + 1];
	struct mq_envelope e, parsed;
	const char *why, *found;
	bool taken;

	memcpy(copy, p, n);
	taken = mq_message_plain(copy, n, id, &e);
	if (taken) {
		assert_int_equal(mq_envelope_parse(copy, n, &parsed, &why), 0);
		assert_null(e.headers);
		assert_ptr_equal(e.payload, parsed.payload);
		assert_int_equal(e.payload_len, parsed.payload_len);
		found = mq_message_id(&parsed);
		assert_string_equal(id, found != NULL ? found : "");
		assert_int_equal(found == NULL, parsed.headers == NULL);
		mq_envelope_free(&parsed);
	}
	free(copy);
	return taken;
}

TEST(plain_ones)
{
	static const struct bytes yes[] = {{B("")}, {B("raw")}, {B("\0\xff")},
	    {B("{\"Mq-Id\":[\"" ID "\"]}\n")}, {B(PLAIN)}, {B(PLAIN "payload")},
	    {B(PLAIN "\n\0" PLAIN)}};
	static const struct bytes no[] = {{B("\xff")}, {B(SIG)},
	    {B(SIG "{}\nx")}, {B(SIG "null\nx")},
	    {B(SIG "{ \"Mq-Id\":[\"" ID "\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"" ID "\"],\"A\":[\"b\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"" ID "\",\"" ID "\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"\\n" ID "\"]}\nx")}};
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		assert_true(plain(yes[i].p, yes[i].n));
	for (i = 0; i < COUNT(no); i++)
		assert_false(plain(no[i].p, no[i].n));
}
