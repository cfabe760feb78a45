/*
 * The environment of a script: ours, without the variables of an outer consumer,
 * plus MQ_* and, for old scripts, RQ's RQ_*.  A message cannot choose names of
 * variables: headers become MQ_HEADER_..., and traceparent TRACEPARENT.
 */
#ifndef MQ_CONSUME_ENVIRONMENT_H
#define MQ_CONSUME_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "message/envelope.h"

/* A run: of a message, of a batch, or of a worker that stays. */
struct run_info {
	int log;	   /* index of the queue whose log it writes to */
	const char *queue; /* NULL: any of several */
	int batch;	   /* messages; 0: no batch */
	const char *first; /* id of the first message; NULL: worker */
	const char *id;	   /* of the message; NULL: batch or worker */
	long attempts;	   /* runs before this one, */
	int attempts_max;  /* of so many */
	const struct mq_envelope *envelope;
	const char *files; /* directory of its attachments; NULL: none */
	/* As of process/worker.h. */
	int (*before)(void *arg);
	void *before_arg;
	bool stamped; /* the header is only the id, and not in the envelope */
};

struct environment {
	char host[256];
	const char **list;
	size_t fixed_count, cap; /* of list */
	struct mq_buf fixed, text;
	struct mq_buf url; /* that of the host, then of a message */
	size_t host_len;   /* of the URL of the host */
};

/* script: its absolute path. */
void environment_init(struct environment *, const char *script);
void environment_end(struct environment *);

/* The environment of one run, valid until the next call; real: the script
 * without links; dir: where it runs. */
char *const *environment_of(struct environment *, const struct run_info *,
    const char *real, const char *dir);

#endif
