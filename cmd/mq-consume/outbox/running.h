/*
 * The report of long runs to the server, for mq-stats: sent once a second, if it
 * has changed.
 */
#ifndef MQ_CONSUME_RUNNING_H
#define MQ_CONSUME_RUNNING_H

#include "queue/consumer.h"

/* Zeroed but for the server: nothing was reported. */
struct running_report {
	struct mq_consumer *server;
	struct mq_buf last; /* the last report */
	bool reported;	    /* the server has confirmed it, or will */
};

/* text: as of queue/running.h, taken; empty: nothing runs. */
void running_report_send(struct running_report *, struct mq_buf *text);
/* The server may have lost the report. */
void running_report_lost(struct running_report *);
void running_report_free(struct running_report *);

#endif
