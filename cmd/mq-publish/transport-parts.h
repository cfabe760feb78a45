/* The inside of the transport, for transport.c and trial.c. */
#ifndef TRANSPORT_PARTS_H
#define TRANSPORT_PARTS_H

#include "transport.h"

/* How many messages are under way, so that nobody knows about them. */
unsigned long transport_unknown(struct transport *);
/* Waits for the answer to the oldest batch. */
enum mq_call transport_wait(struct transport *);
/* The server has answered for the batch, which is empty from now on. */
void transport_answered(struct transport *, struct batch *);

#endif
