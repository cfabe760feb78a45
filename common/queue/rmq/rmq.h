/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
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

/* By this a key lives longer than its lease by receipt; see lua/extend.lua. */
#define RMQ_CUT_MS 500
/* A heartbeat's time to live. */
#define RMQ_LEASE_S 60

/* --- keys --------------------------------------------------------------- */

/* The longest name of a queue, in bytes. */
#define RMQ_NAME_MAX	512
#define RMQ_QUEUES	"rmq::queues"
#define RMQ_CONNECTIONS "rmq::connections"
/* Not on a cluster: a sorted set of the connections of these tools, by the unix milliseconds
 * until which no cleaner may unlist them; see lua/holders.lua.  Users with the rights of an
 * older version have none for it: scripts that also do other things use it by pcall. */
#define RMQ_HOLDERS "rmq::holders"

/* Appends keys of a queue to a command, one for each word. */
void rmq_key_queue(struct mq_command *, const char *queue, const char *words);

/* The score in delayed of a message that waits for tick 0. */
#define RMQ_AT_TICK (INT64_C(1) << 50)
/* The score in priority of a message of tick 0. */
#define RMQ_TICKS (-(INT64_C(1) << 52))
/* The lowest score in delayed of a message that waits for a batch; those in line for a group
 * have higher ones. */
#define RMQ_FOLLOWS "2251799813685248"
/* The keys among which a queue's messages move; see lua/lib/place.lua. */
#define RMQ_PLACES "ready priority delayed locks clock result::"

/*
 * Appends keys for a script that works on a queue: keys of the queue, and of a connection
 * (NULL if no word needs it)
 *
 *	unacked consumers		there
 *	lease				there while it is alive: its heartbeat, or on a cluster a
 *					key of the queue
 *	info				counts of claims, likewise
 *
 * and keys in other slots, in place of which a cluster gets a key that never exists:
 *
 *	known listed			RMQ_QUEUES, RMQ_CONNECTIONS
 *	queues running			of the connection
 *	other-ready other-rejected other-unacked other-consumers
 *					O:ready O:rejected O:unacked O:consumers
 *
 * For commands without a script, a cluster, too, gets the real key of
 *
 *	names all-cleaning all-paused runs
 *				as of struct mq_extra_keys
 *
 * and of C:KEY, a key of a connection; A:KEY, KEY itself, such as RMQ_QUEUES; and O:KEY, a key
 * of a queue, or of a connection (unless NULL) and a queue, in the other form: with {}, which
 * is that of a cluster, on one server, and with [] on a cluster, where each has its own slot.
 */
void rmq_keys(struct mq_command *, const char *connection, const char *queue,
    const char *words);
/* Starts a script with the keys of its first owner; the next are those of
 * mq_command_keys(). */
void rmq_start(struct mq_command *, const struct mq_script *,
    const char *connection, const char *queue);
/* Whether the keys of a queue, which only Go programs can use, are in several slots of a
 * cluster, so that no script can work on it. */
bool rmq_is_scattered(const struct mq_command *, const char *queue);

/* --- questions ---------------------------------------------------------- */

/*
 * A question is a command about a name, of a queue, or of a connection, maybe with a queue: a
 * verb, then
 *
 *	Q:KEY		a key of the queue with that name
 *	B:KEY		KEY as a word of rmq_keys()
 *	C:KEY O:KEY A:KEY
 *			as of rmq_keys()
 *	@		no key: the command goes to the queue's node
 *	%n %q		the name, its queue
 *
 * and any other words; arguments can be added.  Before the verb may stand ?, see
 * rmq_cleaner_ask(), or !: the command passes even when memory is full, by
 * lua/write_when_full.lua.  $fence, $orphan, $promote and $unlist are scripts.
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

/* Whether an item has any keys. */
enum rmq_found {
	RMQ_ANY, /* unknown, also if the server refuses the question */
	RMQ_NONE,
	RMQ_SOME
};

struct rmq_exists {
	struct mq_redis *r;
	mq_ask_fn *add; /* adds the keys of item i to a command */
	void *arg;
	unsigned char *keys; /* for each item, an enum rmq_found */
	/* For questions.c: the items of a call, and how many are in a command. */
	size_t *item, n, together;
};

/* Asks about keys of the first n items, if their keys are `of` until now.  Items of one
 * command get the same answer: RMQ_SOME if any of them has keys.  Returns -1 if the
 * connection is lost. */
int rmq_exists(
    struct rmq_exists *, enum rmq_found of, size_t n, size_t together);

/* Drops connections without messages and consumers of these 1 to 50 queues from a list; if
 * most have some, others may stay.  cluster: keys with {} count, too. */
int rmq_keep_holders(struct mq_redis *, const char *const *queues, int count,
    bool cluster, redisReply *connections);

/* --- attachments -------------------------------------------------------- */

extern const struct mq_attachments rmq_attachments;
/* Appends all keys of a complete set: two more than its number of chunks. */
void rmq_attach_keys(struct mq_command *, const struct mq_attach *);

/* --- cleaner ------------------------------------------------------------ */

/* A round of cleaning.  All functions that return an int return -1 only when the connection is
 * lost; for other errors, see redis/ask.h. */

/* Counts of a queue's messages that have crashed or expired. */
struct rmq_count {
	char *queue;
	struct mq_counts n;
};

struct rmq_cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	struct mq_names live;	/* connections with a heartbeat; sorted */
	struct mq_names dead;	/* other connections; sorted */
	struct mq_names lapsed; /* dead ones whose consumer lives; sorted */
	/* Dead ones whose lease lasted until this round found that their process, which is
	 * in place of the queue, has ended; in a dry run, it lasts; sorted. */
	struct mq_names killed;
	struct mq_names known; /* dry run: queues that would be known by now */
	/* Queues with locks or delayed messages, if all keys are looked through. */
	struct mq_names busy;
	struct mq_names ruled;	  /* likewise: queues with settings */
	struct rmq_count *counts; /* a queue may have several */
	size_t count_n;
	bool adopted_all;     /* all unacked lists are of listed connections */
	bool scan_incomplete; /* a look through all keys is refused */
};

/* As rmq_call_names(), but notes errors; *complete (unless NULL) becomes false if names are
 * missing. */
int rmq_cleaner_listed(
    struct rmq_cleaner *, const char *set, struct mq_names *, bool *complete);
#define RMQ_NO_ANSWER LLONG_MIN
/* Asks questions, separated by |, about each name.  An answer is a number, also as text, a
 * time, or the first letter of a status; without one, RMQ_NO_ANSWER.  *answers, which the
 * caller frees, has all about the first name, then about the next.  Errors are noted, unless
 * ? stands before the question. */
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

/* The places of a census of a queue: all where messages wait; also unacked lists, with a watch
 * on their connections; or all places, without that watch. */
enum rmq_scope { RMQ_WAITING, RMQ_UNENDED, RMQ_ANYWHERE };

struct rmq_census {
	struct rmq_cleaner *w;
	enum rmq_scope scope;
	bool mends; /* messages out of line take groups without a holder */
	bool late;  /* late messages are rejected, in the order of claims */
	const struct mq_names *wanted; /* ids, or "SET ID"; sorted */
	/* Results, which add up; the caller sorts and frees the lists. */
	struct mq_names seen;  /* wanted names of messages that were seen */
	struct mq_names idle;  /* locks of groups with messages in line only */
	long expired, missing; /* late messages; groups without a holder */
	bool complete; /* true before the first: no message can be missed */
	/* For census.c: connections that were alive, and the last look at them. */
	struct mq_names live;
	double watched_s;
};

int rmq_census(struct rmq_census *, const char *queue);

/* --- steps -------------------------------------------------------------- */

/* The steps of a round of cleaning, in the order of clean.c. */

/* Takes n dead connections apart; or n pairs of connection and queue, sorted, which are listed
 * now (in a dry run, would be). */
int rmq_reclaim(struct rmq_cleaner *, const struct mq_name *dead, size_t n);
/* Ends transfers to other queues of a cluster. */
int rmq_underway(struct rmq_cleaner *);
/* Lists queues and connections with messages that are not listed, and removes leftover keys.
 * Unless how->all, only lists, and looks at some keys, on a cluster at none. */
int rmq_orphans(struct rmq_cleaner *);
/* Adds the known queues that have locks or delayed messages, sorted; after rmq_orphans(). */
int rmq_busy_queues(struct rmq_cleaner *, struct mq_names *);
/* Repairs locks, and rejects late messages. */
int rmq_repair(struct rmq_cleaner *);
/* Drops rejected messages that the setting keep-rejected does not keep. */
int rmq_trim(struct rmq_cleaner *);
/* Lets sets of attachments without a message expire in an hour. */
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
 *	2. arrive: the message enters the target, with a mark in
 *	   rmq::queue::{T}::incoming; if the mark is there, nothing happens.
 *	3. confirm: if the target's node has replicas, one of them has the message.
 *	4. know: the target is listed.
 *	5. end: the message leaves outgoing.
 *
 * A program that begins a transfer takes all steps; a cleaner goes on after a crash.
 */

/* Most messages of a step. */
#define RMQ_TRANSFER_COUNT 500

/* Whether messages from one queue to another (NULL: nowhere) need a transfer. */
bool rmq_transfer_needed(
    const struct mq_command *, const char *from, const char *to);

/* Writes and returns the field, for step 1, of a message that a worker pushes.  id: MQ_ID_LEN
 * characters. */
#define RMQ_FIELD (MQ_ID_LEN + 16 + RMQ_NAME_MAX)
const char *rmq_transfer_field(
    char field[RMQ_FIELD], const char *id, const char *to);

/* Adds the keys of a notice about a message of the queue, for a queue that may be on
 * another node; see lua/lib/notices.lua. */
void rmq_key_notice(struct mq_command *, const char *queue, const char *to);

/* Before step 1: fails, with the error, if the target would refuse messages; and lists the
 * source, so that a cleaner looks there. */
int rmq_transfer_check(struct mq_redis *, const char *source, const char *to);

/* Ends the transfers from a queue to another (NULL: to any).  -1: the connection is
 * lost; other errors are noted, and the messages stay in outgoing. */
int rmq_transfer_finish(
    struct mq_round *, const char *source, const char *to, long *ended);
/* As rmq_transfer_finish(), but fails with any error. */
int rmq_transfer_complete(
    struct mq_redis *, const char *source, const char *to);

/* --- orphans ------------------------------------------------------------ */

/* On a cluster: whether the node of a question's key has not answered; *node (unless NULL) is
 * that node, for the caller to free.  On one server false, and NULL. */
bool rmq_missed(const struct mq_redis *, const char *question, const char *name,
    char **node);
/* Adds connection and queue of all unacked lists, or on a cluster the queues with keys, on
 * the nodes that are left; sorted.  None if the user may not look, or if the server has more
 * than `most` keys (0: no limit).  Returns -1 when the connection is lost. */
int rmq_find_names(
    struct mq_redis *, bool unacked, long long most, struct mq_names *);

#endif
