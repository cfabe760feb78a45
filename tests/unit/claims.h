/*
 * The answers to the claims of an inbox.
 */
#ifndef TEST_CLAIMS_H
#define TEST_CLAIMS_H

#include "inbox.h"

static inline void
arrive(struct fixture *f, const char *names)
{
	struct elements e = make_elements(names);
	struct mq_claimed claimed = {
	    .elements = e.list, .n = e.n, .due_ms = -1};

	claimed_fn(&f->inbox, &(struct mq_answer){0}, &claimed);
	free_elements(&e);
}

/* Answers the claim, and claims again as the next turn would. */
static inline void
answer(struct fixture *f, const char *names)
{
	arrive(f, names);
	inbox_claim(&f->inbox);
}

static inline void
answer_with(struct fixture *f, struct mq_claimed claimed)
{
	claimed_fn(&f->inbox, &(struct mq_answer){0}, &claimed);
}

#endif
