/*
 * When messages are to be ready.
 */
#ifndef WHEN_H
#define WHEN_H

#include "queue/queue.h"

/* What --at says, unix ms, when it is now_ms; ends with exit 64 if it is no time. */
int64_t when_parse(const char *at, int64_t now_ms);
/* When the messages will be ready, by the options (at: --at, or NULL), if it is
 * now_ms.  What is due already is published as such: any consumer then sees it. */
struct mq_when when_decide(struct mq_when, const char *at, int64_t now_ms);

#endif
