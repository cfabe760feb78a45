/*
 * One round of cleaning in the rmq layout: what its parts share.  For this folder only.
 *
 * An error reply about one key must not keep a round from the others: the
 * first is noted, and told when the round is over.  All functions return -1
 * only when the connection is lost.
 */
#ifndef MQ_RMQ_CLEAN_H
#define MQ_RMQ_CLEAN_H

#include "base/names.h"
#include "layout.h"
#include "redis/ask.h"
#include "redis/pipe.h"

/* Messages of one queue that had crashed or were too late. */
struct rmq_tally {
	char *queue;
	long crashed, rejected, expired;
};

struct rmq_round {
	struct mq_redis *r;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	struct mq_pipe pipe;
	struct mq_names live;	/* connections with a heartbeat; sorted */
	struct mq_names dead;	/* those without; sorted */
	struct mq_names lapsed; /* those dead whose programs live; sorted */
	struct mq_names known;	/* dry run: queues that would be known by now */
	struct rmq_tally *tallies;
	size_t tally_count, tally_cap;
	bool adopted_all; /* rmq_adopt_all() was called */
	bool blind;	  /* a look through all keys is refused */
	struct mq_trouble trouble;
};

/*
 * Notes an error reply, or one that is not of this type.  Returns whether the
 * reply is good.
 */
bool rmq_round_good(struct rmq_round *, const redisReply *, int type);
/* Notes that one has not what it should have; false. */
bool rmq_round_nonsense(struct rmq_round *);

/*
 * Runs the one command in the pipe.  *reply is its reply, the caller's, or NULL
 * when it is not good.
 */
int rmq_round_ask(struct rmq_round *, int type, redisReply **reply);
/* The same for an array of strings. */
int rmq_round_ask_strings(struct rmq_round *, redisReply **reply);

/* lapsed.c: finds the dead connections whose programs live. */
int rmq_lapsed(struct rmq_round *);

/*
 * bury.c: takes dead connections apart, n of them; or n queues of
 * fewer, sorted, which are now said to be theirs (in a dry run, would be).
 */
int rmq_bury(struct rmq_round *, const struct mq_name *dead, size_t n);

/* crashed.c */
enum rmq_charge {
	RMQ_CHARGE_NONE, /* goes back as it is: there is nowhere to write */
	RMQ_CHARGE_BACK,
	RMQ_CHARGE_REJECT
};
/*
 * What becomes of a message that may have been running on a host (NULL: not
 * known) when its consumer died, which allowed it so many runs.  Appends the
 * new header.
 */
enum rmq_charge rmq_charge(
    const redisReply *header, int limit, const char *host, struct mq_buf *out);
void rmq_tally(struct rmq_round *, const char *queue, long crashed,
    long rejected, long expired);
/* Adds what was tallied to the counts of the queues. */
int rmq_tally_send(struct rmq_round *);

/* orphans.c: finds what nobody lists, and takes care of it.  Unless
 * how->all, that is messages only, and only among some of the keys. */
int rmq_orphans(struct rmq_round *);

/* adopt.c */
/* Calls a script for each name, and adds those that it was true of to *yes. */
int rmq_ask_each(struct rmq_round *, const struct mq_names *,
    void (*build)(
	const struct rmq_round *, const struct mq_name *, struct mq_command *),
    struct mq_names *yes);
/* Of these unacked lists (connection and queue), adopts those without a listed
 * connection, and adds them to *adopted. */
int rmq_adopt_some(
    struct rmq_round *, const struct mq_names *lists, struct mq_names *adopted);
/* The same of all unacked lists that there are. */
int rmq_adopt_all(struct rmq_round *);

/* due.c */
/* Adds the names of the queues that are known. */
int rmq_known_queues(struct rmq_round *, struct mq_names *);
/* The server's clock in unix milliseconds. */
int rmq_round_ms(struct rmq_round *, long long *ms);
/* Makes ready what is due. */
int rmq_due(struct rmq_round *);

/* repair.c: puts locks right, and rejects what is too late. */
int rmq_repair(struct rmq_round *);

#endif
