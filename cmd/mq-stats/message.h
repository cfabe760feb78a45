/* One message, and one that runs, as outputs show them. */
#ifndef MQ_STATS_MESSAGE_H
#define MQ_STATS_MESSAGE_H

#include <stdint.h>

#include <jansson.h>

#include "message/envelope.h"
#include "queue/queue.h"
#include "queue/running.h"

/* The strings are in the envelope. */
struct message {
	struct mq_envelope envelope; /* with a bad header: all is payload */
	const char *id;		     /* NULL: none */
	const char *reason;	     /* why its last run failed; NULL: none */
	long attempts;		     /* runs that ended */
	int64_t
	    since_ms; /* when it became claimable; of a delayed one, when it was
			   * published; of a rejected one, when it last failed;
			   * unix ms, 0: not known */
	char bad[80]; /* the reason of a bad header; else empty */
};

/* Takes a message apart, whose item must stay until message_free(). */
void message_unpack(struct message *, const struct mq_item *, enum mq_state);
void message_free(struct message *);

/* The facts of a message: a new object with state, attempts and, where they are known,
 * since_ms, what it waits for, connection, reason, what it asks for, and
 * history. */
json_t *message_facts(
    const struct message *, const struct mq_item *, enum mq_state);

/* How long it keeps its key. */
const char *message_unique(const struct mq_envelope *);

/* The headers that are not ours: a new object, or NULL for a raw message. */
json_t *message_headers(const struct message *);

/* Adds the size of the payload, and the payload itself if it is wanted. */
void message_set_payload(json_t *, const struct mq_envelope *, bool payload);

/* How long a script has run, by this clock. */
long long run_seconds(const struct mq_run *, int64_t now_ms);
/* All that is known of it: a new object. */
json_t *run_json(const struct mq_run *, int64_t now_ms);

#endif
