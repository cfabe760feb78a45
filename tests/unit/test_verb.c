/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "message/verdict.h"

#include "record.h"

#include <signal.h>
#include <sys/wait.h>

/* As wait(2) has them; not each libc makes them. */
#define EXIT(n)	    ((n) << 8)
#define KILLED(sig) (sig)
#define DUMPED	    0x80
#define TEN_YEARS   315360000

/* A copy of its own size, so that a sanitizer sees a read too far. */
static void
feed(struct mq_verbs *v, const char *p, size_t n)
{
	char *copy = malloc(n);

	assert_true(n == 0 || copy != NULL);
	if (n > 0)
		memcpy(copy, p, n);
	mq_verbs_feed(v, copy, n);
	free(copy);
}

static struct mq_verbs
hear(const char *p, size_t n)
{
	struct mq_verbs v = {0};

	feed(&v, p, n);
	mq_verbs_feed(&v, "\n", 1);
	return v;
}

TEST(begin_is_as_zeroed)
{
	struct mq_verb_one ones[2] = {{.final = MQ_FINAL_ERR}};
	struct mq_verbs v = {.ones = ones, .count = 2};

	feed(&v, "done #9\nresend 5-why\ndone #2 it\nhal", 35);
	assert_true(v.stray);
	assert_string_equal(ones[v.about - 1].text, "it");
	mq_verbs_begin(&v);
	assert_string_equal(v.text, "");
	free(ones[1].text);
	assert_null(v.ones);
	assert_int_equal(v.count, 0);
	assert_false(v.stray);
	assert_int_equal(v.line_len, 0);
	assert_int_equal(v.final, MQ_FINAL_NONE);
	assert_false(v.spoke);
	assert_int_equal(v.resend_s, 0);
	feed(&v, "done", 4);
	mq_verbs_feed(&v, "\n", 1);
	assert_int_equal(v.final, MQ_FINAL_DONE);
	assert_string_equal(v.text, "");
}

TEST(percent_at_the_beginning_of_a_text)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {{"40% of a", 40}, {"40%", 40}, {"0%", 0}, {"100%\tx", 100},
	    {"007% x", 7}, {"101% x", -1}, {"40 % x", -1}, {"40%x", -1},
	    {"4.5% x", -1}, {"-4% x", -1}, {"% x", -1}, {"0040% x", -1},
	    {"", -1}, {"page 40% x", -1}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (mq_verb_percent(rows[i].text) != rows[i].want)
			fail_msg("\"%s\"", rows[i].text);
}

static const char *const kinds[] = {
    "done", "err", "resend", "tick", "pause", "push", "retry", "broken"};

/* Records it as its kind, when it is due, and the reason. */
static void
record_verdict(const struct mq_verdict *v, const char *errors)
{
	char reason[MQ_VERB_LINE + 128];

	mq_verdict_reason(v, errors, reason, sizeof(reason));
	record("%s", kinds[v->kind]);
	if (v->resend_s != 0)
		record("%jd", (intmax_t)v->resend_s);
	if (reason[0] != '\0')
		record("%s", reason);
}

static void
expect_recorded(const char *said, int status, const char *want)
{
	const char *got = recorded();

	if (strcmp(got, want) != 0)
		fail_msg("\"%s\", status %#x: \"%s\", not \"%s\"", said,
		    (unsigned)status, got, want);
	record_clear();
}

struct run {
	const char *said;
	int status;
	const char *want;
};

static void
check(const struct run *run, const char *errors, bool late, bool strict)
{
	struct mq_verbs v = hear(run->said, strlen(run->said));
	struct mq_verdict got;

	memset(&got, 0x55, sizeof(got));
	mq_verdict(&v, run->status, late, strict, &got);
	record_verdict(&got, errors);
	expect_recorded(run->said, run->status, run->want);
}

/* What RQ does, as observed. */
TEST(verdicts)
{
	static const struct run runs[] = {
	    {"fail x\n", EXIT(0), "err x"},
	    {"fails x\n", EXIT(0), "err x"},
	    {"done\n", EXIT(0), "done"},
	    {"done all of it\n", EXIT(0), "done all of it"},
	    {"done\n", EXIT(1), "err exit status 1 after done"},
	    {"done x\n", KILLED(SIGKILL),
		"err x (killed by SIGKILL after done)"},
	    {"relayed x\n", EXIT(0), "done x"},
	    {"", KILLED(SIGTERM), "err killed by SIGTERM"},
	    {"err x\n", EXIT(0), "err x"},
	    {"err x\n", EXIT(75), "err x"},
	    {"err x\n", KILLED(SIGKILL), "err x"},
	    {"err\n", EXIT(0), "err err"},
	    {"fail\n", EXIT(0), "err err"},
	    {"err b\nrun later\n", EXIT(0), "err later"},
	    {"done\n", EXIT(75), "err exit status 75 after done"},
	    {"resend 1\n", EXIT(127), "err exit status 127 after resend"},
	    {"resend 0-x\n", EXIT(75), "err 0-x (exit status 75 after resend)"},
	    {"resend\n", KILLED(SIGSEGV), "err killed by SIGSEGV after resend"},
	    {"done\nresend 5-b\n", EXIT(0), "done 5-b"},
	    {"resend 5-b\ndone a\n", EXIT(0), "resend 5 a"},
	    {"resend 5-b\n", EXIT(0), "resend 5 5-b"},
	    {"resend\n", EXIT(0), "resend"},
	    {"done\nerr b\n", EXIT(0), "done b"},
	    {"err\ndone a\n", EXIT(0), "err a"},
	    {"err a\ndone\n", EXIT(0), "err err"},
	    {"resend tick\n", EXIT(0), "tick"},
	    {"resend tick-for more\n", EXIT(0), "tick tick-for more"},
	    {"resend tick\nrun x\n", EXIT(0), "tick x"},
	    {"resend tick\nresend 5\n", EXIT(0), "tick"},
	    {"resend 5\nresend tick\n", EXIT(0), "resend 5"},
	    {"resend tick\n", EXIT(3), "err exit status 3 after resend"},
	    {"pause 60-no disk\n", EXIT(0), "pause 60 60-no disk"},
	    {"pause 60\ndone a\n", EXIT(0), "pause 60 a"},
	    {"pause\n", EXIT(0), "pause"},
	    {"pause 60\n", KILLED(SIGTERM),
		"err killed by SIGTERM after pause"},
	    {"push\n", EXIT(0), "push"},
	    {"push to humans\n", EXIT(0), "push to humans"},
	    {"push\nrun later\n", EXIT(0), "push later"},
	    {"push a\nerr b\n", EXIT(0), "push b"},
	    {"err b\npush a\n", EXIT(0), "err a"},
	    {"push a\n", EXIT(1), "err a (exit status 1 after push)"},
	    {"push a\n", KILLED(SIGKILL),
		"err a (killed by SIGKILL after push)"},
	    {"pushed a\n", EXIT(0), "err a (unknown verb pushed)"},
	    {"done\nrun later\n", EXIT(0), "done later"},
	    {"done now\nrun\n", EXIT(0), "done"},
	    {"what is this\ndone ok\n", EXIT(0), "done ok"},
	    {"DONE x\n", EXIT(0), "err x (unknown verb DONE)"},
	    {"done: it\nall is well\n", EXIT(0),
		"err is well (unknown verb all)"},
	    {"donex\n", EXIT(0), "err unknown verb donex"},
	    {"do\nne x\n", EXIT(0), "err x (unknown verb ne)"},
	    {"run a\n", EXIT(3), "err a (exit status 3)"},
	    {"fial a\n", EXIT(3),
		"err a (exit status 3 after unknown verb fial)"},
	    {"fial a\nrun b\n", EXIT(75),
		"err b (exit status 75 after unknown verb fial)"},
	    {"r\xc3\xbcn\033\001\n", EXIT(127),
		"err exit status 127 after unknown verb r??n??"},
	    {"a2345678901234567890123456\n", KILLED(63),
		"err killed by signal 63 after unknown verb a23456789012345678901234"},
	    {"run a\n", KILLED(SIGKILL), "err a (killed by SIGKILL)"},
	    {"", EXIT(3), "err exit status 3"},
	    {"", KILLED(SIGSEGV) | DUMPED, "err killed by SIGSEGV"},
	    {"", EXIT(75), "retry exit status 75"},
	    {"", EXIT(126), "broken exit status 126"},
	    {"", EXIT(127), "broken exit status 127"},
	    {"\n \n\t\n\r\n", EXIT(75), "retry exit status 75"},
	    /* One message has no number. */
	    {"done #1 a\n", EXIT(0), "done #1 a"},
	};
	/* Progress and silence are no failure. */
	static const struct run lax[] = {
	    {"run a\nrun b\n", EXIT(0), "done b"},
	    {"dup 0-x-q\n", EXIT(0), "done 0-x-q"},
	    {"run a\n", EXIT(75), "retry a (exit status 75)"},
	    {"run a\n", EXIT(127), "broken a (exit status 127)"},
	    {"", EXIT(0), "done"},
	    {"\n\n", EXIT(0), "done"},
	};
	static const struct run strict[] = {
	    {"run a\nrun b\n", EXIT(0), "err b (no final verb)"},
	    {"run\n", EXIT(0), "err no final verb"},
	    {"run a\n", EXIT(75), "err a (exit status 75)"},
	    {"run a\n", EXIT(126), "err a (exit status 126)"},
	    {"", EXIT(0), "err no final verb"},
	};
	static const struct run late[] = {
	    {"", EXIT(0), "err timed out"},
	    {"", EXIT(75), "err timed out"},
	    {"", EXIT(127), "err timed out"},
	    {"run x\n", KILLED(SIGTERM), "err x (timed out)"},
	    {"done x\n", EXIT(0), "done x"},
	    {"done x\n", EXIT(1), "err x (timed out)"},
	    {"resend 5-x\n", EXIT(0), "resend 5 5-x"},
	    {"resend 5-x\n", KILLED(SIGKILL), "err 5-x (timed out)"},
	    {"err x\n", KILLED(SIGKILL), "err x"},
	    {"err\n", KILLED(SIGKILL), "err killed by SIGKILL"},
	};
	size_t i;

	for (i = 0; i < 2 * COUNT(runs); i++)
		check(&runs[i / 2], "", false, i % 2 == 0);
	for (i = 0; i < COUNT(lax); i++)
		check(&lax[i], "", false, false);
	for (i = 0; i < COUNT(strict); i++)
		check(&strict[i], "", false, true);
	for (i = 0; i < 2 * COUNT(late); i++)
		check(&late[i / 2], "", true, i % 2 == 0);
}

TEST(lines)
{
	static const struct {
		const char *said;
		size_t n;
		enum mq_verb_final final;
		const char *text;
	} cases[] = {
	    {B("done x"), MQ_FINAL_DONE, "x"},
	    {B("  done   two words  \n"), MQ_FINAL_DONE, "two words  "},
	    {B("\t done\ttabbed\n"), MQ_FINAL_DONE, "tabbed"},
	    {B("done \t a\t b\t\n"), MQ_FINAL_DONE, "a\t b\t"},
	    {B("done   \n"), MQ_FINAL_DONE, ""},
	    {B("done crlf\r\n"), MQ_FINAL_DONE, "crlf\r"},
	    {B("done\r\n"), MQ_FINAL_DONE, ""},
	    {B("done x\n   \n\t\n\r\n"), MQ_FINAL_DONE, "x"},
	    {B("\n\ndone x\n"), MQ_FINAL_DONE, "x"},
	    {B("done \xff\xfe\xc3\xa4\n"), MQ_FINAL_DONE, "\xff\xfe\xc3\xa4"},
	    {B("err \033[2Jx\n"), MQ_FINAL_ERR, "\033[2Jx"},
	    {B("run x"), MQ_FINAL_NONE, "x"},
	    {B("done:x\n"), MQ_FINAL_NONE, ""},
	    /* Blanks end the word tick, as they end a number. */
	    {B("resend \ttick"), MQ_FINAL_TICK, ""},
	    {B("resend tick\r\n"), MQ_FINAL_TICK, ""},
	    {B("resend tick\tx\n"), MQ_FINAL_TICK, "tick\tx"},
	    {B("resend tick-5\n"), MQ_FINAL_TICK, "tick-5"},
	    {B("pause tick\n"), MQ_FINAL_PAUSE, ""},
	    /* NUL is a character of no verb. */
	    {B("done a\0b\0\n"), MQ_FINAL_DONE, "a?b?"},
	    {B("done\0 x\n"), MQ_FINAL_NONE, "x"},
	    {B("\0done x\n"), MQ_FINAL_NONE, "x"},
	    {B("\0"), MQ_FINAL_NONE, ""},
	};
	struct mq_verbs v;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		v = hear(cases[i].said, cases[i].n);
		assert_true(v.spoke);
		assert_string_equal(v.text, cases[i].text);
		assert_int_equal(v.final, cases[i].final);
	}
	v = hear("\n \n", 3);
	assert_false(v.spoke);
}

/* When it is due, and what of that is text: a DUE alone says nothing to people. */
TEST(due)
{
	static const struct {
		const char *arg;
		int64_t s;
		const char *text;
	} cases[] = {
	    {"5-b c", 5, "5-b c"},
	    {"5", 5, ""},
	    {"007-x", 7, "007-x"},
	    {"60-try - again", 60, "60-try - again"},
	    {"1.9", 1, ""},
	    {"1_0", 10, ""},
	    {"1_0_0", 100, ""},
	    {"1__0-x", 1, "1__0-x"},
	    {"_1-x", 0, "_1-x"},
	    {"1_-x", 1, "1_-x"},
	    {"1_x", 1, ""},
	    {"+5", 5, ""},
	    {"++5", 0, "++5"},
	    {"5 - x", 5, "5 - x"},
	    {"5 x", 5, "5 x"},
	    {"5-", 5, ""},
	    {"5 -", 5, ""},
	    {"5x", 5, ""},
	    {"5\r", 5, ""},
	    {"0x10", 0, ""},
	    {"1e3", 1, ""},
	    {"soon", 0, "soon"},
	    {"-5", 0, "-5"},
	    {"-x", 0, "-x"},
	    {"ticks", 0, "ticks"},
	    {"Tick", 0, "Tick"},
	    {"tick.", 0, "tick."},
	    {"-tick", 0, "-tick"},
	    {"", 0, ""},
	    {"315360000", TEN_YEARS, ""},
	    {"315360001", TEN_YEARS, ""},
	    {"9223372036854775808", TEN_YEARS, ""},
	    {"99999999999999999999999999999999999999999", TEN_YEARS, ""},
	};
	struct mq_verbs v;
	char line[128];
	size_t i;
	int n;

	for (i = 0; i < 2 * COUNT(cases); i++) {
		n = snprintf(line, sizeof(line), "%s %s\n",
		    i % 2 == 0 ? "resend" : "pause", cases[i / 2].arg);
		v = hear(line, (size_t)n);
		assert_int_equal(
		    v.final, i % 2 == 0 ? MQ_FINAL_RESEND : MQ_FINAL_PAUSE);
		if (v.resend_s != cases[i / 2].s ||
		    strcmp(v.text, cases[i / 2].text) != 0)
			fail_msg("%s%lld, \"%s\"", line, (long long)v.resend_s,
			    v.text);
	}
	/* A later resend changes nothing but the text. */
	v = hear(B("resend 5-a\nresend 9-b\n"));
	assert_int_equal(v.resend_s, 5);
	assert_string_equal(v.text, "9-b");
	v = hear(B("done\nresend 5\0006-b\n"));
	assert_int_equal(v.resend_s, 0);
	v = hear(B("resend 5\0006-x\n"));
	assert_int_equal(v.resend_s, 5);
	assert_string_equal(v.text, "5?6-x");
}

/*
 * A line of len bytes, "err xxx...", then "done y": a line too long is cut,
 * and what was cut off is no line of its own.
 */
static void
check_long_line(size_t len, size_t split)
{
	size_t kept = len < MQ_VERB_LINE ? len : MQ_VERB_LINE;
	char *said = malloc(len + 8);
	struct mq_verbs v = {0};

	assert_non_null(said);
	memset(said, 'x', len);
	memcpy(said, "err ", 4);
	/* Behind the cut there is what would be another verdict. */
	if (len > MQ_VERB_LINE + 16)
		memcpy(said + MQ_VERB_LINE, " done z ", 8);
	memcpy(said + len, "\nrun y\n", 8);
	feed(&v, said, split);
	feed(&v, said + split, len - split);
	feed(&v, said + len, 1);
	assert_int_equal(v.final, MQ_FINAL_ERR);
	assert_int_equal(strlen(v.text), kept - 4);
	assert_int_equal(strspn(v.text, "x"), kept - 4);
	feed(&v, said + len + 1, 6);
	assert_string_equal(v.text, "y");
	free(said);
}

TEST(long_lines)
{
	static const size_t lens[] = {4095, 4096, 4097, 6000, 100000};
	size_t i;

	for (i = 0; i < COUNT(lens); i++) {
		check_long_line(lens[i], 1);
		check_long_line(lens[i], 4094);
		check_long_line(lens[i], lens[i]);
	}
}

/* What a script said, what it wrote to stderr, how it ended: the reason. */
TEST(reasons)
{
	static const struct {
		struct run run;
		const char *errors;
	} t[] = {
	    {{"", EXIT(1), "err gzip: No space left on device (exit status 1)"},
		"gzip: No space left on device\n"},
	    {{"", EXIT(1), "err last (exit status 1)"}, "first\nlast\n\n"},
	    {{"", EXIT(2), "err 20% (exit status 2)"}, "10%\r20%\r"},
	    {{"", EXIT(1), "err bad thing (exit status 1)"},
		"  \x1b[1;31mbad\x1b[0m\tthing \n\x1b[0m\n"},
	    {{"", EXIT(1), "err a?]b? (exit status 1)"}, "a\x07\x1b]b\x7f\x1b"},
	    {{"", EXIT(1), "err exit status 1"}, "\x1b["},
	    {{"", EXIT(1), "err \xc3\xa9 (exit status 1)"}, "\xa9\xc3\xa9\n"},
	    {{"", KILLED(SIGSEGV), "err oh (killed by SIGSEGV)"}, "oh\n"},
	    {{"", EXIT(75), "retry busy (exit status 75)"}, "busy\n"},
	    {{"run half\n", EXIT(1), "err half (exit status 1)"}, "oh\n"},
	    {{"ran\n", EXIT(0), "err oh (unknown verb ran)"}, "oh\n"},
	    {{"err no user\n", EXIT(1), "err no user"}, "oh\n"},
	    {{"err\n", EXIT(0), "err oh"}, "oh\n"},
	    {{"err\n", EXIT(1), "err oh (exit status 1)"}, "oh\n"},
	    {{"err\n", EXIT(0), "err err"}, " \n"},
	    {{"resend 60\n", EXIT(0), "resend 60 gzip: No space"},
		"gzip: No space\n"},
	    {{"resend 60-full\n", EXIT(0), "resend 60 60-full"},
		"gzip: No space\n"},
	    {{"resend 60\n", EXIT(0), "resend 60"}, ""},
	    {{"done\n", EXIT(3), "err oh (exit status 3 after done)"}, "oh\n"},
	};
	struct mq_verbs said = hear("", 0);
	struct mq_verdict v;
	char reason[30];
	size_t i;

	for (i = 0; i < COUNT(t); i++)
		check(&t[i].run, t[i].errors, false, false);
	/* A long line has its beginning, and there is room for the end. */
	mq_verdict(&said, EXIT(1), false, false, &v);
	mq_verdict_reason(
	    &v, "<abcdefghijklmnopqrstuvwxyz", reason, sizeof(reason));
	assert_string_equal(reason, "<abcdefghijkl (exit status 1)");
}

#define STRAY "err a verb names no message of the batch"

/* What follows for each of three messages. */
static void
check_ones(
    const char *said, int status, bool late, bool strict, const char *expected)
{
	struct mq_verb_one ones[3] = {0};
	struct mq_verbs v = {.ones = ones, .count = 3};
	struct mq_verdict got;
	int i;

	feed(&v, said, strlen(said));
	mq_verbs_feed(&v, "\n", 1);
	for (i = 0; i < 3; i++) {
		mq_verdict_one(&v, i, status, late, strict, &got);
		if (i > 0)
			record("|");
		record_verdict(&got, "");
		free(ones[i].text);
	}
	expect_recorded(said, status, expected);
}

TEST(one_of_several)
{
	static const struct {
		const char *said;
		int status;
		enum { LAX, STRICT, LATE } how;
		const char *expected;
	} t[] = {
	    {"", 0, LAX, "done | done | done"},
	    {"", 0, STRICT,
		"err no final verb | err no final verb | err no final verb"},
	    {"", EXIT(75), LAX,
		"retry exit status 75 | retry exit status 75 | retry exit status 75"},
	    /* Each has its own verb, and the rest shares one. */
	    {"done #1\nresend #3 7-later\nerr bad\n", 0, LAX,
		"done | err bad | resend 7 7-later"},
	    {"err #2 no\n", 0, LAX, "done | err no | done"},
	    {"err\t#2\r\npush #3 x\n", 0, LAX, "done | err err | push x"},
	    {"resend #2 tick\npause #1 4\ndone", 0, LAX,
		"pause 4 | tick | done"},
	    /* The first final verb decides, the last text is shown. */
	    {"done #1 a\nerr #1 b\n", 0, LAX, "done b | done | done"},
	    /* What was judged stands; the rest follows the exit status. */
	    {"done #1 a\n", EXIT(3), LAX,
		"done a | err exit status 3 | err exit status 3"},
	    {"done #1 a\ndone\n", EXIT(3), LAX,
		"done a | err exit status 3 after done | err exit status 3 after done"},
	    {"done #1\n", KILLED(SIGTERM), LATE,
		"done | err timed out | err timed out"},
	    {"done #1\n", EXIT(127), LAX,
		"done | broken exit status 127 | broken exit status 127"},
	    /* After a crash, nobody knows which one did it. */
	    {"done #1\nerr #2 bad\ndone\n", KILLED(SIGSEGV), LAX,
		"retry killed by SIGSEGV | err bad | retry killed by SIGSEGV"},
	    {"err all\n", KILLED(SIGSEGV), LAX, "err all | err all | err all"},
	    /* Progress judges nothing. */
	    {"run #2 x\n", 0, LAX, "done | done | done"},
	    {"fial #2 x\n", 0, LAX, "done | err x (unknown verb fial) | done"},
	    {"fial #2\ndone\n", 0, LAX, "done | done | done"},
	    {"fial x\ndone #2\n", 0, LAX,
		"err x (unknown verb fial) | done | err x (unknown verb fial)"},
	    {"run #2 x\n", EXIT(1), LAX,
		"err exit status 1 | err x (exit status 1) | err exit status 1"},
	    {"run half\ndone #2 x\n", 0, LAX, "done half | done x | done half"},
	    {"run half\ndone #2 x\n", 0, STRICT,
		"err half (no final verb) | done x | err half (no final verb)"},
	    {"err rest\nerr #2 x\n", 0, LAX, "err rest | err x | err rest"},
	    /* Numbers of no message. */
	    {"done #1\ndone #4\n", 0, LAX, "done | " STRAY " | " STRAY},
	    {"done #\n", 0, LAX, STRAY " | " STRAY " | " STRAY},
	    {"done #1x\ndone #99999999999999999999\ndone\ndone #2\n", 0, LAX,
		STRAY " | done | " STRAY},
	};
	size_t i;

	for (i = 0; i < COUNT(t); i++)
		check_ones(t[i].said, t[i].status, t[i].how == LATE,
		    t[i].how == STRICT, t[i].expected);
}

static void
on_dup(void *arg, int which, const char *text)
{
	record("%d:%s", which, text);
}

/* Numbers at the limits of a batch, and dups of them. */
TEST(numbers)
{
	static const struct {
		const char *text;
		int which; /* 3: none that there is */
		const char *rest;
	} t[] = {
	    {"x", -1, "x"},
	    {"", -1, ""},
	    {"x #1", -1, "x #1"},
	    {"#1", 0, ""},
	    {"#1 x", 0, "x"},
	    {"#3\t \r x  y", 2, "x  y"},
	    {"#03 x", 2, "x"},
	    {"#1 #2", 0, "#2"},
	    {"#4 x", 3, "#4 x"},
	    {"#0 x", 3, "#0 x"},
	    {"#", 3, "#"},
	    {"# 1", 3, "# 1"},
	    {"#-1", 3, "#-1"},
	    {"#+1", 3, "#+1"},
	    {"#1.", 3, "#1."},
	    {"#1x", 3, "#1x"},
	    {"##1", 3, "##1"},
	    {"#2147483649", 3, "#2147483649"},
	    {"#4294967297", 3, "#4294967297"},
	    {"#9223372036854775808", 3, "#9223372036854775808"},
	    {"#18446744073709551617", 3, "#18446744073709551617"},
	};
	struct mq_verb_one ones[3];
	struct mq_verbs v;
	char want[64];
	size_t i;
	int n;

	for (i = 0; i < COUNT(t); i++) {
		memset(ones, 0, sizeof(ones));
		v = (struct mq_verbs){
		    .ones = ones, .count = 3, .on_dup = on_dup};
		feed(&v, B("dup "));
		feed(&v, t[i].text, strlen(t[i].text));
		mq_verbs_feed(&v, "\n", 1);
		snprintf(want, sizeof(want), "%d:%s", t[i].which, t[i].rest);
		expect_recorded(t[i].text, 0, want);
		assert_int_equal(v.stray, t[i].which == 3);
		assert_int_equal(v.spoke, t[i].which == -1 || v.stray);
		assert_string_equal(
		    v.about > 0 ? ones[v.about - 1].text : v.text, t[i].rest);
		for (n = 0; n < 3; n++)
			free(ones[n].text);
	}
}
