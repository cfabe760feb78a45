/*
 * The first batch of a publisher that has asked nothing; see post.h.
 */
#include "publisher.h"

/* No script copies longer batches for want of a question. */
#define TRIAL_BYTES 65536

bool
mq_post_trial(const struct mq_publisher *p, struct mq_post *b)
{
	if (p->layout->publish_known == NULL || b->whole ||
	    b->how.mark.publisher == NULL || mq_post_bytes(b) > TRIAL_BYTES)
		return false;
	b->plain = b->command;
	b->command = (struct mq_command){0};
	p->layout->publish_known(
	    &b->command, p->queue, &b->how.mark, &b->plain, b->start, b->count);
	b->whole = true;
	return true;
}

void
mq_post_no_trial(struct mq_post *b)
{
	mq_command_free(&b->command);
	b->command = b->plain;
	b->plain = (struct mq_command){0};
	b->whole = false;
}
