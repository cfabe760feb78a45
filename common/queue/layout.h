/* The parts that both layouts share, and the headers that nearly all files of this folder
 * need. */
#ifndef MQ_LAYOUT_H
#define MQ_LAYOUT_H

#include <sys/param.h>

#include <string.h>

#include "base/xalloc.h"
#include "scripts.h"
#include "stats.h"

/* --- parts -------------------------------------------------------------- */

/* Declares what of a layout's table is in other files of its folder than the table. */
#define MQ_LAYOUT_PART(layout, member)                                         \
	__typeof__(*((struct mq_layout *)0)->member) layout##_##member
#define MQ_LAYOUT_PARTS(layout)                                                \
	extern const struct mq_right layout##_rights[];                        \
	extern const struct mq_side layout##_side;                             \
	MQ_LAYOUT_PART(layout, queue_error);                                   \
	MQ_LAYOUT_PART(layout, clean);                                         \
	MQ_LAYOUT_PART(layout, drained);                                       \
	MQ_LAYOUT_PART(layout, stats);                                         \
	MQ_LAYOUT_PART(layout, running);                                       \
	MQ_LAYOUT_PART(layout, scan);                                          \
	MQ_LAYOUT_PART(layout, take);                                          \
	MQ_LAYOUT_PART(layout, move);                                          \
	MQ_LAYOUT_PART(layout, delete_queue)

/* The members that both tables have: a function is named for the layout and its member. */
#define MQ_LAYOUT_TABLE(l)                                                     \
	.name = #l, .rights = l##_rights, .side = &l##_side,                   \
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

/* The counts of a queue: a hash that lua/count.lua writes.  The arguments of an HMGET
 * behind the key, and its reply.  wanted: as of mq_layout.stats().  -1: makes no sense. */
void mq_counts_ask(struct mq_command *, int wanted);
int mq_counts_take(const redisReply *, int64_t now_ms, struct mq_queue_stats *);

/* --- side --------------------------------------------------------------- */

/* The data that all layouts keep beside a queue in the same way. */
struct mq_side {
	/* Appends keys of a queue to a command, for each word one: paused, counters,
	 * settings, stop (see stats.h), minutes, hours (see stats.c), watch, idle (see
	 * lua/lib/role.lua), cleaning: who cleans it; with MQ_HAS_TICKS clock, with
	 * MQ_HAS_RESULTS result::ID. */
	void (*key)(struct mq_command *, const char *queue, const char *words);
	const char *publisher; /* of its marks; with its id behind this */
	/* Without this key nothing is counted, as the queue does not exist; NULL:
	 * queues without any key do. */
	const char *exists;
	const char *claimable; /* there, if it has any message to be claimed */
	const char *watched;   /* those whose changes may make one claimable */
	/* The same for keys that are not of a queue alone.  Of all queues in its namespace
	 * (connection: NULL): names, the set of them; all-cleaning: who cleans them;
	 * all-paused.  Of a connection: runs, what runs there; lease: that it is alive, on
	 * a cluster beside the queue. */
	void (*other)(struct mq_command *, const char *connection,
	    const char *queue, const char *words);
};

/* The setting that the server itself holds publishers to: "N", or "N:HIGH". */
#define MQ_MAX_LENGTH "max-length"

/* How long what runs is kept unless it is renewed, in seconds: as long as a lease. */
#define MQ_SIDE_RUNNING_S 60

/* Adds to the counts of a queue. */
void mq_side_count(const struct mq_side *, struct mq_command *,
    const char *queue, const struct mq_counts *);
/* Puts a request to end a run, or the answer, in its place for ms milliseconds.  Of the
 * run, queue, id, attempt and connection are read. */
void mq_side_stop(const struct mq_side *, struct mq_command *,
    const struct mq_run *, enum mq_stop, int64_t ms);
/* Adds the key with a publisher's marks. */
void mq_side_marks(const struct mq_side *, struct mq_command *,
    const char *queue, const char *publisher);

/* --- arguments of scripts -------------------------------------------------- */

/* A limit; one below 0, which is none, is ''. */
struct mq_arg mq_bound(long long);
const char *mq_when_name(enum mq_when_kind);
const char *mq_claim_why(enum mq_why);

/* --- rows of struct mq_stats, one for each queue ------------------------- */

/* More are not listed for MQ_STATS_FEW. */
#define MQ_FEW_QUEUES 10000

/* Adds the names in an array of strings; those with a NUL, which cannot be asked for, to
 * odd (NULL: nowhere). */
void mq_rows_list(struct mq_names *, const redisReply *, struct mq_names *odd);
/* Makes rows with these names, which it takes, sorted by them, of which nothing is known
 * but whether they are known queues. */
void mq_rows_make(struct mq_stats *, struct mq_names *, bool known);

/* The row of a queue; NULL: there is none.  Rows are sorted by name. */
struct mq_queue_stats *mq_rows_find(const struct mq_stats *, const char *name);

/* Brings the rows into the order, and as often, as their names were given. */
void mq_rows_order(struct mq_stats *, const char *const *names, int count);

/* Makes the connections, of which nothing is known, from an array as of mq_rows_list() and
 * (unless NULL) other names, sorted by name. */
void mq_rows_connections(
    struct mq_stats *, const redisReply *names, const struct mq_names *others);

/* The queues that connections consume: a link for each connection and queue. */
struct mq_consuming {
	struct mq_connection_stats *connection;
	struct mq_consumed *consumed;
	struct mq_queue_stats *row; /* of the queue; NULL: it has none */
};

/* Starts zeroed but for the first three. */
struct mq_links {
	struct mq_stats *out;
	bool wanted; /* the connections are to be listed */
	bool named;  /* only queues with a row are of interest */
	struct mq_consuming *list;
	size_t n;
};

/* Adds a queue that a connection consumes, if it is of interest, where
 * connection->consumed has room for it. */
void mq_links_add(struct mq_links *, struct mq_connection_stats *,
    const char *queue, long long consumers);
/* Nothing is known of the messages and consumers of a queue. */
void mq_rows_unknown(struct mq_queue_stats *);
/* Keeps replies about its host, its pid, and what only mq-lease has, strings or not. */
void mq_links_about(struct mq_connection_stats *, redisReply *const facts[3]);
/* Makes the list, sorted by connection and queue, and counts the connections of each
 * queue; their leases are known. */
void mq_links_list(struct mq_links *);
/* Frees the list, and the connections that are not to be listed: all, unless wanted; then
 * those that have nothing of any row. */
void mq_links_end(struct mq_links *);

/* --- mark --------------------------------------------------------------- */

/* Marks tell what has become of a publisher's batches: see lua/lib/marks.lua.  The server
 * keeps those of the last 16 batches; as many may be under way. */
#define MQ_MARKS 16
/* The marks go 10 minutes after the last of them. */
#define MQ_MARKS_KEEP_MS 600000
/* A mark that is not there was never made, as long as it could not be over. */
#define MQ_MARKS_SURE_MS (MQ_MARKS_KEEP_MS / 2)

/* A number of a mark as an argument; '' without a publisher. */
struct mq_arg mq_marked(const struct mq_mark *, long long);
/* By the reply to HGETALL on the marks, what was the reply to the batch with so many messages
 * before it, empty: all are there; NULL: it has no mark.  *last: so many were before the
 * last batch that was done; -1: none is known. */
const char *mq_mark_find(
    const redisReply *marks, long long before, long long *last);

#endif
