/* common/message/history.c */
#include "message/history.h"

#include "unit.h"
#include "message/json.h"

static json_t *
only(struct mq_envelope *e, const struct mq_failure *f)
{
	json_t *list, *v;

	mq_history_add(e, f);
	list = mq_history_list(e);
	assert_int_equal(json_array_size(list), 1);
	v = json_incref(json_array_get(list, 0));
	json_decref(list);
	mq_envelope_free(e);
	return v;
}

/* What becomes of a text, or of the end of stderr. */
static void
check(bool errors, const char *given, const char *want)
{
	struct mq_envelope e = {0};
	struct mq_failure f = {.status = 1};
	json_t *v;

	*(errors ? &f.errors : &f.text) = given;
	v = only(&e, &f);
	assert_string_equal(
	    json_string_value(json_object_get(v, errors ? "stderr" : "text")),
	    want);
	json_decref(v);
}

static void
check_header(const struct mq_failure *f, const char *want)
{
	struct mq_envelope e = {0};

	mq_history_add(&e, f);
	assert_string_equal(mq_envelope_get(&e, MQ_HEADER_HISTORY), want);
	mq_envelope_free(&e);
}

TEST(exact)
{
	struct mq_failure f = {.at_ms = 1795207725000,
	    .attempt = 1,
	    .host = "web1",
	    .status = 3,
	    .text = "no such user",
	    .errors = "a\nb"};

	check_header(&f,
	    "{\"at_ms\":1795207725000,\"attempt\":1,\"host\":\"web1\","
	    "\"status\":3,\"text\":\"no such user\",\"stderr\":\"a\\nb\"}");
	f.signal = "SEGV";
	f.errors = "";
	check_header(&f,
	    "{\"at_ms\":1795207725000,\"attempt\":1,\"host\":\"web1\","
	    "\"signal\":\"SEGV\",\"text\":\"no such user\"}");
	f = (struct mq_failure){.status = 0, .text = ""};
	check_header(&f, "{\"status\":0,\"text\":\"\"}");
	f = (struct mq_failure){.status = -1};
	check_header(&f, "{}");
}

/* Long strings of one character at each place where it could be cut. */
TEST(whole_characters)
{
	static const char *const chars[] = {
	    "x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	char given[2048], want[1024];
	size_t i, shift, k, len, n;

	for (i = 0; i < COUNT(chars); i++)
		for (shift = 0; shift < 4; shift++) {
			len = strlen(chars[i]);
			/* From its beginning: what of it fits in 256. */
			memset(given, 'a', shift);
			memset(want, 'a', shift);
			given[shift] = want[shift] = '\0';
			for (k = 0; k < 300; k++)
				strcat(given, chars[i]);
			n = (MQ_HISTORY_TEXT - shift) / len;
			for (k = 0; k < n; k++)
				strcat(want, chars[i]);
			check(false, given, want);
			/* From its end: 512. */
			given[0] = want[0] = '\0';
			for (k = 0; k < 400; k++)
				strcat(given, chars[i]);
			while (strlen(given) < MQ_HISTORY_STDERR)
				strcat(given, chars[i]);
			strcat(given, &"bbb"[3 - shift]);
			n = (MQ_HISTORY_STDERR - shift) / len;
			if (strlen(given) <= MQ_HISTORY_STDERR)
				n = (strlen(given) - shift) / len;
			for (k = 0; k < n; k++)
				strcat(want, chars[i]);
			strcat(want, &"bbb"[3 - shift]);
			check(true, given, want);
		}
}

TEST(bytes)
{
	char given[1200], want[1200];

	check(true, "\xff\xfe ok \x80", "?? ok ?");
	check(true, "\xed\xa0\x80\xc0\xaf", "?????");
	check(false, "\xe2\x82", "??");
	check(true, "\033[31mred\033[0m\r\a", "\033[31mred\033[0m\r\a");
	/* Nothing but pieces of characters is no character to be kept whole. */
	memset(given, 0x80, 1000);
	given[1000] = '\0';
	memset(want, '?', MQ_HISTORY_STDERR - 3);
	want[MQ_HISTORY_STDERR - 3] = '\0';
	check(true, given, want);
	want[MQ_HISTORY_TEXT - 3] = '\0';
	check(false, given, want);
}

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

/* Headers that others have written, and what is made of them. */
TEST(hostile)
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
		list = mq_history_list(&e);
		mq_buf_clear(&got);
		mq_json_dump(list, &got);
		assert_string_equal(mq_buf_str(&got), cases[i].want);
		json_decref(list);
		(void)mq_history_last_ms(&e);
		mq_envelope_free(&e);
	}
	mq_buf_free(&element);
	mq_buf_free(&got);
}

/* Ours joins what is there, of whatever kind, and pushes it out in the end. */
TEST(joins)
{
	const struct mq_failure f = {.status = 1, .at_ms = 5};
	struct mq_buf element = {0}, text = {0};
	struct mq_envelope e;
	int i;

	parse(&e, "{\"Mq-History\":null,\"A\":[\"b\"]}", &element);
	mq_history_add(&e, &f);
	assert_int_equal(mq_history_last_ms(&e), 5);
	assert_string_equal(mq_envelope_get(&e, "A"), "b");
	mq_envelope_free(&e);

	mq_buf_addstr(&text, "{\"Mq-History\":[\"x\"");
	for (i = 0; i < 1000; i++)
		mq_buf_addstr(&text, ",\"{\\\"attempt\\\":1}\"");
	mq_buf_addstr(&text, "]}");
	parse(&e, mq_buf_str(&text), &element);
	mq_history_add(&e, &f);
	assert_int_equal(
	    json_array_size(json_object_get(e.headers, MQ_HEADER_HISTORY)),
	    MQ_HISTORY_MAX);
	assert_int_equal(mq_history_last_ms(&e), 5);
	mq_envelope_free(&e);
	mq_buf_free(&text);
	mq_buf_free(&element);
}
