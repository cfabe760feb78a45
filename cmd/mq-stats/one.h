/* --id: prints the message, or what is kept of its end. */
#ifndef MQ_STATS_ONE_H
#define MQ_STATS_ONE_H

#include "find.h"

void one_print(const struct found *, bool json);

#endif
