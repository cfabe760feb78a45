/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* What a dup asks for: common/queue/dup.c, and base/password.c below it. */
#include "base/text.h"
#include "queue/dup.h"
#include "record.h"

TEST(parses)
{
	/* When, which queue, and what else it is for: the web, or another server. */
	static const struct {
		const char *text, *want;
		const char *shown; /* NULL: the queue */
	} cases[] = {
	    {"0-X-q", "0 q", NULL},
	    {"5-X-a-b-c", "5 a-b-c", NULL},
	    {"5--q", "5 q", NULL},
	    {"-5-q", "0 q", NULL},
	    {"--", "0 ", NULL},
	    {"soon-X-q", "0 q", NULL},
	    {"99999999999999999999-X-q", "315360000 q", NULL},
	    {"0-X-httpd", "0 httpd", NULL},
	    {"0-X-redis", "0 redis", NULL},
	    {"0-X-q?queue=r", "0 q?queue=r", NULL},
	    {"0-X-http://h/q/a-b", "0 relay web=http://h/q/a-b",
		"http://h/q/a-b"},
	    {"0-X-https://h/q/a", "0 relay web=https://h/q/a", "https://h/q/a"},
	    {"7-X-redis://h?queue=q", "7 q at redis://h", "redis://h?queue=q"},
	    {"7-X-redis://u:geheim@h:6379/3?queue=a%20%2f-b",
		"7 a /-b at redis://u:geheim@h:6379/3",
		"redis://h/3?queue=a%20%2f-b"},
	    {"0-X-unix:///run/s?db=2&queue=q", "0 q at unix:///run/s?db=2",
		"unix:///run/s?db=2&queue=q"},
	    {"0-X-redis://:a?queue=b@h?queue=q", "0 q at redis://:a?queue=b@h",
		"redis://h?queue=q"},
	    {"0-X-private:?queue=q", "0 q at private:", "private:?queue=q"},
	    {"0-X-redis://h?queue=", "0  at redis://h", "redis://h?queue="},
	    {"0-X-redis://u:a@h?queue=redis://v:geheim@i",
		"0 redis://v:geheim@i at redis://u:a@h",
		"redis://h?queue=redis://v:***@i"},
	};
	struct mq_dup d;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		why = mq_dup_parse(cases[i].text, &d);
		if (why != NULL)
			fail_msg("%s: %s", cases[i].text, why);
		record("%jd %s", (intmax_t)d.due_s, d.queue);
		if (d.web != NULL)
			record("web=%s", d.web);
		if (d.remote != NULL)
			record("at %s", d.remote);
		assert_string_equal(recorded(), cases[i].want);
		assert_string_equal(
		    d.shown, cases[i].shown != NULL ? cases[i].shown : d.queue);
		mq_dup_free(&d);
	}
	record_clear();
}

TEST(refuses)
{
	static const char *const cases[][2] = {
	    {"", ""},
	    {"0", ""},
	    {"0-X", ""},
	    {"nonsense", ""},
	    {"0-X-redis://h", "redis://h"},
	    {"0-X-redis://u:geheim@h", "redis://u:***@h"},
	    {"0-X-redis://u:geheim@h:x?queue=q", "redis://u:***@h:x?queue=q"},
	    {"0-X-redis://u:g@h?queue=%zz", "redis://h?queue=%zz"},
	    {"0-X-redis://u:1&queue=geheim@h", "redis://u:***@h"},
	    {"0-X-redis://h/x?queue=q", "redis://h/x?queue=q"},
	    {"0-X-http://me:geheim@h/q/x", "http://me:***@h/q/x"},
	};
	struct mq_dup d;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		assert_non_null(mq_dup_parse(cases[i][0], &d));
		assert_string_equal(d.shown, cases[i][1]);
		mq_dup_free(&d);
	}
}

/* --- passwords --- */

TEST(finds_password)
{
	static const struct {
		const char *password, *in[13];
	} cases[] = {
	    {"secret",
		{"redis://:secret@h", "redis://u:secret@h:6379/0",
		    "redis-cluster://u:secret@a:1,b:2", "unix://:secret@/run/s",
		    "foo://:secret@", "-uredis://:secret@h",
		    "--url=redis://:secret@h", "redis://h/0 redis://:secret@i",
		    "redis://u@h/ redis://:secret@i",
		    "redis://redis://u:secret@h"}},
	    {"se/cr@e/t",
		{"redis://:se/cr@e/t@h/0", "unix://u:se/cr@e/t@/s?x=@",
		    "redis://u:se/cr@e/t@h refused by a@b"}},
	    {"s:e@c", {"redis://u:s:e@c@h"}},
	    {"s%2Fe", {"redis://u:s%2Fe@h/x:y@z"}},
	    {"s", {"://:s@"}},
	    {"\xff\001", {"redis://u:\xff\001@h"}},
	    {"",
		{"redis://u:@h", "redis://:@h", "redis://u@h",
		    "redis://u@h:6379", "redis://h:6379/x@y", "redis://h",
		    "redis:/u:p@h", "u:p@h", "unix:///a:b@c", "private:", "://",
		    ""}},
	};
	const char *const *in;
	size_t i, start, len;

	for (i = 0; i < COUNT(cases); i++)
		for (in = cases[i].in; *in != NULL; in++) {
			start = len = 1000;
			mq_password_find(*in, &start, &len);
			if (len != strlen(cases[i].password) ||
			    memcmp(*in + start, cases[i].password, len) != 0)
				fail_msg("\"%s\": %zu bytes at %zu", *in, len,
				    start);
		}
}

TEST(hides_password)
{
	static const char *const cases[][2] = {
	    {"redis://u:geheim@h", "redis://u:***@h"},
	    {"redis://u:g@h", "redis://u:*@h"},
	    {"redis://u:@h", "redis://u:@h"}, {"redis://h", "redis://h"},
	    {"", ""}};
	char text[64];
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		strcpy(text, cases[i][0]);
		mq_password_hide(text);
		assert_string_equal(text, cases[i][1]);
	}
}
