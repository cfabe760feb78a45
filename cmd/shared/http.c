#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

/* After the answer, input is read for so long: a connection that is closed with something
 * unread loses the answer. */
#define LINGER_S 2

/* Bytes of what a child said that are told. */
#define ERRORS_MAX 4096

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

int
http_status(int exit_status)
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

/* --- the connection ----------------------------------------------------------------- */

/* Waits until something can be read.  Returns false when it is too late. */
static bool
wait_input(int64_t until_us)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	int64_t ms;

	do {
		ms = (until_us - mq_clock_steady_us()) / 1000;
		if (ms <= 0)
			return false;
	} while (poll(&p, 1, (int)ms) <= 0);
	return true;
}

/* Reads what is there, up to n bytes; 0: nothing will come; -1: it is too late. */
static ssize_t
read_input(char *p, size_t n, int64_t until_us)
{
	ssize_t got;

	do {
		if (!wait_input(until_us))
			return -1;
		got = read(STDIN_FILENO, p, n);
	} while (got == -1 && (errno == EINTR || errno == EAGAIN));
	return got > 0 ? got : 0;
}

static int64_t
deadline(int seconds)
{
	return mq_clock_steady_us() + (int64_t)seconds * 1000000;
}

/* Returns false when the client has gone. */
static bool
write_output(const char *p, size_t n)
{
	struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done) {
		done = write(STDOUT_FILENO, p, n);
		if (done == -1 && errno == EAGAIN)
			(void)poll(&room, 1, -1);
		else if (done == -1 && errno != EINTR)
			return false;
		if (done == -1)
			done = 0;
	}
	return true;
}

static void
copy_file(int fd)
{
	char block[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), at)) > 0 &&
	    write_output(block, (size_t)n))
		at += n;
}

static void
linger(void)
{
	int64_t until_us = deadline(LINGER_S);
	char block[65536];

	if (shutdown(STDOUT_FILENO, SHUT_WR) == 0)
		while (read_input(block, sizeof(block), until_us) > 0)
			;
}

/* The client takes too long: nobody is left to tell. */
static void
end_unread(int sig)
{
	(void)sig;
	_exit(MQ_EXIT_OK);
}

/* --- answers ------------------------------------------------------------------------ */

static void
add_head(struct mq_buf *out, const struct http_answer *a, const char *extra,
    size_t length)
{
	char date[64];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT",
	    gmtime_r(&now, &tm));
	mq_buf_printf(out,
	    "HTTP/1.1 %d %s\r\n"
	    "Date: %s\r\n"
	    "Content-Type: %s\r\n"
	    "Content-Length: %zu\r\n"
	    "Connection: close\r\n"
	    "Cache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\n"
	    "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
	    "%s\r\n",
	    a->status, reason_phrase(a->status), date, a->type, length,

	    a->policy != NULL ? a->policy : "default-src 'none'",
	    extra != NULL ? extra : "");
}

/* Sends an answer whose body is a file, or -1 and a text; ends the program. */
static void __attribute__((noreturn)) answer(const struct http *h,
    const struct http_answer *a, const char *extra, int fd, const char *text)
{
	struct mq_buf head = {0};
	struct stat st = {0};

	signal(SIGALRM, end_unread);
	alarm(HTTP_ANSWER_S);
	if (fd != -1)
		(void)fstat(fd, &st);
	add_head(&head, a, extra, fd != -1 ? (size_t)st.st_size : strlen(text));
	if (fd == -1 && h->request.method != METHOD_HEAD)
		mq_buf_addstr(&head, text);
	if (write_output(head.data, head.len) && fd != -1 &&
	    h->request.method != METHOD_HEAD)
		copy_file(fd);
	linger();
	exit(MQ_EXIT_OK);
}

void
http_refuse(
    const struct http *h, int status, const char *extra, const char *text)
{
	const struct http_answer a = {
	    status, "text/plain; charset=utf-8", NULL};
	struct mq_buf line = {0};

	mq_buf_printf(
	    &line, "%s\n", text != NULL ? text : reason_phrase(status));
	answer(h, &a, extra, -1, mq_buf_str(&line));
}

/* --- the request -------------------------------------------------------------------- */

static void
take_host(void *into, const struct mq_given *given)
{
	struct http_hosts *hosts = into;
	const char *name = given->arg;
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "-._";

	if (*name == '\0' || name[strspn(name, letters)] != '\0')
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: must be a host name, without a port", given->name,
		    name);
	hosts->names = mq_xreallocarray(
	    hosts->names, hosts->count + 1, sizeof(*hosts->names));
	hosts->names[hosts->count++] = name;
}

const struct mq_option http_options[] = {
    {0, "--host", "NAME", "with --http: answer requests for NAME, too",
	.take = take_host},
    {0},
};

void
http_receive(struct http *h, const struct http_hosts *hosts)
{
	int64_t until_us = deadline(HTTP_REQUEST_S);
	char head[REQUEST_HEAD_MAX + 1];
	size_t n = 0, end = 0;
	ssize_t got;
	int status;

	*h = (struct http){.body = -1};
	while (end == 0 && n < sizeof(head)) {
		got = read_input(head + n, sizeof(head) - n, until_us);
		/* Nothing at all: a check whether there is a listener. */
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
	if (!http_request_is_for(&h->request, hosts))
		http_refuse(h, 421, NULL,
		    "the host is not this machine; --host adds its other names");
	/* What is behind the head is the beginning of the body. */
	h->body = memfd_create("body", MFD_CLOEXEC);
	if (h->body == -1 ||
	    write(h->body, head + end, n - end) != (ssize_t)(n - end))
		http_refuse(h, 500, NULL, NULL);
}

void
http_receive_body(struct http *h)
{
	static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
	int64_t until_us = deadline(HTTP_BODY_S);
	off_t n = lseek(h->body, 0, SEEK_CUR);
	char block[65536];
	ssize_t got;

	if (h->request.length == -1)
		http_refuse(h, 411, NULL, NULL);
	if (h->request.length > HTTP_BODY_MAX)
		http_refuse(h, 413, NULL, NULL);
	if (h->request.continues && n == 0)
		(void)write_output(proceed, sizeof(proceed) - 1);
	for (; n < h->request.length; n += got) {
		got = read_input(block, sizeof(block), until_us);
		if (got <= 0)
			http_refuse(h, got == 0 ? 400 : 408, NULL, NULL);
		if (write(h->body, block, (size_t)got) != got)
			http_refuse(h, 503, NULL, NULL);
	}
	/* Another request behind this one gets no answer. */
	if (ftruncate(h->body, (off_t)h->request.length) == -1 ||
	    lseek(h->body, 0, SEEK_SET) == -1)
		http_refuse(h, 500, NULL, NULL);
}

/* --- the work ----------------------------------------------------------------------- */

static int
create_file(const struct http *h, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd == -1)
		http_refuse(h, 503, NULL, NULL);
	return fd;
}

/* In the child: the connection is not known any more. */
static void
become_worker(const struct http *h, int out, int err)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(h->body, STDIN_FILENO) == -1 ||
	    dup2(out, STDOUT_FILENO) == -1 || dup2(err, STDERR_FILENO) == -1)
		_exit(MQ_EXIT_AGAIN);
	alarm(HTTP_WORK_S);
}

/* The exit status of the child; -1: it took too long. */
static int
await_worker(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? -1 : MQ_EXIT_BUG;
	return WEXITSTATUS(status);
}

/* What the child said, cut to the size, is for the log, unless that is the connection,
 * as inetd has it.  Returns whether it said anything. */
static bool
log_errors(int fd, char *text, size_t size)
{
	struct stat err, in;
	ssize_t n = pread(fd, text, size - 1, 0);

	if (n <= 0)
		return false;
	text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
	if (fstat(STDERR_FILENO, &err) == 0 && fstat(STDIN_FILENO, &in) == 0 &&
	    (err.st_dev != in.st_dev || err.st_ino != in.st_ino))
		fprintf(stderr, "%s\n", text);
	return true;
}

void
http_work(struct http *h, http_judge_fn *judge, void *arg)
{
	int out = create_file(h, "answer"), err = create_file(h, "errors");
	struct http_answer a;
	char text[ERRORS_MAX];
	bool told;
	pid_t pid = fork();

	if (pid == -1)
		http_refuse(h, 503, NULL, NULL);
	if (pid == 0) {
		become_worker(h, out, err);
		return;
	}
	a = judge(arg, await_worker(pid));
	/* What went wrong with the server is not the client's business. */
	told = log_errors(err, text, sizeof(text)) && a.status < 500;
	if (lseek(out, 0, SEEK_END) == 0 && a.status >= 400)
		http_refuse(h, a.status, NULL, told ? text : NULL);
	answer(h, &a, NULL, out, "");
}

void
http_free(struct http *h)
{
	http_request_free(&h->request);
}
