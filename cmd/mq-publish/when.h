/*
 * When messages are to be ready.
 */
#ifndef WHEN_H
#define WHEN_H

#include "queue/queue.h"

/* Unix ms of the argument of --at, when it is now_ms; ends with exit 64 if it is no time. */
int64_t when_parse(const char *at, int64_t now_ms);
/* When the messages will be ready, by the options (at: --at, or NULL), if it is
 * now_ms.  A time that is over is none: any consumer sees such messages.  If it is so
 * for a minute, that is said, unless quiet; in words, it ends the program with 64. */
struct mq_when when_decide(
    struct mq_when, const char *at, int64_t now_ms, bool quiet);

#endif
