/* What is in one queue, as --http shows it: its numbers, its messages, and why those
 * that were rejected were so. */
#ifndef MQ_STATS_CONTENTS_H
#define MQ_STATS_CONTENTS_H

#include <jansson.h>

#include "model.h"

/* Messages of each state that are shown, and the largest payload. */
#define CONTENTS_MESSAGES 100
#define CONTENTS_PAYLOAD  65536

/* Starts zeroed but for the first two.  The model has the queue, alone, with all
 * counts and what was rejected. */
struct contents {
	const struct model *model;
	bool payloads;
	/* What is to be walked through next. */
	struct mq_place place;
	long skip;
	int done; /* states that were */
	json_t *all, *list;
};

void contents_begin(struct contents *);
/* The next place; false: there is none. */
bool contents_next(struct contents *);
/* A slice of its messages. */
bool contents_slice(void *contents, const struct mq_item *, int count);
/* Prints all, and frees it. */
void contents_print(struct contents *);

#endif
