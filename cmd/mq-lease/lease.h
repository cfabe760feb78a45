/*
 * mq-lease: main.c reads the command line and acts on receipts, take.c hands out
 * messages.  queue/lease.h does all that concerns the server.
 */
#ifndef MQ_LEASE_TOOL_H
#define MQ_LEASE_TOOL_H

#include "queue/lease.h"

struct options {
	const char *receipt; /* NULL: messages are taken */
	enum mq_receipt_act act;
	const char *text; /* NULL: none */
	int64_t for_ms;	  /* -1: not given */
	int64_t idle_ms, keep_ms;
	int limit, attempts;
	const char *tag, *queue;
	bool existing, quiet;
};

/* Returns the exit status. */
int lease_messages(const struct options *, const struct mq_lease_queue *);

#endif
