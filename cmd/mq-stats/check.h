/* --check: a monitoring plugin. */
#ifndef MQ_STATS_CHECK_H
#define MQ_STATS_CHECK_H

#include "model.h"

/* Parses the limits, or ends with exit 64. */
struct checks;
struct checks *checks_parse(const char *);
void checks_free(struct checks *);

/* Prints how things are, or why nothing is known; returns the exit status of a
 * plugin.  all: the queues were not named. */
int checks_print(const struct checks *, const struct model *, bool all);

#endif
