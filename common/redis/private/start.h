/* Starting the private server. */
#ifndef MQ_PRIVATE_START_H
#define MQ_PRIVATE_START_H

#include "place.h"

/*
 * Starts the server, which inherits the lock.  Returns 0 as soon as it is on its
 * way, or a status with the error.
 */
int private_start(struct place *, int lock);

#endif
