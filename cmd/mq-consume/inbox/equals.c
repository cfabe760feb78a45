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

void
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

void
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
