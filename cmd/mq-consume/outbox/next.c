/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Settlements that lead to claims: the answer to an ack may bring the next message of its group;
 * other settlements may make messages ready. */
#include "parts.h"

static void
note_ready(struct outbox *o, int queue, const struct message *m)
{
	struct outbox_queue *q = &o->queues[queue];

	if (q->settled_since == 0)
		STAILQ_INSERT_TAIL(&o->ready, q, ready);
	q->settled_since = m->since;
}

void
next_sent(struct outbox *o, const struct message *m)
{
	int to = m->outcome == MQ_OUTCOME_PUSH ?
	    options_queue(o->opt, m->to, strlen(m->to)) :
	    -1;

	if (to != -1)
		note_ready(o, to, m);
	if (m->outcome == MQ_OUTCOME_FRONT || m->outcome == MQ_OUTCOME_AGAIN ||
	    rules_of(o->opt, m->queue)->slots_shared > 0 ||
	    mq_envelope_get(&m->envelope, MQ_HEADER_GROUP) != NULL)
		note_ready(o, m->queue, m);
}

bool
outbox_makes_ready(struct outbox *o, int *queue, double *since)
{
	struct outbox_queue *q = STAILQ_FIRST(&o->ready);

	if (q == NULL)
		return false;
	STAILQ_REMOVE_HEAD(&o->ready, ready);
	*queue = (int)(q - o->queues);
	*since = q->settled_since;
	q->settled_since = 0;
	return true;
}

/* --- the next of a group -------------------------------------------------------- */

static bool
is_of_last_group(const struct outbox *o, const struct message *m)
{
	const char *group = mq_envelope_get(&m->envelope, MQ_HEADER_GROUP);
	const char *last = o->queues[m->queue].group;

	return group != NULL && last != NULL && strcmp(group, last) == 0;
}

int
outbox_follows(const struct outbox *o)
{
	const struct message *m = TAILQ_FIRST(&o->acks);

	return o->in_line[LINE_ACKS] == 1 && is_of_last_group(o, m) ? m->queue :
								      -1;
}

bool
outbox_brings(const struct outbox *o)
{
	return o->brings;
}

bool
next_allowed(struct outbox *o, const struct message *m)
{
	struct outbox_queue *q = &o->queues[m->queue];
	const char *group = mq_envelope_get(&m->envelope, MQ_HEADER_GROUP);
	bool may = o->may_bring && !result_is_wanted(m);

	o->may_bring = false;
	if (group == NULL || m->outcome != MQ_OUTCOME_ACK)
		return false;
	if (is_of_last_group(o, m)) {
		o->brings |= may;
		return may;
	}
	free(q->group);
	q->group = mq_xstrdup(group);
	return false;
}

/* Without a next message, the queue may have others. */
void
next_answered(const struct batch *b, const struct mq_answer *answer)
{
	struct outbox *o = b->outbox;
	int queue = b->m[0]->queue;
	struct mq_element *element;

	o->brings = false;
	if (answer == NULL || answer->claimed == NULL) {
		note_ready(o, queue, b->m[0]);
		return;
	}
	element = answer->claimed->elements;
	(void)hand_add(o->hand, queue, element->data, element->len);
	element->data = NULL;
	tell(o, FACT_BROUGHT, .queue = queue);
}
