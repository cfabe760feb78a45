/* --watch: the table again and again. */
#ifndef MQ_STATS_WATCH_H
#define MQ_STATS_WATCH_H

#include "collect.h"

struct watch_options {
	bool connections;
	int64_t interval_ms;
};

/* Returns when the user has had enough. */
void watch(struct collector *, const struct watch_options *, struct model *);

#endif
