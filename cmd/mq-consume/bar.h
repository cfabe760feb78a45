/*
 * The bar of --drain: done, rejected, rate and time left, in one line on a terminal
 * that goes away before anything else is written, and at the end.
 */
#ifndef MQ_CONSUME_BAR_H
#define MQ_CONSUME_BAR_H

#include <stdbool.h>

#include <ev.h>

#include "mq-consume/outbox/outbox.h"
#include "mq-consume/process/process.h"
#include "options.h"

struct bar {
	struct ev_loop *loop;
	struct process *process;
	const struct counters *counters;
	bool wanted;
	double began; /* monotonic time */
	long long
	    total; /* messages, those that have ended included; -1: unknown */
	ev_timer timer;
};

void bar_init(struct bar *, struct ev_loop *, const struct options *,
    struct process *, const struct counters *);
/* Whether there is or will be a bar. */
bool bar_wanted(const struct bar *);
/* So many messages are left now. */
void bar_expect(struct bar *, long long left);
void bar_end(struct bar *);

#endif
