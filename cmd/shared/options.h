/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The folder cmd/shared: code of several tools.  Files here may call everything in common/
 * but the files of a layout, and never a tool.  Unlike common/, they may print and exit.
 *
 * This header begins with the command line: rows of options, and those that all tools share.
 * A wrong command line ends the program with exit 64 and one line.  Most tools need the
 * includes, too.
 */
#ifndef MQ_OPTIONS_H
#define MQ_OPTIONS_H

#include <sys/param.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/rate.h"
#include "base/say.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "message/frame.h"
#include "message/json.h"
#include "queue/calls.h"
#include "queue/publisher.h"
#include "queue/rights.h"
#include "queue/stats.h"
#include "redis/connection.h"
#include "redis/server.h"

/* --- startup ------------------------------------------------------------ */

/* Must be the first call.  If the libraries lack memory, they end the program.  A closed
 * descriptor 0 to 2 is opened on /dev/null, so that no connection gets its number, for
 * writing if it is for input and the other way round: using it fails.  SIGPIPE and SIGXFSZ
 * are ignored; other signals end the first process of a container, too. */
void mq_option_begin(void);

/* Must be called before any change.  A tool that prints results ends with exit 74 if it
 * cannot write to standard output.  Other tools get /dev/null there, for their children. */
void mq_option_prints(bool results);

/* If rv is -1, ends the program with the error of the connection. */
void mq_option_must(const struct mq_redis *, int rv);

/* --- options --------------------------------------------------------------- */

/* An option on the command line. */
struct mq_given {
	const struct mq_option *option;
	const char *name; /* "-n" or "--limit"; until take() returns */
	char *arg;	  /* NULL: none */
};

/* Type of the member that gets the argument; see MQ_FLAG() and the others. */
enum mq_option_kind {
	MQ_OPTION_TAKEN, /* take() stores the argument */
	MQ_OPTION_FLAG,
	MQ_OPTION_TEXT,
	MQ_OPTION_INT,
	MQ_OPTION_LONG,
	MQ_OPTION_DURATION,
	MQ_OPTION_RATE
};

/* An option: command line, help and completions are made of these rows.  A row without a
 * name is a piece of the help between the options. */
struct mq_option {
	char letter;	  /* 0: none */
	const char *name; /* with dashes; NULL without help ends a table */
	/* The argument; NULL: none.  "[=DUR]" may be left out, or be the next word if that
	 * is a duration. */
	const char *arg;
	/* Lines without a newline at the end.  A '+' in front: --help shows them without
	 * =all, too.  NULL: the option is hidden. */
	const char *help;
	enum mq_option_kind kind;
	size_t at; /* offset in the table's struct */
	/* Numbers: the bounds.  Durations: the least, and the default for a missing
	 * argument, in ms.  Texts: high is the longest in bytes, 0: any. */
	long low, high;
	/* Stores the argument of MQ_OPTION_TAKEN, or ends with exit 64. */
	void (*take)(void *into, const struct mq_given *);
	int which;	/* for take(), if several options share it */
	unsigned needs; /* MQ_HAS_* of the layout; see `needing` below */
};

#define MQ_FLAG(s, m) .kind = MQ_OPTION_FLAG, .at = offsetof(s, m)
#define MQ_TEXT(s, m) .kind = MQ_OPTION_TEXT, .at = offsetof(s, m)
#define MQ_RATE(s, m) .kind = MQ_OPTION_RATE, .at = offsetof(s, m)
/* In milliseconds, as an int64_t. */
#define MQ_DURATION(s, m, least)                                               \
	.kind = MQ_OPTION_DURATION, .at = offsetof(s, m), .low = (least)
#define MQ_INT(s, m, from, to)                                                 \
	.kind = MQ_OPTION_INT, .at = offsetof(s, m), .low = (from), .high = (to)
#define MQ_LONG(s, m, from, to)                                                \
	.kind = MQ_OPTION_LONG, .at = offsetof(s, m), .low = (from),           \
	.high = (to)

/* A table, and the struct that it fills.  rows NULL ends a list of tables. */
struct mq_options {
	const struct mq_option *rows;
	void *into;
};

#define MQ_NEEDS 16

struct mq_shared {
	const char *usage; /* first lines of --help */
	char *url;	   /* NULL: not given; allocated */
	bool quiet, verbose;
	bool names_server; /* -v names the server */
	bool print_acl;
	bool existing;			  /* --existing: make no queue */
	bool fresh;			  /* --new: a new queue needs no note */
	const struct mq_options *options; /* while they are read */
	const struct mq_layout *layout; /* NULL: not given, and not found yet */
	/* The first option that needs each bit of MQ_HAS_*, for mq_option_needs(). */
	const char *needing[MQ_NEEDS];
	const char *targets[2]; /* see mq_option_target() */
	int target_count;
	struct mq_names names; /* see mq_option_queue() */
};

/* The options of every tool; into a struct mq_shared. */
extern const struct mq_option mq_shared_options[];
/* Options of a tool that makes its queues; into a struct mq_shared. */
extern const struct mq_option mq_makes_options[];

/* Reads the options of the tables, the last of which is mq_shared_options, and sets optind to
 * the first operand. */
void mq_option_read(
    struct mq_shared *, const struct mq_options *, int argc, char *argv[]);
/* mq_option_read(), but false for a wrong option, which mq_option_refuse() explains. */
bool mq_option_try(
    struct mq_shared *, const struct mq_options *, int argc, char *argv[]);
void mq_option_refuse(const struct mq_options *, char *argv[])
    __attribute__((noreturn));

void mq_option_free(struct mq_shared *);
/* Frees everything and closes the connection, at the end of a tool with a single one. */
void mq_option_end(struct mq_shared *, struct mq_server *, struct mq_redis *);

/* Ends with exit 64 and one line if a command line is wrong.  With a macro, analyzers see
 * that nothing runs after it. */
#define forbid(wrong, ...)                                                     \
	do {                                                                   \
		if (wrong)                                                     \
			mq_die(MQ_EXIT_USAGE, __VA_ARGS__);                    \
	} while (0)

/* take() of --lines, --null, --netstring and --jsonl; each tool has rows of its own for
 * them.  Stores the framing, which, in an enum mq_framing that begins as MQ_FRAME_WHOLE. */
void mq_option_framing(void *framing, const struct mq_given *);
#define MQ_FRAMING(f) .take = mq_option_framing, .which = MQ_FRAME_##f

/* The option of a framing; NULL for MQ_FRAME_WHOLE. */
const char *mq_option_framing_name(enum mq_framing);

/* A whole number from min to max; errors begin with name. */
long mq_option_number(const char *name, const char *arg, long min, long max);

/* The size at the beginning of a text in bytes, as 64K or 1M; 0: there is none, or 0.  *rest is
 * behind it. */
size_t mq_option_size(const char *text, const char **rest);

/* A duration in milliseconds. */
int64_t mq_option_duration(const char *name, const char *arg);

/* The time of --at in unix ms, at unix time now_ms; else ends with exit 64. */
int64_t mq_option_time(const char *at, int64_t now_ms);
/* mq_option_time(), but a person's words must not mean a time that is over.  With past, says
 * what is done with a program's time that is over. */
int64_t mq_option_at(const char *at, int64_t now_ms, const char *past);

/* An attribute of a queue of RSMQ: maxsize in units of UTF-16, or -1: any; or a duration in
 * whole seconds, whose bound holds for the delay of a message, too. */
#define MQ_ATTRIBUTE_SECONDS_MAX 9999999
long mq_option_attribute(const char *name, const char *arg, bool maxsize);

/* --- operands ----------------------------------------------------------- */

/* Finds the server of the options, and the layout of its queues: from -L, the URL,
 * MQ_LAYOUT, or else rmq.  Returns 0, or an mq_exit status with one line in
 * server->error. */
int mq_option_find(struct mq_shared *, struct mq_server *);
/* mq_option_find(); returns the layout, or ends the program. */
const struct mq_layout *mq_option_server(
    struct mq_shared *, struct mq_server *);

/* The name of a queue in the layout, which must be known, with the namespace of the URL in
 * front.  Ends with exit 64 unless a queue can have that name. */
char *mq_option_queue(
    struct mq_shared *, const struct mq_server *, const char *queue);
/* mq_option_queue() for operands, in place. */
void mq_option_queues(
    struct mq_shared *, const struct mq_server *, char *operands[], int count);

/* Says that there is no such queue, and names a similar one.  Waits. */
void mq_option_unknown(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* Says that a queue was made, as its name may have been mistyped: on a terminal, with -v, or
 * if there is a similar name; but not with --new.  Waits. */
void mq_option_made(
    const struct mq_shared *, struct mq_redis *, const char *queue);

/* Ends with exit 64 unless the layout, which must be known, has what an option needs
 * (MQ_HAS_*). */
void mq_option_needs(
    const struct mq_shared *, const char *option, unsigned what);

/* Lets --print-acl add the rights to put messages into this queue (NULL: none). */
void mq_option_target(struct mq_shared *, const char *queue);

/* With --print-acl, after all options are read: prints the rights that a tool with its
 * options (as of rights.h) needs for these queues, or for any, and exits. */
void mq_option_rights(
    struct mq_shared *, unsigned tool, char *operands[], int count);

/* --- interrupt ---------------------------------------------------------- */

/* Makes the first INT or TERM set interrupt_signal() only, so that a tool can say how far it
 * has come; the second ends the program.  flags for sigaction(2): SA_RESTART or 0. */
void interrupt_catch(int flags);

/* The signal that was caught, or 0. */
int interrupt_signal(void);

/* Waits for input on a descriptor (-1: none), at most ms (-1: for ever).  Returns 1 for
 * input, 0 after that time, or -1 after a signal. */
int interrupt_wait(int fd, int64_t ms);

/* --- output ------------------------------------------------------------- */

/* Writes n bytes to descriptor 1; false, with errno: failed.  Safe in a signal handler. */
bool output_all(const char *p, size_t n);

/* Prints JSON text, with \uXXXX for characters that could drive or mislead a terminal. */
void output_json(const char *, size_t n);
/* Prints a value as a line by output_json(), and frees the value. */
void output_json_line(json_t *);

/* --- progress ----------------------------------------------------------- */

#define PROGRESS_LINE 256 /* bytes of a line, with its NUL */

/* Whether fd is a terminal on which a line can be redrawn. */
bool progress_can_draw(int fd);
/* Columns for a line on stderr. */
int progress_columns(void);
/* Makes a line for stderr: the text, cut to the columns, and a bar if there is room for
 * one.  part: share of the work that is done, 0 to 1; below 0: not known. */
void progress_line(
    char line[static PROGRESS_LINE], const char *text, double part);

#define PROGRESS_TIME 24
/* A duration such as "2m05s", for people. */
void progress_time(char out[static PROGRESS_TIME], double seconds);

/* --- filter ------------------------------------------------------------- */

/* The options of filters; a message must match all.  The filter starts zeroed, and options
 * are read before setlocale(3), so that expressions are about bytes.  The first row is --id,
 * which a tool may replace. */
extern const struct mq_option mq_filter_options[]; /* into a struct mq_filter */

struct mq_filter {
	const char *id;	    /* without --not; NULL: any; also for a scan */
	const char *batch;  /* without --not, the last one; NULL: any */
	const char *option; /* first filter other than id; NULL: none */
	/* Set by the module. */
	struct mq_condition *conditions;
	bool negated; /* the next condition will be */
};

/* take() of all filters but --not; which 0 is --id, 1 --batch. */
void mq_filter_take(void *filter, const struct mq_given *);

/* Ends with exit 64 if the layout cannot have an id, or nothing follows --not. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);
/* Refuses filters by what is not kept of a message that has ended; about: the option. */
void mq_filter_check_ended(const struct mq_filter *, const char *about);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/* Whether a message matches.  If its header is bad, the whole element is the payload. */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

/* A walk through the messages of a place that match.  Starts as struct mq_scan says;
 * mq_scan_free() of the scan ends it. */
struct mq_search {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter; /* NULL: all match */
	struct mq_scan scan;
	int at; /* index of the next message in the slice */
};

/* The next message, valid as long as its slice; NULL: there is none.  If the connection
 * fails, ends the program. */
const struct mq_item *mq_search_next(struct mq_search *);

/* --- selection ---------------------------------------------------------- */

/* A walk through the messages at a place that moves or removes those selected, in slices
 * short enough for the server's other clients.  If the program ends early, it prints exactly
 * how many messages are done. */

/* A bar on stderr, if that is a terminal and the work takes longer than 1 s. */
struct progress {
	bool on;      /* stderr is a terminal */
	double start; /* monotonic seconds */
	double last;  /* time of the bar (monotonic seconds); 0: none drawn */
	long total;   /* messages; 0: not known */
};

/* Copies of messages, with ids of their own; the originals stay where they are. */
struct clones {
	json_t
	    *ids; /* list that gets the ids of the copies; NULL: print them */
	/* Set by the module. */
	struct mq_publisher publisher;
	struct mq_idgen random;
	int64_t clock_us; /* the server's clock minus the steady one */
	uint64_t start_us, last_us;
	enum mq_published how; /* outcome of the last copy */
	bool incomplete;       /* after an error: the last copy may exist */
	/* The publisher is open, and to be freed at the end, even with a reply under
	 * way. */
	bool open;
};

struct selection {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter;
	const char *word; /* for the result: "returned" */
	const char *to;	  /* to ready in this queue; NULL: remove */
	const struct mq_change *change; /* NULL: none */
	long limit;			/* most messages, over all places */
	struct mq_rate rate;		/* per_s 0: no limit */
	bool clone;			/* copy, and leave the originals */
	struct clones clones;
	bool dry_run;	   /* only count */
	bool files;	   /* removed messages may have attachments */
	const char *queue; /* in results; NULL: left out */
	/* The result, over all places. */
	long done;
	long in_line;  /* selected, but they stay in line for their group */
	long too_long; /* selected, but longer than maxsize of the target */
	long maxsize;  /* in units of UTF-16; -1: any */
	bool made;     /* the target did not exist before */
	/* Set by the selection. */
	struct progress progress;
	struct mq_place place;	   /* the current one */
	struct mq_scan scan;	   /* the walk through it */
	struct mq_bucket bucket;   /* for the rate */
	long seen;		   /* messages looked at or moved */
	struct mq_attributes like; /* for a target that is made */
	bool opened;		   /* the target exists */
};

/* --limit and --dry-run; into a struct selection. */
extern const struct mq_option selection_options[];

/* Begins, or begins anew with a result of 0.  quiet: no progress is shown. */
void selection_begin(struct selection *, bool quiet);

/* Does one place, and returns its number of messages.  If the server refuses a step or is
 * lost, or after INT or TERM, the program ends and prints how many were done in all. */
long selection_place(struct selection *, const struct mq_place *);

/* For --running: stops the run of the message with the filter's id, as queue/stats.h says,
 * and purges or returns the message.  After a failure, ends the program. */
void selection_stop(struct selection *, const char *queue, enum mq_stop what);
/* Ends with exit 64 unless there are an id and a single queue, and no other filter; other:
 * an option that excludes --running; or NULL. */
void selection_check_running(
    const struct selection *, int queues, const char *other);

/* If nothing was done, and the queue does not exist, says so. */
void selection_unknown(const struct selection *, const char *queue);

/* Prints "12 messages returned"; with dry_run "would be returned".  For copies, prints to
 * standard error: standard output has their ids. */
void selection_print(const struct selection *);

/* --- HTTP --------------------------------------------------------------- */

/* One HTTP/1.1 request on stdin and stdout, as inetd(8) and sockets of systemd with
 * Accept=yes hand over a connection.  A child process works like the tool without --http,
 * with its output in files; the response follows its end. */

/* The exit status of a child that asks for response status 400 to 499. */
#define HTTP_EXIT(status) ((status)-300)

/* --host adds names of this machine; into a struct mq_names. */
extern const struct mq_option http_options[];

/* The head of a request by RFC 9112, without input and output.  Where the RFC lets a server
 * guess, the request is refused. */

enum http_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

struct http_header {
	char *name, *value; /* without NUL and other control characters */
};

struct http_request {
	enum http_method method;
	char *path; /* decoded, without NUL, begins with a slash; no query */
	char *host; /* in the URL, without :PORT, IPv6 in brackets; or NULL */
	int64_t length; /* Content-Length in bytes; -1: not given */
	bool continues; /* the client waits for 100 Continue */
	struct http_header *headers;
	size_t header_count;
	char *text; /* memory of names and values */
};

/* Bytes of the head that begins at p, with its blank line; 0: it does not end in these n
 * bytes. */
size_t http_request_end(const char *p, size_t n);

/* Parses a copy of a head of n bytes, its blank line included.  Returns 0, or the response
 * status for a bad head.  http_request_free() frees in both cases. */
int http_request_parse(struct http_request *, const char *head, size_t n);

/* The first value of a header; NULL: there is none.  Names are not case-sensitive. */
const char *http_request_get(const struct http_request *, const char *name);

void http_request_free(struct http_request *);

struct http {
	struct http_request request; /* http_request_free() */
	int body;		     /* file for the child's stdin */
};

/* The response after success. */
struct http_answer {
	int status;
	const char *type;   /* Content-Type of the child's output */
	const char *policy; /* Content-Security-Policy; NULL: forbids all */
	bool partly;	    /* exit status 1 is success, too */
	int failed; /* status after other exits; 0: by the exit status */
};

/* Responds with a status, and a text or NULL, and ends the program. */
void http_refuse(const struct http *, int status, const char *extra,
    const char *text) __attribute__((noreturn));

/*
 * Reads the head of the request.  Refuses a bad head, and a host that is not an address,
 * localhost, the name of this machine, or in hosts: a foreign site could give its name this
 * machine's address, and read the responses in a browser here; but browsers send that name.
 */
void http_receive(struct http *, const struct mq_names *hosts);
/* Reads the body, which must have a length. */
void http_receive_body(struct http *);

/* Returns in a child only, whose stdin is the body, or empty.  When the child has ended, the
 * program responds, and ends. */
void http_work(struct http *, const struct http_answer *);

#endif
