/* The one message of --id, from the search to the output. */
#ifndef MQ_STATS_ONE_H
#define MQ_STATS_ONE_H

#include "look.h"

struct one {
	const char *id;
	bool found;
	char *queue;
	enum mq_state state;
	char *connection;    /* NULL: no one's */
	struct mq_item item; /* element NULL: only known to run */
	struct mq_buf element;
	struct mq_runs runs;
	const struct mq_run *run; /* NULL: not known to run */
	int64_t now_ms;
};

void one_print(const struct one *);
void one_print_json(const struct one *);

/* Prints what was told of the end of a message, if that is kept.  False: it is
 * not. */
bool look_result(struct look *, const char *id);

#endif
