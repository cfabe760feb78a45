/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The modules of mq-stats: the command line, what is asked of the server, and the forms in
 * which it is shown.  Includes what most of them need.
 */
#ifndef STATS_H
#define STATS_H

#include "shared/options.h"

/* --- text --------------------------------------------------------------- */

/* A text is visible if it holds no characters that could control a terminal or
 * mislead its reader. */

struct view {
	int width;  /* columns; 0: any */
	int height; /* lines, the head included; 0: any */
	bool colour;
	bool html; /* escaped, as content of an HTML element */
};
/* Returns the view of standard output: a terminal's whole screen, for which the
 * user's locale is set, or lines of any width. */
struct view text_view(void);

bool text_is_utf8(void);
int text_width(const char *visible);
/* Appends a visible text, cut to a number of columns with an ellipsis; returns the
 * columns used. */
int text_cut(struct mq_buf *out, const char *visible, int columns);

/* Return a visible text of at most a number of columns, which the caller frees.
 * Longer texts keep their beginning and get an ellipsis; names keep their end, as
 * beginnings are often the same. */
char *text_clipped(const char *p, size_t n, int columns);
char *text_clipped_front(const char *name, int columns);
/* Prints "name        text", made visible; nothing when text is NULL. */
void text_line(const char *name, const char *text);

/* Appends a visible text as content of an HTML element, with invisible characters
 * escaped, too. */
void text_html(const char *visible, struct mq_buf *out);

/* Writes "12s", "3m", "2h" or "1d": whole units, rounded down. */
#define TEXT_AGE 24
void text_age(char out[TEXT_AGE], double seconds);

/* --- fields ------------------------------------------------------------- */

/* Facts of queues, connections, queues that connections consume, and runs, as all
 * outputs have them. */

enum kind {
	KIND_END, /* end of a list */
	/* Texts; NULL: there is none. */
	KIND_QUEUE, /* the name of the queue that the record is */
	KIND_NAME,
	KIND_TEXT,
	KIND_SAID,   /* the last text of a run; a column has a bar, too */
	KIND_REASON, /* an empty one is none, too */
	KIND_CHARS,  /* in an array; an empty one is none, too */
	KIND_NOTE,   /* warnings about a queue */
	KIND_SPARK,  /* levels of ready messages in the last hour */
	KIND_LIVE,   /* a flag, as a word: the connection lives */
	KIND_TEXTS = KIND_LIVE,
	/* Numbers. */
	KIND_FLAG,   /* below 0: not known */
	KIND_PAUSED, /* a flag: the queue is paused */
	KIND_NUMBER,
	KIND_COUNT,   /* below 0: not known */
	KIND_SOME,    /* 0 or below: none */
	KIND_PERCENT, /* below 0: none */
	KIND_SECONDS, /* milliseconds in the record */
	KIND_TIME,    /* seconds, from unix ms; 0: none; below 0: not known */
	KIND_PASSED,  /* whole seconds since the start of a run */
	KIND_AGE,     /* from unix ms; 0: none; below 0: not known */
	KIND_RATE     /* a double; below 0: not known */
};

#define SPARE_MAX 4

/* Whether a fact has a sum over queues; SUM_OWN: without queues whose messages
 * another queue counts. */
enum sum { SUM_NONE, SUM_OWN, SUM_ALL };

#define FIELD_OF(record, member)                                               \
	.at = offsetof(struct record, member),                                 \
	.size = sizeof(((struct record *)NULL)->member)

struct field {
	const char *name; /* in JSON; NULL: not in JSON */
	enum kind kind;
	size_t at, size;   /* in the record */
	bool optional;	   /* without a value, left out of JSON */
	const char *title; /* the column's; NULL: no column */
	bool sparse;	   /* no column if all cells are empty */
	int spare;	   /* narrow terminals leave out 1 first; 0: never */
	bool id;	   /* a number without thousands, or a text never cut */
	bool red;	   /* red if above 0 */
	bool grows;	   /* has a mark while the queue grows */
	/* Only facts of queues have the members below. */
	const char *key; /* for --sort and --check; NULL: none */
	int check;	 /* place in the line of --check; 0: none */
	bool least;	 /* --check sets a least value, not a most */
	bool needed;	 /* --check warns if there is no value */
	enum sum sum;
	struct {
		int place; /* from 1 on, in the order of the metrics */
		const char *name, *help;
	} metric;
};

/* One more than the last place in the line of --check. */
#define FIELD_CHECKS 8

/* Records of queue_fields, count_fields and attribute_fields are struct
 * mq_queue_stats; the others struct mq_connection_stats, mq_consumed and mq_run. */
extern const struct field queue_fields[], count_fields[], attribute_fields[],
    connection_fields[], consumed_fields[], run_fields[], batch_fields[],
    spool_fields[];

/* A batch of a queue. */
struct batch {
	const char *queue, *name;
	long long counts[MQ_BATCH_COUNTS];
};

/* Messages on this host's disk, for a queue; see spool.h. */
struct spooled {
	char *file, *queue, *layout, *server;
	long long messages;
	int64_t since_ms, tried_ms;
	char *why; /* the last attempt to publish them failed; or NULL */
};

/* Returns how long a script has run at this time, in seconds. */
long long run_seconds(const struct mq_run *, int64_t now_ms);

/* Returns the field of queues with this key; NULL: none. */
const struct field *field_by_key(const char *key);

enum value_type {
	VALUE_NONE,
	VALUE_UNKNOWN,
	VALUE_TEXT,
	VALUE_FLAG,
	VALUE_INTEGER,
	VALUE_REAL
};

struct value {
	enum value_type type;
	const char *text; /* in the record */
	long long n;	  /* number in the record */
	double real;	  /* the same number, an age in seconds (no age: 0) */
};

struct value field_get(
    const struct field *, const void *record, int64_t now_ms);
/* field_set() sets the field's member of an object; fields_json() returns a new
 * object with all members. */
void field_set(
    json_t *, const struct field *, const void *record, int64_t now_ms);
json_t *fields_json(const struct field *, const void *record, int64_t now_ms);
/* Returns a new list of objects, one for each record of this size. */
json_t *fields_list(const struct field *, const void *records, size_t size,
    int count, int64_t now_ms);

/* --- table: for a terminal and for a page ---------------------------------- */

enum style {
	STYLE_PLAIN,
	STYLE_RED,
	STYLE_YELLOW,
	STYLE_GROWS, /* with a "+" in the gap behind the cell */
	STYLE_SPARK  /* levels as '0' to '7' or blanks, drawn when written */
};

struct cell {
	size_t at; /* offset of the text */
	int width; /* in columns of a terminal */
	enum style style;
};

/* Most columns of a table. */
#define COLUMNS_MAX 32

struct table {
	const struct field *columns[COLUMNS_MAX];
	int count;
	int first;	/* number of columns of a row's first record */
	bool total;	/* the last row is a total */
	bool rest;	/* summary row for rows that did not fit */
	int marked;	/* number of the marked row, from 1 on; 0: none */
	int64_t now_ms; /* the time to which ages refer, unix ms */
	struct mq_buf text;
	struct cell *cells;
	size_t used, cap;
};

/* Begins a table with the columns of one record a row, or of two records (second
 * NULL: one). */
void table_begin(struct table *, const struct field *first,
    const struct field *second, int64_t now_ms);
/* Adds a row; cells of a record that is NULL are empty. */
void table_add(struct table *, const void *first, const void *second);

/* Returns the number of rows without summary and total. */
size_t table_rows(const struct table *);

/* Appends the lines of the table; a last line counts rows that did not fit. */
void table_write(const struct table *, const struct view *, struct mq_buf *out);
/* Prints the table to standard output and frees it. */
void table_print(struct table *);
void table_free(struct table *);

/* --- reasons ------------------------------------------------------------ */

/* Bytes of a reason that are compared and kept. */
#define REASON_BYTES 300

/* A group of reasons that differ only in numbers and ids. */
struct reason {
	char *text;   /* with N and ID for numbers and ids; empty: no reason */
	char *newest; /* unchanged reason of the newest message */
	char *id;     /* the newest message's; NULL: none */
	long count;
	int64_t oldest_ms, newest_ms; /* unix ms; 0: not known */
};

struct reasons {
	struct reason *list; /* the most frequent first */
	int count;
	long others; /* messages in no group */
};

/* Writes the text of the group to which a reason (NULL: none) belongs. */
void reason_fold(const char *reason, char out[REASON_BYTES + 1]);

struct rejected {
	char *id, *reason; /* NULL: none was recorded */
	const char *state; /* NULL: rejected; else another state */
	int64_t at_ms;	   /* time of the rejection, unix ms; 0: not known */
	long attempts;
};

struct rejections {
	struct rejected *all; /* the newest first */
	int count;
	struct reasons reasons;
	bool cut; /* more messages exist than were read */
};

void reasons_free(struct reasons *);

/* --- model -------------------------------------------------------------- */

/* The queues that a table shows, and their order.  Zeroed: all, in the order of the
 * model. */
struct order {
	const struct field *key; /* names ascend, numbers descend */
	bool reverse;
	bool nonempty; /* only queues with messages, or unknown */
	/* Name of the queue whose row is marked; if no queue has this name, the
	 * first row is; NULL: no mark. */
	const char *marked;
	long limit; /* most rows; 0 or below: any number */
};

/* The facts about a server and its queues.  collect.c fills a model, outputs only
 * read it. */
struct model {
	const char *server;    /* name of the server */
	struct order order;    /* for queues in tables */
	char error[512];       /* why nothing is known; empty: no error */
	struct mq_names lacks; /* gaps in the numbers, and why: first */
	int lost;	       /* this number of lost nodes, then keys */
	struct mq_stats stats;
	struct mq_info info; /* only the policy is filled */
	struct mq_runs runs;
	/* For each queue: if it does not exist, a hint of what may have been meant,
	 * else NULL. */
	struct mq_names elsewhere;
	struct rejections *rejected; /* for each queue */
	/* Batches with open messages, and their names; not all of many. */
	struct batch *batches;
	int batch_count;
	struct mq_names batch_names;
};

/* Returns the queues of m->stats in the model's order, but not cut to its limit, and
 * sets the place of the marked one; the caller frees. */
const struct mq_queue_stats **order_rows(
    const struct model *, int *count, int *marked);

/* sum_add() adds a queue to a sum that SUM_BEGIN initialises. */
#define SUM_BEGIN                                                              \
	{                                                                      \
		.in_s = -1, .out_s = -1                                        \
	}
void sum_add(struct mq_queue_stats *sum, const struct mq_queue_stats *);

/* Returns the sum of all queues, of which one that was named twice counts once;
 * oldest_ms and rates are known if any queue's is. */
struct mq_queue_stats model_total(const struct model *);

/* Fill tables that table_free() frees.  Queues that do not fit into height lines (0:
 * any number) have one summary row. */
void tables_fill(
    const struct model *, bool connections, int height, struct table *);
void running_fill(const struct model *, int64_t now_ms, struct table *);

/* Reports queues that do not exist; returns whether all exist. */
bool model_report_missing(const struct model *);
void model_report_lacks(const struct model *);

void model_free(struct model *);

/* --- options ------------------------------------------------------------ */

#define SCREENFUL 20 /* messages of a list, unless a number is said */

struct list_options {
	enum mq_state state;
	enum { ENDS_NONE, ENDS_DONE, ENDS_ALL } ends; /* not NONE: no state */
	struct mq_filter filter;
	bool newest;		 /* the newest first */
	long offset;		 /* messages to skip */
	enum mq_framing framing; /* MQ_FRAME_WHOLE: a table for people */
};

enum subject {
	SUBJECT_QUEUES, /* queues or connections */
	SUBJECT_LIST,
	SUBJECT_REASONS,
	SUBJECT_RUNNING,
	SUBJECT_ONE,
	SUBJECT_BATCH,
	SUBJECT_HTML,
	SUBJECT_SERVER,
	SUBJECT_HTTP, /* until the request has set another subject */
	SUBJECT_CONTENTS,
	SUBJECT_HEALTH,
	SUBJECT_SPOOL
};

enum format {
	FORMAT_TABLE, /* a table, or another text for people */
	FORMAT_JSON,
	FORMAT_PROMETHEUS,
	FORMAT_CHECK
};

struct stats_options {
	struct mq_shared shared;
	enum subject subject;
	enum format format;
	const char *subject_name; /* the subject's option; NULL: none */
	const char *format_name;
	struct list_options list; /* also filters of --reasons and --id */
	bool connections;    /* connections instead of queues; JSON has both */
	int64_t interval_ms; /* for --watch; 0: no --watch */
	struct order order;  /* for queues in a table */
	const char *checks;  /* for --check */
	long refresh;	     /* seconds, of --html and --http; 0: none */
	bool payloads;	     /* show payloads, with --http */
	bool output;	/* the kept output of --id, or on pages of --http */
	bool follow;	/* until its run is over */
	bool result;	/* only the result of --id */
	bool requested; /* a request of --http chose the subject */
	bool again;	/* a page asks that has the past already */
	int port;	/* for --http; 0: any; -1: stdin */
	struct mq_names hosts; /* hosts that requests may name */
	char *name;	       /* end of the request's path, own */
	char *only;	       /* name, if queues points here */
	char **queues;	       /* NS:QUEUE once the layout is known */
	int count;
};

/* If the command line is wrong, ends the program with exit status 64.
 * options_free() frees the options. */
void options_parse(struct stats_options *, int argc, char *argv[]);
/* With --http, receives a request and returns in a child process, with options that
 * print the answer; the parent sends the answer and ends.  With a port, each
 * connection has such a pair of processes; the first process ends only by a signal,
 * or if it cannot listen. */
void options_serve(struct stats_options *);
void options_free(struct stats_options *);

/* --- collect ------------------------------------------------------------ */

/* Asks the server about all queues, or about those that are named, and connects if
 * it must.  Failures end the program, except those of collect_try(). */
struct collector {
	const struct mq_layout *layout;
	struct mq_server server;
	const char *const *queues;
	int count;
	int past; /* if there are at most this number of queues, ask for their past */
	struct mq_redis redis; /* closed by the caller */
};

/* Sets layout and queues from the options, whose layout must be known. */
void collect_queues(struct collector *, struct stats_options *);

/* Connects unless connected; returns 0, or -1 with the error in the connection. */
int collect_open(struct collector *);

/* Asks for queues, and what else is wanted (MQ_STATS_*).  Queues that the model has
 * already get rates since that look, and keep their past unless it is asked for
 * anew.  Returns 0, or -1 with the error in the model, which keeps its queues; the
 * next call connects anew. */
int collect_try(struct collector *, int wanted, struct model *);
void collect_stats(struct collector *, int wanted, struct model *);
/* Sets the gaps in the numbers, as collect_try() does, too. */
void collect_lacks(struct collector *, struct model *);
int collect_runs_try(struct collector *, struct model *);
void collect_runs(struct collector *, struct model *);
/* Adds batches of the model's queues, unless the user may not see these. */
void collect_batches(struct collector *, struct model *);
/* Sets hints for queues that do not exist. */
void collect_elsewhere(struct collector *, struct model *);

/* --- message ------------------------------------------------------------ */

/* A message, as outputs show it.  Strings belong to the envelope. */
struct message {
	const struct mq_item *item;
	enum mq_state state;
	struct mq_envelope envelope; /* after a bad header, all is payload */
	const char *id;		     /* NULL: none */
	const char *reason;	     /* why the last run failed; NULL: none */
	long attempts;		     /* runs that ended */
	/* The time when the message became claimable, a delayed one was published,
	 * or a rejected one last failed, unix ms; 0: not known. */
	int64_t since_ms;
	char bad[80]; /* why the header is bad; else empty */
};

/* Parses an item, which must live as long as the message; the caller frees the
 * envelope. */
void message_unpack(struct message *, const struct mq_item *, enum mq_state);

/* Returns a new object with all facts of a message but id, headers and payload. */
json_t *message_facts(const struct message *);

/* Returns how long a message keeps its key, as --unique has it. */
const char *message_unique(const struct mq_envelope *);

/* Returns a new object with headers that do not begin with Mq-; NULL for a raw
 * message. */
json_t *message_headers(const struct message *);

/* Adds such headers, the size of the payload, and, if wanted, the payload itself. */
void message_set_content(json_t *, const struct message *, bool payload);

/* --- outputs ------------------------------------------------------------ */

/* Each output prints a model that collect.c has filled, and knows no other output.
 * Outputs with a collector walk through messages of queues that the model has. */

/* Prints the table of --watch again and again, until the user quits. */
void watch(struct collector *, const struct stats_options *, struct model *);

/* Prints the object of --json.  The model has the policy. */
void json_print(const struct model *, bool connections);
/* Returns that object; page: without counters and past of queues. */
json_t *model_json(const struct model *, bool connections, bool page);

/* Prints JSON of the model's only queue for --http: its numbers, messages, and
 * reasons.  The model has all counts and rejected messages. */
void contents_print(struct collector *, const struct model *, bool payloads);

/* Prints the metrics of --prometheus.  The model has connections, all counts, and
 * the policy. */
void prometheus_print(const struct model *);

/* Prints --list: messages of one queue in one state, of any number in bounded
 * memory.  For MQ_UNACKED, the model has connections.  Returns whether any message
 * was shown; sets *seen to the number of messages read. */
bool list_print(struct collector *, const struct stats_options *,
    const struct model *, long *seen);

/* Prints --list done or ended: the ends that a queue keeps, of any number, and the rejected
 * messages.  Returns whether any was shown; else says why. */
bool ended_print(
    struct collector *, const struct stats_options *, const struct model *);

/* A list on its way out: its form, and how far it is. */
struct listing {
	const struct stats_options *options;
	bool json, terminal;
	bool people; /* a table */
	long limit;  /* -1: none */
	long skipped, shown;
	bool more; /* more matched than the limit */
};
void listing_begin(struct listing *, const struct stats_options *);
/* Whether a row that matches is to be shown; if not, *more: a later one may be. */
bool listing_takes(struct listing *, bool *more);
/* Prints a row in a framing.  facts: its members in JSON, taken; whole: beside id, queue, headers
 * and payload, which are added. */
void listing_frame(struct listing *, const char *id, const struct mq_envelope *,
    json_t *facts, bool whole);
/* Closes the list, and says if the limit of a screen has cut it.  what: its messages in a word. */
void listing_end(const struct listing *, const char *what);

/* Reads copies of the last messages of a walk, at least `wanted` if there are as many;
 * list_free() frees them. */
void list_newest(struct mq_search *, long wanted, struct mq_scan *);
void list_free(struct mq_scan *);
/* How many to skip of a number of messages without a filter, so that the limit's newest stay;
 * *wanted: the number that stays. */
long list_skip(const struct listing *, long long count, long *wanted);

/* Prints --reasons: groups of the reasons of a queue's rejected messages that match.
 * Returns whether any matched; sets *seen to the number of messages read. */
bool reasons_print(struct collector *, const struct stats_options *,
    const struct model *, long *seen);

/* Returns a new object with at most a number of these groups. */
json_t *reasons_json(const struct reasons *, const char *queue, int shown);
/* Returns a new list of such objects, with the newest messages, for the queues that
 * have rejected messages. */
json_t *rejected_json(const struct model *);

/* Adds the newest rejected messages of the model's queues, and their reasons, to the
 * model. */
void rejected_collect(struct collector *, struct model *);
/* Fills a model with one queue, its newest rejected messages, and its next messages
 * in other states.  Returns as collect_try(). */
int rejected_one(struct collector *, const char *queue, struct model *);

/* Prints the message of --id, wherever it is, or the record of its end; returns
 * whether either exists.  Collects the model itself, and reports queues that do not
 * exist. */
bool one_print(
    struct collector *, const struct stats_options *, struct model *);

/* Prints the kept output of the message of --id, and with --follow what comes until the end of its
 * run; false: there is none, or its consumer is gone.  Collects the model itself. */
bool output_print(
    struct collector *, const struct stats_options *, struct model *);
/* Returns the last 4 KiB of kept output, escaped; NULL: there is none. */
json_t *output_member(struct collector *, const struct model *, const char *id);

/* Fill tables of the model's rejected messages: groups of reasons for each queue,
 * and the newest messages. */
void reasons_fill(const struct model *, struct table *);
void rejected_fill(const struct model *, struct table *);

/* Prints the page of --html.  The model has connections, runs, and rejected
 * messages.  refresh: seconds after which the page reads itself again; 0: never.
 * served: --http serves the page, which links to its other answers. */
void html_print(const struct model *, long refresh, bool served);

/* Parts of the page that are files of their own, and the page's
 * Content-Security-Policy. */
extern const char page_css[], page_js[], page_policy[];

/* Asks for the state of the server, with warnings, and prints --server. */
void server_print(struct collector *, bool json);

/* --- spool: messages on this host's disk -------------------------------------- */

/* Prints what waits; returns the exit status. */
int spool_print(bool json, bool quiet);
/* Since when the oldest waits, in unix ms; 0: none does. */
int64_t spool_since(void);

/* Finds the server, asks for queues, and prints the line of --check; returns the
 * exit status of a monitoring plugin. */
int checks_print(struct collector *, struct stats_options *, struct model *);

#endif
