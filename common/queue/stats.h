/* What operators see of a queue, of connections, and of what runs. */
#ifndef MQ_STATS_H
#define MQ_STATS_H

#include "queue.h"

/* --- running ------------------------------------------------------------ */

/*
 * The runs of a consumer: a JSON list of objects that it keeps in the server
 * while scripts run for longer than about a second:
 *
 *	[{"queue": "jobs", "id": "...", "attempt": 1, "pid": 4711,
 *	  "script": "./job --fast", "started_ms": 1795207725000,
 *	  "grace_ms": 25000, "text": "what it last said with a verb"}, ...]
 *
 * Readers ignore members that they do not know.
 */
struct mq_run {
	char *connection, *host; /* host may be NULL; not in the text */
	char *queue, *id, *script, *text;
	long attempt, pid;
	int64_t started_ms; /* unix ms, by the clock of its host */
	/* From TERM to KILL, if it is stopped; -1: its consumer cannot do that. */
	int64_t grace_ms;
};

struct mq_runs {
	struct mq_run *runs;
	int count;
	struct mq_names wrong; /* as of mq_stats */
};

/* Appends the text for n runs.  Bytes that are not UTF-8 become '?'. */
void mq_runs_write(const struct mq_run *, int n, struct mq_buf *out);

/* Appends the runs of a text, each with copies of connection and host (may be NULL).  What
 * is not in the form above is left out. */
void mq_runs_read(struct mq_runs *, const char *text, size_t n,
    const char *connection, const char *host);

void mq_runs_free(struct mq_runs *);

/* The n facts that a layout asks about each connection, in their order.  Nothing runs where
 * the lease is over; where that is not asked, such a connection has no host. */
struct mq_run_source {
	/* anywhere: the namespace. */
	void (*ask)(struct mq_command *, const char *question,
	    const char *connection, const char *anywhere);
	struct {
		enum mq_run_fact { MQ_RUN_LEASE, MQ_RUN_HOST, MQ_RUN_TEXT } is;
		const char *question;
	} facts[3];
	size_t n;
};
/* All that runs at these connections, which are freed (NULL: it is an error), sorted.
 * Returns 0, or -1 with the error in struct mq_redis. */
int mq_runs_ask(struct mq_redis *, redisReply *connections,
    const struct mq_run_source *, const char *anywhere, struct mq_runs *);

/* --- stop --------------------------------------------------------------- */

/*
 * A request to end one run, in a key of its queue, one at a time:
 *
 *	WHAT ATTEMPT ID CONNECTION
 *
 * WHAT is "purge" or "return".  Only the consumer of that connection ends the run, and
 * settles; then it puts "purged", "returned", "rejected" or "over" in that place.  It
 * looks when its channel brings the key, and with each renewal of its lease while it has
 * long runs.  Request and answer lapse by themselves.
 */
enum mq_stop {
	MQ_STOP_NONE,
	/* Requests. */
	MQ_STOP_PURGE,
	MQ_STOP_RETURN,
	/* Answers. */
	MQ_STOP_PURGED,
	MQ_STOP_RETURNED,
	MQ_STOP_REJECTED, /* as that was its last attempt */
	MQ_STOP_OVER	  /* the run had ended already */
};

/* What a text says of which run: its id, attempt and connection, in the text, which is
 * changed.  NONE: it has not the form above. */
enum mq_stop mq_stop_read(char *text, struct mq_run *);

/* Asks the consumer of a run to end it, and waits for that: up to 5 s, and its grace
 * time.  *answer NONE: there is none, and the request is withdrawn.  Returns 0, or -1
 * with the error in struct mq_redis. */
int mq_stop_run(struct mq_redis *, const struct mq_layout *,
    const struct mq_run *, enum mq_stop what, enum mq_stop *answer);

/* --- stats: the numbers of queues and of connections ---------------------- */

/* Upper bounds of the run time histogram, in seconds; what is longer than the
 * last one has a bucket of its own behind. */
#define MQ_BUCKETS 16
extern const double mq_bucket_s[MQ_BUCKETS - 1];

/* The counts of a queue, or an addition to them. */
struct mq_counts {
	long long published;
	long long runs;	      /* attempts that ended, however they did */
	long long done;	      /* acked */
	long long failed;     /* rejected */
	long long expired;    /* of those: never run, as it was too late */
	long long retried;    /* put back for another attempt */
	long long crashed;    /* runs whose consumer was found dead */
	long long lease_lost; /* runs whose consumer found its lease gone */
	long long run_ms;     /* how long all runs took together */
	long long bucket[MQ_BUCKETS]; /* runs by time; not cumulative */
};

/* The past of a queue: what rounds of cleaning have noted, the last of each minute of an
 * hour, and of each hour of two days, if there was one.  -1: was not known. */
enum {
	MQ_NOTED_AT_S, /* unix time, by the server's clock */
	MQ_NOTED_READY,
	MQ_NOTED_DELAYED,
	MQ_NOTED_UNACKED,
	MQ_NOTED_REJECTED,
	MQ_NOTED_CONSUMERS,
	MQ_NOTED_AGE_S, /* of its oldest claimable message; 0: none */
	MQ_NOTED_PUBLISHED,
	MQ_NOTED_ENDED, /* done or rejected; both since they are counted */
	MQ_NOTED
};
struct mq_note {
	long long n[MQ_NOTED];
};
enum { MQ_MINUTES, MQ_HOURS, MQ_PASTS };
struct mq_past {
	struct mq_note *notes; /* the oldest first */
	int count;
};

/* Numbers of messages and consumers that a lost node of a cluster has are -1. */
struct mq_queue_stats {
	char *name;
	char *node;	/* "HOST:PORT", on a cluster; else NULL */
	bool scattered; /* on a cluster: only Go programs find its messages */
	bool other;	/* it has messages in rmq's other form, not counted */
	bool wrong; /* one of its keys holds another type: its numbers are -1 */
	bool known; /* whether anybody ever opened a queue of this name */
	bool refuse; /* of another of these queues, which counts it already */
	long long ready, delayed, unacked, rejected;
	long long consumers;	  /* whose lease holds */
	long long dead_consumers; /* the others, until they are cleaned up */
	long long connections;	  /* live ones that consume it; -1: not known */
	/* Since when its oldest claimable message has been claimable, unix ms; 0: there is
	 * none; -1: nobody knows.  Of two, one may tell: it is at least so old. */
	int64_t oldest_ms;
	int64_t next_due_ms; /* of delayed ones, unix ms; 0: none has a time */
	long long in_line;   /* delayed ones that wait for their group's turn */
	long long leaving;   /* on their way to another queue of a cluster */
	int64_t tick;	     /* of its clock; 0: it never had one */
	int64_t paused_ms; /* 0: no; -1: until resumed; else its end, unix ms */
	/* All queues are paused; until then, 0: until resumed.  Not set by layouts. */
	bool all_paused;
	int64_t all_paused_ms;
	bool grows;   /* more are ready than at the look before; as above */
	bool counted; /* whether there are any counts */
	struct mq_counts counts;
	double in_s, out_s; /* published, and done or rejected, a second, in
			     * the last minute; -1: not known */
	/* With MQ_HAS_ATTRIBUTES, and only of a queue that there is. */
	bool attributed;
	struct mq_attributes attributes;
	int64_t created_s, modified_s; /* unix time */
	long long sent, received;      /* messages, by whatever program */
	struct mq_past past[MQ_PASTS]; /* of mq_past_ask() */
};

/* A connection and a queue that it consumes. */
struct mq_consumed {
	char *queue;
	char *node; /* as above, of the queue */
	long long unacked, consumers;
};

struct mq_connection_stats {
	char *name;
	char *node;	 /* as above, of the heartbeat */
	bool unsure;	 /* that node is lost: nothing is known of the lease */
	int64_t ttl_ms;	 /* of its lease; not above 0: it is dead */
	bool by_receipt; /* of mq-lease, which renews nothing */
	char *host;	 /* NULL: not known, as of a Go program */
	long pid;	 /* 0: not known */
	struct mq_consumed *consumed; /* by queue name */
	int count;
};

/* The facts that are wanted besides the numbers of messages. */
enum {
	MQ_STATS_CONNECTIONS = 1,
	MQ_STATS_COUNTS = 2,   /* all; else only published, done and failed */
	MQ_STATS_UNLISTED = 4, /* what connections hold that nobody lists,
				* too, unless there are very many keys; and what
				* only Go programs find */
	MQ_STATS_FEW = 8 /* no queue at all, if there are more than 10,000; nor,
			  * where connections are many, what those have */
};

struct mq_stats {
	struct mq_queue_stats *queues; /* in the order asked for, or sorted */
	int count;
	bool part; /* there may be more queues, on nodes that are lost */
	/* By name; only when they were asked for.  With queues named, those
	 * that consume one of them, and only what they have of those. */
	struct mq_connection_stats *connections;
	int connection_count;
	/* Connections with keys of these queues in rmq's other form (on one server that
	 * for a cluster, and vice versa): their messages are not counted.  Sorted. */
	struct mq_names cluster;
	struct mq_names wrong; /* keys that hold another type */
	struct mq_names odd;   /* as of mq_names_add_odd() */
	int64_t now_ms;	       /* the server's clock, unix ms */
	bool past;	       /* mq_past_ask() has set that of queues */
};

/* Notes how these queues are (count 0: all, if at most 10,000).  Errors are none, but the
 * connection may be lost. */
void mq_past_note(struct mq_redis *, const struct mq_layout *,
    const char *const *queues, int count);
/* Sets the past of all queues, as far as the server tells it.  Returns 0, or -1 if the
 * connection is lost, with the error in struct mq_redis. */
int mq_past_ask(struct mq_redis *, const struct mq_layout *, struct mq_stats *);

/* Frees all it has, not itself. */
void mq_stats_free(struct mq_stats *);

#endif
