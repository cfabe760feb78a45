#include "copy.h"

#include "base/clock.h"
#include "message/headers.h"
#include "mq-consume/message.h"

/* Whether the layout can carry the copy; its own layout always can. */
static bool
is_carried(const struct mq_envelope *copy, const struct mq_layout *from,
    const struct mq_layout *to, struct mq_buf *why)
{
	if (to == from)
		return true;
	if (!mq_layout_obeys(to, copy, why))
		return false;
	if (mq_layout_reads(to, copy->payload, copy->payload_len))
		return true;
	mq_buf_addstr(why, "not UTF-8, as node takes it");
	return false;
}

bool
copy_make(struct copy *copy, const struct copy_origin *from,
    const struct message *m, const struct mq_dup *what,
    const struct mq_layout *to, struct mq_buf *why)
{
	struct mq_buf origin = {0};
	struct mq_duplicate as = {.id = copy->id, .web = what->web};
	int64_t now_us = mq_clock_unix_us();

	/* The special publishing registers the queue and counts the copy. */
	copy->how = (struct mq_publishing){
	    .when.said = true, .special = true, .limits = {-1, -1, -1, -1}};
	mq_id_make(from->ids, (uint64_t)now_us, copy->id);
	if (what->due_s > 0) {
		copy->how.when.kind = MQ_WHEN_IN;
		copy->how.when.ms = what->due_s * 1000;
		as.due_ms = now_us / 1000 + copy->how.when.ms;
	}
	mq_buf_printf(
	    &origin, "http://%s/q/%s/%s", from->host, m->queue_name, m->id);
	as.origin = mq_buf_str(&origin);
	mq_message_duplicate(&m->envelope, &as, &copy->envelope);
	mq_buf_free(&origin);
	return is_carried(&copy->envelope, from->layout, to, why);
}

void
copy_free(struct copy *copy)
{
	mq_envelope_free(&copy->envelope);
}
