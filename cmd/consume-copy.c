/*
 * What a duplicate looks like.
 */
#include "clock.h"
#include "consume.h"
#include "message.h"

bool
copy_command(const struct message *m, const struct mq_layout *layout,
    const struct mq_dup *what, char id[MQ_ID_LEN + 1], struct mq_command *cmd)
{
	struct consumer *c = m->c;
	const struct mq_envelope *e = &m->envelope;
	struct mq_buf header = {0}, origin = {0};
	struct mq_publishing how = {.when.said = true,
	    .special = mq_message_special(e),
	    .limits = {-1, -1, -1, -1}};
	struct mq_duplicate as = {.id = id, .web = what->web};
	int64_t now_us = mq_clock_unix_us();

	mq_id_make(&c->ids, (uint64_t)now_us, id);
	if (what->due_s > 0) {
		how.when.kind = MQ_WHEN_IN;
		how.when.ms = what->due_s * 1000;
		as.due_ms = now_us / 1000 + how.when.ms;
	}
	env_full_id(&origin, m);
	as.origin = mq_buf_str(&origin);
	mq_message_duplicate(e, &as, &header);
	layout->publish(cmd, what->queue, &how);
	layout->publish_add(cmd, &how, id, &header, e->payload, e->payload_len);
	mq_buf_free(&header);
	mq_buf_free(&origin);
	return layout->publish_counts(&how);
}
