/*
 * The environment of a script: the caller's, without what an outer consumer
 * put there, and for each message MQ_* and, for old scripts, RQ's RQ_*.
 * Nothing that a message says can make a name of its own: its headers only
 * ever become MQ_HEADER_..., and traceparent becomes TRACEPARENT.
 */
#ifndef MQ_CONSUME_ENVIRONMENT_H
#define MQ_CONSUME_ENVIRONMENT_H

#include <stddef.h>

#include "base/buf.h"
#include "message/envelope.h"

/* The purpose of a run: a message, a batch of them, or all that a worker that
 * stays will be fed. */
struct run_info {
	int log;	   /* index of the queue whose log it writes to */
	const char *queue; /* NULL: any of several */
	int batch;	   /* messages; 0: no batch */
	const char *id;	   /* of the message; NULL: no single one */
	long attempts;	   /* before this one */
	const struct mq_envelope *envelope;
};

struct environment {
	char host[256];
	const char **list;
	size_t fixed_count, cap; /* of list */
	struct mq_buf fixed, text;
};

/* script: its absolute path; attempts: that a message may have. */
void environment_init(struct environment *, const char *script, int attempts);
void environment_end(struct environment *);

/* The environment of one run, valid until the next call; real: the script
 * without links; dir: where it runs. */
char *const *environment_of(struct environment *, const struct run_info *,
    const char *real, const char *dir);

#endif
