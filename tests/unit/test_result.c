/* common/message/result.c */
#include "message/headers.h"

#include "unit.h"
#include "message/result.h"

#define ID    "0123456789ABCDEFGHIJKLMNOPQRSTab"
#define OTHER "0123456789ABCDEFGHIJKLMNOPQRSTac"

static void
check(const struct mq_ending *e, const char *want)
{
	struct mq_buf out = {0};

	mq_ending_write(e, &out);
	assert_string_equal(mq_buf_str(&out), want);
	mq_buf_free(&out);
}

TEST(writes)
{
	struct mq_ending e = {.id = ID,
	    .state = MQ_END_DONE,
	    .text = "a \"b\"\n\xff",
	    .attempts = 2,
	    .host = "h",
	    .finished_ms = 1795207725000};

	check(&e,
	    "{\"id\":\"" ID
	    "\",\"state\":\"done\",\"text\":\"a \\\"b\\\"\\n?\","
	    "\"status\":0,\"attempts\":2,\"host\":\"h\","
	    "\"finished_ms\":1795207725000}");
	e = (struct mq_ending){.id = ID,
	    .state = MQ_END_REJECTED,
	    .signal = "SEGV",
	    .attempts = 1};
	check(&e,
	    "{\"id\":\"" ID "\",\"state\":\"rejected\",\"signal\":\"SEGV\","
	    "\"attempts\":1}");
	e = (struct mq_ending){
	    .id = ID, .state = MQ_END_PUSHED, .status = -1, .to = "next"};
	check(&e,
	    "{\"id\":\"" ID "\",\"state\":\"pushed\",\"attempts\":0,"
	    "\"to\":\"next\"}");
}

TEST(reads_what_lua_wrote)
{
	static const char text[] =
	    "{\"finished_ms\":1.7952077250e12,\"state\":\"purged\","
	    "\"id\":\"" ID "\",\"attempts\":3}";
	struct mq_ending e;

	assert_int_equal(mq_ending_read(text, strlen(text), &e), 0);
	assert_int_equal(e.state, MQ_END_PURGED);
	assert_null(e.text);
	assert_int_equal(e.status, -1);
	assert_int_equal(e.attempts, 3);
	assert_true(e.finished_ms == 1795207725000);
	mq_ending_free(&e);
}

TEST(refuses)
{
	static const char *const bad[] = {"", "null", "[]", "{}",
	    "{\"id\":\"" ID "\"}", "{\"id\":\"short\",\"state\":\"done\"}",
	    "{\"id\":\"" ID "\",\"state\":\"lost\"}",
	    "{\"id\":\"" ID "\",\"state\":7}", "{\"id\":\"" ID};
	struct mq_ending e;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
		    mq_ending_read(bad[i], strlen(bad[i]), &e), -1);
}

/* What is no sensible number or text counts as not there. */
TEST(ignores)
{
	static const char text[] =
	    "{\"id\":\"" ID "\",\"state\":\"done\",\"text\":\"a\\u0000b\","
	    "\"status\":-3,\"attempts\":1e300,\"host\":[],"
	    "\"finished_ms\":\"x\"}";
	struct mq_ending e;

	assert_int_equal(mq_ending_read(text, strlen(text), &e), 0);
	assert_null(e.text);
	assert_int_equal(e.status, -1);
	assert_int_equal(e.attempts, 0);
	assert_null(e.host);
	assert_true(e.finished_ms == 0);
	mq_ending_free(&e);
}

TEST(wanted_under_its_own_id_only)
{
	struct mq_envelope e = {0};

	assert_false(mq_result_wanted(&e));
	mq_envelope_set(&e, MQ_HEADER_ID, ID);
	assert_false(mq_result_wanted(&e));
	mq_envelope_set(&e, MQ_HEADER_REPLY_TO, OTHER);
	assert_false(mq_result_wanted(&e));
	mq_envelope_set(&e, MQ_HEADER_REPLY_TO, ID);
	assert_true(mq_result_wanted(&e));
	mq_envelope_set(&e, MQ_HEADER_ID, "short");
	mq_envelope_set(&e, MQ_HEADER_REPLY_TO, "short");
	assert_false(mq_result_wanted(&e));
	mq_envelope_free(&e);
}
