/* --http: a request becomes options, and an answer. */
#ifndef MQ_STATS_ENDPOINT_H
#define MQ_STATS_ENDPOINT_H

#include "options.h"

/*
 * Receives a request.  Returns in a child process, with the options that print what is
 * asked for; the program itself answers and ends.  The paths:
 *
 *	/	/metrics	/queues.json	/healthz	/queue/NAME	/message/ID
 */
void endpoint_serve(struct stats_options *);

#endif
