/*
 * The folder cmd/shared: what several tools have in common.  Files here may call
 * everything in common/ but the files of a layout, and never a tool.  Unlike common/, they
 * may print and exit.
 *
 * The command line: what a row of options says, and the options that all tools share.
 * A wrong command line ends the program with exit 64 and one line.  Includes what most
 * tools need.
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

/* To be called first.  Memory that the libraries lack ends the program.  /dev/null takes the
 * place of a closed descriptor 0 to 2, so that no connection gets its number; input cannot
 * be read then, nor output be written.  A server or a reader that goes away is an error, and
 * no signal; other signals end the first process of a container, too. */
void mq_option_begin(void);

/* To be called before anything is changed: a tool that prints results and cannot write to
 * standard output ends with exit 74; of others, what children write there goes to
 * /dev/null. */
void mq_option_prints(bool results);

/* Ends the program with the error of a connection if rv, which something that waits has
 * returned, is -1. */
void mq_option_must(const struct mq_redis *, int rv);

/* --- options --------------------------------------------------------------- */

/* An option as the user has given it. */
struct mq_given {
	const struct mq_option *option;
	const char *name; /* "-n" or "--limit"; until take() returns */
	char *arg;	  /* NULL: none */
};

/* Where the argument goes, as MQ_FLAG() and the others say. */
enum mq_option_kind {
	MQ_OPTION_TAKEN, /* where take() says */
	MQ_OPTION_FLAG,
	MQ_OPTION_TEXT,
	MQ_OPTION_INT,
	MQ_OPTION_LONG,
	MQ_OPTION_DURATION,
	MQ_OPTION_RATE
};

/* All of an option: command line, help and completions are made of these rows.  A row
 * without a name is a piece of the help between the options. */
struct mq_option {
	char letter;	  /* 0: none */
	const char *name; /* with dashes; NULL ends a table, but for a help */
	/* The argument; NULL: none.  "[=DUR]" can be left out, and be the next word if that
	 * is a duration. */
	const char *arg;
	/* Lines without a newline at the end; '+' ahead: --help shows it without =all, too.
	 * NULL: none shows it. */
	const char *help;
	enum mq_option_kind kind;
	size_t at; /* in what the table is about */
	/* Of a number; the least duration, and that which is meant without an argument,
	 * in ms; the longest text in bytes, 0: any. */
	long low, high;
	/* of MQ_OPTION_TAKEN, gets where; ends with exit 64 if it is wrong */
	void (*take)(void *into, const struct mq_given *);
	int which;	/* for take(), if that is for several options */
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

/* A table, and what it is about.  The last one of several: NULL. */
struct mq_options {
	const struct mq_option *rows;
	void *into;
};

#define MQ_NEEDS 16

struct mq_shared {
	const char *usage; /* what --help prints ahead of the options */
	char *url;	   /* NULL: not given; allocated */
	bool quiet, verbose;
	bool names_server; /* which is all that -v does */
	bool print_acl;
	bool existing; /* no queue is to be made */
	bool fresh;    /* or one is, and that needs no note */
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
/* Of a tool that makes the queues that it is given; into a struct mq_shared. */
extern const struct mq_option mq_makes_options[];

/* Reads the options of the tables, the last of which is mq_shared_options; optind is that
 * of the first operand then. */
void mq_option_read(
    struct mq_shared *, const struct mq_options *, int argc, char *argv[]);
/* The same; false: an option is wrong, as mq_option_refuse() says. */
bool mq_option_try(
    struct mq_shared *, const struct mq_options *, int argc, char *argv[]);
void mq_option_refuse(const struct mq_options *, char *argv[])
    __attribute__((noreturn));

/* Frees what the others have allocated. */
void mq_option_free(struct mq_shared *);
/* At the end of a tool with one connection: closes it, and frees all. */
void mq_option_end(struct mq_shared *, struct mq_server *, struct mq_redis *);

/* Ends with exit 64 and one line if a command line is wrong.  A macro, so that analyzers
 * see that nothing after it runs then. */
#define forbid(wrong, ...)                                                     \
	do {                                                                   \
		if (wrong)                                                     \
			mq_die(MQ_EXIT_USAGE, __VA_ARGS__);                    \
	} while (0)

/* take() of --lines, --null, --netstring and --jsonl, whose help is the tool's: into an
 * enum mq_framing, which begins as MQ_FRAME_WHOLE; which is the framing. */
void mq_option_framing(void *framing, const struct mq_given *);
#define MQ_FRAMING(f) .take = mq_option_framing, .which = MQ_FRAME_##f

/* The option of a framing; NULL: of MQ_FRAME_WHOLE. */
const char *mq_option_framing_name(enum mq_framing);

/* A whole number from min to max; name is what the error calls it. */
long mq_option_number(const char *name, const char *arg, long min, long max);

/* A duration in milliseconds. */
int64_t mq_option_duration(const char *name, const char *arg);

/* An attribute of a queue of RSMQ: maxsize, units of UTF-16 or -1: any; or whole seconds,
 * from a duration; the longest is that of the delay of one message, too. */
#define MQ_ATTRIBUTE_SECONDS_MAX 9999999
long mq_option_attribute(const char *name, const char *arg, bool maxsize);

/* --- operands ----------------------------------------------------------- */

/* Finds the server that the options name, and the layout of its queues: that of -L, of
 * the URL, of MQ_LAYOUT, or rmq.  Returns 0, or an mq_exit status with one line in
 * server->error. */
int mq_option_find(struct mq_shared *, struct mq_server *);
/* The same; returns the layout, or ends the program. */
const struct mq_layout *mq_option_server(
    struct mq_shared *, struct mq_server *);

/* The name by which the layout, which has been found, knows a queue: with the namespace of
 * the URL in front.  Ends with exit 64 unless it can be the name of a queue. */
char *mq_option_queue(
    struct mq_shared *, const struct mq_server *, const char *queue);
/* The same for operands, in place. */
void mq_option_queues(
    struct mq_shared *, const struct mq_server *, char *operands[], int count);

/* Says that there is no such queue, and where there is one.  Waits. */
void mq_option_unknown(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* Says that a queue was made, whose name may have been mistyped: to a person, with -v, or
 * if there is a similar name; not if a new one is meant.  Waits. */
void mq_option_made(
    const struct mq_shared *, struct mq_redis *, const char *queue);

/* Ends with exit 64 unless the layout, which has been found, has what an option needs
 * (MQ_HAS_*). */
void mq_option_needs(
    const struct mq_shared *, const char *option, unsigned what);

/* --print-acl allows to put messages into that queue (NULL: none), too. */
void mq_option_target(struct mq_shared *, const char *queue);

/* With --print-acl, when all options are known: prints what a tool with its options (as of
 * rights.h) needs for the queues that are named, or for any, and exits. */
void mq_option_rights(
    struct mq_shared *, unsigned tool, char *operands[], int count);

/* --- interrupt ---------------------------------------------------------- */

/* From now on, the first INT or TERM is only noted, so that work can say how far it has
 * come; the second ends the program.  flags: of sigaction(2), SA_RESTART or 0. */
void interrupt_catch(int flags);

/* The signal that has come, or 0. */
int interrupt_signal(void);

/* Waits for input on a descriptor (-1: none), for so long at most (-1: for ever).
 * Returns 1, 0 when the time is over, or -1 when a signal has come first. */
int interrupt_wait(int fd, int64_t ms);

/* --- output ------------------------------------------------------------- */

/* Writes n bytes to descriptor 1, also in a signal handler; false, with errno: it cannot. */
bool output_all(const char *p, size_t n);

/* Prints JSON text with characters that could drive or mislead a terminal as \uXXXX. */
void output_json(const char *, size_t n);
/* Prints a value, which is freed, as such a line. */
void output_json_line(json_t *);

/* --- progress ----------------------------------------------------------- */

/* The longest line, with its NUL. */
#define PROGRESS_LINE 256

/* Whether fd is a terminal on which a line can be drawn anew. */
bool progress_can_draw(int fd);
/* How many columns of stderr a line may have. */
int progress_columns(void);
/* Makes a line for stderr: the text, cut to the columns, and a bar if there is room for
 * one.  part: of the work, 0 to 1; below 0: not known. */
void progress_line(
    char line[static PROGRESS_LINE], const char *text, double part);

#define PROGRESS_TIME 24
/* A duration such as "2m05s", for people. */
void progress_time(char out[static PROGRESS_TIME], double seconds);

/* --- filter ------------------------------------------------------------- */

/* All filters that are given must match.  The filter starts zeroed, and the options are read
 * before any setlocale(3), so that expressions are about bytes.  The first option is --id,
 * for which a tool may have a help of its own. */
extern const struct mq_option mq_filter_options[]; /* into a struct mq_filter */

struct mq_filter {
	const char *id;	    /* without --not; NULL: any; also for a scan */
	const char *option; /* the first other one that was given; NULL: none */
	/* Of the module. */
	struct mq_condition *conditions;
	bool negated; /* of the next condition */
};

/* take() of all but --not; which 0 is --id. */
void mq_filter_take(void *filter, const struct mq_given *);

/* Ends with exit 64 if an id cannot be one of this layout, or nothing follows --not. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/* Whether a message matches.  One with a bad header counts as a payload without. */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

/* A walk through the messages of a place that match.  Starts as struct mq_scan says;
 * mq_scan_free() of the scan ends it. */
struct mq_search {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter; /* NULL: all match */
	struct mq_scan scan;
	int at; /* the next one of the slice */
};

/* The next message, which stays as long as its slice; NULL: there is none.  Ends the
 * program with the error of the connection. */
const struct mq_item *mq_search_next(struct mq_search *);

/* --- selection ---------------------------------------------------------- */

/* Walks through the messages at a place, and moves or removes those that are meant, in
 * slices that do not keep the server.  What has been done is known exactly at any time, and
 * printed whenever the program ends early. */

/* A bar on stderr, if that is a terminal and the work takes longer than a second. */
struct progress {
	bool on;      /* there can be a bar */
	double start; /* monotonic seconds */
	double last;  /* when it was drawn; 0: there is none */
	long total;   /* what all of the work is; 0: not known */
};

/* Copies of messages, with ids of their own; those that are copied stay as they are. */
struct clones {
	json_t *ids; /* of the copies, a list; NULL: they are printed */
	/* Set by the module. */
	struct mq_publisher publisher;
	struct mq_idgen random;
	int64_t clock_us; /* the server's clock minus the steady one */
	uint64_t start_us, last_us;
	enum mq_published how; /* what became of the last one */
	bool unsure; /* after an error: whether there is one copy more */
	/* Whoever ends the work frees the publisher then, which leaves an answer that
	 * nobody reads. */
	bool open;
};

struct selection {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter;
	const char *word; /* what becomes of the messages: "returned" */
	const char *to;	  /* to the ready ones of this queue; NULL: nowhere */
	long limit;	  /* messages at most, over all places */
	struct mq_rate rate; /* per_s 0: as fast as it goes */
	bool clone;	     /* copies go there instead */
	struct clones clones;
	bool dry_run;	   /* only count them */
	bool files;	   /* those that go nowhere may have attachments */
	const char *queue; /* results name it; NULL: there is only one */
	/* The result, over all places. */
	long done;
	long in_line;  /* meant, but they stay in line for their group */
	long too_long; /* meant, but longer than the target takes: */
	long maxsize;  /* in units of UTF-16; -1: any */
	bool made;     /* the target did not exist before */
	/* Set by the selection. */
	struct progress progress;
	struct mq_place place;	   /* at work */
	struct mq_scan scan;	   /* the walk through it */
	struct mq_bucket bucket;   /* of the rate */
	long seen;		   /* messages looked at or moved */
	struct mq_attributes like; /* of the target, if it has to be made */
	bool opened;		   /* the target exists */
};

/* --limit and --dry-run; into a struct selection. */
extern const struct mq_option selection_options[];

/* Begins, or begins anew: nothing has been done.  quiet: no progress is shown. */
void selection_begin(struct selection *, bool quiet);

/* Does one place; returns how many messages.  If the server refuses something or is lost,
 * or after INT or TERM, the program ends after printing how many were done in all. */
long selection_place(struct selection *, const struct mq_place *);

/* For --running: ends the run of the message with the filter's id, as queue/stats.h says,
 * and purges or returns the message.  Ends the program if that cannot be done. */
void selection_stop(struct selection *, const char *queue, enum mq_stop what);
/* Ends with exit 64 unless there is an id, one queue, and none of the other options;
 * other: one that was given, or NULL. */
void selection_check_running(
    const struct selection *, int queues, const char *other);

/* When nothing was done: says so if there is no such queue at all. */
void selection_unknown(const struct selection *, const char *queue);

/* Prints "12 messages returned"; with dry_run "would be returned".  For copies, whose
 * ids were printed, that goes to standard error. */
void selection_print(const struct selection *);

/* --- HTTP --------------------------------------------------------------- */

/* One HTTP/1.1 request on stdin and stdout, as inetd(8) and sockets of systemd with
 * Accept=yes hand over a connection.  A child process does what is asked for, as the tool
 * does without --http, with its output in files; the answer follows its end. */

/* The exit status of a child that asks for the answer 400 to 499. */
#define HTTP_EXIT(status) ((status)-300)

/* --host adds names that are answered for; into a struct mq_names. */
extern const struct mq_option http_options[];

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
void http_receive(struct http *, const struct mq_names *hosts);
/* Reads the body, which must have a length. */
void http_receive_body(struct http *);

/* Returns in a child only, whose stdin is the body, or empty; the program itself answers
 * when that has ended, and ends. */
void http_work(struct http *, const struct http_answer *);

#endif
