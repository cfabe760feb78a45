/* Settling a message by its receipt, and extending its lease. */
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "lease.h"

static const char *
why_not(const struct options *o, const struct mq_layout *layout)
{
	if (strchr(o->receipt, '.') != NULL)
		return "its lease is over, or it is settled already";
	if (layout->has & MQ_HAS_IDS)
		return "no such message, or it is handed out by receipt";
	return "not a receipt";
}

int
use_receipt(const struct options *o, const struct mq_lease_queue *q)
{
	int rv = mq_receipt_use(q, o->receipt, o->act, o->text, o->for_ms);

	if (rv == -1)
		mq_die(q->redis->status, "%s", q->redis->error);
	if (rv == 0 && !o->quiet)
		mq_say(
		    "%s: %s: %s", q->name, o->receipt, why_not(o, q->layout));
	return rv == 1 ? MQ_EXIT_OK : MQ_EXIT_NO;
}
