/*
 * Questions to a sentinel, which knows where the master of a name is now.  connect.c
 * opens the connections to sentinels.
 */
#ifndef MQ_SENTINEL_H
#define MQ_SENTINEL_H

#include "connection.h"
#include "info.h"

struct mq_master {
	/* An address, or a name if the sentinels announce names. */
	char host[sizeof(((struct mq_server *)NULL)->host)];
	int port;
};

/*
 * Makes the server of sentinel i in the URL of another one, with the sentinels' own
 * password.  It is not to be freed, and lives no longer than the other one.
 */
void mq_sentinel_server(
    struct mq_server *sentinel, const struct mq_server *, size_t i);

/* A question to a sentinel about the master of a name. */
struct mq_sentinel_question {
	const char *what; /* SENTINEL's first word */
	/* Takes a reply that is no error: 0, or -1 with the error. */
	int (*take)(struct mq_redis *, const char *name, const redisReply *,
	    void *answer);
};

void mq_sentinel_command(
    struct mq_command *, const char *what, const char *name);

/* Where the master is: struct mq_master. */
extern const struct mq_sentinel_question mq_sentinel_master;
/* How the master is: struct mq_sentinel_state.  Needs +sentinel|master. */
struct mq_sentinel_state {
	bool down;    /* or about to be replaced */
	int replicas; /* -1: not known */
};
extern const struct mq_sentinel_question mq_sentinel_state;
/*
 * Which replicas could be made the master of a server, which says of itself what is in
 * info: struct mq_heirs.  Answers of several sentinels add up.
 */
struct mq_heirs {
	const struct mq_server *server;
	const struct mq_info *info;
	bool moved; /* the sentinel names another master */
	int connected; /* replicas that answer the sentinel, and are connected... */
	int missing; /* ...and are not */
	int silent;  /* neither the one nor the other */
};
extern const struct mq_sentinel_question mq_sentinel_heirs;

/*
 * Asks the sentinels in the URL of r's server, side by side, until one answers.  At most
 * until then (steady seconds).  r need not be connected.  Returns 0, or -1 with the error.
 */
int mq_redis_ask_sentinels(struct mq_redis *, double until,
    const struct mq_sentinel_question *, void *answer);

/* Asks each sentinel in the URL, for half a second; those that do not answer are left
 * out. */
void mq_redis_ask_each_sentinel(
    struct mq_redis *, const struct mq_sentinel_question *, void *answer);

#endif
