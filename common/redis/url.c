#include "server.h"

#include <sys/un.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/percent.h"
#include "base/xalloc.h"

struct mq_url_scheme {
	const char *prefix; /* NULL: behind the last one */
	enum mq_url_kind kind;
	bool tls;
	int port; /* of a host without one; 0: there are no hosts */
};

/* A parameter whose value is a text. */
struct mq_url_text {
	const char *name; /* with its =; NULL: behind the last one */
	size_t at;	  /* its member of struct mq_url */
	bool tls;	  /* only known with TLS */
};

/* --- url ----------------------------------------------------------------- */

#define TWICE "a parameter is given twice"

static const struct mq_url_scheme mq_url_schemes[] = {
    {"redis://", MQ_URL_REDIS, false, 6379},
    {"rediss://", MQ_URL_REDIS, true, 6379},
    {"unix://", MQ_URL_UNIX, false, 0},
    {"redis-cluster://", MQ_URL_CLUSTER, false, 6379},
    {"rediss-cluster://", MQ_URL_CLUSTER, true, 6379},
    {"redis-sentinel://", MQ_URL_SENTINEL, false, 26379},
    {"rediss-sentinel://", MQ_URL_SENTINEL, true, 26379},
    {"private:", MQ_URL_PRIVATE, false, 0},
    {0},
};

static const struct mq_url_text mq_url_texts[] = {
    {"layout=", offsetof(struct mq_url, layout), false},
    {"ns=", offsetof(struct mq_url, ns), false},
    {"cacert=", offsetof(struct mq_url, cacert), true},
    {"cert=", offsetof(struct mq_url, cert), true},
    {"key=", offsetof(struct mq_url, key), true},
    {"sni=", offsetof(struct mq_url, sni), true},
    {0},
};

static const struct mq_url_scheme *
mq_url_scheme(const struct mq_url *u)
{
	const struct mq_url_scheme *s = mq_url_schemes;

	while (s->kind != u->kind || s->tls != u->tls)
		s++;
	return s;
}

/* The member of the URL. */
static char **
mq_url_text(const struct mq_url *u, const struct mq_url_text *text)
{
	return (char **)((char *)u + text->at);
}

/*
 * Below, a function that returns a text returns what is wrong, or NULL when
 * nothing is.
 */

static const char *
parse_db(const char *s, size_t n, int *db)
{
	if (n == 0 || n > 5 || strspn(s, "0123456789") != n)
		return "database is not a number from 0 to 99999";
	*db = atoi(s);
	return NULL;
}

static const char host_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789._-";

static const char *
parse_port(const char *s, size_t n, int *port)
{
	if (n > 0 && n <= 5 && strspn(s, "0123456789") == n) {
		*port = atoi(s);
		if (*port >= 1 && *port <= 65535)
			return NULL;
	}
	return "port is not a number from 1 to 65535";
}

/* [IPv6], without the brackets */
static const char *
check_ipv6(const char *s, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (n >= sizeof(text))
		return "no IPv6 address in []";
	memcpy(text, s, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, &addr) != 1)
		return "no IPv6 address in []";
	return NULL;
}

static const char *
check_name(const char *s, size_t n)
{
	size_t i;

	if (n == 0)
		return "no host";
	if (n > 255)
		return "host name too long";
	for (i = 0; i < n; i++)
		if (strchr(host_chars, s[i]) == NULL)
			return "host has an invalid character";
	return NULL;
}

/*
 * Splits the n bytes at s, behind which no digit follows: "name", "name:port",
 * "[IPv6]:port".  The host, without [], is the *len bytes at *host; *port stays
 * unchanged if none is given.  Returns NULL, or a constant text that says what is wrong.
 */
static const char *
split_host(const char *s, size_t n, const char **host, size_t *len, int *port)
{
	const char *end = s + n, *rest, *why;

	*host = s;
	if (n > 0 && *s == '[') {
		rest = memchr(s, ']', n);
		if (rest == NULL)
			return "host has [ but no ]";
		*host = s + 1;
		*len = (size_t)(rest++ - *host);
		why = check_ipv6(*host, *len);
	} else {
		rest = memchr(s, ':', n);
		if (rest == NULL)
			rest = end;
		if (memchr(rest, ':', (size_t)(end - rest)) !=
		    memrchr(rest, ':', (size_t)(end - rest)))
			return "more than one : in a host; an IPv6 address "
			       "goes in []";
		*len = (size_t)(rest - s);
		why = check_name(s, *len);
	}
	if (why != NULL || rest == end)
		return why;
	if (*rest != ':')
		return "unexpected text between ] and the port";
	return parse_port(rest + 1, (size_t)(end - rest - 1), port);
}

/* One host, n bytes at s. */
static const char *
parse_host(const char *s, size_t n, struct mq_url *u)
{
	int port = mq_url_scheme(u)->port;
	const char *host, *why;
	size_t len;

	why = split_host(s, n, &host, &len, &port);
	if (why != NULL)
		return why;
	u->hosts =
	    mq_xreallocarray(u->hosts, u->hosts_n + 1, sizeof(u->hosts[0]));
	u->hosts[u->hosts_n++] =
	    (struct mq_url_host){mq_xstrndup(host, len), port};
	return NULL;
}

static const char *
parse_hosts(const char *s, size_t n, struct mq_url *u)
{
	const char *end = s + n, *comma, *why;

	if (u->kind == MQ_URL_REDIS)
		return parse_host(s, n, u);
	for (;;) {
		comma = memchr(s, ',', (size_t)(end - s));
		if (comma == NULL)
			return parse_host(s, (size_t)(end - s), u);
		why = parse_host(s, (size_t)(comma - s), u);
		if (why != NULL)
			return why;
		s = comma + 1;
	}
}

/* Takes user and password before the @ of the n bytes at *s; steps behind it. */
static const char *
parse_user(const char **s, size_t *n, struct mq_url *u)
{
	const char *at = memrchr(*s, '@', *n), *end, *colon, *why;

	if (at == NULL)
		return NULL;
	colon = memchr(*s, ':', (size_t)(at - *s));
	end = colon != NULL ? colon : at;
	why = mq_percent_decode(*s, (size_t)(end - *s), &u->user);
	if (why == NULL && colon != NULL)
		why = mq_percent_decode(
		    colon + 1, (size_t)(at - colon - 1), &u->password);
	*n -= (size_t)(at + 1 - *s);
	*s = at + 1;
	return why;
}

/* The value behind NAME=; there is one. */
static const char *
parse_text(const char *s, size_t n, char **value)
{
	if (*value != NULL)
		return TWICE;
	if (n == 0)
		return "a parameter without a value";
	return mq_percent_decode(s, n, value);
}

/* To OpenSSL, a name that begins with a dot is any name that ends so. */
static const char *
check_names(const struct mq_url *u)
{
	return u->sni != NULL && *u->sni == '.' ? "sni must be a host name" :
						  NULL;
}

static const char *
parse_insecure(const char *s, size_t n, struct mq_url *u)
{
	if (u->insecure)
		return TWICE;
	if (n != 1 || *s != '1')
		return "insecure must be insecure=1";
	u->insecure = true;
	return NULL;
}

/* Steps behind name, if the n bytes at *s begin with it. */
static bool
skip_name(const char **s, size_t *n, const char *name)
{
	size_t len = strlen(name);

	if (*n < len || memcmp(*s, name, len) != 0)
		return false;
	*s += len;
	*n -= len;
	return true;
}

static const char *
unknown_parameter(const struct mq_url *u)
{
	if (u->tls)
		return "unknown parameter; only layout, ns, cacert, cert, key, "
		       "sni and insecure are known";
	return u->kind == MQ_URL_UNIX ?
	    "unknown parameter; only db, layout and ns are known" :
	    "unknown parameter; only layout and ns are known";
}

/* Takes NAME=VALUE, n bytes at s. */
static const char *
parse_parameter(const char *s, size_t n, struct mq_url *u)
{
	const struct mq_url_text *text;

	if ((u->kind == MQ_URL_UNIX || u->kind == MQ_URL_CLUSTER) &&
	    skip_name(&s, &n, "db="))
		return u->db != 0 ? TWICE : parse_db(s, n, &u->db);
	if (u->tls && skip_name(&s, &n, "insecure="))
		return parse_insecure(s, n, u);
	for (text = mq_url_texts; text->name != NULL; text++)
		if ((u->tls || !text->tls) && skip_name(&s, &n, text->name))
			return parse_text(s, n, mq_url_text(u, text));
	return unknown_parameter(u);
}

/* Behind everything else: nothing, or ?NAME=VALUE[&NAME=VALUE...] */
static const char *
parse_parameters(const char *s, struct mq_url *u)
{
	const char *why = NULL;
	size_t n;

	while (why == NULL && *s != '\0') {
		n = strcspn(++s, "&");
		why = parse_parameter(s, n, u);
		s += n;
	}
	return why != NULL ? why : check_names(u);
}

/* Behind the authority of unix://: /path */
static const char *
parse_socket(const char *s, size_t n, struct mq_url *u)
{
	const char *why;

	if (n < 2)
		return "no path of a socket";
	why = mq_percent_decode(s, n, &u->path);
	if (why != NULL)
		return why;
	if (strlen(u->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "path too long for a socket";
	return NULL;
}

/* Behind the authority of redis-sentinel://: /master-name[/db] */
static const char *
parse_master(const char *s, size_t n, struct mq_url *u)
{
	const char *why;
	size_t name;

	if (n > 0) {
		s++;
		n--;
	}
	name = strcspn(s, "/?");
	if (name == 0)
		return "no master name";
	why = mq_percent_decode(s, name, &u->path);
	if (why != NULL || n - name <= 1)
		return why;
	return parse_db(s + name + 1, n - name - 1, &u->db);
}

/* The n bytes at s, from the slash behind the authority on. */
static const char *
parse_path(const char *s, size_t n, struct mq_url *u)
{
	if (u->kind == MQ_URL_UNIX)
		return parse_socket(s, n, u);
	if (u->kind == MQ_URL_SENTINEL)
		return parse_master(s, n, u);
	if (n <= 1)
		return NULL;
	return parse_db(s + 1, n - 1, &u->db);
}

/*
 * Everything behind "scheme://".  The authority ends at the first slash, or,
 * behind the user, at a question mark.
 */
static const char *
parse_network(const char *s, struct mq_url *u)
{
	size_t n = strcspn(s, "/"), path;
	const char *why;

	why = parse_user(&s, &n, u);
	if (why != NULL)
		return why;
	n = strcspn(s, "/?");
	path = strcspn(s + n, "?");
	if (u->kind == MQ_URL_UNIX && n > 0)
		return "the path of a socket must begin with /";
	if (u->kind != MQ_URL_UNIX)
		why = parse_hosts(s, n, u);
	if (why == NULL)
		why = parse_path(s + n, path, u);
	return why != NULL ? why : parse_parameters(s + n + path, u);
}

/* Behind "private:": a path, maybe empty. */
static const char *
parse_private(const char *s, struct mq_url *u)
{
	size_t n = strcspn(s, "?");
	const char *why = mq_percent_decode(s, n, &u->path);

	return why != NULL ? why : parse_parameters(s + n, u);
}

static const char *
parse_url(const char *s, struct mq_url *u)
{
	const struct mq_url_scheme *scheme;
	size_t n = strlen(s);
	const char *p;

	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '\177')
			return "holds a control character";
	for (scheme = mq_url_schemes; scheme->prefix != NULL; scheme++) {
		if (!skip_name(&s, &n, scheme->prefix))
			continue;
		u->kind = scheme->kind;
		u->tls = scheme->tls;
		if (u->kind == MQ_URL_PRIVATE)
			return parse_private(s, u);
		return parse_network(s, u);
	}
	return "unknown scheme; use redis://, rediss://, unix://, "
	       "redis-cluster://, redis-sentinel:// or private:";
}

bool
mq_address_is(const char *host)
{
	struct in_addr address;

	/* Only IPv6 has colons, be it with a zone. */
	return strchr(host, ':') != NULL ||
	    inet_pton(AF_INET, host, &address) == 1;
}

int
mq_url_parse(const char *s, struct mq_url *u, const char **why)
{
	*u = (struct mq_url){0};
	*why = parse_url(s, u);
	if (*why == NULL)
		return 0;
	mq_url_free(u);
	return -1;
}

void
mq_url_free(struct mq_url *u)
{
	const struct mq_url_text *text;
	size_t i;

	if (u->password != NULL)
		explicit_bzero(u->password, strlen(u->password));
	free(u->password);
	free(u->user);
	free(u->path);
	for (i = 0; i < u->hosts_n; i++)
		free(u->hosts[i].name);
	free(u->hosts);
	for (text = mq_url_texts; text->name != NULL; text++)
		free(*mq_url_text(u, text));
	*u = (struct mq_url){0};
}

/* --- url-show ------------------------------------------------------------ */

static bool
is_ipv6(const char *host)
{
	return strchr(host, ':') != NULL;
}

static void
show_hosts(struct mq_buf *out, const struct mq_url *u)
{
	int port = mq_url_scheme(u)->port;
	size_t i;

	for (i = 0; i < u->hosts_n; i++) {
		mq_buf_printf(out, "%s%s%s%s", i > 0 ? "," : "",
		    is_ipv6(u->hosts[i].name) ? "[" : "", u->hosts[i].name,
		    is_ipv6(u->hosts[i].name) ? "]" : "");
		if (u->hosts[i].port != port)
			mq_buf_printf(out, ":%d", u->hosts[i].port);
	}
}

/* Behind the hosts of a sentinel stands a slash. */
static void
show_path(struct mq_buf *out, const struct mq_url *u)
{
	bool sentinel = u->kind == MQ_URL_SENTINEL;
	char *path;

	if (u->path == NULL)
		return;
	path = mq_percent_encode(u->path, sentinel ? "%/?" : "%?");
	mq_buf_printf(out, "%s%s", sentinel ? "/" : "", path);
	free(path);
}

/* Appends a parameter, if it has a value: behind a '?', or one more. */
static void
show_parameter(struct mq_buf *out, const char *name, const char *value)
{
	char *text;

	if (value == NULL)
		return;
	/* Right behind a host, an @ would make it a user. */
	text = mq_percent_encode(value, "%&@");
	mq_buf_printf(out, "%c%s%s",
	    memchr(out->data, '?', out->len) != NULL ? '&' : '?', name, text);
	free(text);
}

void
mq_url_show(const struct mq_url *u, char *out, size_t size)
{
	const struct mq_url_text *p;
	struct mq_buf text = {0};
	char db[16];

	snprintf(db, sizeof(db), "%d", u->db);
	mq_buf_printf(&text, "%s", mq_url_scheme(u)->prefix);
	show_hosts(&text, u);
	show_path(&text, u);
	if (u->kind == MQ_URL_UNIX && u->db != 0)
		show_parameter(&text, "db=", db);
	else if (u->db != 0)
		mq_buf_printf(&text, "/%s", db);
	for (p = mq_url_texts; p->name != NULL; p++)
		show_parameter(&text, p->name, *mq_url_text(u, p));
	if (u->insecure)
		show_parameter(&text, "insecure=", "1");
	snprintf(out, size, "%s", mq_buf_str(&text));
	mq_buf_free(&text);
}
