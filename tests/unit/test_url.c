#include "redis/server.h"

#include "unit.h"

/* struct mq_url, but of constant texts */
struct expected {
	enum mq_url_kind kind;
	const char *user, *password;
	const char *host; /* of a list: each with its port, [] not shown */
	int port;	  /* 0 of a list */
	const char *path;
	int db;
	const char *layout, *ns;
	bool tls;
	const char *cacert, *cert, *key, *sni;
	bool insecure;
};

static void
check_text(const char *s, const char *what, const char *got, const char *want)
{
	if ((got == NULL) != (want == NULL) ||
	    (want != NULL && strcmp(got, want) != 0))
		fail_msg("\"%s\": %s is \"%s\", not \"%s\"", s, what,
		    got != NULL ? got : "NULL", want != NULL ? want : "NULL");
}

static void
check_number(const char *s, const char *what, size_t got, size_t want)
{
	if (got != want)
		fail_msg("\"%s\": %s is %zu, not %zu", s, what, got, want);
}

static void
check_hosts(const char *s, const struct mq_url *u, const struct expected *want)
{
	char list[256] = "";
	size_t i, n = 0;

	if (want->port != 0) {
		check_number(s, "hosts", u->hosts_n, 1);
		check_text(s, "host", u->hosts[0].name, want->host);
		check_number(s, "port", u->hosts[0].port, want->port);
		return;
	}
	for (i = 0; i < u->hosts_n; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s:%d",
		    i > 0 ? "," : "", u->hosts[i].name, u->hosts[i].port);
	check_text(s, "hosts", u->hosts_n > 0 ? list : NULL, want->host);
}

static void
check(const char *s, const struct expected *want, const char *shown)
{
	struct mq_url u;
	const char *why = "untouched";
	char show[512];

	if (mq_url_parse(s, &u, &why) != 0)
		fail_msg("\"%s\": %s", s, why);
	assert_null(why);
	check_number(s, "kind", u.kind, want->kind);
	check_text(s, "user", u.user, want->user);
	check_text(s, "password", u.password, want->password);
	check_hosts(s, &u, want);
	check_text(s, "path", u.path, want->path);
	check_text(s, "layout", u.layout, want->layout);
	check_text(s, "namespace", u.ns, want->ns);
	check_number(s, "tls", u.tls, want->tls);
	check_text(s, "cacert", u.cacert, want->cacert);
	check_text(s, "cert", u.cert, want->cert);
	check_text(s, "key", u.key, want->key);
	check_text(s, "sni", u.sni, want->sni);
	check_number(s, "insecure", u.insecure, want->insecure);
	check_number(s, "db", u.db, want->db);
	mq_url_show(&u, show, sizeof(show));
	check_text(s, "what is shown", show, shown);
	mq_url_free(&u);
	assert_null(u.password);
	assert_null(u.hosts);
}

struct good {
	const char *s;
	struct expected want;
	const char *shown;
};

#define K(which, ...)                                                          \
	{                                                                      \
		.kind = MQ_URL_##which, __VA_ARGS__                            \
	}
#define R(...) K(REDIS, .port = 6379, __VA_ARGS__)

TEST(good)
{
	static const struct good cases[] = {
	    /* redis urls */
	    {"redis://h", R(.host = "h"), "redis://h"},
	    {"redis://h/", R(.host = "h"), "redis://h"},
	    {"redis://h:6379/0", R(.host = "h"), "redis://h"},
	    {"redis://h/0", R(.host = "h"), "redis://h"},
	    {"redis://h/15", R(.host = "h", .db = 15), "redis://h/15"},
	    {"redis://h/99999", R(.host = "h", .db = 99999), "redis://h/99999"},
	    {"redis://my_host-1.Example.org:1/2",
		K(REDIS, .host = "my_host-1.Example.org", .port = 1, .db = 2),
		"redis://my_host-1.Example.org:1/2"},
	    {"redis://127.0.0.1:65535",
		K(REDIS, .host = "127.0.0.1", .port = 65535),
		"redis://127.0.0.1:65535"},
	    {"redis://[::1]", R(.host = "::1"), "redis://[::1]"},
	    {"redis://:pw@[2001:db8::1]:7000/3",
		K(REDIS, .password = "pw", .host = "2001:db8::1", .port = 7000,
		    .db = 3),
		"redis://[2001:db8::1]:7000/3"},
	    {"redis://[::ffff:10.0.0.1]", R(.host = "::ffff:10.0.0.1"),
		"redis://[::ffff:10.0.0.1]"},
	    {"rediss://u:pw@h",
		R(.tls = true, .user = "u", .password = "pw", .host = "h"),
		"rediss://h"},
	    /* redis users */
	    {"redis://u@h", R(.user = "u", .host = "h"), "redis://h"},
	    {"redis://u:@h", R(.user = "u", .host = "h"), "redis://h"},
	    {"redis://@h", R(.host = "h"), "redis://h"},
	    {"redis://:@h", R(.host = "h"), "redis://h"},
	    {"redis://:pw@h", R(.password = "pw", .host = "h"), "redis://h"},
	    {"redis://u:pw@h/4",
		R(.user = "u", .password = "pw", .host = "h", .db = 4),
		"redis://h/4"},
	    {"redis://u:p:w@h", R(.user = "u", .password = "p:w", .host = "h"),
		"redis://h"},
	    {"redis://u:p@w@h", R(.user = "u", .password = "p@w", .host = "h"),
		"redis://h"},
	    {"redis://u:p?w#[]@h",
		R(.user = "u", .password = "p?w#[]", .host = "h"), "redis://h"},
	    {"redis://a%40b%3Ac:%2F%2f%25%20%0a%C3%A4@h",
		R(.user = "a@b:c", .password = "//% \n\xc3\xa4", .host = "h"),
		"redis://h"},
	    {"redis://:p w\xff@h", R(.password = "p w\xff", .host = "h"),
		"redis://h"},
	    /* unix urls */
	    {"unix:///run/redis.sock", K(UNIX, .path = "/run/redis.sock"),
		"unix:///run/redis.sock"},
	    {"unix:///s?db=7", K(UNIX, .path = "/s", .db = 7),
		"unix:///s?db=7"},
	    {"unix:///s?db=0", K(UNIX, .path = "/s"), "unix:///s"},
	    {"unix://u:p%2Fw@/s",
		K(UNIX, .user = "u", .password = "p/w", .path = "/s"),
		"unix:///s"},
	    {"unix://:pw@/a@b:c", K(UNIX, .password = "pw", .path = "/a@b:c"),
		"unix:///a@b:c"},
	    {"unix:////x//y", K(UNIX, .path = "//x//y"), "unix:////x//y"},
	    {"unix:///a b%3F%25%1b%7f\xc3\xa4?db=1",
		K(UNIX, .path = "/a b?%\033\177\xc3\xa4", .db = 1),
		"unix:///a%20b%3F%25%1B%7F\xc3\xa4?db=1"},
	    /* lists of hosts */
	    {"redis-cluster://a", K(CLUSTER, .host = "a:6379"),
		"redis-cluster://a"},
	    {"redis-cluster://u:pw@a:1,[::1]:2,c/",
		K(CLUSTER, .user = "u", .password = "pw",
		    .host = "a:1,::1:2,c:6379"),
		"redis-cluster://a:1,[::1]:2,c"},
	    {"redis-sentinel://a/main",
		K(SENTINEL, .host = "a:26379", .path = "main"),
		"redis-sentinel://a/main"},
	    {"redis-sentinel://:p,w@a:26379,b:26380/my%2Fma%20in/12",
		K(SENTINEL, .password = "p,w", .host = "a:26379,b:26380",
		    .path = "my/ma in", .db = 12),
		"redis-sentinel://a,b:26380/my%2Fma%20in/12"},
	    {"redis-sentinel://a/main/",
		K(SENTINEL, .host = "a:26379", .path = "main"),
		"redis-sentinel://a/main"},
	    /* private urls */
	    {"private:", {.kind = MQ_URL_PRIVATE}, "private:"},
	    {"private:/var/lib/mq", K(PRIVATE, .path = "/var/lib/mq"),
		"private:/var/lib/mq"},
	    {"private:some/dir", K(PRIVATE, .path = "some/dir"),
		"private:some/dir"},
	    {"private:My Mail%25", K(PRIVATE, .path = "My Mail%"),
		"private:My%20Mail%25"},
	    {"private://x", K(PRIVATE, .path = "//x"), "private://x"},
	    /* parameters */
	    {"redis://h?layout=rsmq", R(.host = "h", .layout = "rsmq"),
		"redis://h?layout=rsmq"},
	    {"redis://h/?layout=rmq", R(.host = "h", .layout = "rmq"),
		"redis://h?layout=rmq"},
	    {"redis://h:6379/3?ns=a:b&layout=rsmq",
		R(.host = "h", .db = 3, .layout = "rsmq", .ns = "a:b"),
		"redis://h/3?layout=rsmq&ns=a:b"},
	    {"redis://u:p?w@h?layout=x",
		R(.user = "u", .password = "p?w", .host = "h", .layout = "x"),
		"redis://h?layout=x"},
	    {"redis://[::1]?ns=%26%2F%40%25%20%3F=",
		R(.host = "::1", .ns = "&/@% ?="),
		"redis://[::1]?ns=%26/%40%25%20?="},
	    {"redis://h?ns=a/b", R(.host = "h", .ns = "a/b"),
		"redis://h?ns=a/b"},
	    {"redis://h/?ns=a@b", R(.host = "h", .ns = "a@b"),
		"redis://h?ns=a%40b"},
	    {"unix:///s?ns=n&db=7&layout=rsmq",
		K(UNIX, .path = "/s", .db = 7, .layout = "rsmq", .ns = "n"),
		"unix:///s?db=7&layout=rsmq&ns=n"},
	    {"unix:///s?db=0&layout=rsmq",
		K(UNIX, .path = "/s", .layout = "rsmq"),
		"unix:///s?layout=rsmq"},
	    {"redis-cluster://a:1,b?layout=rsmq",
		K(CLUSTER, .host = "a:1,b:6379", .layout = "rsmq"),
		"redis-cluster://a:1,b?layout=rsmq"},
	    {"redis-sentinel://a/main?layout=rsmq",
		K(SENTINEL, .host = "a:26379", .path = "main",
		    .layout = "rsmq"),
		"redis-sentinel://a/main?layout=rsmq"},
	    {"redis-sentinel://a/ma%3Fin/2?ns=n",
		K(SENTINEL, .host = "a:26379", .path = "ma?in", .db = 2,
		    .ns = "n"),
		"redis-sentinel://a/ma%3Fin/2?ns=n"},
	    {"private:?layout=rsmq", K(PRIVATE, .layout = "rsmq"),
		"private:?layout=rsmq"},
	    {"private:/d%3F?ns=n", K(PRIVATE, .path = "/d?", .ns = "n"),
		"private:/d%3F?ns=n"},
	    /* tls */
	    {"rediss://h:1/2?cacert=/a%20b.pem&cert=c&key=k&sni=n&ns=x",
		K(REDIS, .tls = true, .host = "h", .port = 1, .db = 2,
		    .cacert = "/a b.pem", .cert = "c", .key = "k", .sni = "n",
		    .ns = "x"),
		"rediss://"
		"h:1/2?ns=x&cacert=/a%20b.pem&cert=c&key=k&sni=n"},
	    {"rediss://h?insecure=1",
		R(.tls = true, .host = "h", .insecure = true),
		"rediss://h?insecure=1"},
	    {"rediss-cluster://a,b:1?cacert=c",
		K(CLUSTER, .tls = true, .host = "a:6379,b:1", .cacert = "c"),
		"rediss-cluster://a,b:1?cacert=c"},
	    {"rediss-sentinel://u:p@a,b:1/main/3?sni=s&insecure=1",
		K(SENTINEL, .tls = true, .user = "u", .password = "p",
		    .host = "a:26379,b:1", .path = "main", .db = 3, .sni = "s",
		    .insecure = true),
		"rediss-sentinel://a,b:1/main/3?sni=s&insecure=1"},
	};
	struct expected want;
	const struct good *g;

	for (g = cases; g < cases + COUNT(cases); g++) {
		check(g->s, &g->want, g->shown);
		/* What is shown means the same server. */
		want = g->want;
		want.user = want.password = NULL;
		check(g->shown, &want, g->shown);
	}
}

#define UNKNOWN "unknown parameter; only layout and ns are known"
#define UNKNOWN_TLS                                                            \
	"unknown parameter; only layout, ns, cacert, cert, key, sni and "      \
	"insecure are known"
#define INSECURE     "insecure must be insecure=1"
#define UNKNOWN_UNIX "unknown parameter; only db, layout and ns are known"
#define SCHEME                                                                 \
	"unknown scheme; use redis://, rediss://, unix://, redis-cluster://, redis-sentinel:// or private:"
#define PORT	  "port is not a number from 1 to 65535"
#define DB	  "database is not a number from 0 to 99999"
#define CHARACTER "host has an invalid character"
#define ESCAPE	  "% must be followed by two hex digits"

TEST(refused)
{
	static const struct {
		const char *s, *why;
	} cases[] = {
	    {"", SCHEME},
	    {"localhost", SCHEME},
	    {"localhost:6379", SCHEME},
	    {"redis", SCHEME},
	    {"redis:", SCHEME},
	    {"redis:h", SCHEME},
	    {"redis:/h", SCHEME},
	    {" redis://h", SCHEME},
	    {"REDIS://h", SCHEME},
	    {"http://h", SCHEME},
	    {"private", SCHEME},
	    {"unix:/s", SCHEME},
	    {"redis://", "no host"},
	    {"redis:///0", "no host"},
	    {"redis://:6379", "no host"},
	    {"redis://u:secret@", "no host"},
	    {"redis://u:secret@:1", "no host"},
	    {"redis://h:", PORT},
	    {"redis://h:0", PORT},
	    {"redis://h:65536", PORT},
	    {"redis://h:4294967297", PORT},
	    {"redis://h:18446744073709551617", PORT},
	    {"redis://h:+1", PORT},
	    {"redis://h:-1", PORT},
	    {"redis://h: 1", PORT},
	    {"redis://h:1x", PORT},
	    {"redis://h:0x1", PORT},
	    {"redis://u:secret", PORT},
	    {"redis://:secret/x@h", "no host"},
	    {"redis://h/x", DB},
	    {"redis://h/-1", DB},
	    {"redis://h/+1", DB},
	    {"redis://h/100000", DB},
	    {"redis://h/4294967296", DB},
	    {"redis://h/1/", DB},
	    {"redis://h//1", DB},
	    {"redis://h/1?x=y", UNKNOWN},
	    {"redis://h/x?layout=rsmq", DB},
	    {"redis://h?", UNKNOWN},
	    {"redis://h?layout", UNKNOWN},
	    {"redis://h?layout=a&", UNKNOWN},
	    {"redis://h?Layout=a", UNKNOWN},
	    {"redis://h?queue=a", UNKNOWN},
	    {"redis://h?layout=", "a parameter without a value"},
	    {"redis://h?ns=&layout=a", "a parameter without a value"},
	    {"redis://h?ns=a&ns=b", "a parameter is given twice"},
	    {"redis://h?ns=%", ESCAPE},
	    {"redis://h?ns=a%00", "%00 is not allowed"},
	    {"redis://?layout=rsmq", "no host"},
	    {"private:?x", UNKNOWN},
	    {"redis://h?cacert=c", UNKNOWN},
	    {"redis://h?insecure=1", UNKNOWN},
	    {"rediss://h?ca=c", UNKNOWN_TLS},
	    {"rediss://h?insecure", UNKNOWN_TLS},
	    {"rediss://h?insecure=0", INSECURE},
	    {"rediss://h?insecure=", INSECURE},
	    {"rediss://h?insecure=1&insecure=1", "a parameter is given twice"},
	    {"rediss://h?key=a&key=b", "a parameter is given twice"},
	    {"rediss://h?key=", "a parameter without a value"},
	    {"redis://h,i", CHARACTER},
	    {"redis://h?db=1", UNKNOWN},
	    {"redis://h i", CHARACTER},
	    {"redis://h ", CHARACTER},
	    {"redis://%68", CHARACTER},
	    {"redis://h\xc3\xa4", CHARACTER},
	    {"redis://$(id)", CHARACTER},
	    {"redis://h\n", "holds a control character"},
	    {"redis://h\r", "holds a control character"},
	    {"redis://:secret\033[2J@h", "holds a control character"},
	    {"private:a\177", "holds a control character"},
	    {"redis://::1",
		"more than one : in a host; an IPv6 address goes in []"},
	    {"redis://a:1:2",
		"more than one : in a host; an IPv6 address goes in []"},
	    {"redis://[", "host has [ but no ]"},
	    {"redis://[::1", "host has [ but no ]"},
	    {"redis://[::1/]", "host has [ but no ]"},
	    {"redis://[]", "no IPv6 address in []"},
	    {"redis://[h]", "no IPv6 address in []"},
	    {"redis://[127.0.0.1]", "no IPv6 address in []"},
	    {"redis://[::1%25eth0]", "no IPv6 address in []"},
	    {"redis://[0000000000000000000000000000000000000000000000000::]",
		"no IPv6 address in []"},
	    {"redis://[::1]x", "unexpected text between ] and the port"},
	    {"redis://[::1]6379", "unexpected text between ] and the port"},
	    {"redis://[::1]:", PORT},
	    {"redis://]", CHARACTER},
	    {"redis://:sec%ret@h", ESCAPE},
	    {"redis://:secret%@h", ESCAPE},
	    {"redis://:secret%4@h", ESCAPE},
	    {"redis://:secret%-1@h", ESCAPE},
	    {"redis://:secret%4z@h", ESCAPE},
	    {"redis://%zz:secret@h", ESCAPE},
	    {"redis://:secret%00@h", "%00 is not allowed"},
	    {"redis://%00:secret@h", "%00 is not allowed"},
	    {"unix:///s%00x", "%00 is not allowed"},
	    {"private:x%00", "%00 is not allowed"},
	    {"unix://", "no path of a socket"},
	    {"unix:///", "no path of a socket"},
	    {"unix:///?db=1", "no path of a socket"},
	    {"unix://u:secret@", "no path of a socket"},
	    {"unix://s", "the path of a socket must begin with /"},
	    {"unix://run/s", "the path of a socket must begin with /"},
	    {"unix://.", "the path of a socket must begin with /"},
	    {"unix://:secret@run/s", "the path of a socket must begin with /"},
	    {"unix:///s%", ESCAPE},
	    {"unix:///s?", UNKNOWN_UNIX},
	    {"unix:///s?d=1", UNKNOWN_UNIX},
	    {"unix:///s?password=secret", UNKNOWN_UNIX},
	    {"unix:///s?db=", DB},
	    {"unix:///s?db=x", DB},
	    {"unix:///s?db=1&db=2", "a parameter is given twice"},
	    {"unix:///s?db=123456", DB},
	    {"redis-cluster://", "no host"},
	    {"redis-cluster://,", "no host"},
	    {"redis-cluster://a,", "no host"},
	    {"redis-cluster://a,,b", "no host"},
	    {"redis-cluster://a:1,b:x", PORT},
	    {"redis-cluster://a, b", CHARACTER},
	    {"redis-cluster://[::1],[x]", "no IPv6 address in []"},
	    {"redis-sentinel://a", "no master name"},
	    {"redis-sentinel://a/", "no master name"},
	    {"redis-sentinel://a//1", "no master name"},
	    {"redis-sentinel:///main", "no host"},
	    {"redis-sentinel://a/main/x", DB},
	    {"redis-sentinel://a/main/1/2", DB},
	    {"redis-sentinel://a/ma%in", ESCAPE},
	};
	struct mq_url u;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		memset(&u, 0x55, sizeof(u));
		why = NULL;
		if (mq_url_parse(cases[i].s, &u, &why) != -1)
			fail_msg("\"%s\" is accepted", cases[i].s);
		check_text(cases[i].s, "why", why, cases[i].why);
		assert_null(strstr(why, "secret"));
		assert_null(u.user);
		assert_null(u.password);
		assert_null(u.hosts);
		assert_null(u.path);
		assert_null(u.layout);
		assert_null(u.ns);
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

TEST(show_truncates)
{
	const char whole[] = "redis://[::1]:7/5";
	struct mq_url u;
	const char *why;
	char out[32];
	size_t n;

	assert_int_equal(mq_url_parse("redis://u:pw@[::1]:7/5", &u, &why), 0);
	for (n = 1; n < sizeof(out); n++) {
		memset(out, '#', sizeof(out));
		mq_url_show(&u, out, n);
		assert_int_equal(
		    strlen(out), n < sizeof(whole) ? n - 1 : strlen(whole));
		assert_memory_equal(out, whole, strlen(out));
		if (n < sizeof(whole))
			assert_int_equal(out[n], '#');
	}
	memset(out, '#', sizeof(out));
	mq_url_show(&u, out, 0);
	assert_int_equal(out[0], '#');
	mq_url_free(&u);
}
