/*
 * One HTTP/1.1 request on stdin and stdout, as inetd(8) and sockets of systemd with
 * Accept=yes hand over a connection.  A child process does what is asked for, as the
 * tool does without --http, with its output in files; only when it has ended is it
 * known how, and answered.
 */
#ifndef MQ_HTTP_H
#define MQ_HTTP_H

#include "options.h"
#include "request.h"

/* Bytes of a body, and seconds for a request to come, for the work, and for the answer
 * to go, at most. */
#define HTTP_BODY_MAX  ((int64_t)8 * 1024 * 1024)
#define HTTP_REQUEST_S 3
#define HTTP_BODY_S    30
#define HTTP_WORK_S    30
#define HTTP_ANSWER_S  60

/* The exit status of a child that asks for the answer 400 to 499. */
#define HTTP_EXIT(status) ((status)-300)

struct http {
	struct http_request request;
	int body; /* what stdin becomes */
};

struct http_answer {
	int status;
	const char *type; /* of what the child printed */
	const char
	    *policy; /* Content-Security-Policy; NULL: nothing is allowed */
};

/* The answer when the work has ended with that exit status; -1: it took too long. */
typedef struct http_answer http_judge_fn(void *arg, int exit_status);

/* The status for most exit statuses, but not for success. */
int http_status(int exit_status);

/* Answers with a status, and with a text or NULL; ends the program. */
void http_refuse(const struct http *, int status, const char *extra,
    const char *text) __attribute__((noreturn));

/* --host; into a struct http_hosts. */
extern const struct mq_option http_options[];

/* Reads the head of the request.  A bad one is answered, and the program ends; so is
 * one for a host that is neither an address, nor this machine, nor one of these names. */
void http_receive(struct http *, const struct http_hosts *);
/* Reads the body, which must have a length. */
void http_receive_body(struct http *);

/* Returns in a child only, whose stdin is the body, or empty; the program itself
 * answers when that has ended, and ends. */
void http_work(struct http *, http_judge_fn *, void *arg);

void http_free(struct http *);

#endif
