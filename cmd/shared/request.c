#include "request.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/percent.h"
#include "base/xalloc.h"

enum {
	BAD_REQUEST = 400,
	URI_TOO_LONG = 414,
	EXPECTATION_FAILED = 417,
	HEAD_TOO_LARGE = 431,
	NOT_IMPLEMENTED = 501,
	BAD_VERSION = 505
};

size_t
http_request_end(const char *p, size_t n)
{
	const char *at = p, *end = p + n;

	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		at++;
		if (at < end && *at == '\n')
			return (size_t)(at + 1 - p);
		if (end - at > 1 && at[0] == '\r' && at[1] == '\n')
			return (size_t)(at + 2 - p);
	}
	return 0;
}

/* Whether the text is a token: a method, or the name of a header. */
static bool
is_token(const char *s)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "!#$%&'*+-.^_`|~";

	return *s != '\0' && s[strspn(s, letters)] == '\0';
}

/* Takes the next line, whose end becomes a NUL; NULL: it has no end, or a control
 * character is in it. */
static char *
take_line(char **rest)
{
	char *line = *rest, *end = strchr(line, '\n'), *p;

	if (end == NULL)
		return NULL;
	*rest = end + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	for (p = line; *p != '\0'; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 127)
			return NULL;
	return line;
}

static enum http_method
find_method(const char *name)
{
	static const char *const names[METHOD_OTHER] = {[METHOD_GET] = "GET",
	    [METHOD_HEAD] = "HEAD",
	    [METHOD_POST] = "POST"};
	enum http_method m = METHOD_GET;

	while (m < METHOD_OTHER && strcmp(names[m], name) != 0)
		m++;
	return m;
}

/* Takes HOST or HOST:PORT. */
static void
take_host(struct http_request *r, const char *p, size_t n)
{
	char *port;

	r->host = mq_xstrndup(p, n);
	port = strrchr(r->host, ':');
	if (port != NULL && port[1 + strspn(port + 1, "0123456789")] == '\0')
		*port = '\0';
}

/* The target is a path, or what a proxy is asked for, http://HOST/PATH. */
static int
take_target(struct http_request *r, const char *target)
{
	const char *path = target;

	if (strncasecmp(target, "http://", 7) == 0) {
		path = target + 7 + strcspn(target + 7, "/?");
		take_host(r, target + 7, (size_t)(path - target - 7));
	} else if (*target != '/')
		return BAD_REQUEST;
	if (*path != '/') {
		r->path = mq_xstrdup("/");
		return 0;
	}
	return mq_percent_decode(path, strcspn(path, "?#"), &r->path) == NULL ?
	    0 :
	    BAD_REQUEST;
}

/* METHOD SP TARGET SP HTTP/1.x; *newer: x is not 0. */
static int
take_request_line(struct http_request *r, char *line, bool *newer)
{
	char *method = strsep(&line, " "), *target = strsep(&line, " ");

	if (line == NULL || !is_token(method) || strchr(target, '\t') != NULL)
		return BAD_REQUEST;
	if (strncmp(line, "HTTP/", 5) != 0 || strlen(line) != 8 ||
	    line[6] != '.' || line[5] < '0' || line[5] > '9' || line[7] < '0' ||
	    line[7] > '9')
		return BAD_REQUEST;
	if (line[5] != '1')
		return BAD_VERSION;
	*newer = line[7] != '0';
	r->method = find_method(method);
	return take_target(r, target);
}

static int
take_header(struct http_request *r, char *line)
{
	struct http_header *h = &r->headers[r->header_count];
	char *end;

	h->value = line;
	h->name = strsep(&h->value, ":");
	/* A blank before the colon, or a folded line, hides a header from proxies. */
	if (h->value == NULL || !is_token(h->name))
		return BAD_REQUEST;
	h->value += strspn(h->value, " \t");
	for (end = strchr(h->value, '\0');
	     end > h->value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	r->header_count++;
	return 0;
}

static int
take_headers(struct http_request *r, char *rest)
{
	size_t n = 0;
	char *p, *line = rest;
	int status = 0;

	for (p = rest; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	r->headers = mq_xcalloc(n + 1, sizeof(*r->headers));
	while (
	    status == 0 && (line = take_line(&rest)) != NULL && *line != '\0')
		status = take_header(r, line);
	return line != NULL ? status : BAD_REQUEST;
}

/* How often a header is there. */
static size_t
count_headers(const struct http_request *r, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < r->header_count; i++)
		n += strcasecmp(r->headers[i].name, name) == 0;
	return n;
}

/* The length of the body: digits, and one number only. */
static int
take_length(struct http_request *r)
{
	const char *digits = http_request_get(r, "Content-Length"), *p;

	r->length = -1;
	if (digits == NULL)
		return 0;
	if (*digits == '\0' || strlen(digits) > 18)
		return BAD_REQUEST;
	r->length = 0;
	for (p = digits; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return BAD_REQUEST;
		r->length = r->length * 10 + (*p - '0');
	}
	return 0;
}

/* What the headers say of the request itself. */
static int
check_headers(struct http_request *r, bool newer)
{
	const char *expect = http_request_get(r, "Expect");
	const char *host = http_request_get(r, "Host");

	if (count_headers(r, "Host") != 1 &&
	    (newer || count_headers(r, "Host") > 1))
		return BAD_REQUEST;
	/* That of the target comes first. */
	if (host != NULL && r->host == NULL)
		take_host(r, host, strlen(host));
	if (count_headers(r, "Content-Length") > 1 ||
	    (count_headers(r, "Content-Length") == 1 &&
		count_headers(r, "Transfer-Encoding") > 0))
		return BAD_REQUEST;
	if (count_headers(r, "Transfer-Encoding") > 0)
		return NOT_IMPLEMENTED;
	if (expect != NULL && strcasecmp(expect, "100-continue") != 0)
		return EXPECTATION_FAILED;
	r->continues = expect != NULL && newer;
	return take_length(r);
}

int
http_request_parse(struct http_request *r, const char *head, size_t n)
{
	const char *end = memchr(head, '\n', n);
	char *rest, *line;
	bool newer = false;
	int status;

	*r = (struct http_request){.length = -1};
	if ((end != NULL ? (size_t)(end - head) : n) > REQUEST_LINE_MAX)
		return URI_TOO_LONG;
	if (n > REQUEST_HEAD_MAX)
		return HEAD_TOO_LARGE;
	if (memchr(head, '\0', n) != NULL)
		return BAD_REQUEST;
	r->text = rest = memcpy(mq_xcalloc(n + 1, 1), head, n);
	line = take_line(&rest);
	status =
	    line != NULL ? take_request_line(r, line, &newer) : BAD_REQUEST;
	if (status == 0)
		status = take_headers(r, rest);
	return status == 0 ? check_headers(r, newer) : status;
}

const char *
http_request_get(const struct http_request *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->header_count; i++)
		if (strcasecmp(r->headers[i].name, name) == 0)
			return r->headers[i].value;
	return NULL;
}

static bool
is_address(const char *host)
{
	char inner[INET6_ADDRSTRLEN];
	struct in6_addr any;
	size_t n = strlen(host);

	if (*host != '[')
		return inet_pton(AF_INET, host, &any) == 1;
	if (host[n - 1] != ']' || n - 2 >= sizeof(inner))
		return false;
	strlcpy(inner, host + 1, n - 1);
	return inet_pton(AF_INET6, inner, &any) == 1;
}

/* Whether a host is that name, with or without the dot of the root. */
static bool
is_name(const char *host, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(host, name, n) == 0 &&
	    (host[n] == '\0' || strcmp(host + n, ".") == 0);
}

static bool
is_this_machine(const char *host)
{
	char name[256] = "";

	if (is_address(host) || is_name(host, "localhost"))
		return true;
	if (gethostname(name, sizeof(name) - 1) == -1 || name[0] == '\0')
		return false;
	if (is_name(host, name))
		return true;
	name[strcspn(name, ".")] = '\0';
	return is_name(host, name);
}

bool
http_request_is_for(
    const struct http_request *r, const struct http_hosts *hosts)
{
	size_t i = 0;

	if (r->host == NULL || is_this_machine(r->host))
		return true;
	while (i < hosts->count && !is_name(r->host, hosts->names[i]))
		i++;
	return i < hosts->count;
}

void
http_request_free(struct http_request *r)
{
	free(r->headers);
	free(r->path);
	free(r->host);
	free(r->text);
}
