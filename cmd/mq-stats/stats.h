/*
 * mq-stats: the outputs.  What cannot go on ends the program, but for --check
 * and --watch, which tell it in their own way.
 */
#ifndef MQ_STATS_H
#define MQ_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "look.h"
#include "queue/queue.h"
#include "redis/info.h"
#include "shared/options.h"

/* What is to be shown, and how: one of these. */
enum stats_output {
	STATS_TABLE,
	STATS_JSON,
	STATS_PROMETHEUS,
	STATS_CHECK,
	STATS_OUTPUTS
};

struct stats_options {
	struct mq_shared shared;
	enum stats_output output;
	struct look_options look; /* or something of this, as JSON or not */
	bool connections;
	int64_t watch_ms;   /* 0: once */
	const char *checks; /* of --check */
	char **queues;	    /* NS:QUEUE once the layout is known */
	int count;
};

/* The server, and what to ask it. */
struct stats_source {
	const struct stats_options *options;
	const struct mq_layout *layout;
	struct mq_server server;
	struct mq_redis redis;
	bool open;
};

/* Asks for everything, connecting if need be.  Returns 0, or -1 with the
 * error in redis; the next call connects anew. */
int stats_fetch(struct stats_source *, int wanted, struct mq_stats *);
void stats_close(struct stats_source *);

/* --- tables ------------------------------------------------------------------ */

enum stats_style { STATS_PLAIN, STATS_RED, STATS_YELLOW };

struct stats_column {
	const char *title;
	bool text;     /* to the left, and cut where there is no room */
	bool optional; /* left out when all its cells are empty */
};

struct stats_cell {
	size_t at; /* where its text begins */
	int width; /* columns of a terminal */
	enum stats_style style;
};

/* Cells are added row by row.  Starts zeroed but for columns and count. */
struct stats_table {
	const struct stats_column *columns;
	int count;
	bool total; /* the last row is one */
	struct mq_buf text;
	struct stats_cell *cells;
	size_t used, cap;
};

/* Where it is shown. */
struct stats_view {
	int width;  /* columns; 0: any */
	int height; /* lines, the head included; 0: any */
	bool colour;
};

/* What a table on standard output may do. */
struct stats_view stats_view_stdout(void);

/* Text from elsewhere: it is made fit for a terminal. */
void stats_table_name(struct stats_table *, const char *name, enum stats_style);
/* Plain ASCII of ours. */
void stats_table_text(struct stats_table *, const char *text, enum stats_style);
void stats_table_number(struct stats_table *, long long, enum stats_style);

/* Appends the lines of the table; rows that have no room are counted. */
void stats_table_write(
    const struct stats_table *, const struct stats_view *, struct mq_buf *out);
void stats_table_free(struct stats_table *);

/* Appends a visible text, cut to so many columns with an ellipsis; returns how
 * many it takes. */
int stats_cut(struct mq_buf *out, const char *visible, int columns);
int stats_width(const char *visible);
/* The end of a visible text instead, for names that end with what tells them
 * apart.  The caller frees. */
char *stats_cut_front(const char *visible, int columns);

void stats_queues_table(const struct mq_stats *, struct stats_table *);
void stats_connections_table(const struct mq_stats *, struct stats_table *);

/* --- numbers ----------------------------------------------------------------- */

/* How long ago that was, in seconds, not below 0. */
double stats_age_s(const struct mq_stats *, int64_t since_ms);
/* "12s", "3m", "2h", "1d": whole units, rounded down. */
void stats_age_text(char *, size_t, double seconds);

/* All queues together, each once; oldest_ms and rates where any is known. */
struct mq_queue_stats stats_total(const struct mq_stats *);
/* Whether row i is of a queue that an earlier row is of, too. */
bool stats_repeated(const struct mq_stats *, int i);

/* Says which named queues do not exist; returns the exit status. */
int stats_check_known(
    struct mq_redis *, const struct mq_layout *, const struct mq_stats *);

/* --- outputs ----------------------------------------------------------------- */

/* Of struct mq_info they use the policy. */
void stats_json(
    const struct mq_stats *, const struct mq_info *, bool connections);
void stats_prometheus(const struct mq_stats *, const struct mq_info *);
/* Parses what --check is given, or ends with exit 64. */
struct stats_checks;
struct stats_checks *stats_checks_parse(const char *);
/* Returns the exit status of a monitoring plugin. */
int stats_check(struct stats_source *, const struct stats_checks *);
/* The same for one that could not ask, and why. */
int stats_check_failed(const char *why);
void stats_checks_free(struct stats_checks *);
/* Returns when the user had enough. */
void stats_watch(struct stats_source *);

/* --- the terminal ------------------------------------------------------------- */

/*
 * Takes the terminal for a full screen: the alternate one, keys without echo.
 * It is given back by stats_screen_leave(), and whenever a signal ends or stops
 * the program.
 */
void stats_screen_enter(void);
void stats_screen_leave(void);
/* Waits for a key (returned), a signal that wants the screen drawn anew (0), or
 * the time to be over (-1). */
int stats_screen_wait(int64_t ms);

#endif
