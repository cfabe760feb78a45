/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Runs, requests to stop one, and the numbers of queues and connections. */
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
	int percent; /* at the beginning of `text`; -1: none */
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

/* Appends the runs of a text, each with copies of connection and host (may be NULL).
 * Malformed objects are left out. */
void mq_runs_read(struct mq_runs *, const char *text, size_t n,
    const char *connection, const char *host);

void mq_runs_free(struct mq_runs *);

/* The n facts that a layout asks about each connection, in their order.  If its lease is over,
 * a connection has no runs; a layout without the fact LEASE gives such a connection no
 * host. */
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
/* The runs of connections, which are freed (NULL: after an error), sorted.  Returns 0, or -1
 * with the error in struct mq_redis. */
int mq_runs_ask(struct mq_redis *, redisReply *connections,
    const struct mq_run_source *, const char *anywhere, struct mq_runs *);

/* --- stop --------------------------------------------------------------- */

/*
 * A request to end one run, in a key of its queue, one at a time:
 *
 *	WHAT ATTEMPT ID CONNECTION
 *
 * WHAT is "purge" or "return".  Only the consumer of that connection ends the run, and
 * settles; then it replaces WHAT by "purged", "returned", "rejected" or "over".  The consumer
 * looks when its channel brings the key, and with each renewal of its lease while it has
 * long runs.  Request and answer expire.
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

/* Parses a request or answer, and sets id, attempt and connection of the run, in the text,
 * which is changed.  NONE: malformed. */
enum mq_stop mq_stop_read(char *text, struct mq_run *);

/* Asks the consumer of a run to end it, and waits up to 5 s and the grace time.  *answer NONE:
 * no answer came, and the request is withdrawn.  Returns 0, or -1 with the error in struct
 * mq_redis. */
int mq_stop_run(struct mq_redis *, const struct mq_layout *,
    const struct mq_run *, enum mq_stop what, enum mq_stop *answer);

/* --- stats: the numbers of queues and of connections ---------------------- */

/* Upper bounds of the run time histogram, in seconds; the last bucket has none. */
#define MQ_BUCKETS 16
extern const double mq_bucket_s[MQ_BUCKETS - 1];

/* The counts of a queue, or an addition to them. */
struct mq_counts {
	long long published;
	long long runs;	      /* attempts that ended */
	long long done;	      /* acked */
	long long failed;     /* rejected, with the expired ones */
	long long expired;    /* rejected without a run, since too late */
	long long retried;    /* put back for another attempt */
	long long crashed;    /* runs whose consumer was found dead */
	long long lease_lost; /* runs whose consumer found its lease gone */
	long long replaced;   /* messages, by a newer one with their key */
	long long run_ms;     /* time of all runs together */
	long long dropped; /* rejected ones that keep-rejected did not keep */
	long long bucket[MQ_BUCKETS]; /* runs by time; not cumulative */
};

/* The past of a queue: notes of the last round of cleaning in each minute of an hour, and in
 * each hour of two days, if there was one.  -1: was not known. */
enum {
	MQ_NOTED_AT_S, /* unix time, by the server's clock */
	MQ_NOTED_READY,
	MQ_NOTED_DELAYED,
	MQ_NOTED_UNACKED,
	MQ_NOTED_REJECTED,
	MQ_NOTED_CONSUMERS,
	MQ_NOTED_AGE_S, /* the oldest claimable message's; 0: none */
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

/* If a node of a cluster is lost, numbers of messages and consumers there are -1. */
struct mq_queue_stats {
	char *name;
	char *node;	/* "HOST:PORT", on a cluster; else NULL */
	bool scattered; /* on a cluster: only Go programs find its messages */
	bool other;	/* has messages in rmq's other form, not counted */
	bool wrong;	/* a key has a wrong type: numbers are -1 */
	bool known;	/* the queue is listed */
	bool refuse;	/* messages are rejected ones of another row's queue,
			 * which counts them */
	long long ready, delayed, unacked, rejected;
	long long consumers;	  /* with a lease */
	long long dead_consumers; /* without one, not cleaned up yet */
	long long connections;	  /* live connections; -1: not known */
	/* Since when the oldest claimable message has been claimable, unix ms, or later if
	 * only a part of the messages tells; 0: none is claimable; -1: not known. */
	int64_t oldest_ms;
	int64_t next_due_ms; /* first delayed message's, unix ms; 0: none */
	long long in_line;   /* delayed messages in line for their group */
	/* Slots that all consumers share, and how many have a message, as of the last
	 * claim; -1: there is no limit. */
	long long slots_shared, slots_taken;
	long long leaving; /* messages on their way to another queue */
	int64_t tick;	   /* the clock's; 0: never set */
	int64_t paused_ms; /* 0: no; -1: until resumed; else its end, unix ms */
	/* Not set by layouts: all queues are paused, until then, unix ms (0: until
	 * resumed); more messages are ready than at the last look. */
	bool all_paused;
	int64_t all_paused_ms;
	bool grows;
	bool counted; /* counts exist */
	struct mq_counts counts;
	int64_t
	    done_ms; /* when one was last done, unix ms; 0: never; -1: not known */
	double in_s, out_s; /* published, and done or rejected, a second, in
			     * the last minute; -1: not known */
	/* With MQ_HAS_ATTRIBUTES, if the queue exists. */
	bool attributed;
	struct mq_attributes attributes;
	int64_t created_s, modified_s; /* unix time */
	long long sent, received;      /* messages, by all programs */
	struct mq_past past[MQ_PASTS]; /* set by mq_past_ask() */
};

/* A connection and a queue that it consumes. */
struct mq_consumed {
	char *queue;
	char *node; /* the queue's */
	long long unacked, consumers;
};

struct mq_connection_stats {
	char *name;
	char *node;	 /* the heartbeat's */
	bool unknown;	 /* that node is lost, and the lease unknown */
	int64_t ttl_ms;	 /* the lease's; 0 or below: the connection is dead */
	bool by_receipt; /* by mq-lease, which does not renew */
	char *host;	 /* NULL: not known, as for a Go program */
	long pid;	 /* 0: not known */
	struct mq_consumed *consumed; /* by queue name */
	int count;
};

/* Facts beside the numbers of messages. */
enum {
	MQ_STATS_CONNECTIONS = 1,
	MQ_STATS_COUNTS = 2,   /* else only published, done and failed */
	MQ_STATS_UNLISTED = 4, /* messages of unlisted connections, unless
				* there are very many keys; and messages that
				* only Go programs find */
	MQ_STATS_FEW = 8 /* no queue, if there are more than 10,000; and if
			  * connections are many, not their messages */
};

struct mq_stats {
	struct mq_queue_stats *queues; /* in the order asked for, or sorted */
	int count;
	bool incomplete; /* more queues may be on lost nodes */
	/* By name; only if wanted.  If queues are named, only connections that consume one
	 * of them, and only these queues. */
	struct mq_connection_stats *connections;
	int connection_count;
	/* Connections with keys of these queues in rmq's other form (with {} on one
	 * server, with [] on a cluster): their messages are not counted.  Sorted. */
	struct mq_names cluster;
	struct mq_names wrong; /* keys of a wrong type */
	struct mq_names odd;   /* names by mq_names_add_odd() */
	int64_t now_ms;	       /* the server's clock, unix ms */
	bool past;	       /* mq_past_ask() has set the past of queues */
};

/* Notes how these queues are (count 0: all, if at most 10,000).  Errors are ignored, but the
 * connection may be lost. */
void mq_past_note(struct mq_redis *, const struct mq_layout *,
    const char *const *queues, int count);
/* Sets the past of all queues, if the server tells it.  Returns 0, or -1 if the connection is
 * lost, with the error in struct mq_redis. */
int mq_past_ask(struct mq_redis *, const struct mq_layout *, struct mq_stats *);

/* Frees all memory of the struct, which the caller has. */
void mq_stats_free(struct mq_stats *);

#endif
