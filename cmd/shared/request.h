/*
 * The head of an HTTP/1.1 request, as RFC 9112 has it; no input, no output.
 * Where the RFC lets a server guess, the request is refused.
 */
#ifndef MQ_REQUEST_H
#define MQ_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the first line, and of the whole head, at most. */
#define REQUEST_LINE_MAX 4096
#define REQUEST_HEAD_MAX 16384

enum http_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

/* Names that are answered for; --host adds them. */
struct http_hosts {
	const char **names;
	size_t count;
};

struct http_header {
	char *name, *value; /* without NUL and other control characters */
};

struct http_request {
	enum http_method method;
	char *path; /* decoded, without NUL, begins with a slash; no query */
	char *host; /* of the URL, without :PORT, IPv6 in brackets; or NULL */
	int64_t length; /* of the body; -1: not given */
	bool continues; /* the client waits for 100 Continue */
	struct http_header *headers;
	size_t header_count;
	char *text; /* that names and values stand in */
};

/* The bytes of the head that begins at p, its blank line included; 0: it does not end
 * in these n bytes. */
size_t http_request_end(const char *p, size_t n);

/* Parses a head of n bytes, its blank line included, which is copied.  Returns 0, or
 * the status of the answer to a bad one.  http_request_free() frees in both cases. */
int http_request_parse(struct http_request *, const char *head, size_t n);

/* The value of a header that is there once; NULL: not there.  Names are not
 * case-sensitive. */
const char *http_request_get(const struct http_request *, const char *name);

/*
 * Whether the request is for this machine: for an address, localhost, the name of the
 * machine, one of these names, or no host at all.  A foreign site can give its name the
 * address of this machine, and read the answers in a browser here; but browsers always
 * send that name.
 */
bool http_request_is_for(
    const struct http_request *, const struct http_hosts *);

void http_request_free(struct http_request *);

#endif
