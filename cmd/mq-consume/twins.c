/*
 * Twins: messages that may have the same bytes.  The server cannot tell equal
 * elements of a list apart, and removes the oldest of them, whichever of them
 * has ended.
 */
#include <string.h>

#include "consume.h"

/* This much of an element's beginning and end tells it from others. */
#define SAMPLE ((size_t)256)

static uint64_t
mix(uint64_t hash, const char *p, size_t n)
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

static struct twins *
bucket(const struct message *m)
{
	return &m->c->twins[m->hash % TWIN_BUCKETS];
}

void
twins_add(struct message *m)
{
	size_t head = m->len < SAMPLE ? m->len : SAMPLE;
	size_t tail = m->len - head < SAMPLE ? m->len - head : SAMPLE;
	struct message *other;

	m->hash = mix((uint64_t)m->queue + m->len, m->element, head);
	m->hash = mix(m->hash, m->element + m->len - tail, tail);
	LIST_FOREACH(other, bucket(m), twins)
		if (other->hash == m->hash) {
			/* The others have one another. */
			other->twin = m->twin = true;
			break;
		}
	LIST_INSERT_HEAD(bucket(m), m, twins);
}

void
twins_remove(struct message *m)
{
	LIST_REMOVE(m, twins);
}

static bool
equal(const struct message *a, const struct message *b)
{
	return a->hash == b->hash && a->queue == b->queue && a->len == b->len &&
	    memcmp(a->element, b->element, a->len) == 0;
}

struct message *
twins_settled(const struct message *m)
{
	struct message *other, *first = NULL;

	if (!m->twin)
		return NULL;
	LIST_FOREACH(other, bucket(m), twins)
		if (other->seen && !other->lost && other->sent > 0 &&
		    !other->in_flight &&
		    (m->sent == 0 || other->sent < m->sent) &&
		    (first == NULL || other->sent < first->sent) &&
		    equal(m, other))
			first = other;
	return first;
}
