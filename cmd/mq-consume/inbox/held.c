/*
 * The messages of this consumer, and which of them are held unstarted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "equals.h"
#include "inbox.h"
#include "mq-consume/rules.h"

/* --- equals -------------------------------------------------------------- */

/* Bytes of an element's beginning and end that are hashed. */
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
	size_t head = len < SAMPLE ? len : SAMPLE;
	size_t tail = len - head < SAMPLE ? len - head : SAMPLE;
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

static void
equals_add(struct equals *e, struct message *m)
{
	struct equals_bucket *bucket;
	struct message *other;

	m->hash = hash_of(m->queue, m->element, m->len);
	bucket = &e->buckets[m->hash % EQUALS_BUCKETS];
	LIST_FOREACH(other, bucket, equals)
		if (is_equal(other, m->hash, m->queue, m->element, m->len)) {
			/* Older equal messages are marked already. */
			other->equal = m->equal = true;
			break;
		}
	LIST_INSERT_HEAD(bucket, m, equals);
}

static void
equals_remove(struct message *m)
{
	LIST_REMOVE(m, equals);
}

struct message *
equals_unseen(
    const struct equals *e, int queue, const char *element, size_t len)
{
	uint64_t hash = hash_of(queue, element, len);
	struct message *m, *found = NULL;

	LIST_FOREACH(m, &e->buckets[hash % EQUALS_BUCKETS], equals)
		if (!m->seen && !m->lost &&
		    (found == NULL || found->sent || !m->sent) &&
		    is_equal(m, hash, queue, element, len))
			found = m;
	return found;
}

/* --- held ---------------------------------------------------------------- */

/* Inserts by number: a returned message may be older than the others. */
static void
insert_waiting(struct inbox *in, struct message *m)
{
	struct messages *waiting = &in->queues[m->queue].waiting;
	struct message *last = TAILQ_LAST(waiting, messages), *other;

	if (last == NULL || last->number < m->number) {
		TAILQ_INSERT_TAIL(waiting, m, line);
		return;
	}
	TAILQ_FOREACH(other, waiting, line)
		if (other->number > m->number)
			break;
	TAILQ_INSERT_BEFORE(other, m, line);
}

static void
hold_message(struct inbox *in, struct message *m)
{
	m->state = MESSAGE_HELD;
	in->held++;
	in->held_bytes += m->len;
	in->queues[m->queue].held++;
	insert_waiting(in, m);
}

static void
release_message(struct inbox *in, struct message *m)
{
	in->held--;
	in->held_bytes -= m->len;
	in->queues[m->queue].held--;
	TAILQ_REMOVE(&in->queues[m->queue].waiting, m, line);
	m->state = MESSAGE_RUNNING;
}

struct message *
inbox_add(struct inbox *in, int queue, char *element, size_t len)
{
	struct message *m = mq_xcalloc(1, sizeof(*m));

	m->number = ++in->claimed;
	m->queue = queue;
	m->queue_name = in->queues[queue].name;
	m->element = element;
	m->len = len;
	m->since = mq_clock_steady_s();
	TAILQ_INSERT_TAIL(&in->all, m, link);
	TAILQ_INSERT_TAIL(&in->queues[queue].all, m, own);
	equals_add(&in->equals, m);
	hold_message(in, m);
	return m;
}

void
inbox_return(struct inbox *in, struct message *m)
{
	message_let_go(m, false);
	mq_envelope_free(&m->envelope);
	hold_message(in, m);
}

void
inbox_forget(struct inbox *in, struct message *m)
{
	if (m->state == MESSAGE_HELD)
		release_message(in, m);
	TAILQ_REMOVE(&in->all, m, link);
	TAILQ_REMOVE(&in->queues[m->queue].all, m, own);
	equals_remove(m);
	message_let_go(m, false);
	mq_envelope_free(&m->envelope);
	mq_buf_free(&m->header);
	mq_buf_free(&m->result);
	mq_buf_free(&m->news);
	free(m->element);
	free(m->to);
	free(m);
}

/* --- starts ----------------------------------------------------------------- */

/* The boot time clock, like the server's, goes on while the machine sleeps. */
static int64_t
server_ms(const struct inbox *in)
{
	return (int64_t)(mq_clock_steady_s() * 1000) + in->server_ahead_ms;
}

static void
note_attempts(struct inbox *in, const struct message *m, bool counts_crash)
{
	/* If the message crashes its consumers, the messages claimed with it
	 * must not use up their attempts, too. */
	bool alone = counts_crash &&
	    (m->attempts + 1) * 2 > rules_of(in->opt, m->queue)->attempts;

	if (m->attempts > 0)
		tell(in, FACT_CAREFUL);
	if (alone)
		tell(in, FACT_CAREFUL, .yes = true);
}

static bool
may_start(struct inbox *in, struct message *m)
{
	unsigned has = in->server->layout->has;
	/* After a crash, the cleaner counts an attempt for all messages that
	 * the consumer had claimed. */
	bool runs = in->opt->command != NULL;
	bool counts_crash = has & MQ_HAS_CLAIMS && runs;
	const struct unpack_limits limits = {
	    .named = runs || in->opt->framing == MQ_FRAME_JSONL,
	    .ids = has & MQ_HAS_IDS,
	    .files = in->server->layout->attachments != NULL && runs &&
		in->opt->batch == 0 && !in->opt->stream,
	    .attempts =
		counts_crash ? rules_of(in->opt, m->queue)->attempts : 0,
	    .now_ms = server_ms(in),
	    .tick = in->queues[m->queue].tick};
	struct unfit unfit;
	bool fit = unpack(m, &limits, in->ids, &unfit);

	if (fit || unfit.kind != UNFIT_HEADER)
		note_attempts(in, m, counts_crash);
	if (!fit)
		tell(in, FACT_UNFIT, .message = m, .unfit = &unfit);
	return fit;
}

void
inbox_fill(struct inbox *in, int queue, bool full)
{
	in->queues[queue].full = full;
}

const struct message *
inbox_oldest_of(const struct inbox *in, int queue)
{
	const struct inbox_queue *q = &in->queues[queue];

	return q->paused || q->pausing > 0 || q->full ?
	    NULL :
	    TAILQ_FIRST(&q->waiting);
}

static struct message *
find_oldest(const struct inbox *in, int queue)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++)
		if ((queue == -1 || i == queue) &&
		    inbox_oldest_of(in, i) != NULL)
			return TAILQ_FIRST(&in->queues[i].waiting);
	return NULL;
}

bool
inbox_has_next(const struct inbox *in)
{
	return find_oldest(in, -1) != NULL;
}

struct message *
inbox_next(struct inbox *in, int queue)
{
	struct message *m;

	while ((m = find_oldest(in, queue)) != NULL) {
		release_message(in, m);
		if (may_start(in, m))
			break;
	}
	return m;
}

struct message *
inbox_take_newest(struct inbox *in, int queue)
{
	struct message *m = TAILQ_LAST(&in->queues[queue].waiting, messages);

	if (m != NULL)
		release_message(in, m);
	return m;
}

/* --- questions -------------------------------------------------------------- */

int
inbox_held(const struct inbox *in)
{
	return in->held;
}

size_t
inbox_held_bytes(const struct inbox *in)
{
	return in->held_bytes;
}

int
inbox_held_of(const struct inbox *in, int queue)
{
	return in->queues[queue].held;
}

bool
inbox_empty(const struct inbox *in)
{
	return TAILQ_EMPTY(&in->all);
}

struct message *
inbox_first(const struct inbox *in)
{
	return TAILQ_FIRST(&in->all);
}

struct message *
inbox_last(const struct inbox *in)
{
	return TAILQ_LAST(&in->all, messages);
}

struct message *
inbox_first_of(const struct inbox *in, int queue)
{
	return TAILQ_FIRST(&in->queues[queue].all);
}

bool
inbox_in_order(const struct inbox *in, int queue)
{
	const struct inbox_queue *q = &in->queues[queue];
	const struct message *m = TAILQ_FIRST(&q->all);

	return m == NULL || m->number > q->disordered;
}

void
inbox_disorder(struct inbox *in, int queue)
{
	in->queues[queue].disordered = in->claimed;
}

int64_t
inbox_tick(const struct inbox *in, int queue)
{
	return in->queues[queue].tick;
}
