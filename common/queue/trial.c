/*
 * Batches that go out by another command than the one that was begun: the first one of
 * a publisher that has asked nothing, and those to a queue that has a limit.
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

/* Whether a plain command puts the messages among those that are ready. */
static bool
is_plain(const struct mq_post *b)
{
	return !b->whole && !b->how.special && b->how.when.kind == MQ_WHEN_NOW;
}

void
mq_post_limit(struct mq_publisher *p, struct mq_post *b)
{
	struct mq_command plain = b->command;
	size_t start;

	if (!is_plain(b))
		return;
	b->command = (struct mq_command){.cluster = plain.cluster};
	mq_publisher_complete(p, &b->how);
	p->layout->publish(&b->command, p->queue, &b->how);
	start = b->command.wire.len;
	mq_command_tail(&b->command, &plain, b->start, b->count);
	b->start = start;
	mq_command_free(&plain);
	b->whole = true;
}
