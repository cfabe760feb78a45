/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Operations on queues of any layout. */
#ifndef MQ_QUEUE_H
#define MQ_QUEUE_H

#include <limits.h>

#include "base/names.h"
#include "base/rate.h"
#include "message/headers.h"
#include "redis/ask.h"

struct mq_stats;

/* --- publishing: how, and what a queue accepts ----------------------------- */

/* The last tick of a queue's clock: ticks are scores, which must be exact. */
#define MQ_TICK_MAX (1LL << 48)

/* When a published message is to be ready. */
struct mq_when {
	enum mq_when_kind {
		MQ_WHEN_NOW,
		MQ_WHEN_IN, /* ms milliseconds from now */
		MQ_WHEN_AT  /* at unix time ms, milliseconds */
	} kind;
	int64_t ms; /* NOW: 0 */
	bool said;  /* NOW: even if the queue has a delay of its own */
};

/* Most claimable and most delayed messages beside which another one is accepted, and the
 * same (high) for one with a priority above 0; -1: any number.  If ready is -1, the queue's
 * settings count. */
struct mq_limits {
	long ready, ready_high, delayed, delayed_high;
};
/* No limit, not even the settings': for copies of messages. */
#define MQ_UNLIMITED                                                           \
	{                                                                      \
		LONG_MAX, LONG_MAX, -1, -1                                     \
	}

/* The mark of a batch, by which a publisher finds out later whether the server has done the
 * batch; see layout.h. */
struct mq_mark {
	const char *publisher; /* an id; NULL: no mark is needed */
	int place; /* 0 to MQ_MARKS - 1, in turn; long-lived ones from MQ_MARKS on */
	long long before; /* messages in former batches; none is empty */
	/* `before` of the batch without which a script does nothing; -1: none. */
	long long behind;
};

struct mq_publishing {
	struct mq_mark mark;
	struct mq_when when;
	/* Messages may have options (priority, group, key, tick, result), or limits. */
	bool has_options;
	/* All messages have the same options, and none wants its result; their headers are
	 * of one length, and differ only in the id and in times. */
	bool same_header;
	/* With has_options and same_header: no limits, and no options but these. */
	bool order_only;
	int priority;
	bool in_tick; /* first tick 0 */
	/* The server's unix time in microseconds, later than for the publisher's message
	 * before; 0: unknown. */
	int64_t now_us;
	/* While the holder of a key is not claimed, share the key with it, or replace it. */
	bool join, replace;
	bool by_command; /* a plain command may publish options, too */
	struct mq_limits limits;
	bool realtime; /* PUBLISH each message to listeners, as node does */
	const struct mq_attach *files; /* for the only message; NULL: none */
};

/* The attributes of a queue, with MQ_HAS_ATTRIBUTES; NONE: not given. */
enum { MQ_ATTRIBUTE_NONE = -2 };
#define MQ_ATTRIBUTES_NONE                                                     \
	{                                                                      \
		MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE        \
	}
struct mq_attributes {
	long vt_s;    /* seconds for which a received message is hidden */
	long delay_s; /* default delay of a message, in seconds */
	long maxsize; /* longest body, in units of UTF-16; -1: any */
};

/* The verdict on a published message. */
enum mq_published {
	MQ_PUBLISHED_NONSENSE = -1, /* a reply of the wrong form */
	MQ_PUBLISHED,		    /* accepted */
	MQ_PUBLISHED_DUPLICATE,	    /* another message has the key */
	MQ_PUBLISHED_JOINED,	    /* another message has the key, for both */
	MQ_PUBLISHED_FULL,	    /* the queue is at its limit */
	MQ_PUBLISHED_STALE,	    /* the last tick is over */
	MQ_PUBLISHED_TOO_LONG,	    /* longer than the queue's maxsize */
	MQ_PUBLISHED_NO_BATCH,	    /* a batch to wait for is unknown */
	MQ_PUBLISHED_REPLACED	    /* accepted, and has replaced another one */
};

/* --- claiming -------------------------------------------------------------- */

enum { MQ_CLAIM_BAD = -1, MQ_CLAIM_LOST = -2 };

/* A message as bytes in a queue. */
struct mq_element {
	char *data;
	size_t len;
};

/* How a consumer hears of the next message of a queue; see lua/lib/role.lua. */
enum mq_role {
	MQ_ROLE_NONE,  /* not at all: it has no room for more, or must look */
	MQ_ROLE_WATCH, /* by CLIENT TRACKING */
	MQ_ROLE_IDLE,  /* from another consumer, over its channel */
	MQ_ROLE_CLAIM  /* not yet: a tracked claim may begin a watch */
};

struct mq_claim {
	int max;      /* messages; 0: only ask whether the queue is paused, and
		  * due_ms is -1 unless it is */
	size_t bytes; /* about; but at least one message */
	enum mq_why {
		MQ_CLAIM_OWN,	 /* the consumer has room; renews its watch */
		MQ_CLAIM_CALLED, /* a key has changed, or a call has come */
		MQ_CLAIM_LOOK	 /* the consumer on watch may be dead */
	} why;
	bool tracked;	     /* the server reports changes from now on */
	struct mq_rate rate; /* shared by all consumers; 0: no limit */
	bool shared;	     /* the queue may have slots-shared */
	size_t copied;	     /* bytes that the claim may copy; 0: any number */
};
/* The error begins so if every claimable message needs copying, beyond `copied`. */
#define MQ_CLAIM_NO_ROOM "no room to copy"

struct mq_claimed {
	/* Only for callbacks: see consumer.h. */
	struct mq_element *elements;
	int n;
	/* Milliseconds until more may be claimable without a change of keys: a delayed
	 * message is due, the pause ends, or the shared rate allows it; -1: never. */
	int64_t due_ms;
	bool
	    again; /* at once, behind messages that the claim dropped; due_ms is 0 */
	bool paused; /* nothing is claimed while the queue is */
	enum mq_role role;
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* the queue's; 0: none was ever set */
	bool missing;	/* no such queue; an empty claim always sees that */
};

/* --- cleaning: one round --------------------------------------------------- */

#define MQ_ATTEMPTS 15 /* most runs of a message, by default */

struct mq_clean {
	int limit;    /* most runs of a message, crashes included, unless the
		       * dead consumer had set one */
	bool dry_run; /* only count */
	bool all;     /* due messages and orphans, too: scan all keys */
	/* NULL, or lists that get the names of dead connections that were left alone,
	 * since they have keys in rmq's other form, or messages of a scattered queue; and
	 * of scattered queues (see stats.h). */
	struct mq_names *cluster, *scattered;
	/* Unless all: cursor of the search for messages in no known queue: 0, then scan_at
	 * of the round before. */
	unsigned long long scan_from;
	/* The cleaning consumer's connection, or NULL.  Without its lease, nothing is
	 * done. */
	const char *self;
	/* Leaves the holders of queues alone that `self` does not consume: its user may lack
	 * the right to them. */
	bool own_queues;
	/* Only takes dead connections apart, with those of killed processes of this host;
	 * and nothing if there are many connections, as many consumers may start at once. */
	bool killed;
	/* Unless all: queues of `self` with keep-rejected.  only_trims: does nothing but drop
	 * their messages. */
	const struct mq_names *trimmed;
	bool only_trims;
};

/* The result of a round of cleaning. */
struct mq_cleaned {
	long connections; /* dead ones removed */
	long returned;	  /* messages put back to ready */
	long rejected;	  /* messages that had crashed too often */
	long due;	  /* delayed messages made ready, as they were due */
	long adopted;	  /* unacked lists: their connection is listed again */
	unsigned long long scan_at; /* the scan_from of the next round */
	long orphans;		    /* leftover keys of these tools, removed */
	long transferred; /* messages arrived in another queue of a cluster */
	long expired;	  /* messages rejected that were too late */
	long dropped; /* rejected messages that keep-rejected did not keep */
	long refused; /* steps with a key that is not permitted */
	/* Queues whose census was incomplete, so that keys and groups were left alone: a
	 * consumer died meanwhile, or the server was too slow. */
	long incomplete;
	long locks; /* keys and groups without a message, released */
	int64_t
	    next_ms; /* ms until the next consumer counts as dead; -1: none */
	bool unfinished; /* a killed process of this host has left a worker */
};

/* --- places, walks, and the deletion of a queue ---------------------------- */

enum mq_state { MQ_READY, MQ_DELAYED, MQ_UNACKED, MQ_REJECTED, MQ_STATES };

/* The word of a state, on the command line and in outputs. */
const char *mq_state_name(enum mq_state);
/* The state of a word: 0, or -1 when no state has it. */
int mq_state_parse(const char *word, enum mq_state *);

/* Messages in one state of one queue. */
struct mq_place {
	const char *queue;
	enum mq_state state;
	const char *connection; /* UNACKED: its name; NULL: all; "-": messages
				 * with no known connection */
	/* All messages are to be dropped; from DELAYED, those in line for a group first, which
	 * could become ready meanwhile. */
	bool drop_all;
	/* Change that mq_layout.take() makes to the messages; NULL: none. */
	const struct mq_change *change;
};

/* A change of messages that wait, or are rejected.  They stay in their queue, unless take()
 * has another one; what waits in line for its group, or for a batch, keeps its turn. */
struct mq_change {
	bool ordered; /* to this priority */
	int priority;
	int64_t due_ms; /* unix time before which they wait; -1: as it is */
};

/* A message in a slice of a walk. */
struct mq_item {
	const char *element;
	size_t len;
	/* DELAYED: waits in line for a group; or for batches; or for a tick (not 0); or until
	 * due_ms, unix ms. */
	bool in_line, follows;
	int64_t tick, due_ms;
	const char *connection; /* UNACKED: its name; NULL: not known */
	size_t prefix;		/* the layout's own */
};

/* The state of a walk between slices, for the layouts only. */
struct mq_walk {
	redisReply *connections; /* names to walk through; NULL: only one */
	redisReply *reply;	 /* this slice: the items point into it */
	struct mq_buf cursor;	 /* where the walk is, as the scripts say it */
	/* rmq */
	struct mq_buf anchor; /* the last message behind the walk */
	size_t connection;    /* index of the connection at work */
	bool ended;	      /* that connection's list ended */
	struct mq_buf aside;  /* the first message brought aside; empty: none */
	/* rsmq */
	struct mq_names held; /* ids, and whose they are */
};

/* A walk through a place, from the next message to be claimed, in slices of about 1000
 * messages or 1 MiB, but at least one message, so that the server's other clients do not
 * wait.  Starts zeroed except place, needle and skip.  Messages that stay are seen once;
 * those that come or go meanwhile may be seen or not. */
struct mq_scan {
	struct mq_place place;
	const char *needle;    /* text in elements; NULL: any */
	long skip;	       /* messages skipped first; for one connection */
	struct mq_item *items; /* this slice; valid until the next */
	int count;	       /* with a needle, may be 0 before the end */
	long seen;	       /* messages looked at, with the needle or not */
	bool end;	       /* no slice follows */
	bool over;	       /* set by the caller, to end the walk early */
	struct mq_walk walk;   /* the layout's own */
};
void mq_scan_free(struct mq_scan *);

struct mq_deletion {
	bool dry_run; /* only count */
	/* Live consumers, and messages of dead ones: with any, nothing is done. */
	long consumers, unacked;
	bool cluster; /* keys in rmq's other form exist: nothing is done */
	bool known;   /* the queue is listed */
	long ready, delayed, rejected; /* messages removed with the queue */
	bool awaited; /* publishers may wait for results, which only messages
		       * dropped one by one before get */
};

/* --- session ------------------------------------------------------------ */

/* One consumer as the server knows it. */
struct mq_session {
	const char *connection; /* unique for ever; never reused */
	const char *consumer;
	/* On a cluster: the set of connections has this consumer's. */
	bool listed;
	const char *former; /* connection whose lease was lost; NULL: none */
	double former_s;    /* last renewal of that lease, steady seconds */
	const char *const *queues;
	int queue_count;
	const char *push;   /* queue for pushed messages; NULL: none */
	const char *notify; /* queue for notices; NULL: as settings say */
	/* Name in the channel that wakes the consumer; NULL: it cannot be woken. */
	const char *wake;
	bool make;	   /* make the queues that do not exist */
	int slots;	   /* messages that can run at once */
	int attempts;	   /* most runs of a message; -1: as settings say */
	int64_t lease_ms;  /* by receipt: a renewal's; 0: the layout's */
	unsigned renewals; /* renewals of the lease so far */
	bool runs;	   /* reports its runs */
	bool heads;	   /* held() returns only the beginnings of messages */
};

/* Commands to be sent in this order; zeroed except for the server. */
struct mq_steps {
	const struct mq_redis *redis;
	struct mq_command *list;
	int n;
};
/* Adds an empty command, which is valid until the next call. */
struct mq_command *mq_steps_add(struct mq_steps *);
void mq_steps_free(struct mq_steps *);

/* Long-lived information is renewed with every 16th renewal of the lease. */
#define MQ_RENEW_INFO 16

/* --- settling: the end of a message's stay with its consumer --------------- */

/* The result of a message, for publishers that wait. */
struct mq_result {
	const char *id;	  /* the message's, or that in Mq-Reply-To */
	const char *text; /* see message/headers.h */
	size_t len;
	int64_t keep_ms; /* life of the result, above 0 */
	bool listed;	 /* among what has ended; see mq_ended_next() */
};

/* A message that tells another queue of an end. */
struct mq_notice {
	const char *queue;	    /* not that of the message that ends */
	char unique[MQ_ID_LEN + 1]; /* the notice's id */
	struct mq_buf element;
};

enum mq_outcome {
	MQ_OUTCOME_ACK,	   /* done: the message is removed */
	MQ_OUTCOME_REJECT, /* to the rejected ones */
	MQ_OUTCOME_FRONT,  /* back, to be the next one */
	MQ_OUTCOME_AGAIN,  /* back, at the end of the line, after a delay */
	MQ_OUTCOME_PUSH	   /* to the queue `push` */
};

struct mq_settlement {
	enum mq_outcome outcome;
	const char *element; /* as it was claimed, byte for byte */
	size_t len;
	/* Replaces the element's first payload_at bytes; NULL: unchanged. */
	const char *header;
	size_t header_len, payload_at;
	int64_t delay_ms;	    /* AGAIN only */
	char unique[MQ_ID_LEN + 1]; /* AGAIN, PUSH: a new id */
	bool unrun;		    /* REJECT: expired before a run */
	bool purged;		    /* ACK: by an operator */
	const char *push;	    /* PUSH only */
	/* ACK: the message may hold a key or a group.  Other outcomes find out. */
	bool holds;
	/* ACK, without a receipt, result or notice: the reply may be an array of MQ_SETTLED and
	 * the next message of the group, claimed.  Only if a claim is allowed now, and the queue
	 * has no limits that consumers share. */
	bool next;
	const char *receipt; /* number of a receipt; LOST if its lease is over;
			      * NULL: not handed out by receipt */
	const struct mq_result *result; /* NULL: none */
	/* NULL: none; never with FRONT or AGAIN. */
	const struct mq_notice *notice;
};

/* The integer reply to settle().  Except for MQ_SETTLED, nothing has changed. */
enum mq_settled {
	MQ_SETTLED = 1,
	MQ_SETTLED_LOST = 0,  /* another consumer has the message */
	MQ_SETTLED_GONE = -1, /* the message does not exist */
	/* PUSH: longer than the maxsize of the other queue; still ours. */
	MQ_SETTLED_TOO_LONG = -2
};

/* Messages of one queue that have ended, the oldest first.  Place 1 is that of the oldest
 * message that the server holds for this session. */
struct mq_acks {
	const struct mq_part *elements;
	const int *places;
	int n;
	struct mq_part oldest; /* the element at place 1 */
	size_t others_len;     /* bytes of unfinished messages between them */
	bool holds;	       /* a message may hold a key or a group */
	char unique[MQ_ID_LEN + 1]; /* different from all elements */
};

/* Messages of one queue to be given back, the newest first. */
struct mq_newest {
	const struct mq_part *elements;
	int n;
	bool each; /* test each: their order may differ from the server's, or
		    * other messages be equal */
};

/* --- queue ----------------------------------------------------------------- */

/*
 * A layout: the keys of a queue, and the commands for the steps of a message's life.  rmq/
 * and rsmq/ hold one each; no other file spells a key, and neither calls the other.  Most
 * operations only build commands or parse replies, for tools that wait and tools that must
 * not; operations of several rounds take a struct mq_redis, and wait.
 *
 * Queue names given here have passed queue_error().
 */

struct mq_runs;
struct mq_receipt;

/* Features that not every layout has. */
enum {
	MQ_HAS_KEYS = 1 << 0,
	MQ_HAS_GROUPS = 1 << 1,
	MQ_HAS_TICKS = 1 << 2,
	MQ_HAS_LOW_PRIORITY = 1 << 3, /* below 0 */
	MQ_HAS_RESULTS = 1 << 4,
	MQ_HAS_ATTRIBUTES = 1 << 5, /* struct mq_attributes */
	MQ_HAS_NEWS = 1 << 6,	    /* mq_publishing.realtime */
	MQ_HAS_IDS = 1 << 7,	    /* even for messages without a header */
	MQ_HAS_TEXT = 1 << 8,	    /* other programs take payloads for UTF-8 */
	MQ_HAS_CLAIMS = 1 << 9,	    /* counted: each claim is a run */
	MQ_HAS_NODES = 1 << 10,	    /* queues on all nodes of a cluster */
	MQ_HAS_BATCHES = 1 << 11
};

enum mq_held_how { MQ_HELD, MQ_HELD_AT_ONCE, MQ_HELD_COUNT, MQ_HELD_KEY };
enum mq_look { MQ_LOOK_ANY, MQ_LOOK_LEFT, MQ_LOOK_CHECK };

/* Numbers for leave() beside those of queues. */
enum { MQ_LEAVE_OWN = -1, MQ_LEAVE_EMPTY = -2 };

struct mq_layout {
	const char *name;
	unsigned has;	/* MQ_HAS_* */
	const char *ns; /* default namespace, NS:QUEUE is a queue of NS; NULL:
			 * there are no namespaces */

	int64_t lease_ms;	/* length of a lease; 0: the reply says */
	int64_t queue_lease_ms; /* length of a queue's, with MQ_HAS_NODES */
	const struct mq_right *rights;		  /* see rights.h */
	const struct mq_extra_keys *extra;	  /* see layout.h */
	const struct mq_attachments *attachments; /* NULL: none */
	/* NULL, or why this cannot be the name of a queue (constant text). */
	const char *(*queue_error)(const char *queue);

	/* Lists a queue, a new one with these attributes; the integer is 0 if it was
	 * listed.  With set, and MQ_HAS_ATTRIBUTES, changes the given attributes; the
	 * integer is 1, or 0 when there is no such queue. */
	void (*open)(struct mq_command *, const char *queue,
	    const struct mq_attributes *, bool set);
	/* Whether a queue is listed: an integer, 0 or not.  With MQ_HAS_NODES, open() and
	 * known() are optional commands, as another node may have the list.  by_keys, if
	 * that node is away: counts the queue's keys, as a queue with keys exists. */
	void (*known)(struct mq_command *, const char *queue, bool by_keys);
	/* Before the first write: changes nothing, but is refused if using the queue would
	 * be, since its keys hold another type (the error names one), or are not
	 * permitted.  For a consumer, or (NULL) for a publisher of messages with or
	 * without options.  The integer: the number of keys. */
	void (*probe)(struct mq_command *, const struct mq_session *,
	    const char *queue, bool has_options);

	/* Starts one command that publishes any number of messages, all in the same
	 * way; publish_add() adds each.  mq_layout_published() reads the verdict on message
	 * i in the reply; after an error, none is published.  With an empty header, the
	 * payload goes bare.  unique differs for all messages. */
	void (*publish)(struct mq_command *, const char *queue,
	    const struct mq_publishing *);
	void (*publish_add)(struct mq_command *, const struct mq_publishing *,
	    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
	    const char *payload, size_t len);
	/* A plain command that marks and counts the n messages of a batch, behind it in
	 * one transaction; if refused, the batch is published all the same.  False:
	 * publish() marks itself; NULL: always.  Without a command, only tells. */
	bool (*publish_mark)(struct mq_command *, const char *queue,
	    const struct mq_publishing *, int n);

	/* Joins, with a lease that mq_layout_lease() reads in the reply to the first step
	 * of join() or renew().  Later steps of join() must wait for that reply: no cleaner
	 * may see a connection without a lease. */
	void (*join)(const struct mq_session *, struct mq_steps *);
	/* Leaves each queue, and then MQ_LEAVE_OWN, when the session holds no message.
	 * MQ_LEAVE_EMPTY, for a connection whose messages are handed out by receipt, is one
	 * step that tests that: if the integer is 1, MQ_LEAVE_OWN follows, with
	 * MQ_HAS_NODES on a cluster. */
	void (*leave)(const struct mq_session *, int queue, struct mq_steps *);
	/* Renews the lease of the connection (queue -1).  With MQ_HAS_NODES on a cluster,
	 * renews that of each queue after the reply. */
	void (*renew)(const struct mq_session *, int queue, struct mq_steps *);
	/* With MQ_HAS_NODES: takes over the messages of a queue from a former name of this
	 * connection; the integer is 0 if that name has lost its lease. */
	void (*take_over)(const struct mq_session *, int queue,
	    const char *from, struct mq_command *);
	/* With MQ_HAS_CLAIMS, else NULL: takes the last attempt off a message whose lease
	 * ended before its run, unless it was claimed since. */
	void (*lapsed)(const struct mq_session *, int queue,
	    const char *element, size_t len, long attempts,
	    struct mq_command *);

	void (*claim)(const struct mq_session *, int queue,
	    const struct mq_claim *, struct mq_command *);
	/* Finds queues that need a claim.  Keys: for each queue those of `watched` in
	 * layout.h, its watch and idle; arguments: the session's name in wake, and 1 to
	 * see whether others know that it is idle.  The array has for each queue 0, its
	 * number of idle consumers, or -1 if the session is not among them. */
	const struct mq_script *look;
	/* The queue of a watched key, in *queue and *n; false: another key. */
	bool (*key_queue)(
	    const char *key, size_t len, const char **queue, size_t *n);

	/* Settles messages in one atomic step; the integer is enum mq_settled.  Unless
	 * MQ_HAS_IDS, n messages may be equal, have a plain outcome ACK, REJECT, FRONT or
	 * AGAIN and nothing else, and are settled only if all of them are there. */
	void (*settle)(const struct mq_session *, int queue,
	    const struct mq_settlement *, int n, struct mq_command *);

	/* Acks messages without results in one step.  Any reply but MQ_SETTLED: they are
	 * not at their places, and nothing has changed. */
	void (*ack_oldest)(const struct mq_session *, int queue,
	    const struct mq_acks *, struct mq_command *);

	/* Returns the newest messages that the server holds for the session to the front,
	 * as not started, in one bounded step.  The integer: how many of these; 0: they are
	 * not the newest, and nothing has changed.  NULL: any messages; 0: none is left. */
	void (*give_back)(const struct mq_session *, int queue,
	    const struct mq_newest *, struct mq_command *);

	/* Reads the number of elements of this queue that were ever claimed for the session
	 * (0: unknown), and those that the server holds for it, the newest first.  Two
	 * commands in one transaction, since a script copies many or large elements several
	 * times; the replies are the number, text or nil, and an array.  MQ_HELD_AT_ONCE,
	 * or if only a script can read them: one command, whose array has both.
	 * MQ_HELD_COUNT: one command for the number of held ones.  MQ_HELD_KEY: adds the
	 * key that exists if any are held.  Returns the number of commands. */
	int (*held)(const struct mq_session *, int queue, enum mq_held_how,
	    struct mq_command[2]);
	/* Whether a message that the session has lost still exists: an integer, 0 or not.
	 * NULL: always, as nothing can delete it. */
	void (*exists)(const struct mq_session *, int queue,
	    const char *element, size_t len, struct mq_command *);

	/* Receipts: a connection with one queue and a lease_ms, whose maker leaves it
	 * alone, holds the messages.  Numbers these, which are all that it holds, in the
	 * order of their claim, from 1.  The integer is n; else the lease is over. */
	void (*receipts)(const struct mq_session *,
	    const struct mq_part *elements, int n, struct mq_command *);
	/* The element of a receipt, or nil: it is settled, or the lease is over. */
	void (*receipt)(struct mq_command *, const char *connection,
	    const char *queue, const char *number);
	/* Waits for any message by its id, except those handed out by receipt; without a
	 * connection in *out, there is none.  NULL unless MQ_HAS_IDS. */
	int (*receipt_by_id)(struct mq_redis *, const char *queue,
	    const char *id, struct mq_receipt *);

	/* The operations below wait.  They return 0, or -1 with the error in struct
	 * mq_redis, and see only queues in the namespace of the server's URL. */

	/* Does one round of cleaning.  If the server refuses a step, its connection or queue
	 * stays as it is, and the first such error is returned at the end; the counts are
	 * valid all the same. */
	int (*clean)(
	    struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);

	/* On a cluster, ends pushes to a queue, or to any (NULL), that settle() has begun; or
	 * NULL. */
	int (*finish_pushes)(
	    struct mq_redis *, const char *queue, const char *to);

	/* Whether no queue has a message that is ready, due, or unacked anywhere. */
	int (*drained)(struct mq_redis *, const char *const *queues, int count,
	    bool *drained);

	/* Reads the wanted facts of these queues, or of all (count 0); mq_stats_free(). */
	int (*stats)(struct mq_redis *, const char *const *queues, int count,
	    int wanted, struct mq_stats *);

	/* The current runs, by queue and start; mq_runs_free() frees. */
	int (*running)(struct mq_redis *, struct mq_runs *);

	/* Reads the next slice of a walk.  With s->over, ends the walk instead, which must
	 * be done after take(): restores the order of messages that were brought aside; see
	 * rmq/lua/move.lua. */
	int (*scan)(struct mq_redis *, struct mq_scan *);
	/* Moves the chosen messages of the slice to the newest end of ready in a queue, or
	 * removes them (to NULL).  Each moves in one atomic step, if it is still there; taken
	 * counts them, after an error only the certain ones.  From rejected, the count of
	 * attempts begins anew.
	 *
	 * A message that becomes ready gets the place of its options: behind others of its
	 * priority, or in line for its group, and its key if that is free.  From delayed,
	 * its first tick becomes 0; a message in line stays there unless it goes to another
	 * queue.  A removed message releases its group and key, and publishers that wait get
	 * its result. */
	int (*take)(struct mq_redis *, struct mq_scan *, const bool *chosen,
	    const char *to, long *taken);
	/* take() for the next max messages at a place, without looking at them, at most
	 * 1000 or about 1 MiB in one call; moved 0: there are none.  Unacked ones go to the
	 * front, the newest first, in their order; if their connection is alive, that is an
	 * error with MQ_EXIT_AGAIN.  With max 0, moved is the number that could move.
	 *
	 * A place that is to be dropped whole may go in one step at once, if no message
	 * holds a key or a group, and no publisher waits. */
	int (*move)(struct mq_redis *, const struct mq_place *, long max,
	    const char *to, long *moved);
	/* Removes a queue and all its keys in one step. */
	int (*delete_queue)(
	    struct mq_redis *, const char *queue, struct mq_deletion *);
};

extern const struct mq_layout mq_layout_rmq, mq_layout_rsmq;

/* The verdict on message i in a reply to publish(). */
enum mq_published mq_layout_published(const redisReply *, int i);
/* The number of messages in a reply to claim(), its last elements; MQ_CLAIM_BAD: the wrong
 * form; MQ_CLAIM_LOST: the lease is gone, and nothing was claimed. */
int mq_layout_claimed(const redisReply *, struct mq_claimed *);

/* Adds each word of a text as an argument; a word that is %s, %d, %ld or %lld stands for
 * the next value, which may have blanks. */
void mq_command_add(struct mq_command *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* For layouts: sets the error "about: why", without the server's name.  Returns -1. */
int mq_layout_fail(
    struct mq_redis *, int status, const char *about, const char *why);
#define MQ_IS_ALIVE	  "it is alive; stop it first"
#define MQ_KEEPS_CHANGING "its connections keep changing; try again"
const char *mq_outcome_name(enum mq_outcome);

/* The layout of this name, or NULL. */
const struct mq_layout *mq_layout_find(const char *name);

/* Milliseconds for which a lease holds after a reply to join() or renew(), on a cluster with
 * MQ_HAS_NODES that of each queue; 0: the lease is gone for good. */
int64_t mq_layout_lease(
    const struct mq_layout *, const redisReply *, bool cluster);
/* Whether the layout obeys all headers of a message; if not, *why names one. */
bool mq_layout_obeys(
    const struct mq_layout *, const struct mq_envelope *, struct mq_buf *why);
/* The full name of a user's queue, which the caller frees: with the URL's namespace ns (or
 * NULL) in front, unless that is the default or there already.  NULL: no queue can have that
 * name, and *why, constant text, says why. */
char *mq_layout_queue(const struct mq_layout *, const char *ns,
    const char *queue, const char **why);

/* The kind of a key that has changed, or was named by a call in a consumer's channel, by the
 * end of its name: other programs' keys may end so, too. */
enum mq_key { MQ_KEY_OTHER, MQ_KEY_SETTINGS, MQ_KEY_ALL_PAUSED, MQ_KEY_STOP };
enum mq_key mq_key_of(const char *key, size_t n);

/* --- attachments ----------------------------------------------------------- */

/*
 * A set of files of messages in the layout rmq.  Messages name their set in MQ_HEADER_ATTACH,
 * and the set has their ids.
 *
 * The server has a file as chunks of 1 MiB, so no command is longer, and neither side has
 * more of the file in memory.  Until the step that publishes the message
 * (mq_publishing.files), all keys of the set expire after 1 hour; then they stay until the
 * last message of the set has ended.  So a crash leaves no message without its files, and
 * keys without a message expire, or mq-clean makes them expire.
 *
 * All functions wait.  Unless they say otherwise they return 0, or -1 with the error
 * in struct mq_redis.
 */

/* Why no attachment can have this name, constant text; NULL: the name is good for a file in
 * any directory. */
const char *mq_attach_name_error(const char *name);

/* A set that is being made.  Starts zeroed except redis. */
struct mq_attach {
	struct mq_redis *redis;
	char set[MQ_ID_LEN + 1]; /* for the header */
	long long chunks;	 /* so far */
	double renewed_s;	 /* beginning of their hour, CLOCK_MONOTONIC */
};

/* A layout's operations on sets. */
struct mq_attachments {
	/* Begins a set for a message of this queue. */
	void (*begin)(struct mq_attach *, const char *queue);
	/* Adds the file on a descriptor.  After an error of read(2) the status is
	 * MQ_EXIT_IO; if the file changes meanwhile, MQ_EXIT_AGAIN. */
	int (*add)(struct mq_attach *, const char *name, int fd);
	/* Ends the set, whose message is about to be published. */
	int (*close)(struct mq_attach *, const char *id);
	/* Writes the files of a set into a directory, and notes that the message refers to
	 * the set.  Returns 1 with *why if there are none, or some have changed: no retry
	 * helps; -1 also if a file cannot be written. */
	int (*fetch)(struct mq_redis *, const char *set, const char *id,
	    int dir, struct mq_buf *why);
	/* Removes an ended message from its set; the last one removes the files. */
	int (*release)(struct mq_redis *, const char *set, const char *id);
	/* Counts the sets, at most some too many. */
	int (*count)(struct mq_redis *, long long *);
	/* Adds a message to a set, or (made) the first one; the integer is 1, or 0 when the
	 * set is gone. */
	void (*refer)(
	    struct mq_command *, const char *set, const char *id, bool made);
};

/* Sends refer() for one message more; if the set is gone, nothing happens. */
int mq_attach_refer(struct mq_redis *, const struct mq_attachments *,
    const char *set, const char *id);

#endif
