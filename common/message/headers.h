/*
 * Our headers in the envelope.  All are plain rmq headers, so that they survive
 * whatever a Go peer does with a message.
 */
#ifndef MQ_MESSAGE_H
#define MQ_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "envelope.h"

#define MQ_HEADER_ID	  "Mq-Id"      /* see id.h; given when published */
#define MQ_HEADER_NAME	  "Mq-Name"    /* of one whose id cannot be shown */
#define MQ_HEADER_ATTEMPT "Mq-Attempt" /* runs so far; none: 0 */
#define MQ_HEADER_ERROR	  "Mq-Error"   /* why the last run did not end well */
#define MQ_HEADER_NOTICE  "Mq-Notice"  /* of a notice: the queue it is about */
#define MQ_HEADER_DUE	  "Mq-Due"     /* unix ms when it was delayed until */
#define MQ_HEADER_PARAM	  "Mq-Param"   /* 1 to 4 follow: RQ's parameters */
/* Of a duplicate: RQ's full id of the first of its ancestors. */
#define MQ_HEADER_ORIGIN "Mq-Orig-Id"
#define MQ_HEADER_COPY	 "Mq-Copy-Of" /* of a copy: the id that it came with */
#define MQ_HEADER_DEST	 "Mq-Dest"    /* of one for the queue relay: its URL */
#define MQ_HEADER_ATTACH "Mq-Attach"  /* its files; see queue/attach.h */

/* The options of a message; the scripts of the queues obey those with a star. */
#define MQ_HEADER_PRIORITY "Mq-Priority" /* * -100 to 100; none: 0 */
#define MQ_HEADER_GROUP	   "Mq-Group"	 /* * its group */
#define MQ_HEADER_KEY	   "Mq-Key"	 /* * its key */
/* * How long the key is kept: queued, done, or in ms. */
#define MQ_HEADER_UNIQUE     "Mq-Unique"
#define MQ_HEADER_FROM_TICK  "Mq-From-Tick"  /* * the first and the last tick */
#define MQ_HEADER_UNTIL_TICK "Mq-Until-Tick" /* * at which it may run */
#define MQ_HEADER_EXPIRES    "Mq-Expires"    /* unix ms: not to be run after */
/* * The id under which its result is kept: its own. */
#define MQ_HEADER_REPLY_TO "Mq-Reply-To"

/* Whether a message may not run any more at unix time now_ms and this tick; the
 * reason goes into why. */
bool mq_message_over(const struct mq_envelope *, int64_t now_ms, int64_t tick,
    char *why, size_t size);

/* Whether a message may hold a key or a group, which is released at its end. */
bool mq_message_holds(const struct mq_envelope *);

/* The longest reason that is kept; the rest of it is cut. */
#define MQ_ERROR_MAX 1024

/* The message's id when it has a valid one, else NULL. */
const char *mq_message_id(const struct mq_envelope *);

/* The name of a message where other programs make up the ids: its id, if
 * mq_id_safe(), or MQ_HEADER_NAME; else NULL. */
const char *mq_message_name(const struct mq_envelope *);

/*
 * Takes apart, without parsing, an element whose header holds a valid id and
 * nothing else, or, id is empty then, that has none.  The envelope gets no
 * headers in either case.  False: it may be any other.
 */
bool mq_message_plain(const char *element, size_t len, char id[MQ_ID_LEN + 1],
    struct mq_envelope *);

/*
 * Records a run: the id (so that a raw message keeps the one it ran under), how many
 * runs there have been, and why the last one failed (NULL: that header stays).
 */
void mq_message_record(
    struct mq_envelope *, const char *id, long attempts, const char *error);

/* Whether the header that says how long the key is kept is valid, or missing. */
bool mq_message_unique_good(const struct mq_envelope *);

/* Whether a message asks for more than a place in line. */
bool mq_message_special(const struct mq_envelope *);

/* How a duplicate differs from its message. */
struct mq_duplicate {
	const char *id;
	int64_t due_ms; /* unix ms; 0: at once */
	/* For MQ_HEADER_ORIGIN, unless it has one, and for MQ_HEADER_DEST; NULL:
	 * none. */
	const char *origin, *web;
	/* The message has a header, even if its envelope has none: see
	 * mq_message_plain(). */
	bool stamped;
};

/*
 * Makes a duplicate with the same payload; the caller frees.  The duplicate has no
 * record of runs, no key, which the message itself may hold, and no reply address.
 * If the message has no headers, the duplicate gets only those that it needs.
 */
void mq_message_duplicate(const struct mq_envelope *,
    const struct mq_duplicate *, struct mq_envelope *);

/* Since when the message has been claimable, unix ms: the time of publishing, or the
 * end of the delay; 0: unknown. */
int64_t mq_message_since_ms(const struct mq_envelope *);

/* --- history ------------------------------------------------------------ */

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
 * The last failures, at most so many, as a JSON list of such objects, oldest first,
 * members in the form above and of the right types or left out; a new reference.
 */
json_t *mq_history_list(const struct mq_envelope *, size_t most);

/* "at_ms" or "attempt" of the last one; 0: there is none. */
json_int_t mq_history_last_number(const struct mq_envelope *, const char *name);

#endif
