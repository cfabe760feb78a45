/*
 * The floor common/queue: what can be done with a queue, and the side features that
 * both layouts have.  rmq/ and rsmq/ hold a layout each: its keys, commands, replies
 * and Lua; no other file spells a key, and neither layout calls the other.  Files here
 * may call common/redis, common/message and common/base.  Nothing here prints or exits.
 *
 * A layout: which keys hold a queue, and which commands are the steps of a
 * message's life.  Operations only build commands or take replies apart, so
 * that tools which wait and tools which must not can both use them; the few
 * that need several rounds take a struct mq_redis and wait.
 *
 * An operation with a step argument is a list of commands: call it with step
 * 0, 1, 2 … until it returns false, and send what it built in that order.
 *
 * Queue names given here have passed queue_error().
 */
#ifndef MQ_LAYOUT_H
#define MQ_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/names.h"
#include "message/envelope.h"
#include "redis/command.h"
#include "redis/connection.h"

/* One consumer as the server knows it. */
struct mq_session {
	const char *connection; /* unique for ever; never reused */
	const char *consumer;
	const char *former; /* the connection whose lease its maker lost, though
			     * it is alive; NULL: none */
	const char *const *queues;
	int queue_count;
	const char *push; /* where messages may be pushed to; NULL: nowhere */
	bool make;	  /* make the queues that do not exist */
	int slots;	  /* how many messages can run at once */
	int attempts;	  /* how many runs a message may have here */
	int64_t lease_ms; /* handed out by receipt: how long a renewal holds;
			   * 0: as the layout thinks */
	double rate_s; /* claims a second that all consumers of a queue with a
			* rate share; 0: no limit */
	long burst;    /* and how many at once after a rest, at least 1 */
};

/* When a published message is to be ready. */
struct mq_when {
	enum {
		MQ_WHEN_NOW,
		MQ_WHEN_IN, /* ms milliseconds from now */
		MQ_WHEN_AT  /* at unix time ms, milliseconds */
	} kind;
	int64_t ms;
	bool said; /* NOW: even if the queue has a delay of its own */
};

/*
 * How many messages may be there for another one to be accepted, -1 any number:
 * claimable ones, and those that are delayed for whatever reason; and the same
 * for a message with a priority above 0.
 */
struct mq_limits {
	long ready, ready_high, delayed, delayed_high;
};

/* One of the batches of a publisher that may have to ask whether the server has
 * done it; see mark.h. */
struct mq_mark {
	const char *publisher; /* an id; NULL: nobody will ask */
	int place;	       /* 0 to MQ_MARKS - 1, in turn */
	long long before; /* messages in the batches before it; none is empty */
};

/* How messages are published. */
struct mq_publishing {
	struct mq_mark mark;
	struct mq_when when;
	/* They may have headers that ask for something (a priority, a group, a
	 * key, a tick, an answer), or there are limits. */
	bool special;
	bool alike; /* all ask for the same, none for an answer, and their id is
		     * what makes them unique */
	struct mq_limits limits;
	bool realtime; /* each is told to those who listen, as node's do */
};

/*
 * What a queue does with all its messages, where queues have attributes.
 * MQ_ATTRIBUTE_NONE: not said.
 */
enum { MQ_ATTRIBUTE_NONE = -2 };
#define MQ_ATTRIBUTES_NONE                                                     \
	{                                                                      \
		MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE        \
	}
struct mq_attributes {
	long vt_s;    /* hidden so long once received */
	long delay_s; /* of a message that says nothing of its own */
	long maxsize; /* of a body, in units of UTF-16; -1: any */
};

/* What became of one that was. */
enum mq_published {
	MQ_PUBLISHED_NONSENSE = -1, /* a reply of the wrong form */
	MQ_PUBLISHED,		    /* it is there */
	MQ_PUBLISHED_DUPLICATE,	    /* another one has its key */
	MQ_PUBLISHED_FULL,	    /* there are too many */
	MQ_PUBLISHED_STALE,	    /* its last tick is over */
	MQ_PUBLISHED_TOO_LONG	    /* for the queue's maxsize */
};

/* What to tell those who wait for the end of a message. */
struct mq_result {
	const char *id;	  /* of the message, or what its Mq-Reply-To says */
	const char *text; /* as of result.h */
	size_t len;
	int64_t keep_ms; /* how long it can be read, above 0 */
};

/* What becomes of a claimed message. */
enum mq_outcome {
	MQ_OUTCOME_ACK,	   /* done: it is gone */
	MQ_OUTCOME_REJECT, /* to the rejected ones */
	MQ_OUTCOME_FRONT,  /* back, to be the next one */
	MQ_OUTCOME_AGAIN,  /* back, at the end of the line, after a delay */
	MQ_OUTCOME_PUSH	   /* to the queue `push` */
};

/* How to settle one message. */
struct mq_settlement {
	enum mq_outcome outcome;
	const char *element; /* as it was claimed, byte for byte */
	size_t len;
	/* Its new header, which takes the place of the element's first
	 * payload_at bytes; NULL: it stays as it is. */
	const char *header;
	size_t header_len, payload_at;
	int64_t delay_ms;	    /* AGAIN only */
	char unique[MQ_ID_LEN + 1]; /* AGAIN, PUSH: a new id */
	bool unrun;		    /* REJECT: it was too late to run it */
	const char *push;	    /* PUSH only */
	/* ACK: its header asks for more than a place in line, so that there may
	 * be something to let go of.  (The others find out for themselves.) */
	bool holds;
	const char *receipt; /* its number, of a session that handed out by
			      * receipt: LOST when its lease is over; or NULL */
	const struct mq_result *result; /* NULL: nobody is told */
};

/* What a settlement came to. */
enum mq_settled {
	MQ_SETTLED,
	MQ_SETTLED_LOST,    /* nothing: somebody else has the message by now */
	MQ_SETTLED_GONE,    /* nothing: there is no such message any more */
	MQ_SETTLED_TOO_LONG /* PUSH: nothing, it is longer than the maxsize of
			     * the other queue; it is still ours */
};

/* No clock of a queue goes further: the scores of ticks have to be exact. */
#define MQ_TICK_MAX (1LL << 48)

/* Where a message is. */
enum mq_state { MQ_READY, MQ_DELAYED, MQ_UNACKED, MQ_REJECTED, MQ_STATES };

/* Its word, as it stands on the command line and in outputs. */
const char *mq_state_name(enum mq_state);
/* The other way round: 0, or -1 when the word is none of them. */
int mq_state_parse(const char *word, enum mq_state *);

/* Upper bounds of the run time histogram, in seconds; what is longer than the
 * last one has a bucket of its own behind. */
#define MQ_BUCKETS 16
extern const double mq_bucket_s[MQ_BUCKETS - 1];

/* What these tools have counted of a queue, or what is to be added to it. */
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

struct mq_queue_stats {
	char *name;
	bool known;  /* whether anybody ever opened a queue of this name */
	bool refuse; /* what is in it was rejected by another of these queues,
		      * and is counted there already */
	long long ready, delayed, unacked, rejected;
	long long consumers;	  /* whose lease holds */
	long long dead_consumers; /* the others, until they are cleaned up */
	int64_t oldest_ms;	  /* since when its oldest claimable message has
			      * been claimable, unix ms; 0: there is none; -1:
			      * there is one, and nobody knows since when.  Of
			      * two, one may tell: it is at least so old */
	int64_t next_due_ms; /* when the next delayed message is due, unix ms;
			      * 0: none waits for a time */
	long long in_line;   /* delayed ones that wait for their group's turn */
	int64_t tick;	     /* of its clock; 0: it never had one */
	int64_t paused_ms;   /* 0: not paused; -1: until resumed; else the unix
			      * ms of its end */
	bool counted;	     /* whether there are any counts */
	struct mq_counts counts;
	double in_s, out_s; /* published, and done or rejected, a second, in
			     * the last minute; -1: not known */
	/* With MQ_HAS_ATTRIBUTES, and only of a queue that there is. */
	bool attributed;
	struct mq_attributes attributes;
	int64_t created_s, modified_s; /* unix time */
	long long sent, received;      /* messages, by whatever program */
};

/* What one connection has of one queue that it consumes. */
struct mq_consumed {
	char *queue;
	long long unacked, consumers;
};

struct mq_connection_stats {
	char *name;
	int64_t ttl_ms; /* of its lease; not above 0: it is dead */
	char *host;	/* NULL: not known, as of a Go program */
	long pid;	/* 0: not known */
	struct mq_consumed *consumed; /* by queue name */
	int count;
};

/* What is wanted of the server besides the numbers of messages. */
enum {
	MQ_STATS_CONNECTIONS = 1,
	MQ_STATS_COUNTS = 2,  /* all of mq_counts; else only published, done and
			      * failed are set */
	MQ_STATS_UNLISTED = 4 /* what connections hold that nobody lists,
			       * too, unless there are very many keys */
};

struct mq_stats {
	struct mq_queue_stats *queues; /* in the order asked for, or sorted */
	int count;
	/* By name; only when they were asked for.  With queues named, those
	 * that consume one of them, and only what they have of those. */
	struct mq_connection_stats *connections;
	int connection_count;
	/* Connections with keys of these queues in rmq's form for a cluster,
	 * whose messages are not counted; always, sorted. */
	struct mq_names cluster;
	int64_t now_ms; /* the server's clock, unix ms */
};

/* Messages in one state of one queue. */
struct mq_place {
	const char *queue;
	enum mq_state state;
	const char *connection; /* UNACKED: of this one; NULL: of all; "-": of
				 * those that nobody knows, if there can be */
	/* DELAYED, when all that is meant is to be dropped: those in line for
	 * their group come first, so that none has its turn meanwhile. */
	bool line_first;
};

/* One message that was found, as it is kept.  Bytes. */
struct mq_item {
	const char *element;
	size_t len;
	/* DELAYED: it waits for its group's turn; or, unless 0, for a tick; or
	 * until due_ms, unix ms. */
	bool in_line;
	int64_t tick, due_ms;
	const char *connection; /* UNACKED: whose it is; NULL: nobody knows */
	size_t prefix;		/* the layout's own */
};

/*
 * A walk through a place, the next to be claimed first, slice by slice: no
 * slice keeps the server, or our memory, longer or fuller than about 1000
 * messages or 1 MiB do (but a slice has at least one message).  Starts zeroed
 * but for place, needle and skip.  Messages that come or go meanwhile may be seen or
 * not; those that stay are seen once.
 */
struct mq_walk;
struct mq_scan {
	struct mq_place place;
	const char *needle;    /* an element must contain it; NULL: any */
	long skip;	       /* this many are stepped over first; not with
				* those of all connections */
	struct mq_item *items; /* this slice; valid until the next */
	int count;	       /* may be 0 with a needle, and more to come */
	long seen;	       /* messages looked at so far, needle or not */
	bool end;	       /* no slice follows */
	struct mq_walk *walk;  /* the layout's own */
};
void mq_scan_free(struct mq_scan *);

struct mq_deletion {
	bool dry_run; /* only tell what would be removed */
	/* Its consumers that live, and the messages that dead ones hold: while
	 * there are any, nothing is done. */
	long consumers, unacked;
	bool cluster; /* there are keys of it in rmq's form for a cluster:
		       * nothing is done, either */
	bool known;   /* whether anybody ever opened it */
	long ready, delayed, rejected; /* messages removed with it */
	/* Somebody may wait for what becomes of those.  Who drops them one by
	 * one before tells them. */
	bool awaited;
};

/* Runs that a message may have: the default, and the highest limit. */
#define MQ_ATTEMPTS	15
#define MQ_ATTEMPTS_MAX 1000000

struct mq_clean {
	int limit;    /* runs that a message may have, crashes included, before
		       * it is rejected, if the consumer that died did not say */
	bool dry_run; /* only count what would be done */
	bool all;     /* also what is due, and orphans: all of the server's keys
		       * are looked through */
	/* Where to add the names of dead connections that were left alone, as
	 * they have keys in rmq's form for a cluster; NULL: nowhere. */
	struct mq_names *cluster;
	/* Unless all: where to go on with the search for messages that are in no
	 * known queue: 0, then scan_at of the round before. */
	unsigned long long scan_from;
	/* The connection of a consumer that cleans: when its lease is over, the
	 * round does nothing.  NULL: it has none. */
	const char *self;
};

/* What one round of cleaning did. */
struct mq_cleaned {
	long connections; /* dead ones removed */
	long returned;	  /* messages put back to ready */
	long rejected;	  /* messages that had crashed too often */
	long due;	  /* delayed messages made ready, as they were due */
	long adopted;	  /* unacked lists without a listed connection: it is
			   * listed again, and cleaned */
	unsigned long long scan_at; /* the scan_from of the next round */
	long orphans; /* keys of our own removed that nobody needs */
	long expired; /* messages rejected that were too late */
	long barred;  /* steps refused, as a key of theirs is not permitted */
	/* Queues whose keys and groups were left as they are, as a consumer
	 * died meanwhile, or the server was too slow to tell. */
	long unproven;
	long locks;	 /* keys and groups that nobody held, or nobody
			   * could get */
	int64_t next_ms; /* a connection will be found dead in so long; -1:
			   * none is on its way there */
};

/* A script that runs, as its consumer tells once a second; see running.h. */
struct mq_run;
struct mq_runs;

/* A message that was handed out; see receipt-session.h. */
struct mq_receipt;

enum { MQ_CLAIM_BAD = -1, MQ_CLAIM_LOST = -2 };

/* A message as it is kept: bytes. */
struct mq_element {
	char *data;
	size_t len;
};

struct mq_claimed {
	size_t first; /* index of the first element in the reply */
	/* Only for callbacks: see consumer.h. */
	struct mq_element *elements;
	int n;
	int64_t due_ms; /* until there may be more to claim without anything
			 * having changed: the next delayed message is due, or
			 * the pause is over, or the shared rate allows it;
			 * -1: never */
	bool paused;	/* the queue is; nothing is claimed then */
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* the queue's; 0: it never had one */
	bool missing;	/* there is no such queue; it may be found out only
			 * when it has nothing to claim */
};

/* What not every layout has. */
enum {
	MQ_HAS_KEYS = 1 << 0,
	MQ_HAS_GROUPS = 1 << 1,
	MQ_HAS_TICKS = 1 << 2,
	MQ_HAS_LOW_PRIORITY = 1 << 3, /* below 0 */
	MQ_HAS_RESULTS = 1 << 4,
	MQ_HAS_ATTRIBUTES = 1 << 5, /* of queues */
	MQ_HAS_NEWS = 1 << 6,	    /* mq_publishing.realtime */
	MQ_HAS_IDS = 1 << 7,	    /* of messages without a header, too */
	MQ_HAS_TEXT = 1 << 8,	    /* other programs take payloads for UTF-8 */
	MQ_HAS_CLAIMS = 1 << 9	    /* counted: one is a run, however it ends */
};

/* Messages of one queue that have ended, the oldest first. */
struct mq_acks {
	const struct mq_part *elements;
	int n;
	bool holds; /* some may hold a key or a group */
	bool twins; /* some may be equal to others of ours; not with holds */
};

struct mq_right;
struct mq_layout {
	const char *name;
	unsigned has;	/* MQ_HAS_* */
	const char *ns; /* the namespace unless the URL names one, as NS:QUEUE
			 * is a queue of NS; NULL: it has no namespaces */

	const struct mq_right *rights; /* see rights.h */

	/* NULL, or why this cannot be the name of a queue (constant text). */
	const char *(*queue_error)(const char *queue);

	/* Makes a queue known, with these attributes if it was not; the reply is
	 * an integer, 0 if it was. */
	void (*open)(struct mq_command *, const char *queue,
	    const struct mq_attributes *);
	/* Changes those attributes that are said; the reply is the integer 1,
	 * or 0 when there is no such queue.  Only with MQ_HAS_ATTRIBUTES. */
	void (*set_attributes)(struct mq_command *, const char *queue,
	    const struct mq_attributes *);
	/* Whether anybody ever did: an integer, 0 or not. */
	void (*known)(struct mq_command *, const char *queue);
	/*
	 * Changes nothing, and is refused where using the queue would be: its
	 * keys hold something else (the error names one), or are not permitted.
	 * To be asked before the first write, so that a refusal leaves nothing
	 * behind.  For a consumer of it, or (NULL) for whoever puts messages in:
	 * special ones, or such as want no more than a place in line.  The
	 * reply is an integer: how many of the keys there are.
	 */
	void (*probe)(struct mq_command *, const struct mq_session *,
	    const char *queue, bool special);

	/*
	 * Starts one command that publishes any number of messages to a
	 * queue, all in the same way; publish_add() adds each.  published()
	 * says by the reply, which is no error, what became of message i; an
	 * error published none of them.  header may be empty: the message is
	 * then the bare payload.  unique is used by no other message.
	 */
	void (*publish)(struct mq_command *, const char *queue,
	    const struct mq_publishing *);
	void (*publish_add)(struct mq_command *, const struct mq_publishing *,
	    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
	    const char *payload, size_t len);
	enum mq_published (*published)(const redisReply *, int i);
	/*
	 * Whether that command also marks and counts what it has published.  If
	 * not, there is publish_mark() for a batch with a mark: a plain command
	 * to go behind it, in one transaction, for its n messages; refused, it
	 * has no part in what became of them.  Without a mark there is
	 * count_published().
	 */
	bool (*publish_counts)(const struct mq_publishing *);
	void (*publish_mark)(struct mq_command *, const char *queue,
	    const struct mq_mark *, int n);
	/* Starts a plain command on the key with a publisher's marks. */
	void (*marks)(struct mq_command *, const char *verb, const char *queue,
	    const char *publisher);

	/*
	 * Sets a queue's clock, which starts at 0 and never goes back.  The
	 * reply is an integer: the tick it is at now, which is above the one
	 * given when that would have been back; nothing has changed then.
	 */
	void (*tick)(struct mq_command *, const char *queue, int64_t tick);

	/*
	 * The lease of a connection.  lease() says by the reply to the first
	 * step of join() or renew() for how many milliseconds it holds from
	 * then on; 0: it was gone before, and is so for good.
	 */
	/* The lease holds from the first step of join() on; the other steps
	 * must not be sent before it is confirmed, since a cleaner must never
	 * see a listed connection without it. */
	bool (*join)(const struct mq_session *, int step, struct mq_command *);
	/* The first queue_count steps give back what is left in our hands; the
	 * others must not be sent before those are confirmed. */
	bool (*leave)(const struct mq_session *, int step, struct mq_command *);
	bool (*renew)(const struct mq_session *, int step, struct mq_command *);
	int64_t (*lease)(const redisReply *);
	/* Where claims are counted (else NULL): of a message that was ours when
	 * the lease ended, after so many attempts, the last one does not count,
	 * unless somebody has claimed it since. */
	void (*lapsed)(const struct mq_session *, int queue,
	    const char *element, size_t len, long attempts,
	    struct mq_command *);

	/*
	 * Claims up to max messages, and about bytes of them (but at least
	 * one), from one queue; max may be 0, to only look whether the queue
	 * is paused (due_ms is -1 then unless it is).  claimed() gives
	 * their number, or MQ_CLAIM_BAD for a reply of the wrong form, and
	 * fills in what else there is to know; the elements are
	 * reply->element[first] and those behind it.  MQ_CLAIM_LOST: the lease
	 * is gone, and nothing was claimed.
	 */
	void (*claim)(const struct mq_session *, int queue, int max,
	    size_t bytes, struct mq_command *);
	int (*claimed)(const redisReply *, struct mq_claimed *);
	/* What a key that a claim has read belongs to: the name of a queue, in
	 * *queue and *n; false: to none, and its change makes no message
	 * claimable. */
	bool (*key_queue)(
	    const char *key, size_t len, const char **queue, size_t *n);

	/*
	 * Ends a message's stay in our hands, in one atomic step.  settled()
	 * takes its reply, unless that is an error.
	 */
	void (*settle)(const struct mq_session *, int queue,
	    const struct mq_settlement *, struct mq_command *);
	enum mq_settled (*settled)(const redisReply *);

	/*
	 * Acks messages in one step, which are the oldest that the server
	 * holds for us and whose end is told to nobody.  If they are not the
	 * oldest, settled() is not MQ_SETTLED, and nothing has changed.
	 */
	void (*ack_oldest)(const struct mq_session *, int queue,
	    const struct mq_acks *, struct mq_command *);

	/* An array: how many elements of this queue the server has ever
	 * claimed for us (0: unknown), and those that it holds for us, the
	 * newest first. */
	void (*held)(const struct mq_session *, int queue, struct mq_command *);
	/* Only how many: an integer. */
	void (*held_count)(
	    const struct mq_session *, int queue, struct mq_command *);
	/* Whether a message that the server does not hold for us any more is
	 * there still, whoever has it: an integer, 0 or not.  NULL: it is, as
	 * nobody can delete what is ours. */
	void (*exists)(const struct mq_session *, int queue,
	    const char *element, size_t len, struct mq_command *);

	/*
	 * What has been told of the end of a message: text as of result.h, or
	 * nil when there is none.  With block_ms, above 0, it is waited for so
	 * long; like every write, that is refused while memory is full.
	 */
	void (*result)(struct mq_command *, const char *queue, const char *id,
	    int64_t block_ms);

	/*
	 * Adds to the counts of a queue.  count_published() is a plain command
	 * for the one count that publishers have, n below 0 takes off again;
	 * it has one reply, an integer when it was carried out.
	 */
	void (*count)(
	    struct mq_command *, const char *queue, const struct mq_counts *);
	void (*count_published)(
	    struct mq_command *, const char *queue, long long n);

	/*
	 * Messages handed out by receipt are in the hands of a connection
	 * with one queue, which joined with a lease_ms, and that its maker
	 * leaves alone.  receipts() numbers all those that it holds, which are
	 * these in the order of their claim, from 1; the reply is the integer n,
	 * or else the lease is over.
	 */
	void (*receipts)(const struct mq_session *,
	    const struct mq_part *elements, int n, struct mq_command *);
	/* The message of a receipt: its element, or nil when it is settled or
	 * the lease is over. */
	void (*receipt)(struct mq_command *, const char *connection,
	    const char *queue, const char *number);
	/* Waits.  Any message but those that are handed out by receipt, whoever
	 * has it; no connection in *out: there is none with this id.  NULL
	 * unless MQ_HAS_IDS. */
	int (*receipt_by_id)(struct mq_redis *, const char *queue,
	    const char *id, struct mq_receipt *);
	/* Removes such a connection if it holds nothing more. */
	void (*vacate)(const struct mq_session *, struct mq_command *);

	/* Tells others what runs here: text as of running.h, kept as long as
	 * the lease; renew() keeps it, too.  n 0: nothing runs. */
	void (*tell_running)(const struct mq_session *, const char *text,
	    size_t n, struct mq_command *);

	/* Consumers of these tools claim nothing from a paused queue.  For ms
	 * milliseconds, or until resumed (-1).  resume()'s reply is the integer
	 * 1, or 0 when it was not paused. */
	void (*pause)(struct mq_command *, const char *queue, int64_t ms);
	void (*resume)(struct mq_command *, const char *queue);
	/* As pause(), but it never ends a pause earlier. */
	void (*pause_at_least)(
	    struct mq_command *, const char *queue, int64_t ms);

	/*
	 * These wait.  They return 0, or -1 with the error in struct mq_redis.
	 * What is about all queues is so in the namespace that the URL of that
	 * server names.
	 */

	/* One round of cleaning up.  What the server refuses about one
	 * connection or queue leaves that as it is and the others are cleaned;
	 * the first such error is returned then.  The counts hold anyhow. */
	int (*clean)(
	    struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);

	/* Whether none of the queues has a message that is ready, due, or
	 * unacked at any connection. */
	int (*drained)(struct mq_redis *, const char *const *queues, int count,
	    bool *drained);

	/* The named queues, or all when count is 0, and what else is wanted;
	 * mq_stats_free() frees. */
	int (*stats)(struct mq_redis *, const char *const *queues, int count,
	    int wanted, struct mq_stats *);

	/* What runs now, by queue and start; mq_runs_free() frees. */
	int (*running)(struct mq_redis *, struct mq_runs *);

	/* The next slice of a walk. */
	int (*scan)(struct mq_redis *, struct mq_scan *);
	/*
	 * Takes the chosen ones of the current slice, chosen[i] for items[i],
	 * away from where they are: to the newest end of the ready messages of
	 * a queue, or nowhere (NULL).  Each moves in one atomic step, and only
	 * if it is still there; taken counts those.  From rejected, the count
	 * of attempts begins anew.  An error leaves taken at what is certain.
	 *
	 * What becomes ready gets the place that it asks for: behind those of
	 * its priority, or in line for its group, and its key, if that is
	 * free.  From delayed, its first tick becomes 0; one in line stays
	 * there, unless it goes to another queue.  What is dropped lets go of
	 * its group and key, and whoever waits for its end is told.
	 */
	int (*take)(struct mq_redis *, struct mq_scan *, const bool *chosen,
	    const char *to, long *taken);
	/*
	 * To be called when a walk from which messages were taken is over,
	 * whether it has come to its end or not.  When some thousand stay,
	 * those behind the walk wait at the newest end meanwhile; this brings
	 * all back into their order.  A crash before it leaves them there.
	 */
	int (*scan_end)(struct mq_redis *, struct mq_scan *);
	/*
	 * As take() for the next max messages at a place, without looking: but
	 * at most 1000 or about 1 MiB in one call.  0: there are none.
	 * Unacked ones go to the front, the newest first, so that their order
	 * stays, and an error with MQ_EXIT_AGAIN says that their connection is
	 * alive.  With max 0, moved is how many there are that would.
	 */
	int (*move)(struct mq_redis *, const struct mq_place *, long max,
	    const char *to, long *moved);
	/* Removes all messages there are at a place in one step that takes no
	 * time; not UNACKED.  removed -1: there is something to let go of, or
	 * somebody to tell; none was removed, and move() has to do it. */
	int (*purge)(struct mq_redis *, const struct mq_place *, long *removed);
	/* Removes a queue and all that is kept about it, in one step. */
	int (*delete_queue)(
	    struct mq_redis *, const char *queue, struct mq_deletion *);
};

extern const struct mq_layout mq_layout_rmq, mq_layout_rsmq;

/* The claimed() and settled() of both. */
int mq_layout_claimed(const redisReply *, struct mq_claimed *);
enum mq_settled mq_layout_settled(const redisReply *);

/* The layout of this name, or NULL. */
const struct mq_layout *mq_layout_find(const char *name);

/* Whether messages with such headers can be published; if not, *why says what
 * they ask for that the layout does not know. */
bool mq_layout_obeys(
    const struct mq_layout *, const struct mq_envelope *, struct mq_buf *why);
/* Whether other programs read such a payload as what it is. */
bool mq_layout_reads(const struct mq_layout *, const char *payload, size_t n);
/*
 * The name of a queue for the operations, which the caller frees, when a user
 * calls it so and the namespace of the URL is ns (NULL: it names none): with
 * that in front, unless it is the usual one.  It may be there already.  NULL:
 * it cannot be one, and *why (constant text) says why not.
 */
char *mq_layout_queue(const struct mq_layout *, const char *ns,
    const char *queue, const char **why);

/* Frees all it has, not itself. */
void mq_connection_stats_free(struct mq_connection_stats *);
void mq_stats_free(struct mq_stats *);

#endif
