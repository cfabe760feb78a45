/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
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

/* The headers of an envelope that lua/lib/layout.lua keeps in x, as JSON without braces, or
 * empty.  Removes id, name and attempt from the envelope. */
void rsmq_extra(struct mq_envelope *, struct mq_buf *extra);

/* The id and the score of item i of a slice. */
redisReply **rsmq_walked(const struct mq_scan *, int i);

/* --- keys --------------------------------------------------------------- */

/* The keys of RSMQ and of these tools, which keys.c lists, as arguments of a command.  Queues
 * are named QUEUE, in the namespace rsmq, or NAMESPACE:QUEUE; only a namespace may have colons
 * itself. */

#define RSMQ_NAMESPACE "rsmq"

/*
 * Adds a key for each word:
 *
 *	held lease runs		of a connection: the messages of a queue that it holds; its
 *				lease; the runs there
 *	names connections	of the namespace: the sets of queues and of connections
 *	all-cleaning all-paused	of the namespace: its cleaner; its pause
 *
 * Any other word is the end of a key of the queue, behind NAMESPACE:QUEUE, or, if the word
 * begins with a letter, behind NAMESPACE:QUEUE:X; see keys.c.  Without one of the first three
 * words, the connection is NULL or "".
 */
void rsmq_keys(struct mq_command *, const char *connection, const char *queue,
    const char *words);
/* The keys of a queue's messages; see lua/lib/layout.lua. */
#define RSMQ_PLACES " :Q :X :Xagain"
/* Starts a script with the keys of its first owner; the next are those of
 * mq_command_keys(). */
void rsmq_start(struct mq_command *, const struct mq_script *,
    const char *connection, const char *queue);
/* A command of words: a verb, a word for a key, and arguments. */
void rsmq_ask(struct mq_command *, const char *words, const char *connection,
    const char *queue);

/* Behind a queue's name: the queue of its rejected messages. */
#define RSMQ_REJECTED "-rejected"

/* The connection of messages that programs of RSMQ have received. */
#define RSMQ_NOBODY "-"

/* The name of a queue without the namespace. */
const char *rsmq_bare(const char *queue);

/* --- questions of several places ----------------------------------------- */

/* The full name of a queue in the namespace of the server's URL; of "", a name for keys of
 * the namespace.  The caller frees. */
char *rsmq_name(const struct mq_redis *, const char *bare);

/* The names of all connections in the namespace of a queue: an array of strings. */
redisReply *rsmq_connections(struct mq_redis *, const char *queue);

/* Adds the full names of the queues that RSMQ lists in the namespace of the server's URL, if
 * they are valid.  Returns 0, or -1 with the error set. */
int rsmq_add_listed(struct mq_redis *, struct mq_names *);

/* A score as unix milliseconds, at least 1; 0: the score is empty. */
int64_t rsmq_ms(const redisReply *);

/* Numbers of messages of a queue: hidden ones that wait and that are unacked, and ready ones. */
struct rsmq_hidden {
	long long waits, held, ready;
	int64_t next_ms;	 /* when the first that waits is due; 0: none */
	long long left;		 /* hidden messages not looked at yet, */
	struct mq_buf score, id; /* behind this one */
	const redisReply *spared; /* connections whose messages are not
				   * counted; NULL: none */
};
/* Counts on until all are looked at, and frees score and id.  Returns 0, or -1 with the
 * error set. */
int rsmq_count_hidden(
    struct mq_redis *, const char *queue, struct rsmq_hidden *);

/* Hidden messages that the server looks at in one step. */
#define RSMQ_LOOKS 1000

#endif
