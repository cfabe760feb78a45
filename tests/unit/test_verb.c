#include "message/verdict.h"

#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#define EXIT(n)	    W_EXITCODE(n, 0)
#define KILLED(sig) W_EXITCODE(0, sig)
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
	mq_verbs_end(&v);
	return v;
}

static void
same(const struct mq_verbs *a, const struct mq_verbs *b, size_t where)
{
	if (a->final != b->final || a->spoke != b->spoke ||
	    a->resend_s != b->resend_s || strcmp(a->text, b->text) != 0)
		fail_msg("split at %zu: %d \"%s\", not %d \"%s\"", where,
		    (int)a->final, a->text, (int)b->final, b->text);
}

TEST(begin_is_as_zeroed)
{
	struct mq_verb_one ones[2] = {{.final = MQ_FINAL_ERR}};
	struct mq_verbs v = {.ones = ones, .count = 2}, none = {0};

	feed(&v, "done #9\nresend 5-why\ndone #2 it\nhal", 35);
	assert_true(v.stray);
	assert_string_equal(mq_verbs_text(&v), "it");
	mq_verbs_begin(&v);
	assert_string_equal(mq_verbs_text(&v), "");
	free(ones[1].text);
	assert_null(v.ones);
	assert_int_equal(v.count, 0);
	assert_false(v.stray);
	assert_int_equal(v.line_len, 0);
	same(&none, &v, 0);
	feed(&v, "done", 4);
	mq_verbs_end(&v);
	assert_int_equal(v.final, MQ_FINAL_DONE);
	assert_string_equal(v.text, "");
}

static const char *const kinds[] = {
    "done", "err", "resend", "tick", "pause", "push", "retry", "broken"};

static void
check(const char *said, int status, bool timed_out, bool strict,
    enum mq_verdict_kind kind, const char *reason)
{
	struct mq_verbs v = hear(said, strlen(said));
	struct mq_verdict got;
	char text[MQ_VERB_LINE + 128];

	memset(&got, 0x55, sizeof(got));
	mq_verdict(&v, status, timed_out, strict, &got);
	mq_verdict_reason(&got, "", text, sizeof(text));
	if (got.kind != kind || strcmp(text, reason) != 0)
		fail_msg("\"%s\", status %#x%s%s: %s \"%s\", not %s \"%s\"",
		    said, (unsigned)status, timed_out ? ", timed out" : "",
		    strict ? ", strict" : "", kinds[got.kind], text,
		    kinds[kind], reason);
	if (kind != MQ_VERDICT_RESEND && kind != MQ_VERDICT_PAUSE)
		assert_int_equal(got.resend_s, 0);
}

struct run {
	const char *said;
	int status;
	enum mq_verdict_kind kind;
	const char *reason;
};

/* What RQ does, as observed, where being strict makes no difference. */
static const struct run runs[] = {
    {"fail x\n", EXIT(0), MQ_VERDICT_ERR, "x"},
    {"fails x\n", EXIT(0), MQ_VERDICT_ERR, "x"},
    {"done\n", EXIT(0), MQ_VERDICT_DONE, ""},
    {"done all of it\n", EXIT(0), MQ_VERDICT_DONE, "all of it"},
    {"done\n", EXIT(1), MQ_VERDICT_ERR, "exit status 1 after done"},
    {"done x\n", KILLED(SIGKILL), MQ_VERDICT_ERR,
	"x (killed by SIGKILL after done)"},
    {"relayed x\n", EXIT(0), MQ_VERDICT_DONE, "x"},
    {"relayed x\n", EXIT(9), MQ_VERDICT_ERR, "x (exit status 9 after done)"},
    {"", KILLED(SIGTERM), MQ_VERDICT_ERR, "killed by SIGTERM"},
    {"err x\n", EXIT(0), MQ_VERDICT_ERR, "x"},
    {"err x\n", EXIT(75), MQ_VERDICT_ERR, "x"},
    {"err x\n", EXIT(127), MQ_VERDICT_ERR, "x"},
    {"err x\n", KILLED(SIGKILL), MQ_VERDICT_ERR, "x"},
    {"err\n", EXIT(0), MQ_VERDICT_ERR, "err"},
    {"fail\n", EXIT(0), MQ_VERDICT_ERR, "err"},
    {"err b\nrun later\n", EXIT(0), MQ_VERDICT_ERR, "later"},
    {"err\nresend 5-x\n", EXIT(0), MQ_VERDICT_ERR, "5-x"},
    {"fails\nrelayed http://a/b\n", EXIT(0), MQ_VERDICT_ERR, "http://a/b"},
    {"done\n", EXIT(75), MQ_VERDICT_ERR, "exit status 75 after done"},
    {"done\n", EXIT(126), MQ_VERDICT_ERR, "exit status 126 after done"},
    {"resend 1\n", EXIT(127), MQ_VERDICT_ERR, "exit status 127 after resend"},
    {"resend 0-x\n", EXIT(1), MQ_VERDICT_ERR,
	"0-x (exit status 1 after resend)"},
    {"resend 0-x\n", EXIT(75), MQ_VERDICT_ERR,
	"0-x (exit status 75 after resend)"},
    {"resend 0-x\n", EXIT(77), MQ_VERDICT_ERR,
	"0-x (exit status 77 after resend)"},
    {"resend\n", KILLED(SIGSEGV), MQ_VERDICT_ERR,
	"killed by SIGSEGV after resend"},
    {"done\nresend 5-b\n", EXIT(0), MQ_VERDICT_DONE, "5-b"},
    {"resend 5-b\ndone a\n", EXIT(0), MQ_VERDICT_RESEND, "a"},
    {"resend 5-b\n", EXIT(0), MQ_VERDICT_RESEND, "5-b"},
    {"resend\n", EXIT(0), MQ_VERDICT_RESEND, ""},
    {"done\nerr b\n", EXIT(0), MQ_VERDICT_DONE, "b"},
    {"err\ndone a\n", EXIT(0), MQ_VERDICT_ERR, "a"},
    {"err a\ndone\n", EXIT(0), MQ_VERDICT_ERR, "err"},
    {"resend tick\n", EXIT(0), MQ_VERDICT_TICK, ""},
    {"resend tick-for more\n", EXIT(0), MQ_VERDICT_TICK, "tick-for more"},
    {"resend tick\nrun x\n", EXIT(0), MQ_VERDICT_TICK, "x"},
    {"resend tick\nresend 5\n", EXIT(0), MQ_VERDICT_TICK, ""},
    {"resend 5\nresend tick\n", EXIT(0), MQ_VERDICT_RESEND, ""},
    {"resend tick\n", EXIT(3), MQ_VERDICT_ERR, "exit status 3 after resend"},
    {"pause 60-no disk\n", EXIT(0), MQ_VERDICT_PAUSE, "60-no disk"},
    {"pause 60\ndone a\n", EXIT(0), MQ_VERDICT_PAUSE, "a"},
    {"pause\n", EXIT(0), MQ_VERDICT_PAUSE, ""},
    {"pause 60\n", KILLED(SIGTERM), MQ_VERDICT_ERR,
	"killed by SIGTERM after pause"},
    {"push\n", EXIT(0), MQ_VERDICT_PUSH, ""},
    {"push to humans\n", EXIT(0), MQ_VERDICT_PUSH, "to humans"},
    {"push\nrun later\n", EXIT(0), MQ_VERDICT_PUSH, "later"},
    {"push a\nerr b\n", EXIT(0), MQ_VERDICT_PUSH, "b"},
    {"err b\npush a\n", EXIT(0), MQ_VERDICT_ERR, "a"},
    {"push a\n", EXIT(1), MQ_VERDICT_ERR, "a (exit status 1 after push)"},
    {"push a\n", EXIT(75), MQ_VERDICT_ERR, "a (exit status 75 after push)"},
    {"push a\n", KILLED(SIGKILL), MQ_VERDICT_ERR,
	"a (killed by SIGKILL after push)"},
    {"pushed a\n", EXIT(0), MQ_VERDICT_ERR, "a (unknown verb pushed)"},
    {"done\nrun later\n", EXIT(0), MQ_VERDICT_DONE, "later"},
    {"done now\nrun\n", EXIT(0), MQ_VERDICT_DONE, ""},
    {"what is this\ndone ok\n", EXIT(0), MQ_VERDICT_DONE, "ok"},
    {"DONE x\n", EXIT(0), MQ_VERDICT_ERR, "x (unknown verb DONE)"},
    {"donee x\n", EXIT(0), MQ_VERDICT_ERR, "x (unknown verb donee)"},
    {"done: it\nall is well\n", EXIT(0), MQ_VERDICT_ERR,
	"is well (unknown verb all)"},
    {"donex\n", EXIT(0), MQ_VERDICT_ERR, "unknown verb donex"},
    {"do\nne x\n", EXIT(0), MQ_VERDICT_ERR, "x (unknown verb ne)"},
    {"run a\n", EXIT(3), MQ_VERDICT_ERR, "a (exit status 3)"},
    {"fial a\n", EXIT(3), MQ_VERDICT_ERR,
	"a (exit status 3 after unknown verb fial)"},
    {"fial a\nrun b\n", EXIT(75), MQ_VERDICT_ERR,
	"b (exit status 75 after unknown verb fial)"},
    {"r\xc3\xbcn\033\001\n", EXIT(127), MQ_VERDICT_ERR,
	"exit status 127 after unknown verb r??n??"},
    {"a2345678901234567890123456\n", KILLED(63), MQ_VERDICT_ERR,
	"killed by signal 63 after unknown verb a23456789012345678901234"},
    {"run a\n", KILLED(SIGKILL), MQ_VERDICT_ERR, "a (killed by SIGKILL)"},
    {"run\n", KILLED(SIGABRT), MQ_VERDICT_ERR, "killed by SIGABRT"},
    {"", EXIT(3), MQ_VERDICT_ERR, "exit status 3"},
    {"", KILLED(SIGPIPE), MQ_VERDICT_ERR, "killed by SIGPIPE"},
    {"", EXIT(255), MQ_VERDICT_ERR, "exit status 255"},
    {"", KILLED(SIGSEGV) | WCOREFLAG, MQ_VERDICT_ERR, "killed by SIGSEGV"},
    {"", EXIT(75), MQ_VERDICT_RETRY, "exit status 75"},
    {"", EXIT(126), MQ_VERDICT_BROKEN, "exit status 126"},
    {"", EXIT(127), MQ_VERDICT_BROKEN, "exit status 127"},
    {"\n \n\t\n\r\n", EXIT(75), MQ_VERDICT_RETRY, "exit status 75"},
};

TEST(verdicts)
{
	size_t i;

	for (i = 0; i < COUNT(runs); i++) {
		check(runs[i].said, runs[i].status, false, false, runs[i].kind,
		    runs[i].reason);
		check(runs[i].said, runs[i].status, false, true, runs[i].kind,
		    runs[i].reason);
	}
}

TEST(progress_is_no_failure)
{
	check("run a\nrun b\n", EXIT(0), false, false, MQ_VERDICT_DONE, "b");
	check("dup 0-x-q\n", EXIT(0), false, false, MQ_VERDICT_DONE, "0-x-q");
	check("run a\n", EXIT(75), false, false, MQ_VERDICT_RETRY,
	    "a (exit status 75)");
	check("run a\n", EXIT(127), false, false, MQ_VERDICT_BROKEN,
	    "a (exit status 127)");
	check("run a\nrun b\n", EXIT(0), false, true, MQ_VERDICT_ERR,
	    "b (no final verb)");
	check("run\n", EXIT(0), false, true, MQ_VERDICT_ERR, "no final verb");
	check("run a\n", EXIT(75), false, true, MQ_VERDICT_ERR,
	    "a (exit status 75)");
	check("run a\n", EXIT(126), false, true, MQ_VERDICT_ERR,
	    "a (exit status 126)");
}

TEST(silence)
{
	check("", EXIT(0), false, false, MQ_VERDICT_DONE, "");
	check("\n\n", EXIT(0), false, false, MQ_VERDICT_DONE, "");
	check("", EXIT(0), false, true, MQ_VERDICT_ERR, "no final verb");
	check("", KILLED(SIGRTMAX - 1), false, false, MQ_VERDICT_ERR,
	    "killed by signal 63");
}

TEST(time_is_up)
{
	static const struct run cases[] = {
	    {"", EXIT(0), MQ_VERDICT_ERR, "timed out"},
	    {"", EXIT(75), MQ_VERDICT_ERR, "timed out"},
	    {"", EXIT(127), MQ_VERDICT_ERR, "timed out"},
	    {"", KILLED(SIGKILL), MQ_VERDICT_ERR, "timed out"},
	    {"run x\n", EXIT(0), MQ_VERDICT_ERR, "x (timed out)"},
	    {"run x\n", KILLED(SIGTERM), MQ_VERDICT_ERR, "x (timed out)"},
	    {"done x\n", EXIT(0), MQ_VERDICT_DONE, "x"},
	    {"done x\n", EXIT(1), MQ_VERDICT_ERR, "x (timed out)"},
	    {"done x\n", KILLED(SIGTERM), MQ_VERDICT_ERR, "x (timed out)"},
	    {"resend 5-x\n", EXIT(0), MQ_VERDICT_RESEND, "5-x"},
	    {"resend 5-x\n", KILLED(SIGKILL), MQ_VERDICT_ERR,
		"5-x (timed out)"},
	    {"err x\n", EXIT(0), MQ_VERDICT_ERR, "x"},
	    {"err x\n", KILLED(SIGKILL), MQ_VERDICT_ERR, "x"},
	    {"err\n", KILLED(SIGKILL), MQ_VERDICT_ERR, "killed by SIGKILL"},
	};
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		check(cases[i].said, cases[i].status, true, false,
		    cases[i].kind, cases[i].reason);
		check(cases[i].said, cases[i].status, true, true, cases[i].kind,
		    cases[i].reason);
	}
}

TEST(lines)
{
	static const struct {
		const char *said;
		enum mq_verb_final final;
		const char *text;
	} cases[] = {
	    {"done x", MQ_FINAL_DONE, "x"},
	    {"done", MQ_FINAL_DONE, ""},
	    {"  done   two words  \n", MQ_FINAL_DONE, "two words  "},
	    {"\t done\ttabbed\n", MQ_FINAL_DONE, "tabbed"},
	    {"done \t a\t b\t\n", MQ_FINAL_DONE, "a\t b\t"},
	    {"done   \n", MQ_FINAL_DONE, ""},
	    {"done crlf\r\n", MQ_FINAL_DONE, "crlf\r"},
	    {"done\r\n", MQ_FINAL_DONE, ""},
	    {"done x\n\n", MQ_FINAL_DONE, "x"},
	    {"done x\n   \n\t\n\r\n", MQ_FINAL_DONE, "x"},
	    {"\n\ndone x\n", MQ_FINAL_DONE, "x"},
	    {"done \xff\xfe\xc3\xa4\n", MQ_FINAL_DONE, "\xff\xfe\xc3\xa4"},
	    {"err \033[2Jx\n", MQ_FINAL_ERR, "\033[2Jx"},
	    {"run x", MQ_FINAL_NONE, "x"},
	    {"done:x\n", MQ_FINAL_NONE, ""},
	    {"relayed http://h/q\n", MQ_FINAL_DONE, "http://h/q"},
	};
	struct mq_verbs v;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		v = hear(cases[i].said, strlen(cases[i].said));
		assert_true(v.spoke);
		assert_string_equal(v.text, cases[i].text);
		assert_int_equal(v.final, cases[i].final);
	}
	v = hear("\n \n", 3);
	assert_false(v.spoke);
}

TEST(due)
{
	static const struct {
		const char *arg;
		int64_t s;
	} cases[] = {
	    {"5-b", 5},
	    {"5", 5},
	    {"0-x", 0},
	    {"007-x", 7},
	    {"60-try - again", 60},
	    {"1.9-x", 1},
	    {"1_0-x", 10},
	    {"1_0_0", 100},
	    {"1__0-x", 1},
	    {"_1-x", 0},
	    {"1_-x", 1},
	    {"1_x", 1},
	    {"+5-x", 5},
	    {"++5", 0},
	    {"5 6", 5},
	    {"5x", 5},
	    {"5\r", 5},
	    {"0x10", 0},
	    {"1e3", 1},
	    {"soon-please", 0},
	    {"words 7", 0},
	    {"-5-neg", 0},
	    {"-", 0},
	    {"ticks", 0},
	    {"Tick", 0},
	    {"tick.", 0},
	    {"-tick", 0},
	    {"", 0},
	    {"315360000", TEN_YEARS},
	    {"315360001", TEN_YEARS},
	    {"9223372036854775808", TEN_YEARS},
	    {"99999999999999999999999999999999999999999", TEN_YEARS},
	};
	struct mq_verdict got;
	struct mq_verbs v;
	char line[128];
	bool pause;
	size_t i;
	int n;

	for (i = 0; i < 2 * COUNT(cases); i++) {
		pause = i >= COUNT(cases);
		n = snprintf(line, sizeof(line), "%s %s\n",
		    pause ? "pause" : "resend", cases[i % COUNT(cases)].arg);
		v = hear(line, (size_t)n);
		mq_verdict(&v, 0, false, false, &got);
		assert_int_equal(
		    got.kind, pause ? MQ_VERDICT_PAUSE : MQ_VERDICT_RESEND);
		if (got.resend_s != cases[i % COUNT(cases)].s)
			fail_msg("\"%s\": %lld", cases[i % COUNT(cases)].arg,
			    (long long)got.resend_s);
	}
}

/* Blanks end the word, as they end a number. */
TEST(next_tick)
{
	static const char *const said[] = {"resend tick", "resend \ttick",
	    "resend tick\r\n", "resend tick \n", "resend tick\tx\n",
	    "resend tick-5\n"};
	struct mq_verbs v;
	size_t i;

	for (i = 0; i < COUNT(said); i++) {
		v = hear(said[i], strlen(said[i]));
		assert_int_equal(v.final, MQ_FINAL_TICK);
		assert_int_equal(v.resend_s, 0);
	}
	v = hear("pause tick\n", 11);
	assert_int_equal(v.final, MQ_FINAL_PAUSE);
	assert_int_equal(v.resend_s, 0);
}

/* A later resend changes nothing but the text. */
TEST(first_due_counts)
{
	const char said[] = "resend 5-a\nresend 9-b\n";
	struct mq_verbs v = hear(said, strlen(said));

	assert_int_equal(v.resend_s, 5);
	assert_string_equal(v.text, "9-b");
	v = hear("done\nresend 5-b\n", 16);
	assert_int_equal(v.resend_s, 0);
}

/* RQ took "do" and "ne" for two lines. */
TEST(split_anywhere)
{
	struct mq_verbs whole, v;
	size_t i, k, n;
	const char *s;

	for (i = 0; i < COUNT(runs); i++) {
		s = runs[i].said;
		n = strlen(s);
		whole = hear(s, n);
		for (k = 0; k <= n; k++) {
			memset(&v, 0, sizeof(v));
			feed(&v, s, k);
			feed(&v, s + k, n - k);
			mq_verbs_end(&v);
			same(&v, &whole, k);
			/* and without the last newline */
			if (n == 0 || s[n - 1] != '\n' || k == n)
				continue;
			memset(&v, 0, sizeof(v));
			feed(&v, s, k);
			feed(&v, s + k, n - 1 - k);
			mq_verbs_end(&v);
			same(&v, &whole, k);
		}
	}
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
	static const size_t splits[] = {0, 1, 4094, 4095};
	size_t i, k;

	for (i = 0; i < COUNT(lens); i++) {
		for (k = 0; k < COUNT(splits); k++)
			check_long_line(lens[i], splits[k]);
		check_long_line(lens[i], lens[i] - 1);
		check_long_line(lens[i], lens[i]);
	}
}

TEST(nul_bytes)
{
	struct mq_verbs v;

	v = hear("done a\0b\0\n", 10);
	assert_int_equal(v.final, MQ_FINAL_DONE);
	assert_string_equal(v.text, "a?b?");
	v = hear("done\0 x\n", 8);
	assert_int_equal(v.final, MQ_FINAL_NONE);
	assert_string_equal(v.text, "x");
	v = hear("\0done x\n", 8);
	assert_int_equal(v.final, MQ_FINAL_NONE);
	assert_string_equal(v.text, "x");
	v = hear("do\0ne\n", 6);
	assert_int_equal(v.final, MQ_FINAL_NONE);
	assert_true(v.spoke);
	v = hear("\0", 1);
	assert_true(v.spoke);
	v = hear("resend 5\0006-x\n", 13);
	assert_int_equal(v.resend_s, 5);
	assert_string_equal(v.text, "5?6-x");
}

/* A DUE alone says nothing to people. */
TEST(bare_dues)
{
	static const char *const cases[][2] = {{"5", ""}, {"5-b c", "5-b c"},
	    {"+5", ""}, {"1_0", ""}, {"1.9", ""}, {"5 - x", "5 - x"},
	    {"5 x", "5 x"}, {"5-", ""}, {"5 -", ""}, {"tick", ""},
	    {"tick-", ""}, {"tick-x", "tick-x"}, {"-5", "-5"}, {"-x", "-x"},
	    {"", ""}, {"soon", "soon"}, {"disk full", "disk full"}};
	struct mq_verbs v;
	char line[64];
	size_t i;
	int n;

	for (i = 0; i < COUNT(cases); i++) {
		n = snprintf(line, sizeof(line), "%s %s\n",
		    i % 2 == 0 ? "resend" : "pause", cases[i][0]);
		v = hear(line, (size_t)n);
		assert_string_equal(v.text, cases[i][1]);
	}
}

/* What a script said, what it wrote to stderr, how it ended: the reason. */
TEST(reasons)
{
	static const struct {
		const char *said, *errors;
		int status;
		const char *reason;
	} t[] = {
	    {"", "gzip: No space left on device\n", EXIT(1),
		"gzip: No space left on device (exit status 1)"},
	    {"", "first\nlast\n\n", EXIT(1), "last (exit status 1)"},
	    {"", "10%\r20%\r", EXIT(2), "20% (exit status 2)"},
	    {"", "  \x1b[1;31mbad\x1b[0m\tthing \n\x1b[0m\n", EXIT(1),
		"bad thing (exit status 1)"},
	    {"", "a\x07\x1b]b\x7f\x1b", EXIT(1), "a?]b? (exit status 1)"},
	    {"", "\x1b[", EXIT(1), "exit status 1"},
	    {"", "\xa9\xc3\xa9\n", EXIT(1), "\xc3\xa9 (exit status 1)"},
	    {"", "oh\n", KILLED(SIGSEGV), "oh (killed by SIGSEGV)"},
	    {"", "busy\n", EXIT(75), "busy (exit status 75)"},
	    {"run half\n", "oh\n", EXIT(1), "half (exit status 1)"},
	    {"ran\n", "oh\n", EXIT(0), "oh (unknown verb ran)"},
	    {"err no user\n", "oh\n", EXIT(1), "no user"},
	    {"err\n", "oh\n", EXIT(0), "oh"},
	    {"err\n", "oh\n", EXIT(1), "oh (exit status 1)"},
	    {"err\n", " \n", EXIT(0), "err"},
	    {"resend 60\n", "gzip: No space\n", EXIT(0), "gzip: No space"},
	    {"resend 60-full\n", "gzip: No space\n", EXIT(0), "60-full"},
	    {"resend 60\n", "", EXIT(0), ""},
	    {"done\n", "oh\n", EXIT(3), "oh (exit status 3 after done)"},
	};
	struct mq_verdict v;
	struct mq_verbs said;
	char reason[200], errors[600];
	size_t i;

	for (i = 0; i < COUNT(t); i++) {
		said = hear(t[i].said, strlen(t[i].said));
		mq_verdict(&said, t[i].status, false, false, &v);
		mq_verdict_reason(&v, t[i].errors, reason, sizeof(reason));
		assert_string_equal(reason, t[i].reason);
	}
	/* A long line has its beginning, and there is room for the end. */
	memset(errors, 'x', sizeof(errors) - 1);
	errors[sizeof(errors) - 1] = '\0';
	errors[0] = '<';
	said = hear("", 0);
	mq_verdict(&said, EXIT(1), false, false, &v);
	mq_verdict_reason(&v, errors, reason, sizeof(reason));
	assert_int_equal(strlen(reason), sizeof(reason) - 1);
	assert_memory_equal(reason, "<xxx", 4);
	assert_string_equal(
	    reason + sizeof(reason) - 20, "xxx (exit status 1)");
}

/* What follows for each of three messages. */
static void
check_ones(const char *said, int status, bool timed_out, bool strict,
    const char *const expected[3])
{
	struct mq_verb_one ones[3] = {0};
	struct mq_verbs v = {.ones = ones, .count = 3};
	struct mq_verdict got;
	char text[8192], reason[4096];
	int i;

	mq_verbs_feed(&v, said, strlen(said));
	mq_verbs_end(&v);
	for (i = 0; i < 3; i++) {
		mq_verdict_one(&v, i, status, timed_out, strict, &got);
		mq_verdict_reason(&got, "", reason, sizeof(reason));
		snprintf(text, sizeof(text), "%s %jd %s", kinds[got.kind],
		    (intmax_t)got.resend_s, reason);
		if (strcmp(text, expected[i]) != 0)
			fail_msg("\"%s\", status %#x, #%d: %s, not %s", said,
			    (unsigned)status, i + 1, text, expected[i]);
		free(ones[i].text);
	}
}

TEST(one_of_several)
{
	static const struct {
		const char *said;
		int status;
		bool timed_out, strict;
		const char *expected[3];
	} t[] = {
	    {"", 0, false, false, {"done 0 ", "done 0 ", "done 0 "}},
	    {"", 0, false, true,
		{"err 0 no final verb", "err 0 no final verb",
		    "err 0 no final verb"}},
	    {"", EXIT(75), false, false,
		{"retry 0 exit status 75", "retry 0 exit status 75",
		    "retry 0 exit status 75"}},
	    /* Each has its own verb, and the rest shares one. */
	    {"done #1\nresend #3 7-later\nerr bad\n", 0, false, false,
		{"done 0 ", "err 0 bad", "resend 7 7-later"}},
	    {"err #2 no\n", 0, false, false,
		{"done 0 ", "err 0 no", "done 0 "}},
	    {"err\t#2\r\npush #3 x\n", 0, false, false,
		{"done 0 ", "err 0 err", "push 0 x"}},
	    {"resend #2 tick\npause #1 4\ndone", 0, false, false,
		{"pause 4 ", "tick 0 ", "done 0 "}},
	    /* The first final verb decides, the last text is shown. */
	    {"done #1 a\nerr #1 b\n", 0, false, false,
		{"done 0 b", "done 0 ", "done 0 "}},
	    /* What was judged stands; the rest follows the exit status. */
	    {"done #1 a\n", EXIT(3), false, false,
		{"done 0 a", "err 0 exit status 3", "err 0 exit status 3"}},
	    {"done #1 a\ndone\n", EXIT(3), false, false,
		{"done 0 a", "err 0 exit status 3 after done",
		    "err 0 exit status 3 after done"}},
	    {"done #1\n", KILLED(SIGTERM), true, false,
		{"done 0 ", "err 0 timed out", "err 0 timed out"}},
	    {"done #1\n", EXIT(127), false, false,
		{"done 0 ", "broken 0 exit status 127",
		    "broken 0 exit status 127"}},
	    /* After a crash, nobody knows which one did it. */
	    {"done #1\nerr #2 bad\ndone\n", KILLED(SIGSEGV), false, false,
		{"retry 0 killed by SIGSEGV", "err 0 bad",
		    "retry 0 killed by SIGSEGV"}},
	    {"err all\n", KILLED(SIGSEGV), false, false,
		{"err 0 all", "err 0 all", "err 0 all"}},
	    /* Progress judges nothing. */
	    {"run #2 x\n", 0, false, false, {"done 0 ", "done 0 ", "done 0 "}},
	    {"fial #2 x\n", 0, false, false,
		{"done 0 ", "err 0 x (unknown verb fial)", "done 0 "}},
	    {"fial #2\ndone\n", 0, false, false,
		{"done 0 ", "done 0 ", "done 0 "}},
	    {"fial x\ndone #2\n", 0, false, false,
		{"err 0 x (unknown verb fial)", "done 0 ",
		    "err 0 x (unknown verb fial)"}},
	    {"run #2 x\n", EXIT(1), false, false,
		{"err 0 exit status 1", "err 0 x (exit status 1)",
		    "err 0 exit status 1"}},
	    {"run half\ndone #2 x\n", 0, false, false,
		{"done 0 half", "done 0 x", "done 0 half"}},
	    {"run half\ndone #2 x\n", 0, false, true,
		{"err 0 half (no final verb)", "done 0 x",
		    "err 0 half (no final verb)"}},
	    {"err rest\nerr #2 x\n", 0, false, false,
		{"err 0 rest", "err 0 x", "err 0 rest"}},
	    /* Numbers of no message. */
	    {"done #1\ndone #4\n", 0, false, false,
		{"done 0 ", "err 0 a verb names no message of the batch",
		    "err 0 a verb names no message of the batch"}},
	    {"done #\n", 0, false, false,
		{"err 0 a verb names no message of the batch",
		    "err 0 a verb names no message of the batch",
		    "err 0 a verb names no message of the batch"}},
	    {"done #1x\ndone #99999999999999999999\ndone\ndone #2\n", 0, false,
		false,
		{"err 0 a verb names no message of the batch", "done 0 ",
		    "err 0 a verb names no message of the batch"}},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		check_ones(t[i].said, t[i].status, t[i].timed_out, t[i].strict,
		    t[i].expected);
	/* One message has no number. */
	check("done #1 a\n", 0, false, false, MQ_VERDICT_DONE, "#1 a");
}

/* Numbers at the limits of a batch, and dups of them. */
struct asked {
	int count, which;
	char text[64];
};

static void
on_dup(void *arg, int which, const char *text)
{
	struct asked *a = arg;

	a->count++;
	a->which = which;
	strlcpy(a->text, text != NULL ? text : "too long", sizeof(a->text));
}

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
	struct asked asked;
	size_t i;
	int n;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		memset(ones, 0, sizeof(ones));
		asked = (struct asked){0};
		v = (struct mq_verbs){
		    .ones = ones, .count = 3, .on_dup = on_dup, .arg = &asked};
		mq_verbs_feed(&v, "dup ", 4);
		mq_verbs_feed(&v, t[i].text, strlen(t[i].text));
		mq_verbs_end(&v);
		assert_int_equal(asked.count, 1);
		assert_int_equal(asked.which, t[i].which);
		assert_string_equal(asked.text, t[i].rest);
		assert_int_equal(v.stray, t[i].which == 3);
		assert_int_equal(v.spoke, t[i].which == -1 || v.stray);
		assert_string_equal(mq_verbs_text(&v), t[i].rest);
		for (n = 0; n < 3; n++)
			free(ones[n].text);
	}
}

/* One after the other from one pipe. */
TEST(line_by_line)
{
	const char *said = "run a\ndone b\nerr c\nre";
	struct mq_verbs v = {0};
	size_t n = strlen(said), at;

	at = mq_verbs_feed_line(&v, said, n);
	assert_int_equal(at, 6);
	assert_true(v.spoke);
	assert_int_equal(v.final, MQ_FINAL_NONE);
	at += mq_verbs_feed_line(&v, said + at, n - at);
	assert_int_equal(v.final, MQ_FINAL_DONE);
	assert_string_equal(v.text, "b");
	mq_verbs_next(&v);
	assert_false(v.spoke);
	assert_string_equal(v.text, "");
	at += mq_verbs_feed_line(&v, said + at, n - at);
	assert_int_equal(v.final, MQ_FINAL_ERR);
	mq_verbs_next(&v);
	at += mq_verbs_feed_line(&v, said + at, n - at);
	assert_int_equal(at, n);
	assert_false(v.spoke);
	mq_verbs_feed(&v, "send 5\n", 7);
	assert_int_equal(v.final, MQ_FINAL_RESEND);
	assert_int_equal(v.resend_s, 5);
}
