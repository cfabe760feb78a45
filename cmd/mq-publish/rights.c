/* What the options need, for --print-acl. */
#include "message/headers.h"
#include "publish.h"

/* Whether messages can hold something that others wait for, or ask about. */
static bool
can_hold(const struct options *o)
{
	const struct mq_envelope *headers = &o->message.headers;

	/* Each message says for itself what it wants. */
	if (o->framing == MQ_FRAME_JSONL || o->http)
		return true;
	return o->message.awaited || o->given.key ||
	    mq_envelope_get(headers, MQ_HEADER_GROUP) != NULL;
}

unsigned
options_rights(const struct options *o)
{
	return MQ_PUBLISHES | (o->durable ? MQ_WAITS : 0) |
	    (o->how.realtime ? MQ_TELLS : 0) |
	    (o->message.attachments != NULL ? MQ_ATTACHES : 0) |
	    (o->message.wait ? MQ_AWAITS : 0) | (can_hold(o) ? MQ_HOLDS : 0) |
	    (o->tick >= 0 ? MQ_TICKS : 0);
}
