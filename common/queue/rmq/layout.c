/*
 * The layout of adjust/rmq v5 (Go), outside a cluster: the table of all that it
 * can do.  keys.c says which keys it has.
 */
#include "rmq.h"


#include <stdio.h>
#include <string.h>


static void
rmq_open(struct mq_command *c, const char *queue,
    const struct mq_attributes *attributes)
{
	(void)attributes;
	mq_command_plain(c, "SADD");
	c->optional = true;
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

static void
rmq_known(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "SISMEMBER");
	c->optional = true;
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_str(c, queue);
}

static void
rmq_names(struct mq_command *c, const char *queue)
{
	(void)queue;
	mq_command_plain(c, "SSCAN");
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_words(c, "0 COUNT 1000");
}

static void
rmq_traces(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "EXISTS");
	rmq_queue_keys(c, queue);
	rmq_key_queue(c, queue, "rejected");
	rmq_key_queue(c, queue, "counters");
	rmq_key_queue(c, queue, "paused");
	rmq_key_queue(c, queue, "settings");
	rmq_key_queue(c, queue, "outgoing");
}

/*
 * The list of one is turned round, which leaves it as it is, so that any
 * number can wait and none takes the result from another.
 */
static void
rmq_result(
    struct mq_command *c, const char *queue, const char *id, int64_t block_ms)
{
	char what[sizeof("result::") + MQ_ID_LEN];

	snprintf(what, sizeof(what), "result::%s", id);
	mq_command_plain(c, block_ms > 0 ? "BLMOVE" : "LINDEX");
	rmq_key_queue(c, queue, what);
	if (block_ms == 0) {
		mq_command_int(c, 0);
		return;
	}
	rmq_key_queue(c, queue, what);
	mq_command_words(c, "LEFT LEFT");
	mq_command_fmt(c, "%.3f", (double)block_ms / 1000);
}

const struct mq_layout mq_layout_rmq = {
    .name = "rmq",
    .has = MQ_HAS_KEYS | MQ_HAS_GROUPS | MQ_HAS_TICKS | MQ_HAS_LOW_PRIORITY |
	MQ_HAS_RESULTS,
    .attachments = &rmq_attachments,
    .rights = rmq_rights,
    .side = &rmq_side,
    .queue_error = rmq_queue_error,
    .open = rmq_open,
    .known = rmq_known,
    .names = rmq_names,
    .traces = rmq_traces,
    .probe = rmq_probe,
    .publish = rmq_publish,
    .publish_add = rmq_publish_add,
    .publish_counts = rmq_publish_counts,
    .publish_mark = rmq_publish_mark,
    .publish_known = rmq_publish_known,
    .tick = rmq_tick,
    .join = rmq_join,
    .leave = rmq_leave,
    .renew = rmq_renew,
    .lease = rmq_lease,
    .renew_queue = rmq_renew_queue,
    .take_over = rmq_take_over,
    .claim = rmq_claim,
    .track = rmq_track,
    .look = rmq_look,
    .key_queue = rmq_key_of,
    .settle = rmq_settle,
    .settle_equal = rmq_settle_equal,
    .ack_oldest = rmq_ack_oldest,
    .give_back = rmq_give_back,
    .held = rmq_held,
    .held_count = rmq_held_count,
    .result = rmq_result,
    .receipts = rmq_receipts,
    .receipt = rmq_receipt,
    .vacate = rmq_vacate,
    .clean = rmq_clean,
    .finish_pushes = rmq_finish_pushes,
    .drained = rmq_drained,
    .stats = rmq_stats,
    .running = rmq_running,
    .scan = rmq_scan,
    .take = rmq_take,
    .scan_end = rmq_scan_end,
    .move = rmq_move,
    .purge = rmq_purge,
    .delete_queue = rmq_delete_queue,
};
