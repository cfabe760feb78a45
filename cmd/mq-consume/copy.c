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

static void
make_command(const struct mq_envelope *copy, const struct mq_layout *layout,
    const char *queue, const char *id, const struct mq_publishing *how,
    struct mq_command *cmd)
{
	struct mq_buf header = {0};

	if (copy->headers != NULL)
		mq_envelope_write_header(copy, &header);
	layout->publish(cmd, queue, how);
	layout->publish_add(
	    cmd, how, id, &header, copy->payload, copy->payload_len);
	mq_buf_free(&header);
}

bool
copy_command(const struct message *m, const struct mq_layout *layout,
    const struct mq_dup *what, char id[MQ_ID_LEN + 1], struct mq_command *cmd,
    struct mq_buf *why)
{
	struct consumer *c = m->c;
	const struct mq_envelope *e = &m->envelope;
	struct mq_envelope copy;
	struct mq_buf origin = {0};
	/* One step, so that the queue is known and the copy is counted. */
	struct mq_publishing how = {
	    .when.said = true, .special = true, .limits = {-1, -1, -1, -1}};
	struct mq_duplicate as = {.id = id, .web = what->web};
	int64_t now_us = mq_clock_unix_us();
	bool carried;

	mq_id_make(&c->ids, (uint64_t)now_us, id);
	if (what->due_s > 0) {
		how.when.kind = MQ_WHEN_IN;
		how.when.ms = what->due_s * 1000;
		as.due_ms = now_us / 1000 + how.when.ms;
	}
	env_full_id(&origin, m);
	as.origin = mq_buf_str(&origin);
	mq_message_duplicate(e, &as, &copy);
	mq_buf_free(&origin);
	carried = is_carried(m, layout, &copy, why);
	if (carried)
		make_command(&copy, layout, what->queue, id, &how, cmd);
	mq_envelope_free(&copy);
	return carried;
}
