/* Message ids, in the format of RSMQ: 10 base-36 digits (0-9a-z, lower case) of the
 * unix time in microseconds and 22 random characters of [A-Za-z0-9].  Ids sort by the
 * time of publishing. */
#ifndef MQ_ID_H
#define MQ_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQ_ID_LEN 32

/* A source of ids; starts zeroed.  It keeps a pool of random bytes; a
 * process that forks must not go on with the same one on both sides. */
struct mq_idgen {
	unsigned char pool[1024];
	size_t left; /* unused bytes at the end of pool */
};

/* Writes MQ_ID_LEN characters and a NUL for the time us (unix, microseconds; from the
 * year 2085 on it starts again, as ten digits hold no more). */
void mq_id_make(struct mq_idgen *, uint64_t us, char out[MQ_ID_LEN + 1]);

/* n random characters of [A-Za-z0-9] and a NUL, from the same source. */
void mq_id_random(struct mq_idgen *, char *out, size_t n);

/* Whether the n bytes at p have the form of an id: [A-Za-z0-9:]{32}. */
bool mq_id_valid(const char *p, size_t n);

/* The longest id of another form that we accept, and whether the n bytes at p are
 * one: [A-Za-z0-9:_-], not with - in front.  Such an id can be a word, the name of a
 * file and part of a URL. */
#define MQ_ID_MAX 128
bool mq_id_safe(const char *p, size_t n);

/* The unix time in microseconds that a valid id carries; 0 if its first ten characters
 * are none that mq_id_make() writes. */
uint64_t mq_id_time(const char *id);

#endif
