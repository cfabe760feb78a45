/*
 * The rmq layout: putting messages in.
 */
#include <stdio.h>
#include <string.h>

#include "queue/layout.h"
#include "rmq.h"

/*
 * The key of messages that one plain command puts in: a script would copy each of
 * them twice, which costs as much as the command.  NULL: the script has to find out
 * more.
 */
static const char *
direct_key(const struct mq_publishing *how)
{
	if (how->special && !how->ordered)
		return NULL;
	if (how->when.kind == MQ_WHEN_NOW && !how->in_tick &&
	    how->priority == 0)
		return "ready";
	if (how->now_us == 0 || !how->direct)
		return NULL;
	return how->when.kind == MQ_WHEN_NOW ? "priority" : "delayed";
}

static bool
is_listed(const char *key)
{
	return key != NULL && strcmp(key, "ready") == 0;
}

void
rmq_publish(
    struct mq_command *c, const char *queue, const struct mq_publishing *how)
{
	static const char *const kinds[] = {
	    [MQ_WHEN_NOW] = "now", [MQ_WHEN_IN] = "in", [MQ_WHEN_AT] = "at"};
	const char *key = direct_key(how);
	bool marks;

	if (key != NULL) {
		mq_command_plain(c, is_listed(key) ? "LPUSH" : "ZADD");
		rmq_key_queue(c, queue, key);
		return;
	}
	marks = how->mark.publisher != NULL || how->files != NULL;
	mq_command_script(c, &rmq_script_publish);
	rmq_queue_keys(c, queue);
	rmq_key_queue(c, queue, "counters");
	rmq_key_queues(c, queue);
	rmq_key_queue(c, queue, "settings");
	if (how->mark.publisher != NULL)
		mq_side_marks(&rmq_side, c, queue, how->mark.publisher);
	else if (marks)
		rmq_key_queue(c, queue, "none");
	if (how->files != NULL)
		rmq_attach_keys(c, how->files);
	mq_command_str(c, kinds[how->when.kind]);
	mq_command_int(c, how->when.ms);
	mq_layout_add_limits(c, &how->limits);
	mq_command_str(c, how->alike ? "alike" : "");
	mq_command_str(c, how->join ? "join" : "");
	mq_mark_add_behind(c, &how->mark);
}

bool
rmq_publish_mark(struct mq_command *c, const char *queue,
    const struct mq_publishing *how, int n)
{
	const char *key = direct_key(how);

	if (key == NULL || c == NULL)
		return key != NULL;
	mq_command_plain(c, "EVAL");
	mq_command_str(c, rmq_script_mark.text);
	mq_command_int(c, 5);
	rmq_key_queue(c, queue, key);
	rmq_key_queue(c, queue, "counters");
	mq_side_marks(&rmq_side, c, queue, how->mark.publisher);
	rmq_key_queues(c, queue);
	rmq_key_queue(c, queue, "settings");
	mq_mark_add(c, &how->mark);
	mq_command_int(c, n);
	mq_command_str(c, c->cluster ? "" : queue);
	mq_command_str(c, is_listed(key) ? "LLEN" : "ZCARD");
	return true;
}

/* The score in a set, and what stands ahead of the id in the order of equal ones: n
 * bytes, as lib/place.lua has them. */
static int64_t
sort_message(const struct mq_publishing *how, char front[24], size_t *n)
{
	if (how->when.kind != MQ_WHEN_NOW) {
		*n = 0;
		return how->when.ms +
		    (how->when.kind == MQ_WHEN_IN ? how->now_us / 1000 : 0);
	}
	if (how->in_tick) {
		*n = (size_t)snprintf(
		    front, 24, "%03d0000", 100 - how->priority);
		return RMQ_TICKS;
	}
	*n = (size_t)snprintf(front, 24, "n%016jd", (intmax_t)how->now_us);
	return -how->priority;
}

void
rmq_publish_known(struct mq_command *c, const char *queue,
    const struct mq_mark *mark, const struct mq_command *batch, size_t from,
    int n)
{
	mq_command_script(c, &rmq_script_publish_known);
	rmq_keys(c, queue, "ready counters");
	mq_side_marks(&rmq_side, c, queue, mark->publisher);
	rmq_key_all(c, RMQ_QUEUES);
	rmq_key_queue(c, queue, "settings");
	mq_mark_add(c, mark);
	mq_command_str(c, queue);
	mq_command_tail(c, batch, from, n);
}

void
rmq_publish_add(struct mq_command *c, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len)
{
	const char *key = direct_key(how);
	char front[24];
	struct mq_part parts[] = {{front, 0}, {id, MQ_ID_LEN},
	    {header->data, header->len}, {payload, len}};

	if (key != NULL && !is_listed(key)) {
		mq_command_int(c, sort_message(how, front, &parts[0].n));
		parts[1].n -= parts[0].n;
		mq_command_parts(c, parts, 4);
	} else if (how->when.kind == MQ_WHEN_NOW &&
	    (how->alike || !how->special)) {
		mq_command_parts(c, parts + 2, 2);
	} else {
		/* What makes them unique says when delayed ones are claimed. */
		mq_command_parts(c, parts + 1, 3);
	}
}
