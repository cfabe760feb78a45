/* The messages of this consumer, which of them are held unstarted, and which the server
 * holds for us. */
#include "inbox.h"

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

/* While reconciling: an unseen message with this element, rather one whose settlement
 * was not sent, and of these the oldest; NULL: none.  At most one settlement of equal
 * messages is under way, so those that are left were settled by it. */
static struct message *
find_unseen(const struct inbox *in, int queue, const char *element, size_t len)
{
	uint64_t hash = hash_of(queue, element, len);
	struct message *m, *found = NULL;

	LIST_FOREACH(m, &in->equals[hash % EQUALS_BUCKETS], equals)
		if (!m->seen && !m->lost &&
		    (found == NULL || found->sent || !m->sent) &&
		    is_equal(m, hash, queue, element, len))
			found = m;
	return found;
}

/* --- held ---------------------------------------------------------------- */

static void
hold_message(struct inbox *in, struct message *m)
{
	struct messages *waiting = &in->queues[m->queue].waiting;
	struct message *last = TAILQ_LAST(waiting, messages), *other;

	m->state = MESSAGE_HELD;
	in->held++;
	in->held_bytes += m->len;
	in->queues[m->queue].held++;
	if (last == NULL || last->number < m->number) {
		TAILQ_INSERT_TAIL(waiting, m, line);
		return;
	}
	/* A returned message may be older than the others. */
	TAILQ_FOREACH(other, waiting, line)
		if (other->number > m->number)
			break;
	TAILQ_INSERT_BEFORE(other, m, line);
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
	struct message *m = mq_xcalloc(1, sizeof(*m)), *other;
	struct equals_bucket *bucket;

	m->number = ++in->claimed;
	m->queue = queue;
	m->queue_name = in->queues[queue].name;
	m->element = element;
	m->len = len;
	m->since = mq_clock_steady_s();
	TAILQ_INSERT_TAIL(&in->all, m, link);
	TAILQ_INSERT_TAIL(&in->queues[queue].all, m, own);
	m->hash = hash_of(queue, element, len);
	bucket = &in->equals[m->hash % EQUALS_BUCKETS];
	LIST_FOREACH(other, bucket, equals)
		if (is_equal(other, m->hash, queue, element, len)) {
			/* Older equal messages are marked already. */
			other->equal = m->equal = true;
			break;
		}
	LIST_INSERT_HEAD(bucket, m, equals);
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
	LIST_REMOVE(m, equals);
	message_let_go(m, false);
	mq_envelope_free(&m->envelope);
	mq_buf_free(&m->header);
	mq_buf_free(&m->result);
	free(m->news);
	free(m->element);
	free(m->to);
	free(m);
}

/* --- starts ----------------------------------------------------------------- */

struct unfitness {
	enum unfit kind;
	char why[256];
};

/* Sets envelope, id, attempts and awaited.  If the header holds only the id, the
 * envelope has no headers.  False: the message may not start.  counts_crash:
 * crashes may have used up its attempts. */
static bool
unpack_message(struct inbox *in, struct message *m, bool counts_crash,
    struct unfitness *unfit)
{
	const struct options *opt = in->opt;
	const struct mq_layout *layout = in->server->layout;
	bool named = opt->command != NULL || opt->framing == MQ_FRAME_JSONL;
	bool takes_files = layout->attachments != NULL &&
	    opt->command != NULL && opt->batch == 0 && !opt->stream;
	/* The boot time clock, like the server's, goes on while the machine sleeps. */
	int64_t now_ms =
	    (int64_t)(mq_clock_steady_s() * 1000) + in->server_ahead_ms;
	const char *bad, *id;

	unfit->why[0] = '\0';
	/* Most messages have only an id: they need no parser. */
	if (mq_message_plain(m->element, m->len, m->id, &m->envelope)) {
		if (m->id[0] == '\0' && named)
			mq_id_make(
			    in->ids, (uint64_t)mq_clock_unix_us(), m->id);
		return true;
	}
	if (mq_envelope_parse(m->element, m->len, &m->envelope, &bad) == -1) {
		m->envelope = (struct mq_envelope){0};
		unfit->kind = UNFIT_HEADER;
		strlcpy(unfit->why, bad, sizeof(unfit->why));
		return false;
	}
	m->attempts = mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0);
	m->awaited = mq_result_wanted(&m->envelope);
	id = layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
					mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	else
		mq_id_make(in->ids, (uint64_t)mq_clock_unix_us(), m->id);
	if (!takes_files &&
	    mq_envelope_get(&m->envelope, MQ_HEADER_ATTACH) != NULL) {
		unfit->kind = UNFIT_RUN;
		strlcpy(unfit->why,
		    "attachments need a COMMAND for each message",
		    sizeof(unfit->why));
		return false;
	}
	unfit->kind = UNFIT_EXPIRED;
	if (mq_message_over(&m->envelope, now_ms, in->queues[m->queue].tick,
		unfit->why, sizeof(unfit->why)))
		return false;
	unfit->kind = counts_crash ? UNFIT_CRASHED : UNFIT_SPENT;
	/* RQ looks at the attempts only when a message is to be tried again. */
	return opt->command == NULL || (opt->rq && !counts_crash) ||
	    m->attempts < rules_of(opt, m->queue)->attempts;
}

static bool
may_start(struct inbox *in, struct message *m)
{
	/* After a crash, the cleaner counts an attempt for all messages that
	 * the consumer had claimed. */
	bool counts_crash =
	    in->server->layout->has & MQ_HAS_CLAIMS && in->opt->command != NULL;
	struct unfitness unfit;
	bool fit = unpack_message(in, m, counts_crash, &unfit);
	bool readable = fit || unfit.kind != UNFIT_HEADER;

	if (readable && m->attempts > 0)
		tell(in, FACT_CAREFUL);
	/* If the message crashes its consumers, the messages claimed with it
	 * must not use up their attempts, too. */
	if (readable && counts_crash &&
	    (m->attempts + 1) * 2 > rules_of(in->opt, m->queue)->attempts)
		tell(in, FACT_CAREFUL, .yes = true);
	if (!fit)
		tell(in, FACT_UNFIT, .message = m, .unfit = unfit.kind,
		    .text = unfit.why);
	return fit;
}

void
inbox_fill(struct inbox *in, int queue, bool full)
{
	in->queues[queue].full = full;
}

struct message *
inbox_oldest_of(const struct inbox *in, int queue)
{
	const struct inbox_queue *q;
	int i = queue == -1 ? 0 : queue;
	int end = queue == -1 ? in->opt->queue_count : queue + 1;

	/* Who asks for each queue in turn must not look at all of them each time. */
	for (; i < end && !in->all_paused; i++) {
		q = &in->queues[i];
		if (!q->paused && q->pausing == 0 && !q->full &&
		    !TAILQ_EMPTY(&q->waiting))
			return TAILQ_FIRST(&q->waiting);
	}
	return NULL;
}

struct message *
inbox_next(struct inbox *in, int queue)
{
	struct message *m;

	while ((m = inbox_oldest_of(in, queue)) != NULL) {
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

/* --- comparing with the server ------------------------------------------------ */

void
inbox_reconcile(struct inbox *in, int queue, struct mq_held *held,
    void (*missing)(void *arg, struct message *), void *arg)
{
	struct messages *ours = &in->queues[queue].all;
	/* Messages of claims whose answers were lost: the newest in the reply. */
	long long newer = held->received - in->queues[queue].received;
	struct mq_element *e;
	struct message *m, *next;
	int i;

	in->queues[queue].received = held->received;
	TAILQ_FOREACH(m, ours, own)
		m->seen = false;
	/* Marks our messages that the server holds, and adds the others, the oldest
	 * first. */
	for (i = held->n; i-- > 0;) {
		e = &held->elements[i];
		m = i < newer ? NULL : find_unseen(in, queue, e->data, e->len);
		if (m == NULL) {
			m = inbox_add(in, queue, e->data, e->len);
			e->data = NULL;
			if (i >= newer)
				inbox_disorder(in, queue);
		}
		m->seen = true;
	}
	/* A settlement in flight has an answer of its own.  That of a message that the
	 * server holds had no effect. */
	TAILQ_FOREACH(m, ours, own)
		if (m->seen && !m->in_flight)
			m->sent = false;
	TAILQ_FOREACH_SAFE(m, ours, own, next)
		if (!m->seen && !m->lost && !m->gone && !m->in_flight)
			missing(arg, m);
}

long long
inbox_count(const struct inbox *in, int queue)
{
	const struct message *m;
	long long n = 0;

	TAILQ_FOREACH(m, &in->queues[queue].all, own)
		n += !m->lost && !m->gone;
	return n;
}
