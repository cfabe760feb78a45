/*
 * mq-stats on single messages and runs: --list, --reasons, --id, --running, and
 * what the page of --html has of them.  What cannot go on ends the program.
 */
#ifndef MQ_STATS_LOOK_H
#define MQ_STATS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "message/frame.h"
#include "queue/queue.h"
#include "queue/running.h"
#include "shared/filter.h"

/* Where to look, and how to tell. */
struct look {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const char *const *queues; /* the operands */
	int count;
	bool json, quiet;
};

/* What is on a message; the strings are in the envelope. */
struct shown {
	struct mq_envelope envelope; /* with a bad header: all is payload */
	const char *id;		     /* NULL: none */
	const char *reason;	     /* why its last run failed; NULL: none */
	long attempts;		     /* runs that ended */
	int64_t since_ms; /* see show_open(); unix ms, 0: not known */
	char bad[80];	  /* the reason of a bad header; else empty */
};

/*
 * Takes a message apart.  since_ms is when it became claimable; when it was
 * published, while it is delayed; when it last failed, once it is rejected.
 * show_close() frees; the element must stay until then.
 */
void show_open(struct shown *, const struct mq_item *, enum mq_state);
void show_close(struct shown *);

/* Its facts as JSON: a new object with state, attempts and, where they are
 * known, since_ms, what it waits for, connection, reason, what it asks for, and
 * history. */
json_t *show_facts(const struct shown *, const struct mq_item *, enum mq_state);

/* How long it keeps its key. */
const char *show_unique(const struct mq_envelope *);

/* The headers that are not ours: a new object, or NULL for a raw message. */
json_t *show_headers(const struct shown *);

/* What runs, of the queues that were asked for; mq_runs_free() frees. */
void look_runs(struct look *, struct mq_runs *);
/* One that runs, or NULL. */
const struct mq_run *show_run(const struct mq_runs *, const char *id);
/* How long it has run, by this clock. */
long long show_run_s(const struct mq_run *, int64_t now_ms);
/* All of it, as a new JSON object. */
json_t *show_run_json(const struct mq_run *, int64_t now_ms);

/* The character that starts at p and its bytes; 0 when none does. */
size_t show_char(const char *p, size_t n, uint32_t *c);
/* Whether it is a control character, is not seen, or turns the direction of
 * what stands around it. */
bool show_odd(uint32_t c);

/* Writes JSON text with characters that could drive or mislead a terminal as
 * \uXXXX, which says the same. */
void show_json(const char *p, size_t n);

/* stats_age_text(), or "-" when since_ms is not known. */
void show_age(char out[24], int64_t now_ms, int64_t since_ms);
/* As RFC 3339 has it, in local time. */
void show_time(char out[40], int64_t unix_ms);

/* mq_visible(), which never fails here. */
char *show_visible(const char *p, size_t n);
/* "name        text", made visible; nothing when text is NULL. */
void show_line(const char *name, const char *text);
/* The beginning of n bytes, visible, at most so many columns wide; what is cut
 * ends with an ellipsis.  The caller frees. */
char *show_clipped(const char *p, size_t n, int columns);

/* What --list shows. */
struct list {
	enum mq_state state;
	struct mq_filter filter;
	long offset; /* messages that are left out first */
	long limit;  /* -1: all, or a screenful */
	bool framed;
	enum mq_framing framing;
};

/* What the command line asks for. */
enum look_kind {
	LOOK_NONE,
	LOOK_LIST,
	LOOK_REASONS,
	LOOK_RUNNING,
	LOOK_ID,
	LOOK_HTML
};

struct look_options {
	enum look_kind kind;
	struct list list; /* also what --reasons takes; limit starts as -1 */
	long refresh;	  /* of --html; 0: none */
	bool offset;	  /* was given */
};

/* Numbers of the long options without a letter. */
enum {
	LOOK_OPT_LIST = MQ_OPT_OWN + 500,
	LOOK_OPT_OFFSET,
	LOOK_OPT_REASONS,
	LOOK_OPT_RUNNING,
	LOOK_OPT_HTML,
	LOOK_OPT_REFRESH
};

/* Takes one of them, 'n', a framing or a filter; false: it is another one. */
bool look_option(struct look_options *, int ch, const char *arg);
/* Ends with exit 64 when they do not go together. */
void look_check(const struct look_options *, bool json, int operands);
/* The option that says what is to be shown; NULL: none of these does. */
const char *look_name(const struct look_options *);
/* Does it; returns the exit status. */
int look_run(struct look *, const struct look_options *);

/* These print, and return the exit status. */
int look_list(struct look *, const struct list *);
int look_reasons(struct look *, const struct list *);
int look_running(struct look *);
int look_id(struct look *, const char *id);
/* refresh: seconds, 0: none. */
int look_html(struct look *, long refresh);

#endif
