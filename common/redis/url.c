#include "server.h"

#include <sys/un.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"

/* --- url ----------------------------------------------------------------- */

#define TWICE "a parameter is given twice"

static const struct mq_url_scheme {
	const char *prefix; /* NULL: behind the last one */
	enum mq_url_kind kind;
	bool tls;
	int port; /* of a host without one; 0: there are no hosts */
} mq_url_schemes[] = {
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

/* Parameters whose value is a text. */
static const struct mq_url_text {
	const char *name; /* with its =; NULL: behind the last one */
	size_t at;	  /* its member of struct mq_url */
	bool tls;	  /* only known with TLS */
} mq_url_texts[] = {
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

/* Below, a function that returns a text returns what is wrong, or NULL when nothing
 * is. */

/* The n bytes at s, behind which no digit follows, as a number up to 99999, or -1. */
static int
parse_number(const char *s, size_t n)
{
	return n > 0 && n <= 5 && strspn(s, "0123456789") == n ? atoi(s) : -1;
}

static const char *
parse_db(const char *s, size_t n, int *db)
{
	*db = parse_number(s, n);
	return *db == -1 ? "database is not a number from 0 to 99999" : NULL;
}

static const char host_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789._-";

/* Whether this is an IPv6 address, maybe with a zone: "fe80::1%eth0". */
static bool
is_ipv6(const char *name)
{
	size_t len = strcspn(name, "%");
	const char *zone = name[len] == '%' ? name + len + 1 : "x";
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	return len < sizeof(text) && inet_pton(AF_INET6, text, &addr) == 1 &&
	    *zone != '\0' && zone[strspn(zone, host_chars)] == '\0' &&
	    strlen(name) < MQ_ADDRESS_SIZE;
}

/* One host, the n bytes at s, behind which no digit follows: "name", "name:port",
 * "[IPv6]:port". */
static const char *
parse_host(const char *s, size_t n, struct mq_url *u)
{
	const char *end = s + n, *rest, *why;
	struct mq_url_host *host;
	size_t len;

	u->hosts =
	    mq_xreallocarray(u->hosts, u->hosts_n + 1, sizeof(u->hosts[0]));
	host = &u->hosts[u->hosts_n++];
	*host = (struct mq_url_host){NULL, mq_url_scheme(u)->port};
	if (n > 0 && *s == '[') {
		rest = memchr(s++, ']', n);
		if (rest == NULL)
			return "host has [ but no ]";
		why = mq_percent_decode(s, (size_t)(rest++ - s), &host->name);
		if (why != NULL)
			return why;
		if (host->name == NULL || !is_ipv6(host->name))
			return "no IPv6 address in []";
	} else {
		rest = memchr(s, ':', n);
		if (rest == NULL)
			rest = end;
		if (memrchr(rest, ':', (size_t)(end - rest)) > (void *)rest)
			return "more than one : in a host; an IPv6 address "
			       "goes in []";
		len = (size_t)(rest - s);
		if (len == 0)
			return "no host";
		if (len > 255)
			return "host name too long";
		if (strspn(s, host_chars) < len)
			return "host has an invalid character";
		host->name = mq_xstrndup(s, len);
	}
	if (rest < end) {
		if (*rest++ != ':')
			return "unexpected text between ] and the port";
		host->port = parse_number(rest, (size_t)(end - rest));
		if (host->port < 1 || host->port > 65535)
			return "port is not a number from 1 to 65535";
	}
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

/* Takes NAME=VALUE, n bytes at s. */
static const char *
parse_parameter(const char *s, size_t n, struct mq_url *u)
{
	const struct mq_url_text *text;
	char **value;

	if ((u->kind == MQ_URL_UNIX || u->kind == MQ_URL_CLUSTER) &&
	    skip_name(&s, &n, "db="))
		return u->db != 0 ? TWICE : parse_db(s, n, &u->db);
	if (u->tls && skip_name(&s, &n, "insecure=")) {
		if (u->insecure)
			return TWICE;
		u->insecure = true;
		return n == 1 && *s == '1' ? NULL :
					     "insecure must be insecure=1";
	}
	for (text = mq_url_texts; text->name != NULL; text++) {
		if ((text->tls && !u->tls) || !skip_name(&s, &n, text->name))
			continue;
		value = mq_url_text(u, text);
		if (*value != NULL)
			return TWICE;
		return n > 0 ? mq_percent_decode(s, n, value) :
			       "a parameter without a value";
	}
	if (u->tls)
		return "unknown parameter; only layout, ns, cacert, cert, key, "
		       "sni and insecure are known";
	return u->kind == MQ_URL_UNIX ?
	    "unknown parameter; only db, layout and ns are known" :
	    "unknown parameter; only layout and ns are known";
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
	/* To OpenSSL, a name that begins with a dot is any name that ends so. */
	if (why == NULL && u->sni != NULL && *u->sni == '.')
		why = "sni must be a host name";
	return why;
}

/* The n bytes at s, from the slash behind the authority on: the path of a socket, or
 * "/master-name[/db]" behind sentinels, else "/db". */
static const char *
parse_path(const char *s, size_t n, struct mq_url *u)
{
	const char *why;
	size_t name;

	if (u->kind == MQ_URL_UNIX) {
		if (n < 2)
			return "no path of a socket";
		why = mq_percent_decode(s, n, &u->path);
		return why == NULL &&
			strlen(u->path) >=
			    sizeof(((struct sockaddr_un *)0)->sun_path) ?
		    "path too long for a socket" :
		    why;
	}
	if (u->kind == MQ_URL_SENTINEL) {
		name = n > 0 ? strcspn(s + 1, "/?") : 0;
		if (name == 0)
			return "no master name";
		why = mq_percent_decode(s + 1, name, &u->path);
		if (why != NULL)
			return why;
		s += 1 + name;
		n -= 1 + name;
	}
	return n <= 1 ? NULL : parse_db(s + 1, n - 1, &u->db);
}

/* Everything behind "scheme://".  The authority ends at the first slash, or, behind the
 * user, at a question mark. */
static const char *
parse_network(const char *s, struct mq_url *u)
{
	const char *at = memrchr(s, '@', strcspn(s, "/"));
	const char *end, *colon, *comma, *host, *why = NULL;
	bool several = u->kind == MQ_URL_CLUSTER || u->kind == MQ_URL_SENTINEL;
	size_t n, path;

	if (at != NULL) {
		colon = memchr(s, ':', (size_t)(at - s));
		end = colon != NULL ? colon : at;
		why = mq_percent_decode(s, (size_t)(end - s), &u->user);
		if (why == NULL && colon != NULL)
			why = mq_percent_decode(
			    colon + 1, (size_t)(at - colon - 1), &u->password);
		if (why != NULL)
			return why;
		s = at + 1;
	}
	n = strcspn(s, "/?");
	path = strcspn(s + n, "?");
	if (u->kind == MQ_URL_UNIX && n > 0)
		why = "the path of a socket must begin with /";
	for (host = s; several && why == NULL &&
	     (comma = memchr(host, ',', (size_t)(s + n - host))) != NULL;
	     host = comma + 1)
		why = parse_host(host, (size_t)(comma - host), u);
	if (why == NULL && u->kind != MQ_URL_UNIX)
		why = parse_host(host, (size_t)(s + n - host), u);
	if (why == NULL)
		why = parse_path(s + n, path, u);
	if (why == NULL)
		return parse_parameters(s + n + path, u);
	return memchr(s, ':', n) != NULL && memchr(s + n, '@', path) != NULL ?
	    "a / in a password is written %2F" :
	    why;
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
	const struct mq_url_scheme *scheme = mq_url_schemes;
	size_t n = strlen(s);
	const char *p;

	*u = (struct mq_url){0};
	*why = "holds a control character";
	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '\177')
			return -1;
	while (scheme->prefix != NULL && !skip_name(&s, &n, scheme->prefix))
		scheme++;
	u->kind = scheme->kind;
	u->tls = scheme->tls;
	if (scheme->prefix == NULL) {
		*why = "unknown scheme; use redis://, rediss://, unix://, "
		       "redis-cluster://, redis-sentinel:// or private:";
	} else if (u->kind == MQ_URL_PRIVATE) {
		n = strcspn(s, "?");
		*why = mq_percent_decode(s, n, &u->path);
		if (*why == NULL)
			*why = parse_parameters(s + n, u);
	} else {
		*why = parse_network(s, u);
	}
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
		freezero(u->password, strlen(u->password));
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
	const struct mq_url_scheme *scheme = mq_url_scheme(u);
	const struct mq_url_text *p;
	const struct mq_url_host *host;
	size_t i;
	bool ipv6, sentinel = u->kind == MQ_URL_SENTINEL;
	struct mq_buf text = {0};
	char db[16], *name, *path;

	snprintf(db, sizeof(db), "%d", u->db);
	mq_buf_printf(&text, "%s", scheme->prefix);
	for (i = 0; i < u->hosts_n; i++) {
		host = &u->hosts[i];
		ipv6 = strchr(host->name, ':') != NULL;
		name = mq_percent_encode(host->name, "%");
		mq_buf_printf(&text, "%s%s%s%s", i > 0 ? "," : "",
		    ipv6 ? "[" : "", name, ipv6 ? "]" : "");
		free(name);
		if (host->port != scheme->port)
			mq_buf_printf(&text, ":%d", host->port);
	}
	if (u->path != NULL) {
		path = mq_percent_encode(u->path, sentinel ? "%/?" : "%?");
		mq_buf_printf(&text, "%s%s", sentinel ? "/" : "", path);
		free(path);
	}
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
