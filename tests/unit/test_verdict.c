#include "mq-consume/verdict.h"

#include <sys/wait.h>

#include "mq-consume/rules.h"
#include "record.h"

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

#define EXIT(n)	    W_EXITCODE(n, 0)
#define KILLED(sig) W_EXITCODE(0, sig)
#define SAID	    (-1) /* by a worker that goes on */
#define TICK	    7

struct house {
	struct options opt;
	struct result_rules results;
	struct verdict_rules rules;
	struct message m;
};

/* A message that runs, after so many attempts. */
static struct message *
run(struct house *h, long attempts)
{
	struct message *m = &h->m;
	char number[24];

	m->attempts = attempts;
	mq_envelope_free(&m->envelope);
	mq_buf_clear(&m->header);
	strlcpy(m->id, "0123456789abcdefghijABCDEFGHIJ01", sizeof(m->id));
	m->envelope =
	    (struct mq_envelope){.payload = "payload", .payload_len = 7};
	snprintf(number, sizeof(number), "%ld", attempts);
	if (attempts > 0)
		mq_envelope_set(&m->envelope, MQ_HEADER_ATTEMPT, number);
	return m;
}

static enum mq_outcome
judge(struct house *h, enum mq_verdict_kind kind, int status, const char *text)
{
	struct mq_verdict v = {.kind = kind, .status = status, .resend_s = 60};

	strlcpy(v.text, text, sizeof(v.text));
	return verdict_outcome(&h->rules, &h->m, &v, "", TICK);
}

#define assert_outcome(h, verdict, status, text, outcome)                      \
	assert_int_equal(judge(h, MQ_VERDICT_##verdict, status, text),         \
	    MQ_OUTCOME_##outcome)

static const char *
news_of(struct message *m)
{
	return mq_buf_str(&m->news);
}

/* A header of the message as it is settled; "": none. */
static const char *
header_of(const struct message *m, const char *name)
{
	static char value[512];
	struct mq_envelope e = {0};
	const char *why;

	if (m->header.len > 0)
		assert_int_equal(
		    mq_envelope_parse(m->header.data, m->header.len, &e, &why),
		    0);
	strlcpy(value,
	    mq_envelope_get(&e, name) != NULL ? mq_envelope_get(&e, name) : "",
	    sizeof(value));
	mq_envelope_free(&e);
	return value;
}

static bool
history_has(const struct message *m, const char *text)
{
	return strstr(header_of(m, MQ_HEADER_HISTORY), text) != NULL;
}

/* --- which outcome ---------------------------------------------------------- */

static int
setup(void **state)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	h->opt = (struct options){.queue_count = 1, .given = MQ_SETTINGS_NONE};
	h->opt.given.attempts = 5;
	h->opt.given.backoff_min_ms = 1000;
	h->opt.given.backoff_max_ms = 10000;
	rules_init(&h->opt);
	h->results.opt = &h->opt;
	h->rules = (struct verdict_rules){
	    .opt = &h->opt, .results = &h->results, .ticks = true};
	*state = h;
	return 0;
}

static int
teardown(void **state)
{
	struct house *h = *state;

	mq_envelope_free(&h->m.envelope);
	mq_buf_free(&h->m.header);
	mq_buf_free(&h->m.result);
	mq_buf_free(&h->m.news);
	free(h->m.to);
	rules_free(&h->opt);
	free(h);
	return 0;
}

TEST_OF(done_is_acked)
{
	struct message *m = run(h, 2);

	assert_outcome(h, DONE, EXIT(0), "", ACK);
	assert_int_equal(m->header.len, 0);
	assert_string_equal(news_of(m), "");
	assert_int_equal(m->result.len, 0);
}

TEST_OF(a_wanted_result_is_written)
{
	struct message *m = run(h, 0);

	h->opt.rules->now.keep_ms = 1000;
	h->opt.verbose = true;
	assert_outcome(h, DONE, EXIT(0), "fine", ACK);
	assert_string_equal(news_of(m), "done: fine");
	assert_non_null(strstr(mq_buf_str(&m->result), "\"fine\""));
}

TEST_OF(err_is_rejected_or_tried_again)
{
	struct message *m = run(h, 1);

	assert_outcome(h, ERR, EXIT(3), "no user", REJECT);
	assert_string_equal(news_of(m), "rejected: no user");
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "2");
	assert_string_equal(header_of(m, MQ_HEADER_ERROR), "no user");
	assert_string_equal(header_of(m, MQ_HEADER_ID), m->id);
	assert_true(
	    history_has(m, "\"status\": 3") || history_has(m, "\"status\":3"));
	assert_string_equal(header_of(m, MQ_HEADER_DUE), "");
	run(h, 0);
	h->opt.rules->now.retry_err = 1;
	assert_outcome(h, ERR, EXIT(1), "", AGAIN);
}

TEST_OF(the_history_tells_how_a_run_ended)
{
	struct message *m = run(h, 0);

	judge(h, MQ_VERDICT_ERR, KILLED(SIGSEGV), "");
	assert_true(history_has(m, "SEGV") && !history_has(m, "status"));
	/* What a worker says is not how it ends. */
	run(h, 0);
	judge(h, MQ_VERDICT_ERR, SAID, "bad");
	assert_true(history_has(m, "bad"));
	assert_false(history_has(m, "status") || history_has(m, "signal"));
}

TEST_OF(resend_waits_as_long_as_it_says)
{
	struct message *m = run(h, 0);

	assert_outcome(h, RESEND, EXIT(0), "busy", AGAIN);
	assert_int_equal(m->delay_ms, 60000);
	assert_int_equal(m->pause_ms, 0);
	assert_string_equal(news_of(m), "");
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "1");
	assert_string_not_equal(header_of(m, MQ_HEADER_DUE), "");
}

TEST_OF(pause_is_for_the_queue_as_well)
{
	struct message *m = run(h, 4);

	assert_outcome(h, PAUSE, EXIT(0), "", REJECT);
	assert_int_equal(m->pause_ms, 60000);
}

TEST_OF(a_broken_command_counts_no_attempt)
{
	struct message *m = run(h, 4);

	assert_outcome(h, BROKEN, EXIT(127), "", REJECT);
	h->rules.broken = true;
	m = run(h, 4);
	assert_outcome(h, BROKEN, EXIT(127), "", AGAIN);
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "4");
	assert_true(history_has(m, "5"));
	assert_in_range(m->delay_ms, 5000, 10000);
	assert_outcome(h, RETRY, EXIT(75), "", REJECT);
}

/* --- attempts --------------------------------------------------------------- */

TEST_OF(the_last_attempt_is_rejected)
{
	static const enum mq_verdict_kind kinds[] = {MQ_VERDICT_RESEND,
	    MQ_VERDICT_PAUSE, MQ_VERDICT_RETRY, MQ_VERDICT_TICK};
	size_t i;

	for (i = 0; i < COUNT(kinds); i++) {
		run(h, 3);
		assert_int_equal(
		    judge(h, kinds[i], EXIT(75), "busy"), MQ_OUTCOME_AGAIN);
		run(h, 4);
		assert_int_equal(
		    judge(h, kinds[i], EXIT(75), "busy"), MQ_OUTCOME_REJECT);
		assert_string_equal(header_of(&h->m, MQ_HEADER_ERROR),
		    "attempts exhausted: busy");
	}
}

TEST_OF(the_backoff_is_within_its_bounds)
{
	static const struct {
		long attempts;
		int64_t low, high;
	} cases[] = {{0, 1000, 2000}, {1, 2000, 4000}, {2, 4000, 8000},
	    {3, 5000, 10000}, {1000000, 5000, 10000}};
	size_t i, n;

	h->opt.rules->now.attempts = 2000000;
	for (i = 0; i < COUNT(cases); i++)
		for (n = 0; n < 50; n++) {
			run(h, cases[i].attempts);
			judge(h, MQ_VERDICT_RETRY, EXIT(75), "");
			if (h->m.delay_ms < cases[i].low ||
			    h->m.delay_ms > cases[i].high)
				fail_msg("after %ld: %jd ms", cases[i].attempts,
				    (intmax_t)h->m.delay_ms);
		}
}

/* --- ticks ------------------------------------------------------------------ */

TEST_OF(the_next_tick)
{
	struct message *m = run(h, 0);

	mq_envelope_set(&m->envelope, MQ_HEADER_UNTIL_TICK, "8");
	assert_outcome(h, TICK, EXIT(0), "", AGAIN);
	assert_string_equal(header_of(m, MQ_HEADER_FROM_TICK), "8");
	assert_int_equal(m->delay_ms, 0);
	run(h, 0);
	mq_envelope_set(&m->envelope, MQ_HEADER_UNTIL_TICK, "7");
	assert_outcome(h, TICK, EXIT(0), "", REJECT);
	assert_string_equal(news_of(m), "rejected: no next tick");
}

TEST_OF(without_ticks_there_is_a_backoff)
{
	struct message *m = run(h, 0);

	h->rules.ticks = false;
	assert_outcome(h, TICK, EXIT(0), "", AGAIN);
	assert_in_range(m->delay_ms, 1000, 2000);
	assert_string_equal(header_of(m, MQ_HEADER_FROM_TICK), "");
}

/* --- pushing ---------------------------------------------------------------- */

TEST_OF(push_begins_the_attempts_anew)
{
	struct message *m = run(h, 2);

	h->opt.rules->now.push = "next";
	mq_envelope_set(&m->envelope, MQ_HEADER_KEY, "k");
	assert_outcome(h, PUSH, EXIT(0), "", PUSH);
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "");
	assert_string_equal(header_of(m, MQ_HEADER_KEY), "k");
}

TEST_OF(a_first_push_leaves_the_bytes_alone)
{
	struct message *m = run(h, 0);

	h->opt.rules->now.push = "next";
	assert_outcome(h, PUSH, EXIT(0), "", PUSH);
	assert_int_equal(m->header.len, 0);
}

TEST_OF(a_push_to_nowhere_is_rejected)
{
	struct message *m = run(h, 0);

	assert_outcome(h, PUSH, EXIT(0), "", REJECT);
	assert_string_equal(news_of(m), "rejected: push");
}

TEST_OF(too_long_to_be_pushed_is_rejected)
{
	struct message *m = run(h, 2);

	h->opt.rules->now.push = "next";
	judge(h, MQ_VERDICT_PUSH, EXIT(0), "");
	assert_int_equal(verdict_too_long(&h->rules, m), MQ_OUTCOME_REJECT);
	assert_string_equal(
	    news_of(m), "rejected: push: too long for the queue next");
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "3");
}

/* --- messages that may not start -------------------------------------------- */

TEST_OF(expired_has_no_attempt_more)
{
	const struct unfit unfit = {UNFIT_EXPIRED, "expired"};
	struct message *m = run(h, 2);

	assert_int_equal(
	    verdict_unfit(&h->rules, m, &unfit), MQ_OUTCOME_REJECT);
	assert_true(m->expired);
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "2");
	assert_string_equal(header_of(m, MQ_HEADER_ERROR), "expired");
}

TEST_OF(a_bad_header_stays_as_it_is)
{
	const struct unfit unfit = {UNFIT_HEADER, "no JSON"};
	struct message *m = run(h, 0);

	assert_int_equal(
	    verdict_unfit(&h->rules, m, &unfit), MQ_OUTCOME_REJECT);
	assert_string_equal(news_of(m), "rejected: bad header: no JSON");
	assert_int_equal(m->header.len, 0);
}

TEST_OF(a_crash_is_recorded)
{
	const struct unfit unfit = {.kind = UNFIT_CRASHED};
	struct message *m = run(h, 5);

	assert_int_equal(
	    verdict_unfit(&h->rules, m, &unfit), MQ_OUTCOME_REJECT);
	assert_string_equal(header_of(m, MQ_HEADER_ATTEMPT), "5");
	assert_string_not_equal(header_of(m, MQ_HEADER_ERROR), "");
}
