/*
 * The rmq layout: putting messages in.
 */
#include "keys.h"
#include "layout.h"
#include "queue/mark.h"
#include "scripts.h"

static bool
is_plain(const struct mq_publishing *how)
{
	return how->when.kind == MQ_WHEN_NOW && !how->special;
}

void
rmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	static const char *const kinds[] = {
	    [MQ_WHEN_NOW] = "now", [MQ_WHEN_IN] = "in", [MQ_WHEN_AT] = "at"};

	if (is_plain(how)) {
		mq_command_plain(c, "LPUSH");
		rmq_key_queue(c, queue, "ready");
		return;
	}
	mq_command_script(c, &rmq_script_publish,
	    RMQ_QUEUE_KEYS + 2 + (how->mark.publisher != NULL));
	rmq_queue_keys(c, queue);
	rmq_key_queue(c, queue, "counters");
	mq_command_str(c, RMQ_QUEUES);
	if (how->mark.publisher != NULL)
		rmq_key_marks(c, queue, how->mark.publisher);
	mq_command_str(c, kinds[how->when.kind]);
	mq_command_int(c, how->when.ms);
	mq_layout_add_limits(c, &how->limits);
	mq_command_str(c, how->alike ? "alike" : "");
	mq_mark_add(c, &how->mark);
}

void
rmq_publish_mark(struct mq_command *c, const char *queue,
    const struct mq_mark *mark, int n, size_t bytes)
{
	bool large = bytes >= MQ_LARGE;

	mq_command_plain(c, "EVAL");
	mq_command_str(c, rmq_script_mark.text);
	mq_command_int(c, large ? 5 : 4);
	rmq_key_queue(c, queue, "ready");
	rmq_key_queue(c, queue, "counters");
	rmq_key_marks(c, queue, mark->publisher);
	mq_command_str(c, RMQ_QUEUES);
	if (large)
		rmq_key_queue(c, queue, "large");
	mq_mark_add(c, mark);
	mq_command_int(c, n);
	mq_command_str(c, queue);
}

void
rmq_publish_known(struct mq_command *c, const char *queue,
    const struct mq_mark *mark, const struct mq_command *batch, size_t from,
    int n)
{
	mq_command_script(c, &rmq_script_publish_known, 4);
	rmq_key_queue(c, queue, "ready");
	rmq_key_queue(c, queue, "counters");
	rmq_key_marks(c, queue, mark->publisher);
	mq_command_str(c, RMQ_QUEUES);
	mq_mark_add(c, mark);
	mq_command_str(c, queue);
	mq_command_tail(c, batch, from, n);
}

void
rmq_publish_add(struct mq_command *c, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len)
{
	const struct mq_part parts[] = {
	    {id, MQ_ID_LEN}, {header->data, header->len}, {payload, len}};

	/* What makes them unique says when delayed ones are claimed. */
	if (how->when.kind == MQ_WHEN_NOW && (how->alike || !how->special))
		mq_command_parts(c, parts + 1, 2);
	else
		mq_command_parts(c, parts, 3);
}

bool
rmq_publish_counts(const struct mq_publishing *how)
{
	return !is_plain(how);
}

void
rmq_tick(struct mq_command *c, const char *queue, int64_t tick)
{
	mq_command_script(c, &rmq_script_tick, 1);
	rmq_key_queue(c, queue, "clock");
	mq_command_int(c, tick);
}
