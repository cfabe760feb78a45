/*
 * The result of a message, for a publisher that waits and for later questions: one
 * JSON object on one line,
 *
 *	{"id": "...", "state": "done", "text": "what the script said last",
 *	 "status": 0, "attempts": 1, "host": "web1",
 *	 "finished_ms": 1795207725000}
 *
 * with "signal": "SEGV" in place of status for a run that was killed, neither
 * where nothing ran, "queue": QUEUE in a notice, and "to": QUEUE where the message goes on in another queue.
 * Unknown members are left out.  The scripts of the queues write results, too.
 */
#ifndef MQ_RESULT_H
#define MQ_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "envelope.h"

/* How long the server keeps the result of a message that asks for one, in ms. */
#define MQ_RESULT_KEEP_MS 3600000

enum mq_end {
	MQ_END_DONE,
	MQ_END_REJECTED,
	MQ_END_PUSHED, /* the message goes on in another queue */
	MQ_END_PURGED,
	MQ_END_EXPIRED
};

/* The word for an end, as the text and outputs have it. */
const char *mq_end_name(enum mq_end);

struct mq_ending {
	char id[MQ_ID_LEN + 1]; /* empty: it has none */
	const char *queue;	/* written only: where it was; NULL: not said */
	enum mq_end state;
	const char *text;    /* NULL: none */
	int status;	     /* of the last run's exit; -1: none */
	const char *signal;  /* its name without SIG, or number; NULL: none */
	long attempts;	     /* runs it has had */
	const char *host;    /* where the last one was; NULL: not known */
	const char *to;	     /* PUSHED: the queue; else NULL */
	int64_t finished_ms; /* unix ms; 0: not known */
	json_t *json;	     /* read: what the strings are part of */
};

/* Appends the text.  Bytes of strings that are not UTF-8 become '?'. */
void mq_ending_write(const struct mq_ending *, struct mq_buf *out);

/* Appends the element of a notice, for a queue that hears of the ends in another one:
 * the text of a result is its payload. */
void mq_notice_write(const char id[MQ_ID_LEN + 1], const char *queue,
    const struct mq_buf *text, struct mq_buf *out);

/* Takes the text apart; mq_ending_free() frees.  Returns 0, or -1 if the text is no
 * result; then nothing needs freeing. */
int mq_ending_read(const char *, size_t n, struct mq_ending *);
void mq_ending_free(struct mq_ending *);

/* Whether the message asks for its result. */
bool mq_result_wanted(const struct mq_envelope *);

#endif
