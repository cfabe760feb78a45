/*
 * Telling others what runs here.  Short runs are not worth it: once a second the
 * server is told of those that last, and only when something about them has
 * changed.
 */
#ifndef MQ_CONSUME_RUNNING_H
#define MQ_CONSUME_RUNNING_H

#include "queue/consumer.h"

/* Zeroed but for the server, nothing has been told. */
struct running_report {
	struct mq_consumer *server;
	struct mq_buf last; /* what was told */
	bool known;	    /* the server has confirmed that, or will */
};

/* Once a second: text as of running.h; empty: nothing runs.  The buffer is
 * taken. */
void running_report_send(struct running_report *, struct mq_buf *text);
/* The server may have forgotten what it was told. */
void running_report_forgotten(struct running_report *);
void running_report_free(struct running_report *);

#endif
