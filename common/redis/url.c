#include "url.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/percent.h"
#include "base/xalloc.h"
#include "host.h"

#define DEFAULT_PORT 6379

static const struct {
	const char *prefix;
	enum mq_url_kind kind;
} schemes[] = {
    {"redis://", MQ_URL_REDIS},
    {"rediss://", MQ_URL_REDISS},
    {"unix://", MQ_URL_UNIX},
    {"redis-cluster://", MQ_URL_CLUSTER},
    {"redis-sentinel://", MQ_URL_SENTINEL},
    {"private:", MQ_URL_PRIVATE},
};

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

static const char *
parse_one_host(const char *s, size_t n, struct mq_url *u)
{
	const char *host, *why;
	size_t len;

	u->port = DEFAULT_PORT;
	why = mq_host_parse(s, n, &host, &len, &u->port);
	if (why == NULL)
		u->host = mq_xstrndup(host, len);
	return why;
}

static const char *
parse_host_list(const char *s, size_t n, struct mq_url *u)
{
	const char *end = s + n, *p = s, *comma, *host, *why;
	size_t len;
	int port;

	for (;;) {
		comma = memchr(p, ',', (size_t)(end - p));
		if (comma == NULL)
			comma = end;
		why = mq_host_parse(p, (size_t)(comma - p), &host, &len, &port);
		if (why != NULL)
			return why;
		if (comma == end)
			break;
		p = comma + 1;
	}
	u->host = mq_xstrndup(s, n);
	return NULL;
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

/* NAME=VALUE: the value is decoded, and there is one. */
static const char *
parse_text(const char *s, size_t n, char **value)
{
	if (*value != NULL)
		return "a parameter is given twice";
	if (n == 0)
		return "a parameter without a value";
	return mq_percent_decode(s, n, value);
}

/* Takes NAME=VALUE, n bytes at s. */
static const char *
parse_parameter(const char *s, size_t n, struct mq_url *u)
{
	static const char db[] = "db=", layout[] = "layout=", ns[] = "ns=";

	if (u->kind == MQ_URL_UNIX && strncmp(s, db, strlen(db)) == 0)
		return u->db != 0 ?
		    "a parameter is given twice" :
		    parse_db(s + strlen(db), n - strlen(db), &u->db);
	if (strncmp(s, layout, strlen(layout)) == 0)
		return parse_text(
		    s + strlen(layout), n - strlen(layout), &u->layout);
	if (strncmp(s, ns, strlen(ns)) == 0)
		return parse_text(s + strlen(ns), n - strlen(ns), &u->ns);
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
	return why;
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
	if (u->kind == MQ_URL_CLUSTER)
		return "a cluster has no databases";
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
	if (u->kind == MQ_URL_CLUSTER || u->kind == MQ_URL_SENTINEL)
		why = parse_host_list(s, n, u);
	else if (u->kind != MQ_URL_UNIX)
		why = parse_one_host(s, n, u);
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
	size_t i, n;
	const char *p;

	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '\177')
			return "holds a control character";
	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		n = strlen(schemes[i].prefix);
		if (strncmp(s, schemes[i].prefix, n) != 0)
			continue;
		u->kind = schemes[i].kind;
		if (u->kind == MQ_URL_PRIVATE)
			return parse_private(s + n, u);
		return parse_network(s + n, u);
	}
	return "unknown scheme; use redis://, unix:// or private:";
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
	if (u->password != NULL)
		explicit_bzero(u->password, strlen(u->password));
	free(u->password);
	free(u->user);
	free(u->host);
	free(u->path);
	free(u->layout);
	free(u->ns);
	*u = (struct mq_url){0};
}

/* The part of a URL behind the scheme; the caller frees. */
static char *
show_rest(const struct mq_url *u, const char *path)
{
	bool ipv6;
	char port[16] = "";

	switch (u->kind) {
	case MQ_URL_UNIX:
	case MQ_URL_PRIVATE:
		return mq_xstrdup(path);
	case MQ_URL_CLUSTER:
		return mq_xstrdup(u->host);
	case MQ_URL_SENTINEL:
		return mq_xasprintf("%s/%s", u->host, path);
	case MQ_URL_REDIS:
	case MQ_URL_REDISS:
		break;
	}
	ipv6 = strchr(u->host, ':') != NULL;
	if (u->port != DEFAULT_PORT)
		snprintf(port, sizeof(port), ":%d", u->port);
	return mq_xasprintf(
	    "%s%s%s%s", ipv6 ? "[" : "", u->host, ipv6 ? "]" : "", port);
}

static const char *
scheme_of(enum mq_url_kind kind)
{
	size_t i = 0;

	while (schemes[i].kind != kind)
		i++;
	return schemes[i].prefix;
}

/* Appends a parameter, if it has a value: behind a '?', or one more. */
static void
show_parameter(struct mq_buf *out, const char *name, const char *value)
{
	char *text;

	if (value == NULL)
		return;
	/* Right behind a host, one of these would change its meaning. */
	text = mq_percent_encode(value, "%&/@");
	mq_buf_printf(out, "%c%s=%s",
	    memchr(out->data, '?', out->len) != NULL ? '&' : '?', name, text);
	free(text);
}

void
mq_url_show(const struct mq_url *u, char *out, size_t size)
{
	const char *special = u->kind == MQ_URL_SENTINEL ? "%/?" : "%?";
	char *path = mq_percent_encode(u->path != NULL ? u->path : "", special);
	char *rest = show_rest(u, path);
	struct mq_buf text = {0};
	char db[16];

	snprintf(db, sizeof(db), "%d", u->db);
	mq_buf_printf(&text, "%s%s", scheme_of(u->kind), rest);
	if (u->kind == MQ_URL_UNIX && u->db != 0)
		show_parameter(&text, "db", db);
	else if (u->db != 0)
		mq_buf_printf(&text, "/%s", db);
	show_parameter(&text, "layout", u->layout);
	show_parameter(&text, "ns", u->ns);
	snprintf(out, size, "%s", mq_buf_str(&text));
	mq_buf_free(&text);
	free(rest);
	free(path);
}
