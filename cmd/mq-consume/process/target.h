/*
 * A target: where the output of scripts goes, that is our standard output, our
 * standard error, or a log.  Live output is dropped when a sink has too much of
 * it.  A patient target keeps all; its owner starts no more runs while the target
 * is clogged.
 */
#ifndef MQ_CONSUME_TARGET_H
#define MQ_CONSUME_TARGET_H

#include <stdio.h>

#include "sink.h"
#include "spill.h"

struct target {
	struct sink sink;
	bool patient;
	bool terminal;	       /* output in lines or runs is escaped */
	bool full;	       /* output could not be kept; said */
	bool open_line;	       /* the last byte ended no line */
	struct spills backlog; /* of a patient one, for the sink */
	ev_timer more;	       /* goes on with a long backlog */
	void (*ready)(
	    void *arg); /* some of the backlog is written; the owner's */
	void *arg;
};

/* For our own descriptor 1 or 2; or for a log, whose descriptor is taken.  Then the
 * owner sets ready and arg.  A target must not be moved in memory. */
void target_init(struct target *, struct ev_loop *, int fd, bool patient);
void target_init_log(
    struct target *, struct ev_loop *, int fd, const char *path, bool patient);
/* Waits until all is written, as sink_end(). */
void target_end(struct target *);

/* Nothing waits. */
bool target_ready(const struct target *);
/* So much waits that no more runs should start. */
bool target_clogged(const struct target *);

/* Writes n bytes, now or later; they stay together. */
void target_put(struct target *, const void *, size_t n);
/* The same with all bytes of a spill, which is taken. */
void target_move(struct target *, struct spill *);
/* A stream into the target, for whole lines; for fclose(3). */
FILE *target_stream(struct target *);

#endif
