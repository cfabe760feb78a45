/*
 * Connecting to one of several servers, side by side: while those before do not answer,
 * the next server, or the next address of a name, is tried every half second.
 */
#ifndef MQ_DIAL_H
#define MQ_DIAL_H

#include <sys/types.h>

#include "connection.h"

/* The search for the addresses of a host. */
struct mq_addresses {
	const char *host; /* the caller's */
	int found;	  /* addresses so far */
	pid_t pid;	  /* the child that asks for them; 0: none */
	int fd;		  /* the child writes what it finds */
	double until;	  /* the end of the search, steady seconds */
	char why[128];	  /* what went wrong, if none was found */
};

/* One of the servers.  The caller sets the first three. */
struct mq_dial {
	struct mq_server *server; /* may be that of others, too */
	const char *host;	  /* NULL: its socket */
	int port;
	struct mq_redis redis; /* the connection; or why there is none */
	/* Of dial.c. */
	struct mq_addresses search;
	bool begun, over;
	int failed_at;
};

/* Takes the answer to the question, which it frees.  0, or -1 with the error. */
typedef int mq_dial_fn(void *arg, struct mq_dial *, redisReply *);

/*
 * Connects to one of n servers, at most until then (steady seconds).  With a question,
 * it is the one that answers first, and whose answer is taken; without, greet_server()
 * is still to come.  Returns its number; its server has host, address and port then.
 * -1: each of them has its error.
 */
int mq_dial(struct mq_dial *, size_t n, struct mq_command *question,
    mq_dial_fn *take, void *arg, double until);

/* The error that counts: one that refuses is greater than none that answers. */
const struct mq_redis *mq_dial_error(const struct mq_dial *, size_t n);

#endif
