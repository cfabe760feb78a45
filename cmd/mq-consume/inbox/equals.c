#include "equals.h"

#include <string.h>

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

void
equals_add(struct equals *e, struct message *m)
{
	struct equals_bucket *bucket;
	size_t head = m->len < SAMPLE ? m->len : SAMPLE;
	size_t tail = m->len - head < SAMPLE ? m->len - head : SAMPLE;
	struct message *other;

	m->hash = mix_bytes((uint64_t)m->queue + m->len, m->element, head);
	m->hash = mix_bytes(m->hash, m->element + m->len - tail, tail);
	bucket = &e->buckets[m->hash % EQUALS_BUCKETS];
	LIST_FOREACH(other, bucket, equals)
		if (other->hash == m->hash) {
			/* Older equal messages are marked already. */
			other->equal = m->equal = true;
			break;
		}
	LIST_INSERT_HEAD(bucket, m, equals);
}

void
equals_remove(struct message *m)
{
	LIST_REMOVE(m, equals);
}

static bool
is_equal(const struct message *a, const struct message *b)
{
	return a->hash == b->hash && a->queue == b->queue && a->len == b->len &&
	    memcmp(a->element, b->element, a->len) == 0;
}

struct message *
equals_settled(const struct equals *e, const struct message *m)
{
	struct message *other, *first = NULL;

	if (!m->equal)
		return NULL;
	LIST_FOREACH(other, &e->buckets[m->hash % EQUALS_BUCKETS], equals)
		if (other->seen && !other->lost && other->sent > 0 &&
		    !other->in_flight &&
		    (m->sent == 0 || other->sent < m->sent) &&
		    (first == NULL || other->sent < first->sent) &&
		    is_equal(m, other))
			first = other;
	return first;
}
