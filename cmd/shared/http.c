/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

/* Most bytes of parts of a request. */
#define REQUEST_LINE_MAX 4096
#define REQUEST_HEAD_MAX 16384
#define BODY_MAX	 ((int64_t)8 * 1024 * 1024)
/* Most seconds for parts of the work. */
#define REQUEST_S 3
#define BODY_S	  30
#define WORK_S	  30
#define ANSWER_S  60
/* Seconds for which input is read after the response: the client would lose it if the
 * connection were closed with unread input. */
#define LINGER_S 2

/* Most bytes of a child's standard error in the log and the response. */
#define ERRORS_MAX 4096

/* --- the head ----------------------------------------------------------------------- */

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

/* The next line, whose end becomes a NUL; NULL: the line has no end, or a control character
 * in it. */
static char *
next_line(char **rest)
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

/* Stores the host of HOST or HOST:PORT. */
static void
set_host(struct http_request *r, const char *p, size_t n)
{
	char *port;

	r->host = mq_xstrndup(p, n);
	port = strrchr(r->host, ':');
	if (port != NULL && port[1 + strspn(port + 1, "0123456789")] == '\0')
		*port = '\0';
}

/* Parses METHOD SP TARGET SP HTTP/1.x; *newer: x is not 0.  The target is a path or, as for a
 * proxy, http://HOST/PATH. */
static int
parse_request_line(struct http_request *r, char *line, bool *newer)
{
	static const char *const names[METHOD_OTHER] = {[METHOD_GET] = "GET",
	    [METHOD_HEAD] = "HEAD",
	    [METHOD_POST] = "POST"};
	char *method = strsep(&line, " "), *target = strsep(&line, " ");
	const char *path = target;

	if (line == NULL || *method == '\0' ||
	    method[strspn(method, MQ_TOKEN)] != '\0' ||
	    strchr(target, '\t') != NULL)
		return 400;
	if (strncmp(line, "HTTP/", 5) != 0 || strlen(line) != 8 ||
	    line[6] != '.' || line[5] < '0' || line[5] > '9' || line[7] < '0' ||
	    line[7] > '9')
		return 400;
	if (line[5] != '1')
		return 505;
	*newer = line[7] != '0';
	while (
	    r->method < METHOD_OTHER && strcmp(names[r->method], method) != 0)
		r->method++;
	if (strncasecmp(target, "http://", 7) == 0) {
		path = target + 7 + strcspn(target + 7, "/?");
		set_host(r, target + 7, (size_t)(path - target - 7));
	} else if (*target != '/') {
		return 400;
	}
	if (*path != '/')
		r->path = mq_xstrdup("/");
	else if (mq_percent_decode(path, strcspn(path, "?#"), &r->path) != NULL)
		return 400;
	return 0;
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

static int
parse_header(struct http_request *r, char *line)
{
	struct http_header *h;
	char *end;

	r->headers = mq_xreallocarray(
	    r->headers, r->header_count + 1, sizeof(*r->headers));
	h = &r->headers[r->header_count];
	h->value = line;
	h->name = strsep(&h->value, ":");
	/* Proxies may miss a header with a blank before its colon, or a folded line. */
	if (h->value == NULL || *h->name == '\0' ||
	    h->name[strspn(h->name, MQ_TOKEN)] != '\0')
		return 400;
	h->value += strspn(h->value, " \t");
	for (end = strchr(h->value, '\0');
	     end > h->value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	r->header_count++;
	return (strcasecmp(h->name, "Host") == 0 ||
		   strcasecmp(h->name, "Content-Length") == 0) &&
		http_request_get(r, h->name) != h->value ?
	    400 :
	    0;
}

static int
check_headers(struct http_request *r, bool newer)
{
	const char *expect = http_request_get(r, "Expect");
	const char *coding = http_request_get(r, "Transfer-Encoding");
	const char *host = http_request_get(r, "Host");
	const char *digits = http_request_get(r, "Content-Length");

	if (host == NULL && newer)
		return 400;
	/* A host in the target wins over the header. */
	if (host != NULL && r->host == NULL)
		set_host(r, host, strlen(host));
	if (digits != NULL && coding != NULL)
		return 400;
	if (coding != NULL)
		return 501;
	if (expect != NULL && strcasecmp(expect, "100-continue") != 0)
		return 417;
	r->continues = expect != NULL && newer;
	if (digits == NULL)
		return 0;
	r->length = mq_number(digits, strlen(digits), INT64_MAX);
	return r->length == -1 || r->length == INT64_MAX ? 400 : 0;
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
		return 414;
	if (n > REQUEST_HEAD_MAX)
		return 431;
	if (memchr(head, '\0', n) != NULL)
		return 400;
	r->text = rest = memcpy(mq_xcalloc(n + 1, 1), head, n);
	line = next_line(&rest);
	status = line != NULL ? parse_request_line(r, line, &newer) : 400;
	while (
	    status == 0 && (line = next_line(&rest)) != NULL && *line != '\0')
		status = parse_header(r, line);
	if (line == NULL)
		return 400;
	return status == 0 ? check_headers(r, newer) : status;
}

void
http_request_free(struct http_request *r)
{
	free(r->headers);
	free(r->path);
	free(r->host);
	free(r->text);
}

/* --- hosts -------------------------------------------------------------------------- */

static void
take_host(void *into, const struct mq_given *given)
{
	const char *name = given->arg;
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "-._";

	forbid(*name == '\0' || name[strspn(name, letters)] != '\0',
	    "%s: %s: must be a host name, without a port", given->name, name);
	mq_names_add(into, name, NULL);
}

const struct mq_option http_options[] = {
    {0, "--host", "NAME", "with --http: answer requests for NAME, too",
	.take = take_host},
    {0},
};

/* Whether a host is this name, with or without a dot behind it. */
static bool
is_name(const char *host, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(host, name, n) == 0 &&
	    (host[n] == '\0' || strcmp(host + n, ".") == 0);
}

static bool
is_for_us(const char *host, const struct mq_names *hosts)
{
	char name[256] = "", inner[INET6_ADDRSTRLEN] = "";
	struct in6_addr any;
	size_t n = host != NULL ? strlen(host) : 0, i;

	if (host == NULL || inet_pton(AF_INET, host, &any) == 1 ||
	    is_name(host, "localhost"))
		return true;
	if (*host == '[' && host[n - 1] == ']' && n - 2 < sizeof(inner))
		strlcpy(inner, host + 1, n - 1);
	if (inet_pton(AF_INET6, inner, &any) == 1)
		return true;
	for (i = 0; i < hosts->n; i++)
		if (is_name(host, hosts->list[i].name))
			return true;
	if (gethostname(name, sizeof(name) - 1) == -1 || name[0] == '\0')
		return false;
	if (is_name(host, name))
		return true;
	name[strcspn(name, ".")] = '\0';
	return is_name(host, name);
}

/* --- the connection ----------------------------------------------------------------- */

static int64_t
deadline(int seconds)
{
	return mq_clock_steady_us() + (int64_t)seconds * 1000000;
}

/* Reads up to n bytes; 0: the input has ended; -1: time is over. */
static ssize_t
read_input(char *p, size_t n, int64_t until_us)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t got;
	int64_t ms;

	while ((ms = (until_us - mq_clock_steady_us()) / 1000) > 0) {
		if (poll(&input, 1, (int)ms) <= 0)
			continue;
		got = read(STDIN_FILENO, p, n);
		if (got != -1 || (errno != EINTR && errno != EAGAIN))
			return got > 0 ? got : 0;
	}
	return -1;
}

/* Ends the program if the client takes too long to read the response. */
static void
end_unread(int sig)
{
	(void)sig;
	_exit(MQ_EXIT_OK);
}

/* --- answers ------------------------------------------------------------------------ */

static const char *
reason_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} all[] = {{200, "OK"}, {201, "Created"}, {400, "Bad Request"},
	    {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
	    {408, "Request Timeout"}, {409, "Conflict"},
	    {411, "Length Required"}, {413, "Content Too Large"},
	    {414, "URI Too Long"}, {417, "Expectation Failed"},
	    {421, "Misdirected Request"}, {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"}, {501, "Not Implemented"},
	    {503, "Service Unavailable"}, {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"}};
	size_t i = 0;

	while (i < sizeof(all) / sizeof(all[0]) - 1 && all[i].status != status)
		i++;
	return all[i].phrase;
}

/* The response status for an exit status other than 0; -1: the work took too long. */
static int
status_of(int exit_status)
{
	switch (exit_status) {
	case -1:
		return 504;
	case MQ_EXIT_NO:
		return 404;
	case MQ_EXIT_USAGE:
	case MQ_EXIT_DATA:
		return 400;
	case MQ_EXIT_UNAVAILABLE:
	case MQ_EXIT_AGAIN:
		return 503;
	default:
		return exit_status >= HTTP_EXIT(400) &&
			exit_status < HTTP_EXIT(500) ?
		    exit_status + 300 :
		    500;
	}
}

/* Sends a response with a body of n bytes, and ends the program. */
static void __attribute__((noreturn)) answer(const struct http *h,
    const struct http_answer *a, const char *extra, const char *body, size_t n)
{
	struct mq_buf head = {0};
	char date[64], block[4096];
	time_t now = time(NULL);
	int64_t until_us;
	struct tm tm;

	signal(SIGALRM, end_unread);
	alarm(ANSWER_S);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT",
	    gmtime_r(&now, &tm));
	mq_buf_printf(&head,
	    "HTTP/1.1 %d %s\r\n"
	    "Date: %s\r\n"
	    "Content-Type: %s\r\n"
	    "Content-Length: %zu\r\n"
	    "Connection: close\r\n"
	    "Cache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\n"
	    "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
	    "%s\r\n",
	    a->status, reason_phrase(a->status), date, a->type, n,
	    a->policy != NULL ? a->policy : "default-src 'none'",
	    extra != NULL ? extra : "");
	if (output_all(head.data, head.len) && h->request.method != METHOD_HEAD)
		(void)output_all(body, n);
	until_us = deadline(LINGER_S);
	if (shutdown(STDOUT_FILENO, SHUT_WR) == 0)
		while (read_input(block, sizeof(block), until_us) > 0)
			;
	exit(MQ_EXIT_OK);
}

void
http_refuse(
    const struct http *h, int status, const char *extra, const char *text)
{
	const struct http_answer a = {
	    .status = status, .type = "text/plain; charset=utf-8"};
	struct mq_buf line = {0};

	mq_buf_printf(
	    &line, "%s\n", text != NULL ? text : reason_phrase(status));
	answer(h, &a, extra, line.data, line.len);
}

/* --- the request -------------------------------------------------------------------- */

void
http_receive(struct http *h, const struct mq_names *hosts)
{
	int64_t until_us = deadline(REQUEST_S);
	char head[REQUEST_HEAD_MAX + 1] = "";
	size_t n = 0, end = 0;
	ssize_t got;
	int status;

	*h = (struct http){.body = -1};
	while (end == 0 && n < sizeof(head)) {
		got = read_input(head + n, sizeof(head) - n, until_us);
		/* An empty connection only checks for a listener. */
		if (got == 0 && n == 0)
			exit(MQ_EXIT_OK);
		if (got <= 0)
			http_refuse(h, got == 0 ? 400 : 408, NULL, NULL);
		n += (size_t)got;
		end = http_request_end(head, n);
	}
	status = http_request_parse(&h->request, head, end != 0 ? end : n);
	if (status != 0)
		http_refuse(h, status, NULL, NULL);
	if (!is_for_us(h->request.host, hosts))
		http_refuse(h, 421, NULL,
		    "the host is not this machine; --host adds its other names");
	/* The body begins in the bytes behind the head. */
	h->body = memfd_create("body", MFD_CLOEXEC);
	if (h->body == -1 ||
	    write(h->body, head + end, n - end) != (ssize_t)(n - end))
		http_refuse(h, 500, NULL, NULL);
}

void
http_receive_body(struct http *h)
{
	static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
	int64_t until_us = deadline(BODY_S);
	off_t n = lseek(h->body, 0, SEEK_CUR);
	char block[65536];
	ssize_t got;

	if (h->request.length == -1)
		http_refuse(h, 411, NULL, NULL);
	if (h->request.length > BODY_MAX)
		http_refuse(h, 413, NULL, NULL);
	if (h->request.continues && n == 0)
		(void)output_all(proceed, sizeof(proceed) - 1);
	for (; n < h->request.length; n += got) {
		got = read_input(block, sizeof(block), until_us);
		if (got <= 0)
			http_refuse(h, got == 0 ? 400 : 408, NULL, NULL);
		if (write(h->body, block, (size_t)got) != got)
			http_refuse(h, 503, NULL, NULL);
	}
	/* Bytes behind the body, another request, are ignored. */
	if (ftruncate(h->body, (off_t)h->request.length) == -1 ||
	    lseek(h->body, 0, SEEK_SET) == -1)
		http_refuse(h, 500, NULL, NULL);
}

/* --- the work ----------------------------------------------------------------------- */

void
http_work(struct http *h, const struct http_answer *good)
{
	int out = memfd_create("answer", MFD_CLOEXEC);
	int err = memfd_create("errors", MFD_CLOEXEC);
	struct http_answer a = *good;
	struct stat log, in;
	char text[ERRORS_MAX];
	const char *body = "";
	ssize_t n;
	off_t size;
	int status;
	pid_t pid = out == -1 || err == -1 ? -1 : fork();

	if (pid == -1)
		http_refuse(h, 503, NULL, NULL);
	/* The child has files in place of the connection. */
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(h->body, STDIN_FILENO) == -1 ||
		    dup2(out, STDOUT_FILENO) == -1 ||
		    dup2(err, STDERR_FILENO) == -1)
			_exit(MQ_EXIT_AGAIN);
		alarm(WORK_S);
		return;
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	status = WIFEXITED(status)	? WEXITSTATUS(status) :
	    WTERMSIG(status) == SIGALRM ? -1 :
					  MQ_EXIT_BUG;
	if (status != MQ_EXIT_OK && !(status == MQ_EXIT_NO && a.partly))
		a.status = a.failed != 0 && status != -1 ? a.failed :
							   status_of(status);
	/* The child's errors go to our standard error, unless that is the connection,
	 * as under inetd(8). */
	n = pread(err, text, sizeof(text) - 1, 0);
	if (n > 0)
		text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
	if (n > 0 && fstat(STDERR_FILENO, &log) == 0 &&
	    fstat(STDIN_FILENO, &in) == 0 &&
	    (log.st_dev != in.st_dev || log.st_ino != in.st_ino))
		fprintf(stderr, "%s\n", text);
	size = lseek(out, 0, SEEK_END);
	/* Clients must not see errors of the Redis server. */
	if (size == 0 && a.status >= 400)
		http_refuse(
		    h, a.status, NULL, n > 0 && a.status < 500 ? text : NULL);
	if (size > 0)
		body = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, out, 0);
	if (body == MAP_FAILED && h->request.method != METHOD_POST)
		http_refuse(h, 503, NULL, NULL);
	/* The work of a POST is done: an error would make the client repeat it. */
	if (body == MAP_FAILED)
		size = 0;
	answer(h, &a, NULL, body, (size_t)size);
}
