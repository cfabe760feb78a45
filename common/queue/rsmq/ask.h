/*
 * Questions of several places, as of ask.h.  For this folder only.
 */
#ifndef MQ_RSMQ_ASK_H
#define MQ_RSMQ_ASK_H

#include "base/names.h"
#include "redis/ask.h"

/*
 * The name that the operations have for a queue of this bare name in the
 * namespace of the server's URL; rsmq_anywhere() is what stands for one where
 * only the namespace matters.  The caller frees.
 */
char *rsmq_name(const struct mq_redis *, const char *bare);
char *rsmq_anywhere(const struct mq_redis *);

/* The names of all connections in the namespace of a queue: an array of
 * strings. */
redisReply *rsmq_connections(struct mq_redis *, const char *queue);

/* The names of the queues that RSMQ lists in the namespace of the server's URL:
 * an array; and whether one of them is a name that a queue can have. */
redisReply *rsmq_listed(struct mq_redis *);
bool rsmq_is_name(const redisReply *);
/* Adds those that are. */
int rsmq_add_listed(struct mq_redis *, struct mq_names *);

/*
 * Calls a script whose reply is an array of at least so many: the first ones
 * are as form says, '$' a string, '#' an integer, '*' either or nil, and what
 * is behind them strings.  NULL with the error set.
 */
redisReply *rsmq_call(struct mq_redis *, struct mq_command *, const char *form);
/* Whether a reply has that form. */
bool rsmq_is(const redisReply *, const char *form);

/* A score as unix milliseconds; 0: it is empty. */
int64_t rsmq_ms(const redisReply *);

/* The hidden messages of a queue: how many wait, and since when the first of
 * them will not (0: none does); how many are in somebody's hands. */
struct rsmq_hidden {
	long long waits, held, ready;
	int64_t next_ms;
	long long left;		  /* not looked at yet; */
	struct mq_buf score, id;  /* behind this one */
	const redisReply *spared; /* connections: what they hold is not
				   * counted; NULL: none */
};
/* Counts on until none is left. */
int rsmq_count_hidden(
    struct mq_redis *, const char *queue, struct rsmq_hidden *);
void rsmq_hidden_free(struct rsmq_hidden *);

/* Asks for the ids of what a connection holds of a queue; the reply is an array of
 * strings. */
void rsmq_ask_holding(
    struct mq_command *, const char *connection, const char *queue);

/* How many hidden messages the server looks at in one step. */
#define RSMQ_LOOKS 1000

#endif
