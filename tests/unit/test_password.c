#include "base/password.h"

#include "unit.h"

TEST(finds_password)
{
	static const struct {
		const char *s, *password;
	} cases[] = {
	    {"redis://:secret@h", "secret"},
	    {"redis://u:secret@h:6379/0", "secret"},
	    {"redis://u:s:e@c@h", "s:e@c"},
	    {"redis://u:s%2Fe@h/x:y@z", "s%2Fe"},
	    {"redis-cluster://u:secret@a:1,b:2", "secret"},
	    {"unix://:secret@/run/s", "secret"},
	    {"foo://:secret@", "secret"},
	    {"://:s@", "s"},
	    {"-uredis://:secret@h", "secret"},
	    {"--url=redis://:secret@h", "secret"},
	    {"redis://h/0 redis://:secret@i", "secret"},
	    {"redis://u@h/ redis://:secret@i", "secret"},
	    {"redis://redis://u:secret@h", "secret"},
	    {"redis://u:\xff\001@h", "\xff\001"},
	    {"redis://u:@h", ""},
	    {"redis://:@h", ""},
	    {"redis://u@h", ""},
	    {"redis://u@h:6379", ""},
	    {"redis://h:6379/x@y", ""},
	    {"redis://h", ""},
	    {"redis:/u:p@h", ""},
	    {"u:p@h", ""},
	    {"unix:///a:b@c", ""},
	    {"private:", ""},
	    {"://", ""},
	    {"", ""},
	};
	size_t i, start, len;

	for (i = 0; i < COUNT(cases); i++) {
		start = len = 1000;
		mq_password_find(cases[i].s, &start, &len);
		if (len != strlen(cases[i].password) ||
		    memcmp(cases[i].s + start, cases[i].password, len) != 0)
			fail_msg(
			    "\"%s\": %zu bytes at %zu", cases[i].s, len, start);
	}
}

TEST(hides_password)
{
	static const char *const cases[][2] = {
	    {"redis://u:geheim@h", "redis://u:***@h"},
	    {"redis://u:g@h", "redis://u:*@h"},
	    {"redis://u:@h", "redis://u:@h"},
	    {"redis://h", "redis://h"},
	    {"", ""},
	};
	char text[64];
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		strcpy(text, cases[i][0]);
		mq_password_hide(text);
		assert_string_equal(text, cases[i][1]);
	}
}
