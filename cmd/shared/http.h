/*
 * One HTTP/1.1 request on stdin and stdout, as inetd(8) and sockets of systemd with
 * Accept=yes hand over a connection.  A child process does what is asked for, as the tool
 * does without --http, with its output in files; the answer follows its end.
 */
#ifndef MQ_HTTP_H
#define MQ_HTTP_H

#include "options.h"

/* The exit status of a child that asks for the answer 400 to 499. */
#define HTTP_EXIT(status) ((status)-300)

/* Names that are answered for; --host adds them. */
struct http_hosts {
	const char **names;
	size_t count;
};

/* --host; into a struct http_hosts. */
extern const struct mq_option http_options[];

/* --- head --------------------------------------------------------------- */

/* The head of a request, as RFC 9112 has it; no input, no output.  Where the RFC lets a
 * server guess, the request is refused. */

enum http_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

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

/* Parses a copy of a head of n bytes, its blank line included.  Returns 0, or the status of
 * the answer to a bad one.  http_request_free() frees in both cases. */
int http_request_parse(struct http_request *, const char *head, size_t n);

/* The value of a header, the first one; NULL: not there.  Names are not case-sensitive. */
const char *http_request_get(const struct http_request *, const char *name);

void http_request_free(struct http_request *);

/* --- connection --------------------------------------------------------- */

struct http {
	struct http_request request; /* http_request_free() */
	int body;		     /* what stdin becomes */
};

/* The answer when the work has succeeded. */
struct http_answer {
	int status;
	const char *type;   /* of what the child printed */
	const char *policy; /* Content-Security-Policy; NULL: forbids all */
	bool partly;	    /* exit status 1 is success, too */
	int failed;	    /* status of other exits; 0: as these say */
};

/* Answers with a status, and with a text or NULL; ends the program. */
void http_refuse(const struct http *, int status, const char *extra,
    const char *text) __attribute__((noreturn));

/*
 * Reads the head of the request.  A bad one is answered, and the program ends; so is one
 * for another host than an address, localhost, the name of the machine, or one of these
 * names.  A foreign site can give its name the address of this machine, and read the
 * answers in a browser here; but browsers always send that name.
 */
void http_receive(struct http *, const struct http_hosts *);
/* Reads the body, which must have a length. */
void http_receive_body(struct http *);

/* Returns in a child only, whose stdin is the body, or empty; the program itself answers
 * when that has ended, and ends. */
void http_work(struct http *, const struct http_answer *);

#endif
