/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
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

static const struct scheme {
	const char *prefix; /* NULL: end of the table */
	enum mq_url_kind kind;
	bool tls;
	int port; /* the default; 0: there are no hosts */
} schemes[] = {
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
static const struct text {
	const char *name; /* with its =; NULL: end of the table */
	size_t at;	  /* the member of struct mq_url */
	bool tls;	  /* only known with TLS */
} texts[] = {
    {"layout=", offsetof(struct mq_url, layout), false},
    {"ns=", offsetof(struct mq_url, ns), false},
    {"cacert=", offsetof(struct mq_url, cacert), true},
    {"cert=", offsetof(struct mq_url, cert), true},
    {"key=", offsetof(struct mq_url, key), true},
    {"sni=", offsetof(struct mq_url, sni), true},
    {0},
};

static const struct scheme *
scheme_of(const struct mq_url *u)
{
	const struct scheme *s = schemes;

	while (s->kind != u->kind || s->tls != u->tls)
		s++;
	return s;
}

static char **
text_of(const struct mq_url *u, const struct text *text)
{
	return (char **)((char *)u + text->at);
}

/* The functions below that return a text return an error, or NULL. */

static const char *
decode(const char *s, char **out)
{
	return mq_percent_decode(s, strlen(s), out);
}

/* A number up to 99999; -1: s is anything else. */
static int
parse_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && n <= 5 && s[n] == '\0' ? atoi(s) : -1;
}

static const char *
parse_db(const char *s, int *db)
{
	*db = parse_number(s);
	return *db == -1 ? "database is not a number from 0 to 99999" : NULL;
}

static const char host_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789._-";

/* Whether the name is an IPv6 address, maybe with a zone: "fe80::1%eth0". */
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

/* One host: "name", "name:port", "[IPv6]:port". */
static const char *
parse_host(char *s, struct mq_url *u)
{
	struct mq_url_host *host;
	const char *why;
	char *end;

	u->hosts =
	    mq_xreallocarray(u->hosts, u->hosts_n + 1, sizeof(u->hosts[0]));
	host = &u->hosts[u->hosts_n++];
	*host = (struct mq_url_host){NULL, scheme_of(u)->port};
	if (*s == '[') {
		end = strchr(s, ']');
		if (end == NULL)
			return "host has [ but no ]";
		*end++ = '\0';
		why = decode(s + 1, &host->name);
		if (why != NULL)
			return why;
		if (host->name == NULL || !is_ipv6(host->name))
			return "no IPv6 address in []";
		if (*end != '\0' && *end != ':')
			return "unexpected text between ] and the port";
	} else {
		end = s + strcspn(s, ":");
		if (strchr(end, ':') != strrchr(end, ':'))
			return "more than one : in a host; an IPv6 address "
			       "goes in []";
		if (end == s)
			return "no host";
		if (end - s > 255)
			return "host name too long";
		if (s + strspn(s, host_chars) < end)
			return "host has an invalid character";
		host->name = mq_xstrndup(s, (size_t)(end - s));
	}
	if (*end == '\0')
		return NULL;
	host->port = parse_number(end + 1);
	return host->port < 1 || host->port > 65535 ?
	    "port is not a number from 1 to 65535" :
	    NULL;
}

/* Moves *s behind name, if the text begins with name. */
static bool
skip_name(char **s, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(*s, name, n) != 0)
		return false;
	*s += n;
	return true;
}

/* Stores NAME=VALUE. */
static const char *
parse_parameter(char *s, struct mq_url *u)
{
	const struct text *text;
	char **value;

	if ((u->kind == MQ_URL_UNIX || u->kind == MQ_URL_CLUSTER) &&
	    skip_name(&s, "db="))
		return u->db != 0 ? TWICE : parse_db(s, &u->db);
	if (u->tls && skip_name(&s, "insecure=")) {
		if (u->insecure)
			return TWICE;
		u->insecure = true;
		return strcmp(s, "1") == 0 ? NULL :
					     "insecure must be insecure=1";
	}
	for (text = texts; text->name != NULL; text++) {
		if ((text->tls && !u->tls) || !skip_name(&s, text->name))
			continue;
		value = text_of(u, text);
		if (*value != NULL)
			return TWICE;
		return *s != '\0' ? decode(s, value) :
				    "a parameter without a value";
	}
	if (u->tls)
		return "unknown parameter; only layout, ns, cacert, cert, key, "
		       "sni and insecure are known";
	return u->kind == MQ_URL_UNIX ?
	    "unknown parameter; only db, layout and ns are known" :
	    "unknown parameter; only layout and ns are known";
}

/* NAME=VALUE[&NAME=VALUE...]; NULL: there was no question mark. */
static const char *
parse_parameters(char *s, struct mq_url *u)
{
	const char *why = NULL;
	char *one;

	while (why == NULL && (one = strsep(&s, "&")) != NULL)
		why = parse_parameter(one, u);
	/* OpenSSL takes a leading dot for a wildcard. */
	if (why == NULL && u->sni != NULL && *u->sni == '.')
		why = "sni must be a host name";
	return why;
}

static const char *
parse_socket(const char *s, struct mq_url *u)
{
	const char *why;

	if (*s != '\0' && *s != '/')
		return "the path of a socket must begin with /";
	if (strlen(s) < 2)
		return "no path of a socket";
	why = decode(s, &u->path);
	return why == NULL &&
		strlen(u->path) >= sizeof(((struct sockaddr_un *)0)->sun_path) ?
	    "path too long for a socket" :
	    why;
}

/* "host[/db]", for a cluster "host[,...]", for sentinels "host[,...]/master-name[/db]". */
static const char *
parse_hosts(char *s, struct mq_url *u)
{
	bool several = u->kind == MQ_URL_CLUSTER || u->kind == MQ_URL_SENTINEL;
	char *path = s, *hosts = strsep(&path, "/"), *one;
	const char *why = NULL;

	while (
	    why == NULL && (one = strsep(&hosts, several ? "," : "")) != NULL)
		why = parse_host(one, u);
	if (why == NULL && u->kind == MQ_URL_SENTINEL) {
		one = strsep(&path, "/");
		why = one == NULL || *one == '\0' ? "no master name" :
						    decode(one, &u->path);
	}
	return why != NULL || path == NULL || *path == '\0' ?
	    why :
	    parse_db(path, &u->db);
}

/* The URL behind "scheme://".  The authority ends at the first slash, or, behind the user, at
 * a question mark. */
static const char *
parse_network(char *s, struct mq_url *u)
{
	char *at = memrchr(s, '@', strcspn(s, "/")), *user = s, *query, *slash;
	const char *why;
	bool odd;

	if (at != NULL) {
		*at = '\0';
		s = strsep(&user, ":");
		why = decode(s, &u->user);
		if (why == NULL && user != NULL)
			why = decode(user, &u->password);
		if (why != NULL)
			return why;
		s = at + 1;
	}
	query = s;
	s = strsep(&query, "?");
	slash = s + strcspn(s, "/");
	odd = memchr(s, ':', (size_t)(slash - s)) != NULL &&
	    strchr(slash, '@') != NULL;
	why = u->kind == MQ_URL_UNIX ? parse_socket(s, u) : parse_hosts(s, u);
	if (why == NULL)
		return parse_parameters(query, u);
	return odd ? "a / in a password is written %2F" : why;
}

bool
mq_address_is(const char *host)
{
	struct in_addr address;

	/* Only IPv6 addresses have colons. */
	return strchr(host, ':') != NULL ||
	    inet_pton(AF_INET, host, &address) == 1;
}

int
mq_url_parse(const char *url, struct mq_url *u, const char **why)
{
	const struct scheme *scheme = schemes;
	char *copy = mq_xstrdup(url), *s = copy, *query;
	const char *p = url;

	*u = (struct mq_url){0};
	while ((unsigned char)*p >= ' ' && *p != '\177')
		p++;
	while (scheme->prefix != NULL && !skip_name(&s, scheme->prefix))
		scheme++;
	u->kind = scheme->kind;
	u->tls = scheme->tls;
	query = s;
	if (*p != '\0') {
		*why = "holds a control character";
	} else if (scheme->prefix == NULL) {
		*why = "unknown scheme; use redis://, rediss://, unix://, "
		       "redis-cluster://, redis-sentinel:// or private:";
	} else if (u->kind == MQ_URL_PRIVATE) {
		*why = decode(strsep(&query, "?"), &u->path);
		if (*why == NULL)
			*why = parse_parameters(query, u);
	} else {
		*why = parse_network(s, u);
	}
	freezero(copy, strlen(url));
	if (*why == NULL)
		return 0;
	mq_url_free(u);
	return -1;
}

void
mq_url_free(struct mq_url *u)
{
	const struct text *text;
	size_t i;

	if (u->password != NULL)
		freezero(u->password, strlen(u->password));
	free(u->user);
	free(u->path);
	for (i = 0; i < u->hosts_n; i++)
		free(u->hosts[i].name);
	free(u->hosts);
	for (text = texts; text->name != NULL; text++)
		free(*text_of(u, text));
	*u = (struct mq_url){0};
}

/* --- url-show ------------------------------------------------------------ */

/* Appends a parameter, if value is not NULL, behind '?' or '&'. */
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
	const struct scheme *scheme = scheme_of(u);
	const struct text *p;
	const struct mq_url_host *host;
	size_t i;
	bool sentinel = u->kind == MQ_URL_SENTINEL;
	struct mq_buf text = {0};
	char *name, *path;

	mq_buf_printf(&text, "%s", scheme->prefix);
	for (i = 0; i < u->hosts_n; i++) {
		host = &u->hosts[i];
		name = mq_percent_encode(host->name, "%");
		mq_buf_printf(&text,
		    strchr(name, ':') != NULL ? "%s[%s]" : "%s%s",
		    i > 0 ? "," : "", name);
		free(name);
		if (host->port != scheme->port)
			mq_buf_printf(&text, ":%d", host->port);
	}
	if (u->path != NULL) {
		path = mq_percent_encode(u->path, sentinel ? "%/?" : "%?");
		mq_buf_printf(&text, "%s%s", sentinel ? "/" : "", path);
		free(path);
	}
	if (u->db != 0)
		mq_buf_printf(
		    &text, u->kind == MQ_URL_UNIX ? "?db=%d" : "/%d", u->db);
	for (p = texts; p->name != NULL; p++)
		show_parameter(&text, p->name, *text_of(u, p));
	show_parameter(&text, "insecure=", u->insecure ? "1" : NULL);
	snprintf(out, size, "%s", mq_buf_str(&text));
	mq_buf_free(&text);
}
