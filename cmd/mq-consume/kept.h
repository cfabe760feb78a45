/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The output of runs that is kept at the server, for --output-keep.  No function waits: output that
 * comes faster than it may be sent is left out, and the number of its bytes is kept instead. */
#ifndef MQ_CONSUME_KEPT_H
#define MQ_CONSUME_KEPT_H

#include <sys/types.h>

#include "mq-consume/message.h"
#include "queue/consumer.h"

struct kept;
struct kept_run;

/* The pointers stay the caller's. */
struct kept *kept_new(
    const struct options *, struct mq_consumer *, const char *host);
void kept_free(struct kept *);
/* Once a second: sends output, if the session is up. */
void kept_tick(struct kept *, bool up);

/* A run of a message begins, or of a batch whose first message this is. */
struct kept_run *kept_begin(struct kept *, const struct message *, pid_t);
/* Takes bytes of standard output (1) or standard error (2); does nothing without a run. */
void kept_take(struct kept_run *, int stream, const char *, size_t n);
/* The run, unless NULL, is over, and is freed.  status: as of waitpid(2). */
void kept_end(struct kept_run *, int status);

#endif
