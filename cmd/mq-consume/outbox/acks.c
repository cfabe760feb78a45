/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Acks of the oldest messages of a queue, which one command settles together, without their
 * bytes. */
#include "parts.h"

/* Acks are cheap to remove together if between them are this many times fewer other messages. */
#define DENSE 4

void
acks_collect(struct batch *b, int queue, bool all, struct mq_acks *acks,
    int *places, int most)
{
	const struct outbox *o = b->outbox;
	struct message *m = NULL;
	size_t bytes = 0, others_len = 0;
	int place = 0;
	bool holds;

	while (b->n < most && (m = hand_after(o->hand, queue, m)) != NULL) {
		/* When the acks arrive, the server has the message no more. */
		if (m->in_flight || m->state == MESSAGE_SETTLED || m->lost ||
		    m->gone)
			continue;
		if (place++ == 0)
			acks->oldest = (struct mq_part){m->element, m->len};
		bytes += m->len;
		if (m->in_line != LINE_ACKS || m->equal ||
		    result_is_wanted(m)) {
			others_len += m->len;
			continue;
		}
		holds = acks->holds ||
		    (o->holding && mq_message_has(&m->envelope, MQ_TRAIT_LOCK));
		if (holds && bytes > BATCH_BYTES)
			break;
		acks->holds = holds;
		places[b->n] = place;
		b->m[b->n++] = m;
		if (all || (place - b->n) * DENSE <= b->n) {
			acks->n = b->n;
			acks->others_len = others_len;
		}
	}
	b->n = acks->n;
}
