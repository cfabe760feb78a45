/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "hand.h"

#include "queue/consumer.h"

#define EQUALS_BUCKETS 1024

LIST_HEAD(equals_bucket, message);

struct hand_queue {
	struct messages all;	   /* by `own`, in the order of their claims */
	struct messages unstarted; /* by `line`, in the same order */
	int count[MESSAGE_STATES];
	unsigned bars;	    /* enum bar */
	long long received; /* messages claimed under the connection's name */
	unsigned long disordered; /* up to this number, the server's order may
				   * differ */
};

struct hand {
	const struct options *opt;
	struct hand_queue *queues;
	int count[MESSAGE_STATES]; /* messages of all queues */
	unsigned bars;
	struct messages all;	   /* by `link`, in the order of their claims */
	struct messages forgotten; /* by `link` */
	/* Messages by a hash of their bytes.  The server cannot tell equal elements of a
	 * list apart: it removes the oldest, whichever message has ended. */
	struct equals_bucket equals[EQUALS_BUCKETS];
	size_t unstarted_bytes;
	long started;
	unsigned long claimed, moves;
};

/* --- equals -------------------------------------------------------------- */

/* Bytes of an element's beginning, and of its end, that are hashed. */
#define SAMPLE ((size_t)256)

static uint64_t
mix_bytes(uint64_t hash, const char *p, size_t n)
{
	uint64_t word;

	for (; n > 0; p += sizeof(word), n -= sizeof(word)) {
		word = 0;
		if (n < sizeof(word)) {
			memcpy(&word, p, n);
			n = sizeof(word);
		} else {
			memcpy(&word, p, sizeof(word));
		}
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static uint64_t
hash_of(int queue, const char *element, size_t len)
{
	size_t head = MIN(len, SAMPLE), tail = MIN(len - head, SAMPLE);
	uint64_t hash = mix_bytes((uint64_t)queue + len, element, head);

	return mix_bytes(hash, element + len - tail, tail);
}

static bool
is_equal(const struct message *m, uint64_t hash, int queue, const char *element,
    size_t len)
{
	return m->hash == hash && m->queue == queue && m->len == len &&
	    memcmp(m->element, element, len) == 0;
}

/* Lists a new message with those that may be equal to it.  With ids, the only message with the same
 * bytes is one that went back and was claimed again, before the hand has forgotten it. */
static void
list_equal(struct hand *h, struct message *m)
{
	bool ids = (h->opt->layout->has & MQ_HAS_IDS) != 0;
	struct equals_bucket *bucket;
	struct message *other;

	m->hash = hash_of(m->queue, m->element, m->len);
	bucket = &h->equals[m->hash % EQUALS_BUCKETS];
	LIST_FOREACH(other, bucket, equals)
		if (!ids &&
		    is_equal(other, m->hash, m->queue, m->element, m->len)) {
			/* Older equal messages are marked already. */
			other->equal = m->equal = true;
			break;
		}
	LIST_INSERT_HEAD(bucket, m, equals);
}

/* Finds the message for an element that the server holds; NULL: none.  Of equal messages, at
 * most one is being settled: that one is chosen last, since the server may have removed it. */
static struct message *
find_unseen(const struct hand *h, int queue, const char *element, size_t len)
{
	uint64_t hash = hash_of(queue, element, len);
	struct message *m, *found = NULL;

	LIST_FOREACH(m, &h->equals[hash % EQUALS_BUCKETS], equals)
		if (!m->seen && !m->lost &&
		    (found == NULL || found->sent || !m->sent) &&
		    is_equal(m, hash, queue, element, len))
			found = m;
	return found;
}

/* --- states -------------------------------------------------------------- */

static void
count_state(struct hand *h, const struct message *m, int n)
{
	h->count[m->state] += n;
	h->queues[m->queue].count[m->state] += n;
	if (m->state == MESSAGE_UNSTARTED)
		h->unstarted_bytes += n > 0 ? m->len : -m->len;
}

/* A message that was running may be older than the unstarted ones. */
static void
list_unstarted(struct hand *h, struct message *m)
{
	struct messages *unstarted = &h->queues[m->queue].unstarted;
	struct message *other = TAILQ_LAST(unstarted, messages);

	if (other == NULL || other->number < m->number) {
		TAILQ_INSERT_TAIL(unstarted, m, line);
		return;
	}
	TAILQ_FOREACH(other, unstarted, line)
		if (other->number > m->number)
			break;
	TAILQ_INSERT_BEFORE(other, m, line);
}

static void
set_state(struct hand *h, struct message *m, enum message_state state)
{
	count_state(h, m, -1);
	if (m->state == MESSAGE_UNSTARTED)
		TAILQ_REMOVE(&h->queues[m->queue].unstarted, m, line);
	m->state = state;
	if (state == MESSAGE_FORGOTTEN)
		return;
	count_state(h, m, 1);
	if (state == MESSAGE_UNSTARTED)
		list_unstarted(h, m);
}

struct message *
hand_add(struct hand *h, int queue, char *element, size_t len)
{
	struct message *m = mq_xcalloc(1, sizeof(*m));
	struct hand_queue *q = &h->queues[queue];

	m->number = ++h->claimed;
	m->queue = queue;
	m->queue_name = h->opt->queues[queue];
	m->element = element;
	m->len = len;
	m->since = mq_clock_steady_s();
	TAILQ_INSERT_TAIL(&h->all, m, link);
	TAILQ_INSERT_TAIL(&q->all, m, own);
	list_equal(h, m);
	m->state = MESSAGE_UNSTARTED;
	count_state(h, m, 1);
	list_unstarted(h, m);
	q->received++;
	h->moves++;
	return m;
}

void
hand_start(struct hand *h, struct message *m)
{
	set_state(h, m, MESSAGE_RUNNING);
	h->started++;
}

void
hand_put_back(struct hand *h, struct message *m)
{
	h->started--;
	if (m->lost || m->gone) {
		hand_forget(h, m);
		return;
	}
	message_let_go(m, false);
	mq_envelope_free(&m->envelope);
	set_state(h, m, MESSAGE_UNSTARTED);
}

void
hand_end(struct hand *h, struct message *m)
{
	set_state(h, m, MESSAGE_ENDED);
}

void
hand_settle(struct hand *h, struct message *m)
{
	set_state(h, m, MESSAGE_SETTLING);
}

void
hand_settled(struct hand *h, struct message *m)
{
	set_state(h, m, MESSAGE_SETTLED);
	h->moves++;
}

void
hand_lose(struct hand *h, struct message *m, bool gone)
{
	m->lost |= !gone;
	m->gone |= gone;
	h->moves++;
}

void
hand_forget(struct hand *h, struct message *m)
{
	set_state(h, m, MESSAGE_FORGOTTEN);
	TAILQ_REMOVE(&h->all, m, link);
	TAILQ_REMOVE(&h->queues[m->queue].all, m, own);
	LIST_REMOVE(m, equals);
	TAILQ_INSERT_TAIL(&h->forgotten, m, link);
	message_let_go(m, false);
	h->moves++;
}

static void
free_message(struct message *m)
{
	mq_envelope_free(&m->envelope);
	mq_buf_free(&m->header);
	mq_buf_free(&m->result);
	free(m->news);
	free(m->element);
	free(m->to);
	free(m->notified);
	free(m);
}

void
hand_sweep(struct hand *h)
{
	struct message *m;

	while ((m = TAILQ_FIRST(&h->forgotten)) != NULL) {
		TAILQ_REMOVE(&h->forgotten, m, link);
		free_message(m);
	}
}

/* --- starts ------------------------------------------------------------------ */

void
hand_bar(struct hand *h, int queue, enum bar bar, bool on)
{
	unsigned *bars = queue == -1 ? &h->bars : &h->queues[queue].bars;

	*bars = on ? *bars | bar : *bars & ~(unsigned)bar;
}

bool
hand_barred(const struct hand *h, int queue, enum bar bar)
{
	unsigned own = queue == -1 ? 0 : h->queues[queue].bars;

	return ((h->bars | own) & bar) != 0;
}

struct message *
hand_next(const struct hand *h, int queue)
{
	const struct hand_queue *q;
	int i = queue == -1 ? 0 : queue;
	int end = queue == -1 ? h->opt->queue_count : queue + 1;

	if (h->bars != 0 || h->count[MESSAGE_UNSTARTED] == 0)
		return NULL;
	/* Callers ask for each of many queues: for a named queue this is one step. */
	for (; i < end; i++) {
		q = &h->queues[i];
		if (q->bars == 0 && !TAILQ_EMPTY(&q->unstarted))
			return TAILQ_FIRST(&q->unstarted);
	}
	return NULL;
}

struct message *
hand_newest(const struct hand *h, int queue)
{
	int i;

	if (queue != -1)
		return TAILQ_LAST(&h->queues[queue].unstarted, messages);
	for (i = 0; i < h->opt->queue_count; i++)
		if (!TAILQ_EMPTY(&h->queues[i].unstarted))
			return TAILQ_LAST(&h->queues[i].unstarted, messages);
	return NULL;
}

/* --- questions --------------------------------------------------------------- */

int
hand_count(const struct hand *h, int queue, enum message_state state)
{
	return queue == -1 ? h->count[state] : h->queues[queue].count[state];
}

int
hand_size(const struct hand *h, int queue)
{
	int state, n = 0;

	for (state = 0; state < MESSAGE_STATES; state++)
		n += hand_count(h, queue, state);
	return n;
}

size_t
hand_unstarted_bytes(const struct hand *h)
{
	return h->unstarted_bytes;
}

long
hand_started(const struct hand *h)
{
	return h->started;
}

unsigned long
hand_moves(const struct hand *h)
{
	return h->moves;
}

struct message *
hand_after(const struct hand *h, int queue, const struct message *m)
{
	if (queue == -1)
		return m == NULL ? TAILQ_FIRST(&h->all) : TAILQ_NEXT(m, link);
	return m == NULL ? TAILQ_FIRST(&h->queues[queue].all) :
			   TAILQ_NEXT(m, own);
}

struct message *
hand_find(const struct hand *h, unsigned long number)
{
	struct message *m;

	TAILQ_FOREACH(m, &h->all, link)
		if (m->number == number)
			break;
	return m;
}

bool
hand_in_order(const struct hand *h, int queue)
{
	const struct hand_queue *q = &h->queues[queue];
	const struct message *m = TAILQ_FIRST(&q->all);

	return m == NULL || m->number > q->disordered;
}

void
hand_disorder(struct hand *h, int queue)
{
	h->queues[queue].disordered = h->claimed;
}

/* --- messages at the server ---------------------------------------------------- */

int
hand_owned(const struct hand *h, int queue)
{
	const struct message *m;
	int n = 0;

	TAILQ_FOREACH(m, &h->queues[queue].all, own)
		n += !m->lost && !m->gone && m->state != MESSAGE_SETTLED;
	return n;
}

void
hand_renamed(struct hand *h)
{
	int i;

	for (i = 0; i < h->opt->queue_count; i++)
		h->queues[i].received = 0;
}

void
hand_compare(struct hand *h, int queue, struct mq_held *held)
{
	struct hand_queue *q = &h->queues[queue];
	/* Messages of claims whose answers were lost are the newest in the reply. */
	long long newer = held->received - q->received;
	struct mq_element *e;
	struct message *m;
	int i;

	TAILQ_FOREACH(m, &q->all, own)
		m->seen = false;
	/* The reply has the newest first; messages are added oldest first. */
	for (i = held->n; i-- > 0;) {
		e = &held->elements[i];
		m = i < newer ? NULL : find_unseen(h, queue, e->data, e->len);
		if (m == NULL) {
			m = hand_add(h, queue, e->data, e->len);
			e->data = NULL;
			if (i >= newer)
				hand_disorder(h, queue);
		}
		m->seen = true;
	}
	q->received = held->received;
	/* If the server still holds a message, an earlier settlement had no effect.  One in
	 * flight is still to be answered. */
	TAILQ_FOREACH(m, &q->all, own)
		if (m->seen && !m->in_flight)
			m->sent = false;
}

struct message *
hand_missing(const struct hand *h, int queue, const struct message *after)
{
	struct message *m = hand_after(h, queue, after);

	while (m != NULL &&
	    (m->seen || m->lost || m->gone || m->in_flight ||
		m->state == MESSAGE_SETTLED))
		m = TAILQ_NEXT(m, own);
	return m;
}

/* --- beginning and end ------------------------------------------------------ */

struct hand *
hand_new(const struct options *opt)
{
	struct hand *h = mq_xcalloc(1, sizeof(*h));
	int i;

	h->opt = opt;
	h->queues = mq_xcalloc((size_t)opt->queue_count, sizeof(*h->queues));
	TAILQ_INIT(&h->all);
	TAILQ_INIT(&h->forgotten);
	for (i = 0; i < opt->queue_count; i++) {
		TAILQ_INIT(&h->queues[i].all);
		TAILQ_INIT(&h->queues[i].unstarted);
	}
	return h;
}

void
hand_free(struct hand *h)
{
	while (!TAILQ_EMPTY(&h->all))
		hand_forget(h, TAILQ_FIRST(&h->all));
	hand_sweep(h);
	free(h->queues);
	free(h);
}
