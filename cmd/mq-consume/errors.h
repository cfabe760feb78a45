/*
 * What the scripts write to standard error, or to a log.
 */
#ifndef MQ_CONSUME_ERRORS_H
#define MQ_CONSUME_ERRORS_H

#include "message/history.h"
#include "sink.h"

/* What is kept of a run's errors: room for the character that is cut, too. */
#define ERRORS_TAIL (MQ_HISTORY_STDERR + 4)

struct consumer;
struct errors; /* those of one run */

struct outputs {
	struct sink stderr_sink;
	struct sink *logs;	      /* per queue; NULL without --log-dir */
	FILE *stderr_stream;	      /* what mq_say() writes to */
	struct errors_list lingering; /* whose runs are over */
	int lingering_count;
	char text[ERRORS_TAIL + 1]; /* what errors_close() returned last */
};

/* To be called first: from now on our own standard error is a sink, too. */
void errors_init(struct consumer *);
/*
 * To be called last: what processes that scripts have left behind have written
 * until now is copied, and what they write later is lost to them.
 */
void errors_end(struct consumer *);
/* The log of a queue goes to this descriptor, which it takes. */
void errors_log(struct consumer *, int queue, int fd, const char *path);
/* A pipe for one run; its other end, *end, is the caller's.  NULL with errno. */
struct errors *errors_open(struct consumer *, int queue, int *end);
/* From now on it is copied as it comes. */
void errors_listen(struct errors *);
/* What it has written since it was forgotten last; as errors_close(). */
const char *errors_so_far(struct errors *);
/* What it has written until now belongs to nothing that comes. */
void errors_forget(struct errors *);
/*
 * The run is over.  Copies what is there, without waiting, and returns the end
 * of all that the run has written: its last newline is cut off, a NUL became
 * '?'.  It is valid until the next call.
 */
const char *errors_close(struct errors *);

#endif
