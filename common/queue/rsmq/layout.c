/*
 * The layout of RSMQ (npm rsmq 0.12, and its ports): the table of all that it can
 * do.  keys.c says which keys it has.
 */
#include "rsmq.h"

#include <string.h>


static void
add_attribute(struct mq_command *c, long said, long otherwise)
{
	mq_command_int(c, said != MQ_ATTRIBUTE_NONE ? said : otherwise);
}

static void
rsmq_open(
    struct mq_command *c, const char *queue, const struct mq_attributes *a)
{
	mq_command_script(c, &rsmq_script_open, 2);
	rsmq_key(c, queue, ":Q");
	rsmq_key_common(c, queue, ":QUEUES");
	mq_command_str(c, rsmq_bare(queue));
	add_attribute(c, a->vt_s, RSMQ_VT);
	add_attribute(c, a->delay_s, RSMQ_DELAY);
	add_attribute(c, a->maxsize, RSMQ_MAXSIZE);
}

static void
add_change(struct mq_command *c, const char *name, long said)
{
	if (said == MQ_ATTRIBUTE_NONE)
		return;
	mq_command_str(c, name);
	mq_command_int(c, said);
}

static void
rsmq_set_attributes(
    struct mq_command *c, const char *queue, const struct mq_attributes *a)
{
	mq_command_script(c, &rsmq_script_set, 1);
	rsmq_key(c, queue, ":Q");
	add_change(c, "vt", a->vt_s);
	add_change(c, "maxsize", a->maxsize);
	add_change(c, "delay", a->delay_s);
}

static void
rsmq_known(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "HEXISTS");
	rsmq_key(c, queue, ":Q");
	mq_command_str(c, "vt");
}

static void
rsmq_names(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "SSCAN");
	rsmq_key_common(c, queue, ":QUEUES");
	mq_command_words(c, "0 COUNT 1000");
}

const struct mq_layout mq_layout_rsmq = {
    .name = "rsmq",
    .has = MQ_HAS_ATTRIBUTES | MQ_HAS_NEWS | MQ_HAS_IDS | MQ_HAS_TEXT |
	MQ_HAS_CLAIMS,
    .ns = RSMQ_NAMESPACE,
    .rights = rsmq_rights,
    .side = &rsmq_side,
    .queue_error = rsmq_queue_error,
    .open = rsmq_open,
    .set_attributes = rsmq_set_attributes,
    .known = rsmq_known,
    .names = rsmq_names,
    .probe = rsmq_probe,
    .publish = rsmq_publish,
    .publish_add = rsmq_publish_add,
    .publish_counts = rsmq_publish_counts,
    .join = rsmq_join,
    .leave = rsmq_leave,
    .renew = rsmq_renew,
    .lease = rsmq_lease,
    .lapsed = rsmq_lapsed,
    .claim = rsmq_claim,
    .track = rsmq_track,
    .look = rsmq_look,
    .key_queue = rsmq_key_of,
    .settle = rsmq_settle,
    .ack_oldest = rsmq_ack_oldest,
    .give_back = rsmq_give_back,
    .held = rsmq_held,
    .held_count = rsmq_held_count,
    .exists = rsmq_exists,
    .receipts = rsmq_receipts,
    .receipt = rsmq_receipt,
    .receipt_by_id = rsmq_receipt_by_id,
    .vacate = rsmq_vacate,
    .clean = rsmq_clean,
    .drained = rsmq_drained,
    .stats = rsmq_stats,
    .running = rsmq_running,
    .scan = rsmq_scan,
    .take = rsmq_take,
    .scan_end = rsmq_scan_end,
    .move = rsmq_move,
    .purge = rsmq_purge,
    .delete_queue = rsmq_delete_queue,
};
