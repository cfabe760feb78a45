/*
 * The failed attempts of a message: a header Mq-History with one value for each, the
 * oldest first.  A value is a JSON object,
 *
 *	{"at_ms": 1795207725000, "attempt": 1, "host": "web1",
 *	 "status": 1, "text": "no such user", "stderr": "the last lines"}
 *
 * with "signal": "SEGV" in place of status for a run that was killed, and
 * neither for one whose consumer died.  Only the last MQ_HISTORY_MAX are kept,
 * and the first MQ_HISTORY_TEXT bytes of text, the last MQ_HISTORY_STDERR of stderr.
 * As a header, the history goes wherever the message goes.
 */
#ifndef MQ_HISTORY_H
#define MQ_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"

#define MQ_HEADER_HISTORY "Mq-History"
#define MQ_HISTORY_MAX	  15
#define MQ_HISTORY_TEXT	  256
#define MQ_HISTORY_STDERR 512

struct mq_failure {
	int64_t at_ms; /* unix ms, by the clock of its host; 0: not known */
	long attempt;  /* from 1; 0: not known */
	int status;    /* of its exit; -1: none */
	const char *signal; /* its name without SIG, or number; NULL: none */
	const char *host;   /* NULL: not known */
	const char *text;   /* the reason; NULL: none */
	const char *errors; /* the end of its stderr; NULL: none */
};

/* Adds a failure.  Strings are cut to their limits, errors from the front, and
 * bytes that are not UTF-8 become '?'. */
void mq_history_add(struct mq_envelope *, const struct mq_failure *);

/*
 * Records on a message that its consumer died; host: where, NULL: unknown.  last: the
 * message may not run again.
 */
void mq_history_crash(
    struct mq_envelope *, long attempt, bool last, const char *host);

/*
 * The failures as a JSON list of such objects, oldest first, members in the
 * form above and of the right types or left out; a new reference, empty when
 * there are none.
 */
json_t *mq_history_list(const struct mq_envelope *);

/* The last one of them; a new reference, NULL when there is none. */
json_t *mq_history_last(const struct mq_envelope *);

/* "at_ms" or "attempt" of the last one; 0: there is none. */
json_int_t mq_history_last_number(const struct mq_envelope *, const char *name);

#endif
