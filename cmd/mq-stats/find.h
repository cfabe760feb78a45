/* The search for the message of --id. */
#ifndef MQ_STATS_FIND_H
#define MQ_STATS_FIND_H

#include "collect.h"

struct found {
	const char *id;
	bool exists;
	char *queue;
	enum mq_state state;
	char *connection;    /* NULL: nobody's */
	struct mq_item item; /* element NULL: only known to run */
	struct mq_buf element;
	const struct mq_run *run; /* NULL: not known to run */
	struct mq_place place;	  /* its own: where it looks */
	/* Of a message that does not exist any more. */
	const char *ended_in; /* the queue; NULL: nothing is kept of its end */
	struct mq_ending ending;
	struct model *model; /* of the last look; the caller's */
};

/* Looks wherever the message can be.  Returns false when a queue that was named does
 * not exist, and the message is in none of the others.  found_free() frees. */
bool find_message(
    struct collector *, const char *id, struct model *, struct found *);
void found_free(struct found *);

#endif
