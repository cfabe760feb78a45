/* --json: everything as one object.  The model has the policy. */
#ifndef MQ_STATS_JSON_H
#define MQ_STATS_JSON_H

#include "model.h"

void json_print(const struct model *, bool connections);

#endif
