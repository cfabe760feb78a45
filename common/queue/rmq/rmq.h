/*
 * The inside of the layout of Go's rmq, for the files of this folder.
 */
#ifndef MQ_RMQ_H
#define MQ_RMQ_H

#include <limits.h>

#include "queue/layout.h"
#include "queue/rights.h"

/* --- layout ------------------------------------------------------------- */

MQ_LAYOUT_PARTS(rmq);
MQ_LAYOUT_PART(rmq, open);
bool rmq_key_of(const char *key, size_t len, const char **queue, size_t *n);

/* How much longer than a lease by receipt its key lives; see lua/extend.lua. */
#define RMQ_CUT_MS 500
/* How long a heartbeat lives, in seconds. */
#define RMQ_LEASE_S 60

/* --- keys --------------------------------------------------------------- */

/* The longest name of a queue, in bytes. */
#define RMQ_NAME_MAX	512
#define RMQ_QUEUES	"rmq::queues"
#define RMQ_CONNECTIONS "rmq::connections"

/* Appends keys of a queue to a command: ready, rejected, and ours; words has their names,
 * with blanks between them. */
void rmq_key_queue(struct mq_command *, const char *queue, const char *words);

/* The tick that a message waits for is added to this. */
#define RMQ_AT_TICK (INT64_C(1) << 50)
/* The score of claimable messages of tick 0. */
#define RMQ_TICKS (-(INT64_C(1) << 52))
/* The lowest score of a message that waits for its turn. */
#define RMQ_IN_LINE "4503599627370496"
/* The keys among which a queue's messages move; see lua/lib/place.lua. */
#define RMQ_PLACES "ready priority delayed locks clock result::"

/*
 * Appends keys that a script needs which works on a queue: those of the queue; and of a
 * connection (NULL if no word asks for it)
 *
 *	unacked consumers		there
 *	lease				says that it is alive: unless on a cluster, its heartbeat
 *	info				what it has claimed: unless on a cluster, its info
 *
 * and what lies elsewhere, so that on a cluster it gets a key that never exists:
 *
 *	known listed			RMQ_QUEUES, RMQ_CONNECTIONS
 *	queues running			the connection's own
 *	other-ready other-rejected other-unacked other-consumers
 *					O:ready O:rejected O:unacked O:consumers
 *
 * For steps without a script, the same on a cluster:
 *
 *	names all-cleaning all-paused runs
 *				as of struct mq_side
 *
 * Anywhere, C:KEY is one of a connection: heartbeat, queues, and ours; A:KEY one of nobody,
 * as RMQ_QUEUES; and O:KEY one of a queue, or a connection (unless NULL) and a queue, of a
 * Go program that uses the other form: the one for a cluster on one server, and the other
 * way round.  On a cluster each of the latter has a slot of its own.
 */
void rmq_keys(struct mq_command *, const char *connection, const char *queue,
    const char *words);
/* Starts a script with the keys of its first owner; the next are those of
 * mq_command_keys(). */
void rmq_start(struct mq_command *, const struct mq_script *,
    const char *connection, const char *queue);
/* Whether a name that Go programs can use leaves the keys of a queue in several slots of
 * a cluster, where no step could work on it. */
bool rmq_is_scattered(const struct mq_command *, const char *queue);

/* --- questions ---------------------------------------------------------- */

/*
 * A question is a command about a name, that of a queue or of a connection, which may have
 * a queue: a verb, then
 *
 *	Q:KEY		a key of the queue of that name
 *	B:KEY C:KEY O:KEY A:KEY
 *			as of rmq_keys(): B stands for nothing
 *	@		no key: the command is for the node that has the queue, whose time is
 *			that of the queue's messages
 *	%n %q		the name, its queue
 *
 * and any other words; arguments can be added.  Before the verb may stand ?, see
 * rmq_cleaner_ask(), or !: then it goes through even when memory is full, by
 * lua/write_when_full.lua.  $orphan, $promote and $unlist are scripts.
 */
void rmq_ask(struct mq_command *, const char *question, const char *name,
    const char *queue);
/* As mq_call_number(). */
int rmq_call_number(struct mq_redis *, const char *question, const char *name,
    const char *queue, long long *n);
/* Adds the members of a set of names, RMQ_QUEUES or RMQ_CONNECTIONS, as mq_rows_list()
 * does.  Errors are as in mq_call_members(). */
int rmq_call_names(struct mq_redis *, const char *set, struct mq_names *,
    struct mq_names *odd);

/* Whether one of many has any keys. */
enum rmq_found {
	RMQ_ANY, /* not known, as when the server refuses to tell */
	RMQ_NONE,
	RMQ_SOME
};

struct rmq_exists {
	struct mq_redis *r;
	mq_ask_fn *add; /* adds the keys of number i to a command */
	void *arg;
	unsigned char *keys; /* of each, an enum rmq_found */
	/* For questions.c: those asked about, and how many are in a command. */
	size_t *item, n, together;
};

/* Looks for those among the first n of which just that is known; of those that are
 * together in a command, whether any of them has some.  Returns -1 if the connection is
 * lost. */
int rmq_exists(
    struct rmq_exists *, enum rmq_found of, size_t n, size_t together);

/* Drops from a list of connections those without messages or consumers of any of these
 * 1 to 50 queues; where most have some, others may stay.  cluster: keys in the form for a
 * cluster count, too. */
int rmq_keep_holders(struct mq_redis *, const char *const *queues, int count,
    bool cluster, redisReply *connections);

/* --- attachments -------------------------------------------------------- */

extern const struct mq_attachments rmq_attachments;
/* Appends all keys of a set that is complete: two more than it has chunks. */
void rmq_attach_keys(struct mq_command *, const struct mq_attach *);

/* --- cleaner ------------------------------------------------------------ */

/* What the steps of a round of cleaning share.  All functions that return an int return
 * -1 only when the connection is lost; redis/ask.h says what becomes of other errors. */

/* Of messages of one queue that had crashed or had expired. */
struct rmq_count {
	char *queue;
	struct mq_counts n;
};

struct rmq_cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	struct mq_names live;	/* connections with a heartbeat; sorted */
	struct mq_names dead;	/* those without; sorted */
	struct mq_names lapsed; /* those dead whose programs live; sorted */
	struct mq_names known;	/* dry run: queues that would be known by now */
	/* Queues with locks or delayed messages, if all keys are looked through. */
	struct mq_names busy;
	struct rmq_count *counts; /* one of a queue, or several */
	size_t count_n;
	bool
	    adopted_all; /* no unacked list is left without a listed connection */
	bool blind;	 /* a look through all keys is refused */
};

/* As rmq_call_names(), where errors are noted; *whole (unless NULL) becomes false if these
 * are not all. */
int rmq_cleaner_listed(
    struct rmq_cleaner *, const char *set, struct mq_names *, bool *whole);
#define RMQ_NO_ANSWER LLONG_MIN
/* Asks questions, between which stands a |, about each name, which a number answers, a
 * text that is one, a time, or a status, of which the first letter counts.  *answers, which the caller frees, has those about the first
 * name, then about the next.  Errors are noted, unless ? stands before the question. */
int rmq_cleaner_ask(struct rmq_cleaner *, const struct mq_names *,
    const char *questions, long long **answers);
/* Goes through a hash of a queue.  take() gets fields and values by turns, maybe twice,
 * and returns 0, or -1 when the connection is lost. */
int rmq_cleaner_fields(struct rmq_cleaner *, const char *queue,
    const char *what, int (*take)(void *arg, redisReply *some), void *arg);
/* Adds to the counts of a queue. */
void rmq_cleaner_count(struct rmq_cleaner *, const char *queue, long crashed,
    long rejected, long expired);

/* --- census ------------------------------------------------------------- */

/* Where a census of a queue looks: where messages wait; also where they are unacked, and
 * whether their connections live all the time; or, without a look at these, where messages
 * may be at all. */
enum rmq_scope { RMQ_WAITING, RMQ_UNENDED, RMQ_ANYWHERE };

struct rmq_census {
	struct rmq_cleaner *w;
	enum rmq_scope scope;
	bool
	    mends; /* each message out of line gets its group if nobody holds it */
	bool late; /* and those too late are rejected, in the order of claims */
	const struct mq_names *wanted; /* ids, or "SET ID"; sorted */
	/* Results, which add up; the lists are to be sorted and freed. */
	struct mq_names
	    seen; /* of the wanted, those of messages that were seen */
	struct mq_names idle;  /* locks of groups with messages in line only */
	long expired, missing; /* messages too late; groups that nobody held */
	bool whole; /* from the beginning: no message can be missed */
	/* For census.c: connections that were alive, and when somebody looked. */
	struct mq_names live;
	double watched_s;
};

int rmq_census(struct rmq_census *, const char *queue);

/* --- steps -------------------------------------------------------------- */

/* The steps of a round of cleaning, in the order of clean.c. */

/* Takes n dead connections apart; or n queues of fewer, sorted, which are now
 * said to be theirs (in a dry run, would be). */
int rmq_reclaim(struct rmq_cleaner *, const struct mq_name *dead, size_t n);
/* Ends transfers to other queues of a cluster that somebody has begun. */
int rmq_underway(struct rmq_cleaner *);
/* Finds what no set lists, and takes care of it.  Unless how->all, that is
 * messages only, and only among some of the keys; on a cluster, nothing. */
int rmq_orphans(struct rmq_cleaner *);
/* Adds the known queues that have locks or delayed messages, sorted; behind orphans. */
int rmq_busy_queues(struct rmq_cleaner *, struct mq_names *);
/* Puts locks right, and rejects what has expired. */
int rmq_repair(struct rmq_cleaner *);
/* Lets sets of attachments expire in an hour to which no message refers any more, whoever
 * has ended the last one. */
int rmq_attach_sweep(struct rmq_cleaner *);

/* Looks through all keys for unacked lists without a listed connection, adopts and reclaims
 * these. */
int rmq_adopt_all(struct rmq_cleaner *);

/* --- transfer ----------------------------------------------------------- */

/*
 * Messages that go to another queue of a cluster, which may be on another node.  A
 * transfer is done in steps, each of which can be repeated:
 *
 *	1. The source's script puts the message into the hash rmq::queue::{S}::outgoing.
 *	2. arrive: it enters the target, with a mark in rmq::queue::{T}::incoming; if
 *	   the mark is there, nothing happens.
 *	3. confirm: if the target's node has replicas, one of them has it.
 *	4. know: the target is known.
 *	5. end: it leaves outgoing.
 *
 * Whoever begins a transfer goes through them, and a cleaner ends what a crash has left.
 */

/* A step's messages: at most this many. */
#define RMQ_TRANSFER_COUNT 500

/* Whether messages from one queue to the other (NULL: nowhere) need this. */
bool rmq_transfer_needed(
    const struct mq_command *, const char *from, const char *to);

/* Step 1 is in the scripts that take messages from their places.  Writes and returns the
 * field of a message that a worker pushes.  id: MQ_ID_LEN characters. */
#define RMQ_FIELD (MQ_ID_LEN + 16 + RMQ_NAME_MAX)
const char *rmq_transfer_field(
    char field[RMQ_FIELD], const char *id, const char *to);

/* Adds the keys of a notice about a message of the queue, for a queue that may be on
 * another node; see lua/lib/notices.lua. */
void rmq_key_notice(struct mq_command *, const char *queue, const char *to);

/* Before step 1: fails, with the error, if the target would refuse messages; and makes
 * the source known, so that a cleaner looks there. */
int rmq_transfer_check(struct mq_redis *, const char *source, const char *to);

/* Ends the transfers from a queue to another (NULL: to any).  -1: the connection is
 * lost; other errors are noted, and the messages stay in outgoing. */
int rmq_transfer_finish(
    struct mq_round *, const char *source, const char *to, long *ended);
/* The same, where any error is returned. */
int rmq_transfer_complete(
    struct mq_redis *, const char *source, const char *to);

/* --- orphans ------------------------------------------------------------ */

/* What nobody lists. */

/* On a cluster: whether there was no answer about the key of a question; *node (unless
 * NULL) is the one that has it, for the caller to free.  On one server false, and NULL. */
bool rmq_missed(const struct mq_redis *, const char *question, const char *name,
    char **node);
/* Adds connection and queue of all unacked lists, or on a cluster the queues with keys, on
 * the nodes that are left; sorted.  None if the user may not look, or if the server has more
 * than so many keys (0: any number).  Returns -1 when the connection is lost. */
int rmq_find_names(
    struct mq_redis *, bool unacked, long long most, struct mq_names *);

#endif
