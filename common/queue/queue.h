/* What can be done with queues, whatever their layout. */
#ifndef MQ_QUEUE_H
#define MQ_QUEUE_H

#include <limits.h>

#include "base/names.h"
#include "base/rate.h"
#include "message/headers.h"
#include "redis/ask.h"

struct mq_stats;

/* --- publishing: how, and what a queue accepts ----------------------------- */

/* No clock of a queue goes further: the scores of ticks have to be exact. */
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

/* How many messages may be there for another one to be accepted, -1 any number: claimable
 * ones, and those that are delayed for whatever reason; and the same for a message with a
 * priority above 0.  Without the first, as the settings of the queue say. */
struct mq_limits {
	long ready, ready_high, delayed, delayed_high;
};
/* Not even by the settings: of messages that are there already. */
#define MQ_UNLIMITED                                                           \
	{                                                                      \
		LONG_MAX, LONG_MAX, -1, -1                                     \
	}

/* By which a publisher can ask whether the server has done a batch; see layout.h. */
struct mq_mark {
	const char *publisher; /* an id; NULL: nobody will ask */
	int place;	       /* 0 to MQ_MARKS - 1, in turn */
	long long before; /* messages in the batches before it; none is empty */
	/* The same of the batch that must be done first, or a script does nothing; -1:
	 * none. */
	long long behind;
};

struct mq_publishing {
	struct mq_mark mark;
	struct mq_when when;
	/* Messages may have options (a priority, a group, a key, a tick, an
	 * answer), or there are limits. */
	bool special;
	bool alike; /* all ask for the same, none for an answer; their headers
		     * differ in the id, which is what makes them unique, and in
		     * times, and in no length */
	/* Special ones, alike and without limits, that have no options but these: */
	bool ordered;
	int priority;
	bool in_tick; /* from tick 0 on */
	/* The server's unix time, about, in microseconds, later for each message
	 * than for the publisher's others before; 0: unknown. */
	int64_t now_us;
	bool join; /* a key that a message has until it is claimed is shared */
	bool direct; /* a plain command may put special ones in */
	struct mq_limits limits;
	bool realtime; /* each message is published to listeners, as by node */
	const struct mq_attach *files; /* of the only message; NULL: none */
};

/* The attributes of a queue, with MQ_HAS_ATTRIBUTES; NONE: not said. */
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

/* What became of a message. */
enum mq_published {
	MQ_PUBLISHED_NONSENSE = -1, /* a reply of the wrong form */
	MQ_PUBLISHED,		    /* it is there */
	MQ_PUBLISHED_DUPLICATE,	    /* another one has its key */
	MQ_PUBLISHED_JOINED,	    /* the same, and that one is for both */
	MQ_PUBLISHED_FULL,	    /* there are too many */
	MQ_PUBLISHED_STALE,	    /* its last tick is over */
	MQ_PUBLISHED_TOO_LONG	    /* for the queue's maxsize */
};

/* --- claiming: what a consumer asks for, and what it gets ------------------ */

enum { MQ_CLAIM_BAD = -1, MQ_CLAIM_LOST = -2 };

/* A message as it is kept: bytes. */
struct mq_element {
	char *data;
	size_t len;
};

/* How a consumer hears of the next message of a queue; see lua/lib/role.lua. */
enum mq_role {
	MQ_ROLE_NONE,  /* in no way: it has room for no more, or must look */
	MQ_ROLE_WATCH, /* by CLIENT TRACKING */
	MQ_ROLE_IDLE,  /* by another consumer, over its channel */
	MQ_ROLE_CLAIM  /* in no way yet: a tracked claim may begin a watch */
};

struct mq_claim {
	int max;      /* messages; 0: only look whether the queue is paused
		       * (due_ms is -1 then unless it is) */
	size_t bytes; /* about; but at least one message */
	enum mq_why {
		MQ_CLAIM_OWN,	 /* renews its watch, too */
		MQ_CLAIM_CALLED, /* a key has changed, or it was woken */
		MQ_CLAIM_LOOK	 /* the consumer on watch may be dead */
	} why;
	bool tracked;	     /* the server reports changes from now on */
	struct mq_rate rate; /* of the claims of all consumers; 0: no limit */
	size_t copied;	     /* bytes that the claim may copy; 0: any number */
};
/* How its error begins when all it could claim is to be copied, and that is more. */
#define MQ_CLAIM_NO_ROOM "no room to copy"

struct mq_claimed {
	/* Only for callbacks: see consumer.h. */
	struct mq_element *elements;
	int n;
	/* Until there may be more to claim though nothing has changed: the next delayed
	 * message is due, the pause is over, or the shared rate allows it; -1: never. */
	int64_t due_ms;
	bool paused; /* the queue is; nothing is claimed then */
	enum mq_role role;
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* the queue's; 0: it never had one */
	bool missing;	/* no such queue; an empty claim always sees that */
};

/* --- cleaning: one round --------------------------------------------------- */

/* Runs that a message may have, by default. */
#define MQ_ATTEMPTS 15

struct mq_clean {
	int limit;    /* runs that a message may have, crashes included, before
		       * it is rejected, if the consumer that died did not say */
	bool dry_run; /* only count what would be done */
	bool all;     /* also what is due, and orphans: all of the server's keys
		       * are looked through */
	/* Where to add the names of dead connections that were left alone, as
	 * they have keys in rmq's other form, or messages of a scattered queue; and
	 * those of scattered queues: see stats.h.  NULL: nowhere. */
	struct mq_names *cluster, *scattered;
	/* Unless all: where the search for messages in no known queue goes on: 0,
	 * then scan_at of the round before. */
	unsigned long long scan_from;
	/* Of the consumer that cleans, or NULL.  Without its lease, nothing is done. */
	const char *self;
};

/* The result of a round of cleaning. */
struct mq_cleaned {
	long connections; /* dead ones removed */
	long returned;	  /* messages put back to ready */
	long rejected;	  /* messages that had crashed too often */
	long due;	  /* delayed messages made ready, as they were due */
	long adopted;	  /* unacked lists: their connection is listed again */
	unsigned long long scan_at; /* the scan_from of the next round */
	long orphans;	  /* keys of our own removed that nobody needs */
	long transferred; /* messages arrived in another queue of a cluster */
	long expired;	  /* messages rejected that were too late */
	long refused;	  /* steps with a key that is not permitted */
	/* Queues whose keys and groups were left alone, as a consumer died
	 * meanwhile, or the server was too slow to tell. */
	long unproven;
	long locks;	 /* keys and groups that nobody held, or could get */
	int64_t next_ms; /* until one will be found dead; -1: none */
};

/* --- places: where messages are, walks, and the deletion of a queue -------- */

enum mq_state { MQ_READY, MQ_DELAYED, MQ_UNACKED, MQ_REJECTED, MQ_STATES };

/* The word of a state, on the command line and in outputs. */
const char *mq_state_name(enum mq_state);
/* The other way round: 0, or -1 when the word is none of them. */
int mq_state_parse(const char *word, enum mq_state *);

/* Messages in one state of one queue. */
struct mq_place {
	const char *queue;
	enum mq_state state;
	const char *connection; /* UNACKED: of this one; NULL: of all; "-": of
				 * those that nobody knows, if there can be */
	/* DELAYED, to drop all: those in line for their group come first, so that
	 * none has its turn meanwhile. */
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

/* The memory of a walk from slice to slice, for the layouts only. */
struct mq_walk {
	redisReply *connections; /* those to walk through; NULL: one only */
	redisReply *reply;	 /* this slice: the items point into it */
	/* Messages of the part of the place at work that are still to be looked at, of
	 * those that were there when it began; 0: not begun; -1: none. */
	long long part_left;
	struct mq_buf anchor; /* the last message behind the walk */
	long long span;	      /* messages that this slice had, and has */
	/* rmq */
	int part;	   /* which of the place's keys is at work */
	size_t connection; /* index of the connection at work */
	long long from;	   /* messages behind the walk that are still there */
	long batch;	   /* messages that are taken at once */
	struct mq_buf turned; /* the first one at the other end; empty: none */
	/* rsmq */
	struct mq_names held; /* ids, and whose they are */
};

/* A walk through a place, the next to be claimed first, in slices of about 1000 messages
 * or 1 MiB (but of at least one), so that the server is not kept.  Starts zeroed but for
 * place, needle and skip.  Messages that come or go meanwhile may be seen or not; those
 * that stay are seen once. */
struct mq_scan {
	struct mq_place place;
	const char *needle;    /* an element must contain it; NULL: any */
	long skip;	       /* passed over first; not with all connections */
	struct mq_item *items; /* this slice; valid until the next */
	int count;	       /* may be 0 with a needle, and more to come */
	long seen;	       /* messages looked at so far, needle or not */
	bool end;	       /* no slice follows */
	bool over;	       /* set by the caller: none is wanted */
	struct mq_walk walk;   /* the layout's own */
};
void mq_scan_free(struct mq_scan *);

struct mq_deletion {
	bool dry_run; /* only tell what would be removed */
	/* Live consumers, and messages of dead ones: with any, nothing is done. */
	long consumers, unacked;
	bool cluster; /* it has keys in rmq's other form: nothing is done */
	bool known;   /* whether anybody ever opened it */
	long ready, delayed, rejected; /* messages removed with it */
	bool awaited; /* somebody may wait for their ends, and hears of those if
		       * they are dropped one by one before */
};

/* --- session ------------------------------------------------------------ */

/* One consumer as the server knows it. */
struct mq_session {
	const char *connection; /* unique for ever; never reused */
	const char *consumer;
	/* A consumer's, on a cluster: the set of connections has it. */
	bool listed;
	const char *former; /* whose lease its maker, alive, lost; NULL: none */
	double former_s; /* when that was renewed last, by the steady clock */
	const char *const *queues;
	int queue_count;
	const char *push;   /* where messages may be pushed to; NULL: nowhere */
	const char *notify; /* what hears of each end; NULL: as settings say */
	/* Its name in the channel that wakes it; NULL: it cannot be woken. */
	const char *wake;
	bool make;    /* make the queues that do not exist */
	int slots;    /* how many messages can run at once */
	int attempts; /* runs that a message may have; -1: as settings say */
	int64_t lease_ms;  /* by receipt: of a renewal; 0: as the layout says */
	unsigned renewals; /* of the lease so far */
	bool runs;	   /* others are told what runs here */
	bool heads; /* of what it holds, it is told only how each begins */
};

/* What outlasts many renewals is renewed with every so many of them. */
#define MQ_RENEW_INFO 16

/* --- settling: how the stay of a message in our hands ends ----------------- */

/* The result of a message, for those who wait for its end. */
struct mq_result {
	const char *id;	  /* of the message, or what its Mq-Reply-To says */
	const char *text; /* as of result.h */
	size_t len;
	int64_t keep_ms; /* how long it can be read, above 0 */
};

/* A message for a queue that hears of each end. */
struct mq_notice {
	const char *queue;	    /* never that of the message that ends */
	char unique[MQ_ID_LEN + 1]; /* its id */
	struct mq_buf element;
};

enum mq_outcome {
	MQ_OUTCOME_ACK,	   /* done: it is gone */
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
	bool unrun;		    /* REJECT: it was too late to run it */
	const char *push;	    /* PUSH only */
	/* ACK: its header asks for more than a place in line, so there may be
	 * something to let go of.  (The others find out for themselves.) */
	bool holds;
	const char *receipt; /* its number, of a session that handed out by
			      * receipt: LOST when its lease is over; or NULL */
	const struct mq_result *result; /* NULL: none */
	/* NULL: none; never with FRONT or AGAIN. */
	const struct mq_notice *notice;
};

/* As the reply says it, an integer. */
enum mq_settled {
	MQ_SETTLED = 1,
	MQ_SETTLED_LOST = 0, /* nothing: somebody else has the message by now */
	MQ_SETTLED_GONE = -1, /* nothing: there is no such message any more */
	/* PUSH: nothing, it is longer than the maxsize of the other queue; it is still
	 * ours. */
	MQ_SETTLED_TOO_LONG = -2
};

/* Messages of one queue that have ended, the oldest first.  The oldest that the server
 * holds for us has place 1. */
struct mq_acks {
	const struct mq_part *elements;
	const int *places;
	int n;
	struct mq_part oldest; /* the element at place 1 */
	size_t others_len; /* bytes of those between them that have not ended */
	bool holds;	   /* some may hold a key or a group */
	char unique[MQ_ID_LEN + 1]; /* no element is equal to it */
};

/* Messages of one queue to be given back, the newest first. */
struct mq_newest {
	const struct mq_part *elements;
	int n;
	bool each; /* their order, or others equal to them, may deceive about
		    * what is between the first and the last */
};

/* --- queue ----------------------------------------------------------------- */

/*
 * A layout: which keys hold a queue, and which commands are the steps of a message's life.
 * rmq/ and rsmq/ hold one each; no other file spells a key, and neither calls the other.
 * Operations only build commands or take replies apart, so that tools which wait and tools
 * which must not can both use them; those of several rounds take a struct mq_redis and wait.
 *
 * An operation with a step argument is a list of commands: call it with step
 * 0, 1, 2 … until it returns false, and send what it built in that order.
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
	MQ_HAS_ATTRIBUTES = 1 << 5, /* of queues */
	MQ_HAS_NEWS = 1 << 6,	    /* mq_publishing.realtime */
	MQ_HAS_IDS = 1 << 7,	    /* of messages without a header, too */
	MQ_HAS_TEXT = 1 << 8,	    /* other programs take payloads for UTF-8 */
	MQ_HAS_CLAIMS = 1 << 9,	    /* counted: one is a run, however it ends */
	MQ_HAS_NODES = 1 << 10	    /* of a cluster: see renew() and known() */
};

enum mq_held_how { MQ_HELD, MQ_HELD_AT_ONCE, MQ_HELD_COUNT, MQ_HELD_KEY };
enum mq_look { MQ_LOOK_ANY, MQ_LOOK_LEFT, MQ_LOOK_CHECK };

#define MQ_LEAVE_EMPTY (-1)

struct mq_layout {
	const char *name;
	unsigned has;	/* MQ_HAS_* */
	const char *ns; /* the namespace unless the URL names one, as NS:QUEUE
			 * is a queue of NS; NULL: it has no namespaces */

	int64_t lease_ms;	/* how long it holds; 0: the reply says */
	int64_t queue_lease_ms; /* that of a queue, with MQ_HAS_NODES */
	const struct mq_right *rights;		  /* see rights.h */
	const struct mq_side *side;		  /* see layout.h */
	const struct mq_attachments *attachments; /* NULL: none */
	/* NULL, or why this cannot be the name of a queue (constant text). */
	const char *(*queue_error)(const char *queue);

	/* Makes a queue known, with these attributes if it was not; the reply is
	 * an integer, 0 if it was.  Or (set), only with MQ_HAS_ATTRIBUTES, changes
	 * those attributes that are said; 1, or 0 when there is no such queue. */
	void (*open)(struct mq_command *, const char *queue,
	    const struct mq_attributes *, bool set);
	/* Whether anybody ever did: an integer, 0 or not.  With MQ_HAS_NODES both are
	 * optional commands, as all names may be on another node.  By keys, if that is
	 * away: how many the queue has, as one that has some exists. */
	void (*known)(struct mq_command *, const char *queue, bool by_keys);
	/* Changes nothing, and is refused where using the queue would be: its
	 * keys hold something else (the error names one), or are not permitted.
	 * Before the first write, so that a refusal leaves nothing behind.  For a
	 * consumer, or (NULL) for whoever puts messages in: special ones, or such as
	 * want no more than a place in line.  The integer: how many keys there are. */
	void (*probe)(struct mq_command *, const struct mq_session *,
	    const char *queue, bool special);

	/* Starts one command that publishes any number of messages, all in the same
	 * way; publish_add() adds each.  mq_layout_published() says by the reply what
	 * became of message i; an error published none.  header may be empty: that is
	 * the bare payload.  unique is used by no other message. */
	void (*publish)(struct mq_command *, const char *queue,
	    const struct mq_publishing *);
	void (*publish_add)(struct mq_command *, const struct mq_publishing *,
	    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
	    const char *payload, size_t len);
	/* Marks and counts the n messages of such a batch: a plain command behind
	 * it, in one transaction; refused, it has no part in what became of them.
	 * False: publish() does so itself.  Without a command it only tells which.
	 * NULL: publish() always does. */
	bool (*publish_mark)(struct mq_command *, const char *queue,
	    const struct mq_publishing *, int n);

	/* The lease of a connection, which mq_layout_lease() reads in the reply to
	 * the first step of join() or renew().  The others of join() must not be sent
	 * before it is confirmed: no cleaner may see a connection without. */
	bool (*join)(const struct mq_session *, int step, struct mq_command *);
	/* When nothing is left in our hands.  Step MQ_LEAVE_EMPTY, of a connection
	 * whose messages are handed out by receipt: only if that is so; then the reply
	 * is the integer 1, and with MQ_HAS_NODES on a cluster the steps behind that of
	 * its queue follow. */
	bool (*leave)(const struct mq_session *, int step, struct mq_command *);
	/* Of the connection (queue -1); or then, with MQ_HAS_NODES on a cluster, of a
	 * queue, when that one is confirmed. */
	bool (*renew)(const struct mq_session *, int queue, int step,
	    struct mq_command *);
	/* There: what the server holds of a queue for `from`, a former name of this
	 * connection, is ours; an integer, 0 if that name has lost its lease. */
	void (*take_over)(const struct mq_session *, int queue,
	    const char *from, struct mq_command *);
	/* Where claims are counted (else NULL): of a message that was ours when the
	 * lease ended, the last of so many attempts does not count, unless somebody
	 * has claimed it since. */
	void (*lapsed)(const struct mq_session *, int queue,
	    const char *element, size_t len, long attempts,
	    struct mq_command *);

	void (*claim)(const struct mq_session *, int queue,
	    const struct mq_claim *, struct mq_command *);
	/* Whether queues need a claim: of each, its keys as watched of the side names
	 * them, watch and idle; then the session's name in wake, and 1 to see whether
	 * others know that it is idle.  An array, of each queue 0, or how many are
	 * idle, or, not to see that, -1. */
	const struct mq_script *look;
	/* The queue of such a key, in *queue and *n; false: it is none. */
	bool (*key_queue)(
	    const char *key, size_t len, const char **queue, size_t *n);

	/* Ends a message's stay in our hands, in one atomic step: enum mq_settled.  Of
	 * n messages, unless MQ_HAS_IDS, all, or none: not MQ_SETTLED, not all are
	 * there.  Some of them are equal, and each is acked, rejected, or goes
	 * back, and asks for nothing else. */
	void (*settle)(const struct mq_session *, int queue,
	    const struct mq_settlement *, int n, struct mq_command *);

	/* Acks messages in one step, which have no result.  Not MQ_SETTLED: they are
	 * not at their places, and nothing has changed. */
	void (*ack_oldest)(const struct mq_session *, int queue,
	    const struct mq_acks *, struct mq_command *);

	/* Gives back to the front, unstarted, the newest messages that the server
	 * holds for us, in one bounded step.  The integer: how many of the first; 0:
	 * they are not the newest, and nothing has changed.  NULL: whatever it
	 * holds; 0: nothing is left. */
	void (*give_back)(const struct mq_session *, int queue,
	    const struct mq_newest *, struct mq_command *);

	/* How many elements of this queue the server has ever claimed for us (0:
	 * unknown), and those that it holds for us, the newest first.  Two
	 * commands of one transaction, since a script copies many or large elements
	 * several times; their replies are that number, as text or nil, and an array.
	 * MQ_HELD_AT_ONCE, or if only a script can tell: one, whose reply is an array of
	 * both.  MQ_HELD_COUNT: one, which says how many it holds.  MQ_HELD_KEY adds only
	 * the key that is there if it holds any.  Returns how many commands they are. */
	int (*held)(const struct mq_session *, int queue, enum mq_held_how,
	    struct mq_command[2]);
	/* Whether a message that the server does not hold for us any more is there
	 * still: an integer, 0 or not.  NULL: it is, as nobody can delete it. */
	void (*exists)(const struct mq_session *, int queue,
	    const char *element, size_t len, struct mq_command *);

	/* Messages handed out by receipt are in the hands of a connection with one
	 * queue, which joined with a lease_ms, and that its maker leaves alone.
	 * Numbers all that it holds, which are these in the order of their claim,
	 * from 1; the reply is the integer n, or else the lease is over. */
	void (*receipts)(const struct mq_session *,
	    const struct mq_part *elements, int n, struct mq_command *);
	/* The element of a receipt, or nil: it is settled, or the lease is over. */
	void (*receipt)(struct mq_command *, const char *connection,
	    const char *queue, const char *number);
	/* Waits.  Any message but those handed out by receipt; no connection in
	 * *out: there is none with this id.  NULL unless MQ_HAS_IDS. */
	int (*receipt_by_id)(struct mq_redis *, const char *queue,
	    const char *id, struct mq_receipt *);

	/* These wait.  They return 0, or -1 with the error in struct mq_redis.  All
	 * queues are those of the namespace that the URL of that server names. */

	/* One round of cleaning.  What the server refuses about one connection or
	 * queue leaves that as it is, and the first such error is returned at the
	 * end.  The counts hold anyhow. */
	int (*clean)(
	    struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);

	/* On a cluster, ends what settle() has begun with what was pushed; or NULL. */
	int (*finish_pushes)(
	    struct mq_redis *, const char *queue, const char *to);

	/* Whether no queue has a message that is ready, due, or unacked anywhere. */
	int (*drained)(struct mq_redis *, const char *const *queues, int count,
	    bool *drained);

	/* The named queues, or all (count 0), and what else is wanted; mq_stats_free(). */
	int (*stats)(struct mq_redis *, const char *const *queues, int count,
	    int wanted, struct mq_stats *);

	/* The current runs, by queue and start; mq_runs_free() frees. */
	int (*running)(struct mq_redis *, struct mq_runs *);

	/* The next slice of a walk.  Or its end (s->over), to be told when messages
	 * were taken from it, whether it has come to its end or not.  When some
	 * thousand stay, those behind the walk wait at the newest end meanwhile;
	 * this brings all back into their order.  A crash before it leaves them
	 * there. */
	int (*scan)(struct mq_redis *, struct mq_scan *);
	/* Takes those of the current slice with chosen[i] to the newest end of the
	 * ready messages of a queue, or nowhere (NULL).  Each moves in one atomic
	 * step, and only if it is still there; taken counts those, after an error the
	 * certain ones.  From rejected, the count of attempts begins anew.
	 *
	 * What becomes ready gets the place that it asks for: behind those of
	 * its priority, or in line for its group, and its key, if that is
	 * free.  From delayed, its first tick becomes 0; one in line stays
	 * there, unless it goes to another queue.  A dropped message releases
	 * its group and key, and its result is sent to those who wait for it. */
	int (*take)(struct mq_redis *, struct mq_scan *, const bool *chosen,
	    const char *to, long *taken);
	/* As take() for the next max messages at a place, without looking: but
	 * at most 1000 or about 1 MiB in one call.  0: there are none.
	 * Unacked ones go to the front, the newest first, so that their order
	 * stays, and an error with MQ_EXIT_AGAIN says that their connection is
	 * alive.  With max 0, moved is how many there are that would.
	 *
	 * With max LONG_MAX and without `to`, but for UNACKED: drops all in one step
	 * that takes no time.  moved -1: there is something to let go of, or
	 * somebody to tell; none was dropped, and that is for steps to do. */
	int (*move)(struct mq_redis *, const struct mq_place *, long max,
	    const char *to, long *moved);
	/* Removes a queue and all that is kept about it, in one step. */
	int (*delete_queue)(
	    struct mq_redis *, const char *queue, struct mq_deletion *);
};

extern const struct mq_layout mq_layout_rmq, mq_layout_rsmq;

/* The result of message i in a reply to publish(). */
enum mq_published mq_layout_published(const redisReply *, int i);
/* How many messages a reply to claim() has, its last elements; MQ_CLAIM_BAD: it
 * has the wrong form; MQ_CLAIM_LOST: the lease is gone, and nothing was claimed. */
int mq_layout_claimed(const redisReply *, struct mq_claimed *);

/* Adds each word of a text as an argument; a word that is %s, %d, %ld or %lld stands for
 * the next value, which may have blanks. */
void mq_command_add(struct mq_command *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a number, or an empty argument for one below 0. */
void mq_command_bound(struct mq_command *, long long);
/* For layouts: sets the error "about: why", in which the server has no part.  Returns -1. */
int mq_layout_fail(
    struct mq_redis *, int status, const char *about, const char *why);
#define MQ_IS_ALIVE	  "it is alive; stop it first"
#define MQ_KEEPS_CHANGING "its connections keep changing; try again"
const char *mq_outcome_name(enum mq_outcome);

/* The layout of this name, or NULL. */
const struct mq_layout *mq_layout_find(const char *name);

/* By that reply, for how many milliseconds a lease holds from then on, on a cluster with
 * MQ_HAS_NODES that of each queue; 0: it was gone before, and is so for good. */
int64_t mq_layout_lease(
    const struct mq_layout *, const redisReply *, bool cluster);
/* Whether messages with such headers can be published; if not, *why says what
 * they ask for that the layout does not know. */
bool mq_layout_obeys(
    const struct mq_layout *, const struct mq_envelope *, struct mq_buf *why);
/* The name for the operations, which the caller frees, of a queue that a user calls so
 * where the URL names the namespace ns (or NULL): with that in front, unless it is usual
 * or there already.  NULL: it cannot be one, and *why (constant text) says why not. */
char *mq_layout_queue(const struct mq_layout *, const char *ns,
    const char *queue, const char **why);

/* A key that has changed, or that a call in a consumer's channel names, by the end of its
 * name.  Others may be taken for one of these. */
enum mq_key { MQ_KEY_OTHER, MQ_KEY_SETTINGS, MQ_KEY_ALL_PAUSED, MQ_KEY_STOP };
enum mq_key mq_key_of(const char *key, size_t n);

/* --- attachments ----------------------------------------------------------- */

/*
 * Files of messages in the layout rmq.  The messages that refer to a set of files name it
 * in MQ_HEADER_ATTACH, and the set knows their ids.
 *
 * A file is in the server as chunks of 1 MiB, so no command is longer and neither side
 * has more of it in memory.  All keys of a set expire after an hour until the step that
 * publishes its message (mq_publishing.files); from then on they stay until the last
 * message that refers to them has ended.  So a crash leaves no message without its files,
 * and keys without a message expire, or mq-clean lets them expire.
 *
 * All functions wait.  Unless they say otherwise they return 0, or -1 with the error
 * in struct mq_redis.
 */

/* Why no attachment can have this name, constant text; NULL: it can.  A good one is
 * the name of a file in any directory. */
const char *mq_attach_name_error(const char *name);

/* A set that is being made.  Starts zeroed but for redis. */
struct mq_attach {
	struct mq_redis *redis;
	char set[MQ_ID_LEN + 1]; /* for the header */
	long long chunks;	 /* so far */
	double renewed_s;	 /* when their hour began, CLOCK_MONOTONIC */
};

/* What a layout does with them. */
struct mq_attachments {
	/* For a message of this queue. */
	void (*begin)(struct mq_attach *, const char *queue);
	/* Adds what can be read from a descriptor.  An error of read(2) has the
	 * status MQ_EXIT_IO, and a file that changes meanwhile MQ_EXIT_AGAIN. */
	int (*add)(struct mq_attach *, const char *name, int fd);
	/* All have been added; this message is about to be published with them. */
	int (*close)(struct mq_attach *, const char *id);
	/* Writes the files of a set into a directory, and notes that the message refers
	 * to it.  Returns 1 with *why if there are none, or some are not what was
	 * published: no retry helps; -1 also if a file cannot be written. */
	int (*fetch)(struct mq_redis *, const char *set, const char *id,
	    int dir, struct mq_buf *why);
	/* A message has ended: the last one of a set takes the files with it. */
	int (*release)(struct mq_redis *, const char *set, const char *id);
	/* How many sets there may be. */
	int (*count)(struct mq_redis *, long long *);
	/* Another message refers to a set, or (made) the first: the reply is the
	 * integer 1, or 0 when the set is gone. */
	void (*refer)(
	    struct mq_command *, const char *set, const char *id, bool made);
};

/* As refer(), at once, for one message more; nothing happens if the set is gone. */
int mq_attach_refer(struct mq_redis *, const struct mq_attachments *,
    const char *set, const char *id);

#endif
