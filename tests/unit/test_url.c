/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "redis/server.h"

#include "record.h"

static void
check_text(const char *s, const char *what, const char *got, const char *want)
{
	if (got == NULL || strcmp(got, want) != 0)
		fail_msg("\"%s\": %s is \"%s\", not \"%s\"", s, what,
		    got != NULL ? got : "NULL", want);
}

static void
record_text(const char *name, const char *value)
{
	if (value != NULL)
		record("%s=%s", name, value);
}

/* All that is not as in a URL that says nothing. */
static void
record_url(const struct mq_url *u)
{
	static const char *const kinds[] = {[MQ_URL_REDIS] = "redis",
	    [MQ_URL_UNIX] = "unix",
	    [MQ_URL_CLUSTER] = "cluster",
	    [MQ_URL_SENTINEL] = "sentinel",
	    [MQ_URL_PRIVATE] = "private"};
	char list[256] = "at ";
	size_t i;

	record("%s%s", kinds[u->kind], u->tls ? " tls" : "");
	record_text("user", u->user);
	record_text("password", u->password);
	for (i = 0; i < u->hosts_n; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list),
		    "%s%s:%d", i > 0 ? "," : "", u->hosts[i].name,
		    u->hosts[i].port);
	if (u->hosts_n > 0)
		record("%s", list);
	record_text("path", u->path);
	if (u->db != 0)
		record("db=%d", u->db);
	record_text("layout", u->layout);
	record_text("ns", u->ns);
	record_text("cacert", u->cacert);
	record_text("cert", u->cert);
	record_text("key", u->key);
	record_text("sni", u->sni);
	if (u->insecure)
		record("insecure");
}

static void
check(const char *s, const char *parsed, const char *shown)
{
	struct mq_url u;
	const char *why = "untouched";
	char show[512];

	if (mq_url_parse(s, &u, &why) != 0)
		fail_msg("\"%s\": %s", s, why);
	assert_null(why);
	mq_url_show(&u, show, sizeof(show));
	check_text(s, "what is shown", show, shown != NULL ? shown : s);
	record_url(&u);
	check_text(s, "what it says", recorded(), parsed);
	mq_url_free(&u);
	assert_null(u.password);
	assert_null(u.hosts);
	record_clear();
}

TEST(good)
{
	static const struct {
		const char *s, *parsed;
		const char *shown; /* NULL: the same */
	} cases[] = {
	    /* redis urls */
	    {"redis://h", "redis at h:6379", NULL},
	    {"redis://h/", "redis at h:6379", "redis://h"},
	    {"redis://h/0", "redis at h:6379", "redis://h"},
	    {"redis://h/99999", "redis at h:6379 db=99999", NULL},
	    {"redis://my_host-1.Example.org:1/2",
		"redis at my_host-1.Example.org:1 db=2", NULL},
	    {"redis://127.0.0.1:65535", "redis at 127.0.0.1:65535", NULL},
	    {"redis://[::1]", "redis at ::1:6379", NULL},
	    {"redis://:pw@[2001:db8::1]:7000/3",
		"redis password=pw at 2001:db8::1:7000 db=3",
		"redis://[2001:db8::1]:7000/3"},
	    {"redis://[fe80::1%25eth0]:1", "redis at fe80::1%eth0:1", NULL},
	    {"redis-cluster://[FE80::1%252],[::1]",
		"cluster at FE80::1%2:6379,::1:6379", NULL},
	    {"redis://[::ffff:10.0.0.1]", "redis at ::ffff:10.0.0.1:6379",
		NULL},
	    {"rediss://u:pw@h", "redis tls user=u password=pw at h:6379",
		"rediss://h"},
	    /* redis users */
	    {"redis://u@h", "redis user=u at h:6379", "redis://h"},
	    {"redis://u:@h", "redis user=u at h:6379", "redis://h"},
	    {"redis://@h", "redis at h:6379", "redis://h"},
	    {"redis://:@h", "redis at h:6379", "redis://h"},
	    {"redis://u:pw@h/4", "redis user=u password=pw at h:6379 db=4",
		"redis://h/4"},
	    {"redis://u:p:w@w?#[]@h",
		"redis user=u password=p:w@w?#[] at h:6379", "redis://h"},
	    {"redis://a%40b%3Ac:%2F%2f%25%20%0a%C3%A4@h",
		"redis user=a@b:c password=//% \n\xc3\xa4 at h:6379",
		"redis://h"},
	    {"redis://:p w\xff@h", "redis password=p w\xff at h:6379",
		"redis://h"},
	    /* unix urls */
	    {"unix:///run/redis.sock", "unix path=/run/redis.sock", NULL},
	    {"unix:///s?db=7", "unix path=/s db=7", NULL},
	    {"unix:///s?db=0", "unix path=/s", "unix:///s"},
	    {"unix://u:p%2Fw@/s", "unix user=u password=p/w path=/s",
		"unix:///s"},
	    {"unix://:pw@//x//y@b:c", "unix password=pw path=//x//y@b:c",
		"unix:////x//y@b:c"},
	    {"unix:///a b%3F%25%1b%7f\xc3\xa4?db=1",
		"unix path=/a b?%\033\177\xc3\xa4 db=1",
		"unix:///a%20b%3F%25%1B%7F\xc3\xa4?db=1"},
	    /* lists of hosts */
	    {"redis-cluster://a", "cluster at a:6379", NULL},
	    {"redis-cluster://u:pw@a:1,[::1]:2,c/",
		"cluster user=u password=pw at a:1,::1:2,c:6379",
		"redis-cluster://a:1,[::1]:2,c"},
	    {"redis-sentinel://a/main", "sentinel at a:26379 path=main", NULL},
	    {"redis-sentinel://:p,w@a:26379,b:26380/my%2Fma%20in/12",
		"sentinel password=p,w at a:26379,b:26380 path=my/ma in db=12",
		"redis-sentinel://a,b:26380/my%2Fma%20in/12"},
	    {"redis-sentinel://a/main/", "sentinel at a:26379 path=main",
		"redis-sentinel://a/main"},
	    /* private urls */
	    {"private:", "private", NULL},
	    {"private:/var/lib/mq", "private path=/var/lib/mq", NULL},
	    {"private:some/dir", "private path=some/dir", NULL},
	    {"private:My Mail%25", "private path=My Mail%",
		"private:My%20Mail%25"},
	    {"private://x", "private path=//x", NULL},
	    /* parameters */
	    {"redis://h?layout=rsmq", "redis at h:6379 layout=rsmq", NULL},
	    {"redis://h/?layout=rmq", "redis at h:6379 layout=rmq",
		"redis://h?layout=rmq"},
	    {"redis://h:6379/3?ns=a:b&layout=rsmq",
		"redis at h:6379 db=3 layout=rsmq ns=a:b",
		"redis://h/3?layout=rsmq&ns=a:b"},
	    {"redis://u:p?w@h?layout=x",
		"redis user=u password=p?w at h:6379 layout=x",
		"redis://h?layout=x"},
	    {"redis://[::1]?ns=%26/%2F@%40%25%20%3F=",
		"redis at ::1:6379 ns=&//@@% ?=",
		"redis://[::1]?ns=%26//%40%40%25%20?="},
	    {"unix:///s?ns=n&db=7&layout=rsmq",
		"unix path=/s db=7 layout=rsmq ns=n",
		"unix:///s?db=7&layout=rsmq&ns=n"},
	    {"unix:///s?db=0&layout=rsmq", "unix path=/s layout=rsmq",
		"unix:///s?layout=rsmq"},
	    {"redis-sentinel://a/ma%3Fin/2?ns=n",
		"sentinel at a:26379 path=ma?in db=2 ns=n", NULL},
	    {"private:?layout=rsmq", "private layout=rsmq", NULL},
	    {"private:/d%3F?ns=n", "private path=/d? ns=n", NULL},
	    /* tls */
	    {"rediss://h:1/2?cacert=/a%20b.pem&cert=c&key=k&sni=n&ns=x",
		"redis tls at h:1 db=2 ns=x cacert=/a b.pem cert=c key=k sni=n",
		"rediss://h:1/2?ns=x&cacert=/a%20b.pem&cert=c&key=k&sni=n"},
	    {"rediss://h?insecure=1", "redis tls at h:6379 insecure", NULL},
	    {"rediss-cluster://a,b:1?cacert=c",
		"cluster tls at a:6379,b:1 cacert=c", NULL},
	    {"rediss-sentinel://u:p@a,b:1/main/3?sni=s&insecure=1",
		"sentinel tls user=u password=p at a:26379,b:1 path=main db=3 sni=s insecure",
		"rediss-sentinel://a,b:1/main/3?sni=s&insecure=1"},
	};
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		check(cases[i].s, cases[i].parsed, cases[i].shown);
}

TEST(refused)
{
	static const struct {
		const char *why, *in[14];
	} cases[] = {
	    {"unknown scheme; use redis://, rediss://, unix://, redis-cluster://, redis-sentinel:// or private:",
		{"", "localhost", "localhost:6379", "redis",
		    "redis:", "redis:h", "redis:/h", " redis://h", "REDIS://h",
		    "http://h", "private", "unix:/s"}},
	    {"no host",
		{"redis://", "redis:///0", "redis://:6379", "redis://u:secret@",
		    "redis://u:secret@:1", "redis://?layout=rsmq",
		    "redis-cluster://", "redis-cluster://,",
		    "redis-cluster://a,", "redis-cluster://a,,b",
		    "redis-sentinel:///main"}},
	    {"port is not a number from 1 to 65535",
		{"redis://h:", "redis://h:0", "redis://h:65536",
		    "redis://h:4294967297", "redis://h:18446744073709551617",
		    "redis://h:+1", "redis://h:-1", "redis://h: 1",
		    "redis://h:1x", "redis://h:0x1", "redis://u:secret",
		    "redis://[::1]:", "redis-cluster://a:1,b:x"}},
	    {"database is not a number from 0 to 99999",
		{"redis://h/x", "redis://h/-1", "redis://h/+1",
		    "redis://h/100000", "redis://h/4294967296", "redis://h/1/",
		    "redis://h//1", "redis://h/x?layout=rsmq",
		    "unix:///s?db=", "unix:///s?db=x", "unix:///s?db=123456",
		    "redis-sentinel://a/main/x",
		    "redis-sentinel://a/main/1/2"}},
	    {"unknown parameter; only layout and ns are known",
		{"redis://h/1?x=y", "redis://h?", "redis://h?layout",
		    "redis://h?layout=a&", "redis://h?Layout=a",
		    "redis://h?queue=a", "private:?x", "redis://h?cacert=c",
		    "redis://h?insecure=1", "redis://h?db=1"}},
	    {"a parameter without a value",
		{"redis://h?layout=", "redis://h?ns=&layout=a",
		    "rediss://h?key="}},
	    {"a parameter is given twice",
		{"redis://h?ns=a&ns=b", "rediss://h?insecure=1&insecure=1",
		    "rediss://h?key=a&key=b", "unix:///s?db=1&db=2"}},
	    {"% must be followed by two hex digits",
		{"redis://h?ns=%", "redis://[fe80::1%eth0]",
		    "redis://:sec%ret@h", "redis://:secret%@h",
		    "redis://:secret%4@h", "redis://:secret%-1@h",
		    "redis://:secret%4z@h", "redis://%zz:secret@h",
		    "unix:///s%", "redis-sentinel://a/ma%in"}},
	    {"%00 is not allowed",
		{"redis://h?ns=a%00", "redis://:secret%00@h",
		    "redis://%00:secret@h", "unix:///s%00x", "private:x%00"}},
	    {"unknown parameter; only layout, ns, cacert, cert, key, sni and insecure are known",
		{"rediss://h?ca=c", "rediss://h?insecure"}},
	    {"insecure must be insecure=1",
		{"rediss://h?insecure=0", "rediss://h?insecure="}},
	    {"host has an invalid character",
		{"redis://h,i", "redis://h i", "redis://h ", "redis://%68",
		    "redis://h\xc3\xa4", "redis://$(id)", "redis://]",
		    "redis-cluster://a, b"}},
	    {"holds a control character",
		{"redis://h\n", "redis://h\r", "redis://:secret\033[2J@h",
		    "private:a\177"}},
	    {"more than one : in a host; an IPv6 address goes in []",
		{"redis://::1", "redis://a:1:2"}},
	    {"host has [ but no ]",
		{"redis://[", "redis://[::1", "redis://[::1/]"}},
	    {"no IPv6 address in []",
		{"redis://[]", "redis://[h]", "redis://[127.0.0.1]",
		    "redis://[::1%25]", "redis://[h%25eth0]",
		    "redis://[::1%25a%25]", "redis://[::1%250%0a]",
		    "redis://[fe80::1%250000000000000000000000000000000000000000000000000000000000]",
		    "redis://[0000000000000000000000000000000000000000000000000::]",
		    "redis-cluster://[::1],[x]"}},
	    {"a / in a password is written %2F",
		{"redis://:secret/x@h", "redis://u:secret/@h:1/0",
		    "redis://u:1/secret@h/0", "rediss-cluster://:secret//@h",
		    "redis-sentinel://:1/secret@h/main?ns=a",
		    "unix://:secret/@/s"}},
	    {"unexpected text between ] and the port",
		{"redis://[::1]x", "redis://[::1]6379"}},
	    {"no path of a socket",
		{"unix://", "unix:///", "unix:///?db=1", "unix://u:secret@"}},
	    {"the path of a socket must begin with /",
		{"unix://s", "unix://run/s", "unix://.",
		    "unix://:secret@run/s"}},
	    {"unknown parameter; only db, layout and ns are known",
		{"unix:///s?", "unix:///s?d=1", "unix:///s?password=secret"}},
	    {"no master name",
		{"redis-sentinel://a", "redis-sentinel://a/",
		    "redis-sentinel://a//1"}},
	};
	const char *const *in;
	struct mq_url u;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		for (in = cases[i].in; *in != NULL; in++) {
			memset(&u, 0x55, sizeof(u));
			why = NULL;
			if (mq_url_parse(*in, &u, &why) != -1)
				fail_msg("\"%s\" is accepted", *in);
			check_text(*in, "why", why, cases[i].why);
			assert_null(strstr(why, "secret"));
			assert_true(u.user == NULL && u.password == NULL);
			assert_true(u.hosts == NULL && u.path == NULL);
			assert_true(u.layout == NULL && u.ns == NULL);
			mq_url_free(&u);
		}
}

/* A socket's path fits sun_path, a host name getaddrinfo(3). */
TEST(lengths)
{
	struct mq_url u;
	const char *why;
	char s[400];

	snprintf(s, sizeof(s), "unix:///%0106d", 0);
	assert_int_equal(mq_url_parse(s, &u, &why), 0);
	assert_int_equal(strlen(u.path), 107);
	mq_url_free(&u);
	snprintf(s, sizeof(s), "unix:///%0107d", 0);
	assert_int_equal(mq_url_parse(s, &u, &why), -1);
	assert_string_equal(why, "path too long for a socket");
	snprintf(s, sizeof(s), "redis://%0255d", 0);
	assert_int_equal(mq_url_parse(s, &u, &why), 0);
	mq_url_free(&u);
	snprintf(s, sizeof(s), "redis://%0256d", 0);
	assert_int_equal(mq_url_parse(s, &u, &why), -1);
	assert_string_equal(why, "host name too long");
}
