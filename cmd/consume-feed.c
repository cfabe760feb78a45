/*
 * What a script that has several messages reads on its standard input.
 */
#include <string.h>

#include "consume.h"

/* NULL, or why the payload cannot be told from what is behind it. */
static const char *
unframable(const struct message *m)
{
	const struct mq_envelope *e = &m->envelope;

	if (m->c->opt->framing == MQ_FRAME_LINES && e->payload_len > 0 &&
	    memchr(e->payload, '\n', e->payload_len) != NULL)
		return "its payload has more than one line: --lines cannot "
		       "carry it";
	if (m->c->opt->framing == MQ_FRAME_NULL && e->payload_len > 0 &&
	    memchr(e->payload, '\0', e->payload_len) != NULL)
		return "its payload has a NUL: --null cannot carry it";
	return NULL;
}

bool
feed_frame(struct message *m, struct mq_buf *out)
{
	const char *why = unframable(m);

	if (why != NULL) {
		verdict_reject(m, why);
		return false;
	}
	message_frame(m, out);
	return true;
}
