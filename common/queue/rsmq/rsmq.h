/* The inside of the layout of RSMQ, for the files of this folder. */
#ifndef MQ_RSMQ_H
#define MQ_RSMQ_H

#include "queue/layout.h"
#include "queue/rights.h"

/* --- layout ------------------------------------------------------------- */

MQ_LAYOUT_PARTS(rsmq);

/* The attributes of a queue that its first use has made. */
#define RSMQ_VT	     30
#define RSMQ_DELAY   0
#define RSMQ_MAXSIZE 65536

/* The further headers of a message, as lua/lib/layout.lua keeps them; empty: there are
 * none.  The others, which are kept by themselves, are taken out of the envelope. */
void rsmq_extra(struct mq_envelope *, struct mq_buf *extra);

/* The id and the score of item i of a slice, as a walk has found it. */
redisReply **rsmq_walked(const struct mq_scan *, int i);

/* --- keys --------------------------------------------------------------- */

/* The keys of RSMQ and our own beside them, which keys.c lists, as arguments of a command.
 * Queues are named QUEUE, in the namespace rsmq, or NAMESPACE:QUEUE; only a namespace may
 * have colons itself. */

#define RSMQ_NAMESPACE "rsmq"

/*
 * Adds a key for each word:
 *
 *	held lease runs		the messages of a queue that a connection holds; its lease;
 *				what runs there
 *	names connections	of the namespace: the sets of queues and of connections
 *	all-cleaning all-paused	of the namespace: who cleans; whether it is paused
 *
 * others are of the queue: NAMESPACE:QUEUE and then the word; see keys.c.  What begins with a
 * letter is ours, and :X stands before it.  Only the first three need a connection, else NULL
 * or "".
 */
void rsmq_keys(struct mq_command *, const char *connection, const char *queue,
    const char *words);
/* The keys that have a queue's messages; see lua/lib/layout.lua. */
#define RSMQ_PLACES " :Q :X :Xagain"
/* Starts a script with the keys of its first owner; the next are those of
 * mq_command_keys(). */
void rsmq_start(struct mq_command *, const struct mq_script *,
    const char *connection, const char *queue);
/* A command of words: a verb, such a key, and arguments. */
void rsmq_ask(struct mq_command *, const char *words, const char *connection,
    const char *queue);

/* Behind a queue's name: the queue of those that it has rejected. */
#define RSMQ_REJECTED "-rejected"

/* The connection that those have been received by who leave no name. */
#define RSMQ_NOBODY "-"

/* No key: the name without the namespace. */
const char *rsmq_bare(const char *queue);

/* --- questions of several places ----------------------------------------- */

/* The name that the operations have for a queue of this bare name in the namespace of
 * the server's URL; of "", what stands for one where only the namespace matters.  The
 * caller frees. */
char *rsmq_name(const struct mq_redis *, const char *bare);

/* The names of all connections in the namespace of a queue: an array of strings. */
redisReply *rsmq_connections(struct mq_redis *, const char *queue);

/* Adds the queues that RSMQ lists in the namespace of the server's URL, if a queue can
 * have such a name, with that.  Returns 0, or -1 with the error set. */
int rsmq_add_listed(struct mq_redis *, struct mq_names *);

/* A score as unix milliseconds; 0: it is empty. */
int64_t rsmq_ms(const redisReply *);

/* The hidden messages of a queue: how many wait, until when the first of them does (0: none
 * does), how many are in somebody's hands; and how many others can be received. */
struct rsmq_hidden {
	long long waits, held, ready;
	int64_t next_ms;
	long long left; /* not looked at yet, behind this one: */
	struct mq_buf score, id;
	const redisReply *spared; /* connections: what they hold is not
				   * counted; NULL: none */
};
/* Counts on until none is left, and frees score and id.  Returns 0, or -1 with the error
 * set. */
int rsmq_count_hidden(
    struct mq_redis *, const char *queue, struct rsmq_hidden *);

/* How many hidden messages the server looks at in one step. */
#define RSMQ_LOOKS 1000

#endif
