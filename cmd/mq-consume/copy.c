/*
 * What a duplicate looks like.
 */
#include "base/clock.h"
#include "consume.h"
#include "message/headers.h"

/* What it has in a queue of this layout, it can have in another one. */
static bool
is_carried(const struct message *m, const struct mq_layout *layout,
    const struct mq_envelope *copy, struct mq_buf *why)
{
	if (layout == m->c->layout)
		return true;
	if (!mq_layout_obeys(layout, copy, why))
		return false;
	if (mq_layout_reads(layout, copy->payload, copy->payload_len))
		return true;
	mq_buf_addstr(why, "not UTF-8, as node takes it");
	return false;
}

bool
copy_make(const struct message *m, const struct mq_layout *layout,
    const struct mq_dup *what, char id[MQ_ID_LEN + 1],
    struct mq_publishing *how, struct mq_envelope *copy, struct mq_buf *why)
{
	struct mq_buf origin = {0};
	struct mq_duplicate as = {.id = id, .web = what->web};
	int64_t now_us = mq_clock_unix_us();

	/* One step, so that the queue is known and the copy is counted. */
	*how = (struct mq_publishing){
	    .when.said = true, .special = true, .limits = {-1, -1, -1, -1}};
	mq_id_make(&m->c->ids, (uint64_t)now_us, id);
	if (what->due_s > 0) {
		how->when.kind = MQ_WHEN_IN;
		how->when.ms = what->due_s * 1000;
		as.due_ms = now_us / 1000 + how->when.ms;
	}
	env_full_id(&origin, m);
	as.origin = mq_buf_str(&origin);
	mq_message_duplicate(&m->envelope, &as, copy);
	mq_buf_free(&origin);
	return is_carried(m, layout, copy, why);
}
