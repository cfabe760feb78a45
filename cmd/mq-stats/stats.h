/*
 * The modules of mq-stats: the command line, what is asked of the server, and the forms in
 * which it is shown.  Includes what most of them need.
 */
#ifndef STATS_H
#define STATS_H

#include "shared/options.h"

/* --- text --------------------------------------------------------------- */

/* A text is visible when it holds nothing that could drive or mislead a terminal. */

struct view {
	int width;  /* columns; 0: any */
	int height; /* lines, the head included; 0: any */
	bool colour;
	bool html; /* for the text of an element */
};
/* Standard output, all of its screen; on a terminal, the user's locale is set for
 * characters. */
struct view text_view(void);

/* Whether characters of the user's locale are UTF-8. */
bool text_is_utf8(void);
/* Columns of a visible text. */
int text_width(const char *visible);
/* Appends a visible text, cut to a number of columns with an ellipsis; returns how
 * many it takes. */
int text_cut(struct mq_buf *out, const char *visible, int columns);

/* What mq_visible() makes of n bytes in at most so many columns: the beginning and an
 * ellipsis, or, of a name, an ellipsis and the end, as ends of names differ. */
char *text_clipped(const char *p, size_t n, int columns);
char *text_clipped_front(const char *name, int columns);
/* Prints "name        text", made visible; nothing when text is NULL. */
void text_line(const char *name, const char *text);

/* Appends a visible text as that of an HTML element: characters that mean something to HTML,
 * and those that a browser does not show, are escaped. */
void text_html(const char *visible, struct mq_buf *out);

/* "12s", "3m", "2h", "1d": whole units, rounded down. */
#define TEXT_AGE 24
void text_age(char out[TEXT_AGE], double seconds);

/* --- fields ------------------------------------------------------------- */

/* The facts of a queue, a connection, a queue that it consumes, and a run, as all outputs
 * have them. */

enum kind {
	KIND_END, /* of a list */
	/* Texts; NULL: there is none. */
	KIND_QUEUE, /* the name of the queue that the record is */
	KIND_NAME,
	KIND_TEXT,
	KIND_REASON, /* empty, it is none, either */
	KIND_CHARS,  /* the same in an array */
	KIND_NOTE,   /* what people must know of a queue */
	KIND_SPARK,  /* how many were ready in the last hour */
	KIND_LIVE,   /* a flag, as a word: whether the connection is */
	KIND_TEXTS = KIND_LIVE,
	/* Numbers. */
	KIND_FLAG,   /* below 0: not known */
	KIND_PAUSED, /* a flag: whether the queue is */
	KIND_NUMBER,
	KIND_COUNT,   /* below 0: not known */
	KIND_SOME,    /* not above 0: there is none */
	KIND_SECONDS, /* the record has milliseconds */
	KIND_PASSED,  /* whole seconds of the run that the record is */
	KIND_AGE, /* since that unix ms; 0: of nothing; below 0: not known */
	KIND_RATE /* a double; below 0: not known */
};

#define SPARE_MAX 4

/* Whether queues have a sum of it: SUM_OWN without what another queue counts already. */
enum sum { SUM_NONE, SUM_OWN, SUM_ALL };

#define FIELD_OF(record, member)                                               \
	.at = offsetof(struct record, member),                                 \
	.size = sizeof(((struct record *)NULL)->member)

struct field {
	const char *name; /* in JSON; NULL: not there */
	enum kind kind;
	size_t at, size;   /* in the record */
	bool optional;	   /* left out of JSON where there is none */
	const char *title; /* of its column; NULL: it has none */
	bool sparse;	   /* no column where all cells are empty */
	int spare;  /* on a narrow terminal, those of 1 go first, and those of
		     * SPARE_MAX last; 0: it stays */
	bool id;    /* a number that counts nothing: a pid; or a text that is of
		    * use only as a whole */
	bool red;   /* above 0 */
	bool grows; /* with a mark, while the queue does */
	/* Of queues. */
	const char *key; /* of --sort and --check; NULL: none */
	int check;	 /* place in the line of --check; 0: none */
	bool least;	 /* of which --check wants enough */
	enum sum sum;
	struct {
		int place; /* from 1 on, in the order of the metrics */
		const char *name, *help;
	} metric;
};

/* More than there are places in the line of --check. */
#define FIELD_CHECKS 8

/* Of these structs: mq_queue_stats (three times), mq_connection_stats, mq_consumed and
 * mq_run. */
extern const struct field queue_fields[], count_fields[], attribute_fields[],
    connection_fields[], consumed_fields[], run_fields[];

/* How long a script has run, by this clock. */
long long run_seconds(const struct mq_run *, int64_t now_ms);

/* NULL: no field of a queue has this key. */
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
	const char *text; /* of the record */
	long long n;	  /* as it is in the record */
	double real;	  /* the same, an age in seconds: 0 of nothing */
};

struct value field_get(
    const struct field *, const void *record, int64_t now_ms);
/* Sets the member; and a new object with all of them. */
void field_set(
    json_t *, const struct field *, const void *record, int64_t now_ms);
json_t *fields_json(const struct field *, const void *record, int64_t now_ms);
/* A new list of records of this size. */
json_t *fields_list(const struct field *, const void *records, size_t size,
    int count, int64_t now_ms);

/* --- table: for a terminal and for a page ---------------------------------- */

enum style {
	STYLE_PLAIN,
	STYLE_RED,
	STYLE_YELLOW,
	STYLE_GROWS, /* with a "+" in the gap behind it */
	STYLE_SPARK  /* levels, '0' to '7', or blanks, until it is written */
};

struct cell {
	size_t at; /* where its text begins */
	int width; /* columns of a terminal */
	enum style style;
};

/* No list of fields has more. */
#define COLUMNS_MAX 32

/* Cells are added row by row. */
struct table {
	const struct field *columns[COLUMNS_MAX];
	int count;
	int first;	/* columns of the first record of a row */
	bool total;	/* the last row is one */
	bool rest;	/* so is the one before: of rows that are not there */
	int marked;	/* this row, from 1 on; 0: none */
	int64_t now_ms; /* the time by which ages are told */
	struct mq_buf text;
	struct cell *cells;
	size_t used, cap;
};

/* Begins a table of records, or of two records a row (second NULL: of one). */
void table_begin(struct table *, const struct field *first,
    const struct field *second, int64_t now_ms);
/* Adds a row; a record that is NULL has nothing to show. */
void table_add(struct table *, const void *first, const void *second);

/* The rows that are no sums. */
size_t table_rows(const struct table *);

/* Appends the lines of the table; rows that have no room are counted. */
void table_write(const struct table *, const struct view *, struct mq_buf *out);
/* The same to standard output; frees the table. */
void table_print(struct table *);
void table_free(struct table *);

/* --- reasons ------------------------------------------------------------ */

/* Bytes of a reason that are compared and kept. */
#define REASON_BYTES 300

/* A group: reasons that differ only in numbers and ids are one. */
struct reason {
	char *text;   /* with N and ID for numbers and ids; empty: none */
	char *newest; /* the reason of the newest message, as it is */
	char *id;     /* of that message; NULL: none */
	long count;
	int64_t oldest_ms, newest_ms; /* unix ms; 0: not known */
};

struct reasons {
	struct reason *list; /* the most frequent first */
	int count;
	long others; /* messages that are in no group */
};

/* Writes a reason (NULL: none) as the text of its group is. */
void reason_fold(const char *reason, char out[REASON_BYTES + 1]);

struct rejected {
	char *id, *reason; /* NULL: none was recorded */
	const char *state; /* NULL: it is; else of another message */
	int64_t at_ms;	   /* when; 0: not known */
	long attempts;
};

/* The newest rejected messages of a queue. */
struct rejections {
	struct rejected *all; /* the newest first */
	int count;
	struct reasons reasons;
	bool cut; /* there are more than were looked at */
};

void reasons_free(struct reasons *);

/* --- model -------------------------------------------------------------- */

/* Which queues a table shows, and in which order.  Zeroed: all, as they come. */
struct order {
	const struct field *key; /* names ascend, numbers descend */
	bool reverse;
	bool nonempty; /* only queues that have a message, or may have one */
	/* The queue whose row is marked, or, without it, the first; NULL: none. */
	const char *marked;
	long limit; /* queues, messages or reasons; not above 0: any number */
};

/* The server and its queues: collect.c fills a model, outputs only read it. */
struct model {
	const char *server;    /* its name */
	struct order order;    /* of the queues in tables */
	char error[512];       /* why nothing is known; empty: it is */
	struct mq_names lacks; /* what the numbers lack, and why: ... */
	int lost;	       /* ... nodes of a cluster, and then keys */
	struct mq_stats stats;
	struct mq_info info; /* the policy */
	struct mq_runs runs;
	/* Of each queue: what may have been meant if there is none, else NULL. */
	struct mq_names elsewhere;
	struct rejections *rejected; /* of each queue */
};

/* The queues of m->stats in their order, without regard to its limit, and which of these
 * is marked; the caller frees. */
const struct mq_queue_stats **order_rows(
    const struct model *, int *count, int *marked);

/* A sum of queues, and one more of them in it. */
#define SUM_BEGIN                                                              \
	{                                                                      \
		.in_s = -1, .out_s = -1                                        \
	}
void sum_add(struct mq_queue_stats *sum, const struct mq_queue_stats *);

/* All queues together, each once; oldest_ms and rates where any is known. */
struct mq_queue_stats model_total(const struct model *);

/* Tables that table_free() frees: of queues, where those that do not fit into so many lines
 * (0: any) are summed up in one, or of connections; and of runs. */
void tables_fill(
    const struct model *, bool connections, int height, struct table *);
void running_fill(const struct model *, int64_t now_ms, struct table *);

/* Reports the queues that do not exist; returns whether all do. */
bool model_report_missing(const struct model *);
void model_report_lacks(const struct model *);

void model_free(struct model *);

/* --- options ------------------------------------------------------------ */

struct list_options {
	enum mq_state state;
	struct mq_filter filter;
	bool newest;		 /* the newest first */
	long offset;		 /* messages that are left out first */
	enum mq_framing framing; /* WHOLE: a table for people */
};

/* The subject of the output... */
enum subject {
	SUBJECT_QUEUES, /* or connections */
	SUBJECT_LIST,
	SUBJECT_REASONS,
	SUBJECT_RUNNING,
	SUBJECT_ONE,
	SUBJECT_HTML,
	SUBJECT_SERVER,
	SUBJECT_HTTP, /* until the request is known */
	SUBJECT_CONTENTS,
	SUBJECT_HEALTH
};

/* ...and its form. */
enum format {
	FORMAT_TABLE, /* or as the subject is shown to people */
	FORMAT_JSON,
	FORMAT_PROMETHEUS,
	FORMAT_CHECK
};

struct stats_options {
	struct mq_shared shared;
	enum subject subject;
	enum format format;
	const char *subject_name; /* the option; NULL: none */
	const char *format_name;
	struct list_options list; /* also what --reasons and --id take */
	bool connections;	  /* instead of queues, or with them */
	int64_t interval_ms;	  /* of --watch; 0: once */
	struct order order;	  /* of the queues in a table */
	const char *checks;	  /* of --check */
	long refresh;		  /* of --html; 0: none */
	bool payloads;		  /* are shown */
	bool requested;		  /* by --http */
	bool again;		  /* by a page, which knows what was */
	int port;		  /* of --http; 0: any; -1: stdin */
	struct mq_names hosts;	  /* of its requests */
	char *name;		  /* what its path ends with, own */
	char *only;		  /* name, as the queue that it is about */
	char **queues;		  /* NS:QUEUE once the layout is known */
	int count;
};

/* Ends with exit 64 when the user got it wrong.  options_free() frees. */
void options_parse(struct stats_options *, int argc, char *argv[]);
/* --http: receives a request, and returns in a child process, with the options that print
 * what is asked for; the program itself answers and ends.  With a port, for each connection
 * in a process of its own; the first process ends only by a signal, or if it cannot
 * listen. */
void options_serve(struct stats_options *);
void options_free(struct stats_options *);

/* --- collect ------------------------------------------------------------ */

/* Asks the server for what outputs show, of all queues or those that are named.  It connects
 * when it must; what cannot go on ends the program, but for collect_try(). */
struct collector {
	const struct mq_layout *layout;
	struct mq_server server;
	const char *const *queues;
	int count;
	int past; /* that of queues is wanted, of so many at most */
	struct mq_redis redis; /* of the module, until it is closed */
};

/* Takes the queues of the options, now that the layout is known. */
void collect_queues(struct collector *, struct stats_options *);

/* Connects, unless it has; returns 0, or -1 with the error of the connection. */
int collect_open(struct collector *);

/* The queues, and what else is wanted (MQ_STATS_*).  Of queues that the model has, the
 * rates are those since then, and the past is kept unless it is wanted anew.  Returns 0, or
 * -1 with the error in the model, which keeps its queues; the next call connects anew. */
int collect_try(struct collector *, int wanted, struct model *);
void collect_stats(struct collector *, int wanted, struct model *);
/* What the numbers lack; collect_try() does so, too. */
void collect_lacks(struct collector *, struct model *);
void collect_runs(struct collector *, struct model *);
/* For queues that do not exist. */
void collect_elsewhere(struct collector *, struct model *);

/* --- message ------------------------------------------------------------ */

/* One message, as outputs show it.  The strings are in the envelope. */
struct message {
	const struct mq_item *item;
	enum mq_state state;
	struct mq_envelope envelope; /* with a bad header: all is payload */
	const char *id;		     /* NULL: none */
	const char *reason;	     /* why its last run failed; NULL: none */
	long attempts;		     /* runs that ended */
	/* When it became claimable, was published (a delayed one), or last failed (a
	 * rejected one), unix ms; 0: not known. */
	int64_t since_ms;
	char bad[80]; /* the reason of a bad header; else empty */
};

/* Takes a message apart, whose item must stay as long as the message; the caller frees the
 * envelope. */
void message_unpack(struct message *, const struct mq_item *, enum mq_state);

/* A new object with all that is known of a message but for id, headers and payload. */
json_t *message_facts(const struct message *);

/* How long it keeps its key. */
const char *message_unique(const struct mq_envelope *);

/* The headers that are not ours: a new object, or NULL for a raw message. */
json_t *message_headers(const struct message *);

/* Adds these, the size of the payload, and the payload itself if it is wanted. */
void message_set_content(json_t *, const struct message *, bool payload);

/* --- outputs ------------------------------------------------------------ */

/* Each prints a model that collect.c has filled, and knows no other output.  Those that get
 * the collector walk through messages; the model has the queue then. */

/* --watch: the table again and again.  Returns when the user has had enough. */
void watch(struct collector *, const struct stats_options *, struct model *);

/* --json: everything as one object.  The model has the policy. */
void json_print(const struct model *, bool connections);
/* The same as a new object; page: without counters and past of queues. */
json_t *model_json(const struct model *, bool connections, bool page);

/* --http: what is in the only queue of the model, which has all counts, and what was
 * rejected: its numbers, its messages, and why those that were rejected were so. */
void contents_print(struct collector *, const struct model *, bool payloads);

/* --prometheus: metrics.  The model has connections, all counts, and the policy. */
void prometheus_print(const struct model *);

/* --list: the messages in one state of one queue; any number passes through little memory.
 * The model has connections, of UNACKED.  Returns whether any was shown; sets *seen, of a
 * queue that exists, to how many were looked at. */
bool list_print(struct collector *, const struct stats_options *,
    const struct model *, long *seen);

/* --reasons: why the rejected messages of a queue that match were rejected, in groups.
 * Returns and sets the same. */
bool reasons_print(struct collector *, const struct stats_options *,
    const struct model *, long *seen);

/* The same as JSON, up to a number of reasons: a new object. */
json_t *reasons_json(const struct reasons *, const char *queue, int shown);
/* The tables below as JSON: a new list of such objects, with the newest messages, of queues
 * that have any. */
json_t *rejected_json(const struct model *);

/* For the model: the newest rejected messages of its queues, and their reasons. */
void rejected_collect(struct collector *, struct model *);
/* One queue alone, the same of it, and the next messages of each other state.  Returns as
 * collect_try(). */
int rejected_one(struct collector *, const char *queue, struct model *);

/* --id: prints the message, wherever it is, or what is kept of its end; returns whether
 * there is any.  Looks by itself, and reports queues that do not exist. */
bool one_print(
    struct collector *, const struct stats_options *, struct model *);

/* Tables of the model, which has what was rejected: why the rejected messages of each queue
 * were, in groups, and the newest of them. */
void reasons_fill(const struct model *, struct table *);
void rejected_fill(const struct model *, struct table *);

/* --html: everything on one page.  The model has connections, runs, and what was
 * rejected.  refresh: seconds after which the page reads itself again; 0: never.
 * served: by --http, to whose other answers it has links. */
void html_print(const struct model *, long refresh, bool served);

/* The parts of that page that are files of their own, and its Content-Security-Policy. */
extern const char page_css[], page_js[], page_policy[];

/* --server: the server itself, and what is wrong with it.  Asks by itself. */
void server_print(struct collector *, bool json);

/* --check, a monitoring plugin: prints how things are, or why nothing is known; returns the
 * exit status of a plugin.  Finds the server and asks by itself. */
int checks_print(struct collector *, struct stats_options *, struct model *);

#endif
