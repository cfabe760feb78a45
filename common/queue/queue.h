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

#include "claiming.h"
#include "cleaning.h"
#include "message/envelope.h"
#include "places.h"
#include "publishing.h"
#include "redis/command.h"
#include "redis/ask.h"
#include "session.h"
#include "settling.h"
#include "stats.h"

struct mq_attachments;
struct mq_right;
/* Scripts that run, as their consumers tell once a second; see running.h. */
struct mq_runs;

/* A message that was handed out; see lease.h. */
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
	MQ_HAS_CLAIMS = 1 << 9	    /* counted: one is a run, however it ends */
};

struct mq_layout {
	const char *name;
	unsigned has;	/* MQ_HAS_* */
	const char *ns; /* the namespace unless the URL names one, as NS:QUEUE
			 * is a queue of NS; NULL: it has no namespaces */

	const struct mq_right *rights;		  /* see rights.h */
	const struct mq_side *side;		  /* see side.h */
	const struct mq_attachments *attachments; /* NULL: none */
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
	/* Whether anybody ever did: an integer, 0 or not.  Both are optional commands
	 * where the names of all queues may be on another node than the queue. */
	void (*known)(struct mq_command *, const char *queue);
	/* Up to about a thousand names of queues, in the namespace of this one, without
	 * it; the reply is that of SSCAN. */
	void (*names)(struct mq_command *, const char *queue);
	/* If that node is away: how many keys the queue has, an integer, as one that
	 * has some exists.  NULL: names are beside the queues. */
	void (*traces)(struct mq_command *, const char *queue);
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
	 * queue, all in the same way; publish_add() adds each.  If it counts them,
	 * its last argument so far is mq_mark_add_behind()'s.
	 * mq_layout_published() says by the reply, which is no error, what became
	 * of message i; an error published none of them.  header may be empty: the message is
	 * then the bare payload.  unique is used by no other message.
	 */
	void (*publish)(struct mq_command *, const char *queue,
	    const struct mq_publishing *);
	void (*publish_add)(struct mq_command *, const struct mq_publishing *,
	    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
	    const char *payload, size_t len);
	/*
	 * Whether that command also marks and counts what it has published.  If
	 * not, there is publish_mark() for a batch with a mark: a plain command
	 * to go behind it, in one transaction, for its n messages; refused, it has no part in what became of them.  Without a mark there is
	 * mq_side_count_published().
	 */
	bool (*publish_counts)(const struct mq_publishing *);
	void (*publish_mark)(struct mq_command *, const char *queue,
	    const struct mq_publishing *, int n);
	/*
	 * The same batch, n messages behind the first `from` bytes of its plain
	 * command, for a publisher that has asked nothing: marked and counted by
	 * one script, which does nothing if the mark is there, or if the queue is
	 * not known; then the reply is the integer 0.  NULL: there is no such
	 * script.
	 */
	void (*publish_known)(struct mq_command *, const char *queue,
	    const struct mq_mark *, const struct mq_command *batch, size_t from,
	    int n);
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
	/* The lease holds from the first step of join() on; the others must not be
	 * sent before it is confirmed: no cleaner may see a connection without. */
	bool (*join)(const struct mq_session *, int step, struct mq_command *);
	/* To be sent when nothing is left in our hands. */
	bool (*leave)(const struct mq_session *, int step, struct mq_command *);
	bool (*renew)(const struct mq_session *, int step, struct mq_command *);
	int64_t (*lease)(const redisReply *, bool cluster);
	/* On a cluster, a lease of each queue, on its node: step 0 renews it, with
	 * a reply as that to renew(), and must not be sent before that is
	 * confirmed.  NULL: there is none. */
	bool (*renew_queue)(const struct mq_session *, int queue, int step,
	    struct mq_command *);
	/* There: what the server holds of a queue for `from`, a former name of this
	 * connection, is ours; an integer, 0 if that name has lost its lease. */
	void (*take_over)(const struct mq_session *, int queue,
	    const char *from, struct mq_command *);
	/* Where claims are counted (else NULL): of a message that was ours when
	 * the lease ended, after so many attempts, the last one does not count,
	 * unless somebody has claimed it since. */
	void (*lapsed)(const struct mq_session *, int queue,
	    const char *element, size_t len, long attempts,
	    struct mq_command *);

	void (*claim)(const struct mq_session *, int queue,
	    const struct mq_claim *, struct mq_command *);
	/* Reads the keys whose changes may make messages claimable, or (pause)
	 * only the one of a pause, for CLIENT TRACKING to report them. */
	void (*track)(const struct mq_session *, int queue, bool pause,
	    struct mq_command *);
	/* Whether queues need a claim by this consumer, which is idle there: an
	 * array, of each queue 0, or how many are idle.  Unless check, that is
	 * -1, and not whether others know that this one is. */
	void (*look)(const struct mq_session *, const int *queues, int n,
	    bool check, struct mq_command *);
	/* The queue of such a key, in *queue and *n; false: it is none. */
	bool (*key_queue)(
	    const char *key, size_t len, const char **queue, size_t *n);

	/*
	 * Ends a message's stay in our hands, in one atomic step.
	 * mq_layout_settled() takes its reply, unless that is an error.
	 */
	void (*settle)(const struct mq_session *, int queue,
	    const struct mq_settlement *, struct mq_command *);

	/*
	 * The same for n messages, of which some are equal: all of them, or none, in
	 * one step.  Each is acked, rejected, or goes back, and asks for nothing
	 * else.  Not MQ_SETTLED: not all are there.  NULL: no two messages are
	 * equal, since each has an id.
	 */
	void (*settle_equal)(const struct mq_session *, int queue,
	    const struct mq_settlement *, int n, struct mq_command *);

	/*
	 * Acks messages in one step, which have no result.  If they are not
	 * at their places, mq_layout_settled() is not MQ_SETTLED, and nothing has
	 * changed.
	 */
	void (*ack_oldest)(const struct mq_session *, int queue,
	    const struct mq_acks *, struct mq_command *);

	/*
	 * Gives back to the front, unstarted, the newest messages that the
	 * server holds for us, in one bounded step.  The reply is an integer:
	 * how many of the first were given back; 0: they are not the newest,
	 * and nothing has changed.  NULL: whatever it holds; 0: nothing is
	 * left.
	 */
	void (*give_back)(const struct mq_session *, int queue,
	    const struct mq_newest *, struct mq_command *);

	/*
	 * How many elements of this queue the server has ever claimed for us (0:
	 * unknown), and those that it holds for us, the newest first.  Two
	 * commands of one transaction, since a script copies many or large elements
	 * several times; their replies are that number, as text or nil, and an array.
	 * With `script`, or if only a script can tell, one command, whose reply is an
	 * array of both.  Returns how many they are.
	 */
	int (*held)(const struct mq_session *, int queue, bool script,
	    struct mq_command[2]);
	/* Only how many: an integer. */
	void (*held_count)(
	    const struct mq_session *, int queue, struct mq_command *);
	/* Whether a message that the server does not hold for us any more is
	 * there still, whoever has it: an integer, 0 or not.  NULL: it is, as
	 * nobody can delete what is ours. */
	void (*exists)(const struct mq_session *, int queue,
	    const char *element, size_t len, struct mq_command *);

	/*
	 * The result of a message: text as of result.h, or nil when there is
	 * none.  With block_ms above 0, waits for the result for that time; like
	 * every write, that is refused while memory is full.
	 */
	void (*result)(struct mq_command *, const char *queue, const char *id,
	    int64_t block_ms);

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

	/* On a cluster, ends what settle() has begun with what was pushed.  NULL:
	 * nothing. */
	int (*finish_pushes)(struct mq_redis *, const char *const *queues,
	    int count, const char *to);

	/* Whether none of the queues has a message that is ready, due, or
	 * unacked at any connection. */
	int (*drained)(struct mq_redis *, const char *const *queues, int count,
	    bool *drained);

	/* The named queues, or all when count is 0, and what else is wanted;
	 * mq_stats_free() frees. */
	int (*stats)(struct mq_redis *, const char *const *queues, int count,
	    int wanted, struct mq_stats *);

	/* The current runs, by queue and start; mq_runs_free() frees. */
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
	 * there, unless it goes to another queue.  A dropped message releases
	 * its group and key, and its result is sent to those who wait for it.
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

/* The result of message i in a reply to publish(). */
enum mq_published mq_layout_published(const redisReply *, int i);
/* How many messages a reply to claim() has, or MQ_CLAIM_BAD if it has the wrong form;
 * the elements are reply->element[first] and those behind it.  MQ_CLAIM_LOST: the
 * lease is gone, and nothing was claimed. */
int mq_layout_claimed(const redisReply *, struct mq_claimed *);
enum mq_settled mq_layout_settled(const redisReply *);

/* For layouts: arguments that the scripts of both have. */
void mq_layout_add_limits(struct mq_command *, const struct mq_limits *);
void mq_layout_add_claim(struct mq_command *, const struct mq_session *,
    const char *queue, const struct mq_claim *);
const char *mq_outcome_name(enum mq_outcome);

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

#endif
