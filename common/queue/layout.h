/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Parts that both layouts share; and the includes that nearly all files here need. */
#ifndef MQ_LAYOUT_H
#define MQ_LAYOUT_H

#include <sys/param.h>

#include <string.h>

#include "base/xalloc.h"
#include "scripts.h"
#include "stats.h"

/* --- parts -------------------------------------------------------------- */

/* Declares the members of a layout's table that are defined in other files than the table. */
#define MQ_LAYOUT_PART(layout, member)                                         \
	__typeof__(*((struct mq_layout *)0)->member) layout##_##member
#define MQ_LAYOUT_PARTS(layout)                                                \
	extern const struct mq_right layout##_rights[];                        \
	extern const struct mq_extra_keys layout##_extra_keys;                 \
	MQ_LAYOUT_PART(layout, queue_error);                                   \
	MQ_LAYOUT_PART(layout, clean);                                         \
	MQ_LAYOUT_PART(layout, drained);                                       \
	MQ_LAYOUT_PART(layout, stats);                                         \
	MQ_LAYOUT_PART(layout, running);                                       \
	MQ_LAYOUT_PART(layout, scan);                                          \
	MQ_LAYOUT_PART(layout, take);                                          \
	MQ_LAYOUT_PART(layout, move);                                          \
	MQ_LAYOUT_PART(layout, delete_queue)

/* The members that both tables have, with functions named LAYOUT_MEMBER. */
#define MQ_LAYOUT_TABLE(l)                                                     \
	.name = #l, .rights = l##_rights, .extra = &l##_extra_keys,            \
	.look = &l##_script_look, .queue_error = l##_queue_error,              \
	.open = l##_open, .known = l##_known, .probe = l##_probe,              \
	.publish = l##_publish, .publish_add = l##_publish_add,                \
	.join = l##_join, .leave = l##_leave, .renew = l##_renew,              \
	.claim = l##_claim, .settle = l##_settle,                              \
	.ack_oldest = l##_ack_oldest, .give_back = l##_give_back,              \
	.held = l##_held, .receipts = l##_receipts, .receipt = l##_receipt,    \
	.clean = l##_clean, .drained = l##_drained, .stats = l##_stats,        \
	.running = l##_running, .scan = l##_scan, .take = l##_take,            \
	.move = l##_move, .delete_queue = l##_delete_queue

/* --- counts ------------------------------------------------------------- */

/* Add the fields of a queue's counts, a hash that lua/count.lua writes, to the arguments of a
 * script, and parse their values, the elements of its reply from `from` on.  wanted: as in
 * mq_layout.stats().  -1: the reply is malformed. */
void mq_counts_ask(struct mq_command *, int wanted);
int mq_counts_parse(
    const redisReply *, size_t from, int64_t now_ms, struct mq_queue_stats *);

/* --- extra keys --------------------------------------------------------- */

/* Keys that all layouts have beside a queue. */
struct mq_extra_keys {
	/* Adds keys of a queue to a command, one for each word: paused, counters, settings,
	 * stop (see stats.h), minutes, hours (see stats.c), watch, idle (see
	 * lua/lib/role.lua), cleaning (its cleaner); with MQ_HAS_TICKS clock, with
	 * MQ_HAS_RESULTS result::ID. */
	void (*key)(struct mq_command *, const char *queue, const char *words);
	const char *publisher; /* word for marks, before the publisher's id */
	/* Word of the key without which the queue does not exist, and nothing is counted;
	 * NULL: a queue needs no key. */
	const char *exists;
	const char *claimable; /* word of the key with claimable messages */
	const char *watched;   /* words of keys that change with those */
	/* Adds keys of several queues to a command.  In the queue's namespace (connection
	 * NULL): names, the set of queues; all-cleaning, their cleaner; all-paused.  Of a
	 * connection: runs, its current runs; lease, there while it is alive, on a cluster
	 * in the queue's slot. */
	void (*other)(struct mq_command *, const char *connection,
	    const char *queue, const char *words);
};

/* The setting that scripts enforce: "N", or "N:HIGH". */
#define MQ_MAX_LENGTH "max-length"

/* Seconds after which a report of runs expires unless it is renewed, like a lease. */
#define MQ_RUNNING_S 60

/* Builds a command that adds to the counts of a queue. */
void mq_extra_count(const struct mq_extra_keys *, struct mq_command *,
    const char *queue, const struct mq_counts *);
/* Builds a command that stores a request to end a run, or the answer, for ms milliseconds.
 * Reads queue, id, attempt and connection of the run. */
void mq_extra_stop(const struct mq_extra_keys *, struct mq_command *,
    const struct mq_run *, enum mq_stop, int64_t ms);
/* Adds the key with the kept output of a message. */
void mq_extra_output(const struct mq_extra_keys *, struct mq_command *,
    const char *queue, const char *id);
/* Adds the key with a publisher's marks. */
void mq_extra_marks(const struct mq_extra_keys *, struct mq_command *,
    const char *queue, const char *publisher);

/* --- arguments of scripts -------------------------------------------------- */

/* A limit as an argument; '' for one below 0, which means none. */
struct mq_arg mq_bound(long long);
const char *mq_when_name(enum mq_when_kind);
const char *mq_claim_why(enum mq_why);

/* --- rows of struct mq_stats, one for each queue ------------------------- */

#define MQ_FEW_QUEUES 10000 /* most queues that MQ_STATS_FEW lists */

/* Adds the names in an array of strings; a name with a NUL, which no command can have, goes
 * to odd (NULL: nowhere). */
void mq_rows_list(struct mq_names *, const redisReply *, struct mq_names *odd);
/* Makes rows of these names, which are taken, sorted by name and empty except `known`. */
void mq_rows_make(struct mq_stats *, struct mq_names *, bool known);

/* The row of a queue; NULL: there is none.  Rows are sorted by name. */
struct mq_queue_stats *mq_rows_find(const struct mq_stats *, const char *name);

/* Orders and repeats the rows as their names were given. */
void mq_rows_order(struct mq_stats *, const char *const *names, int count);

/* Makes empty connections, sorted by name, from an array of strings and (unless NULL) other
 * names. */
void mq_rows_connections(
    struct mq_stats *, const redisReply *names, const struct mq_names *others);

/* The queues that connections consume: a link for each connection and queue. */
struct mq_consuming {
	struct mq_connection_stats *connection;
	struct mq_consumed *consumed;
	struct mq_queue_stats *row; /* the queue's; NULL: none */
};

/* Starts zeroed except the first three members. */
struct mq_links {
	struct mq_stats *out;
	bool wanted; /* list the connections */
	bool named;  /* only queues with a row count */
	struct mq_consuming *list;
	size_t n;
};

/* Adds a queue that a connection consumes, if it counts; connection->consumed must have
 * room. */
void mq_links_add(struct mq_links *, struct mq_connection_stats *,
    const char *queue, long long consumers);
/* Sets messages and consumers of a queue to unknown. */
void mq_rows_unknown(struct mq_queue_stats *);
/* Stores replies about a connection's host, its pid, and mq-lease's own fact; each may be no
 * string. */
void mq_links_about(struct mq_connection_stats *, redisReply *const facts[3]);
/* Makes the list, sorted by connection and queue, and counts the connections of each queue.
 * The leases must be known. */
void mq_links_list(struct mq_links *);
/* Frees the list, and all connections unless wanted, else those without any row. */
void mq_links_end(struct mq_links *);

/* --- mark --------------------------------------------------------------- */

/* Marks prove which of a publisher's batches were done: see lua/lib/marks.lua.  The server
 * keeps those of the last 16 batches, and no more batches may be under way. */
#define MQ_MARKS	 16
#define MQ_MARKS_KEEP_MS 600000 /* life of the marks after the last one */
/* A missing mark younger than this proves that its batch was not done. */
#define MQ_MARKS_SURE_MS (MQ_MARKS_KEEP_MS / 2)
/* Marks with a place from MQ_MARKS on last: */
#define MQ_MARKS_LONG_MS      ((int64_t)30 * 24 * 3600 * 1000)
#define MQ_MARKS_LONG_SURE_MS ((int64_t)29 * 24 * 3600 * 1000)

/* A number of a mark as an argument; '' without a publisher. */
struct mq_arg mq_marked(const struct mq_mark *, long long);

#endif
