/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "fact.h"

#include "process/process.h"

#include "queue/consumer.h"

struct facts {
	struct fact *list; /* the oldest at `first` */
	size_t first, end, cap;
	bool woken; /* FACT_WAKE was told */
};

struct facts *
facts_new(void)
{
	return mq_xcalloc(1, sizeof(struct facts));
}

void
facts_free(struct facts *q)
{
	struct fact f;

	while (fact_take(q, &f))
		fact_free(&f);
	free(q->list);
	free(q);
}

void
fact_tell(struct facts *q, const struct fact *f)
{
	if (f->kind == FACT_WAKE) {
		q->woken = true;
		return;
	}
	if (q->end == q->cap) {
		q->cap = q->cap > 0 ? 2 * q->cap : 64;
		q->list = mq_xreallocarray(q->list, q->cap, sizeof(*q->list));
	}
	q->list[q->end++] = *f;
}

bool
fact_take(struct facts *q, struct fact *f)
{
	if (q->first < q->end) {
		*f = q->list[q->first++];
		return true;
	}
	q->first = q->end = 0;
	*f = (struct fact){.kind = FACT_WAKE};
	if (!q->woken)
		return false;
	q->woken = false;
	return true;
}

bool
facts_empty(const struct facts *q)
{
	return q->first == q->end && !q->woken;
}

void
fact_free(struct fact *f)
{
	int i;

	for (i = 0; f->holdings != NULL && i < f->holdings->n; i++)
		free(f->holdings->elements[i].data);
	if (f->holdings != NULL)
		free(f->holdings->elements);
	free(f->holdings);
	if (f->ending != NULL) {
		free(f->ending->errors);
		run_result_free(f->ending->result);
	}
	free(f->ending);
	free(f->text);
}

struct mq_held *
fact_holdings(struct mq_held *answer)
{
	struct mq_held *held = mq_xcalloc(1, sizeof(*held));
	size_t n = (size_t)answer->n;
	int i;

	*held = *answer;
	held->elements = mq_xcalloc(n > 0 ? n : 1, sizeof(*held->elements));
	for (i = 0; i < held->n; i++) {
		held->elements[i] = answer->elements[i];
		answer->elements[i].data = NULL;
	}
	return held;
}
