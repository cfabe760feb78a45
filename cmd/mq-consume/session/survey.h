/*
 * What --drain has before it: a helper process asks for the number of messages that
 * can be claimed, and for the other consumers that have some.  A consumer that no
 * longer renews its lease is named, since --drain waits until its messages are back.
 */
#ifndef MQ_CONSUME_SURVEY_H
#define MQ_CONSUME_SURVEY_H

#include "mq-consume/options.h"
#include "process/helper.h"
#include "redis/server.h"

#define SURVEY_NAME 128
#define SURVEY_HOST 80

/* Another consumer that has messages. */
struct holder {
	char name[SURVEY_NAME]; /* empty: there is none */
	char host[SURVEY_HOST]; /* empty: not known */
	int64_t ttl_ms;		/* of its lease; not above 0: it is over */
	long long unacked;
};

struct survey {
	struct mq_children *children;
	struct mq_server *server;
	const struct options *opt;
	const char *self; /* the name of our connection */
	void (*counted)(void *arg, long long ready);
	void *arg;
	int waited;  /* ticks in a row */
	bool waits;  /* the survey under way is about what is waited for */
	double next; /* steady time before which no survey begins */
	struct holder last; /* whose lease ended first in the last survey */
	struct holder said;
	struct mq_helper helper;
};

/* Once a second.  counts: the number of messages is wanted; waits: nothing is left but
 * what other consumers have. */
void survey_tick(struct survey *, bool counts, bool waits);
/* Breaks off a survey under way. */
void survey_end(struct survey *);

#endif
