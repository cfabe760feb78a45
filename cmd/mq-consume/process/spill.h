/*
 * Bytes that have to wait: a few in memory, more in a file without a name in TMPDIR.
 */
#ifndef MQ_CONSUME_SPILL_H
#define MQ_CONSUME_SPILL_H

#include <sys/queue.h>
#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The most that is kept in memory. */
#define SPILL_MEMORY ((size_t)32 << 10)

struct spill {
	TAILQ_ENTRY(spill) link; /* the owner's */
	struct mq_buf memory;	 /* all bytes, until there is a file */
	int fd;			 /* -1: no file */
	off_t start, end;	 /* the bytes that are not taken yet */
};

TAILQ_HEAD(spills, spill);

struct spill *spill_new(void);
/* NULL is allowed. */
void spill_free(struct spill *);

/* Bytes that wait. */
size_t spill_size(const struct spill *);
/* Whether n bytes more stay in memory. */
bool spill_fits(const struct spill *, size_t n);
/* Appends n bytes; or adds none, and returns false with errno. */
bool spill_add(struct spill *, const void *, size_t n);
/* Takes at most n bytes out, and returns how many.  If the file cannot be read, its
 * bytes are lost. */
size_t spill_take(struct spill *, void *, size_t n);

#endif
