/* common/queue/running.c */

#include "queue/stats.h"
#include "unit.h"

static char queue[] = "jobs", id[] = "0123456789abcdefghijklmnopqrstuv",
	    script[] = "/bin/job", text[] = "half \"done\"";

static void
read_text(struct mq_runs *runs, const char *s)
{
	*runs = (struct mq_runs){0};
	mq_runs_read(runs, s, strlen(s), "c-1", "web1");
}

TEST(exact)
{
	const struct mq_run run = {.queue = queue,
	    .id = id,
	    .script = script,
	    .text = text,
	    .attempt = 2,
	    .pid = 4711,
	    .started_ms = 1795207725000,
	    .grace_ms = 25000};
	struct mq_buf out = {0};

	mq_buf_addstr(&out, "before ");
	mq_runs_write(&run, 1, &out);
	assert_string_equal(mq_buf_str(&out),
	    "before [{\"queue\":\"jobs\","
	    "\"id\":\"0123456789abcdefghijklmnopqrstuv\",\"attempt\":2,"
	    "\"pid\":4711,\"script\":\"/bin/job\","
	    "\"started_ms\":1795207725000,\"grace_ms\":25000,\"text\":\"half \\\"done\\\"\"}]");
	mq_buf_clear(&out);
	mq_runs_write(NULL, 0, &out);
	assert_string_equal(mq_buf_str(&out), "[]");
	mq_buf_free(&out);
}

/* Others may have written it. */
TEST(hostile)
{
	static const char *const none[] = {"", "x", "null", "1", "{}", "[]",
	    "\"a\"", "[", "[{}]", "[1,null,\"a\",[]]", "{\"queue\":\"q\"}",
	    "[{\"queue\":\"q\"}]", "[{\"id\":\"i\"}]",
	    "[{\"queue\":1,\"id\":\"i\"}]", "[{\"queue\":\"q\",\"id\":null}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"pid\":\"1\"}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"attempt\":1.5}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"text\":{}}]",
	    "[{\"queue\":\"q\",\"id\":\"i\",\"started_ms\":"
	    "99999999999999999999}]"};
	struct mq_runs runs;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		read_text(&runs, none[i]);
		assert_int_equal(runs.count, 0);
		mq_runs_free(&runs);
	}
	read_text(&runs,
	    "[1,{\"id\":\"i\",\"more\":[{}],\"queue\":\"q\"},{\"queue\":{}}]");
	assert_int_equal(runs.count, 1);
	assert_string_equal(runs.runs[0].queue, "q");
	assert_string_equal(runs.runs[0].id, "i");
	assert_string_equal(runs.runs[0].script, "");
	assert_string_equal(runs.runs[0].text, "");
	assert_int_equal(runs.runs[0].attempt, 0);
	assert_int_equal(runs.runs[0].pid, 0);
	mq_runs_free(&runs);
}
