/*
 * Which messages are meant: the filters that tools have in common.  All that
 * are given must match.  The filter starts zeroed, and the options are read before any
 * setlocale(3), so that expressions are about bytes.
 */
#ifndef MQ_FILTER_H
#define MQ_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "queue/queue.h"

/* The options; into a struct mq_filter.  The first is --id, which a tool for which it
 * means more has with a help of its own. */
extern const struct mq_option mq_filter_options[];

struct mq_filter {
	const char
	    *id; /* without --not; NULL: any; also the needle for a scan */
	struct mq_condition *conditions; /* all others */
	bool negated;			 /* of the next condition */
};

/* take() of --id. */
void mq_filter_take_id(void *filter, const struct mq_given *);

/* Ends with exit 64 if an id cannot be one of this layout, or if nothing follows
 * --not. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/* The option that was given first, but for an id without --not; NULL: none. */
const char *mq_filter_option_given(const struct mq_filter *);

/*
 * Whether a message matches.  One with a bad header counts as a payload
 * without headers.
 */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

#endif
