/*
 * The layout of RSMQ (npm rsmq 0.12, and its ports).  Its keys, in a namespace
 * N, which is rsmq unless a queue's name says another:
 *
 *	N:QUEUES	set of queue names
 *	N:Q		sorted set: ids of messages; score: when it can be
 *			received, unix ms
 *	N:Q:Q		hash: the attributes of the queue, totals, and of each
 *			message the body, the receive count, the first receive
 *
 * and ours, which programs that use RSMQ do not know and do not need:
 *
 *	N:Q:X		hash: further headers of messages
 *	N:Q:Xd		set: messages that wait for another run
 *	N:Q:Xlater	sorted set: delayed messages with a priority; score:
 *			when they are due
 *	N:Q:Xheld:C	hash: what connection C holds, and its receive count
 *	N:Q:Xpaused	"1", maybe with a TTL
 *	N:Q:Xrate	hash: a rate that consumers share
 *	N:Q:Xcounters	hash: what has been counted
 *	N:Q:Xpublisher:ID	hash: what has become of its batches; see mark.h
 *	N::connections	sorted set of connection names
 *	N::connection:C	hash: host, pid, slots, lease, queues; it lives as
 *			long as the lease
 *	N::running:C	what runs there: see running.h
 *
 * Rejected messages of Q are the messages of the queue Q-rejected.
 */
#include "layout.h"

#include <string.h>

#include "keys.h"

/* What other programs take; the name of a queue of rejected ones has to fit, too. */
#define QUEUE_NAME_MAX 160

#define REJECTED (sizeof(RSMQ_REJECTED) - 1)

static bool
is_rejected(const char *name)
{
	size_t n = strlen(name);

	return n > REJECTED && strcmp(name + n - REJECTED, RSMQ_REJECTED) == 0;
}

/* As RSMQ does; and QUEUES, whose messages would be put into the set of names. */
static const char *
rsmq_queue_error(const char *queue)
{
	const char *name = rsmq_bare(queue);
	const char *letters = "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (*name == '\0')
		return "a queue's name cannot be empty";
	if (strlen(name) > QUEUE_NAME_MAX - (is_rejected(name) ? 0 : REJECTED))
		return "a queue's name cannot be longer than 151 bytes, with "
		       "-rejected 160";
	if (name[strspn(name, letters)] != '\0')
		return "a queue's name in RSMQ has letters, digits, _ and - "
		       "only";
	if (strcmp(name, "QUEUES") == 0)
		return "RSMQ itself uses this name";
	return NULL;
}

static void
add_attribute(struct mq_command *c, long said, long otherwise)
{
	mq_command_int(c, said != MQ_ATTRIBUTE_NONE ? said : otherwise);
}

static void
rsmq_open(
    struct mq_command *c, const char *queue, const struct mq_attributes *a)
{
	mq_command_script(c, &mq_script_rsmq_open, 2);
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
	mq_command_script(c, &mq_script_rsmq_set, 1);
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

const struct mq_layout mq_layout_rsmq = {
    .name = "rsmq",
    .has = MQ_HAS_ATTRIBUTES | MQ_HAS_NEWS | MQ_HAS_IDS | MQ_HAS_TEXT |
	MQ_HAS_CLAIMS,
    .ns = RSMQ_NAMESPACE,
    .rights = rsmq_rights,
    .queue_error = rsmq_queue_error,
    .open = rsmq_open,
    .set_attributes = rsmq_set_attributes,
    .known = rsmq_known,
    .probe = rsmq_probe,
    .publish = rsmq_publish,
    .publish_add = rsmq_publish_add,
    .published = rsmq_published,
    .publish_counts = rsmq_publish_counts,
    .marks = rsmq_marks,
    .join = rsmq_join,
    .leave = rsmq_leave,
    .renew = rsmq_renew,
    .lease = rsmq_lease,
    .lapsed = rsmq_lapsed,
    .claim = rsmq_claim,
    .claimed = mq_layout_claimed,
    .key_queue = rsmq_key_of,
    .settle = rsmq_settle,
    .settled = mq_layout_settled,
    .ack_oldest = rsmq_ack_all,
    .held = rsmq_held,
    .held_count = rsmq_held_count,
    .exists = rsmq_exists,
    .count = rsmq_count,
    .count_published = rsmq_count_published,
    .receipts = rsmq_receipts,
    .receipt = rsmq_receipt,
    .vacate = rsmq_vacate,
    .tell_running = rsmq_tell_running,
    .pause = rsmq_pause,
    .resume = rsmq_resume,
    .pause_at_least = rsmq_pause_at_least,
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
