/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The floor common/message: a message as bytes and as a value, and the verbs and the verdict
 * of its script.  The only system call is the read(2) of frame.c.  Files here may call
 * common/base and jansson; nothing here knows where a message is kept.
 */
#ifndef MQ_MESSAGE_H
#define MQ_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/id.h"

/* --- envelope ----------------------------------------------------------- */

/*
 * The envelope of adjust/rmq: an element of a queue is either the bare payload, or
 *
 *	FF 00 BE BE 4A, a JSON object on one line, \n, payload
 *
 * where the object is Go's http.Header: name -> list of strings, names in
 * canonical form (X-Trace-Id).  {}, null, and values that are null or [] are valid; a null
 * inside a list is "".  Bytes of strings that are not Unicode become U+FFFD.  Elements,
 * payloads, names (see json.h) and values may hold NULs.
 */
struct mq_envelope {
	/* Object or JSON null (owned), or NULL: the element is raw.  An
	 * object's values are lists of strings, or null. */
	json_t *headers;
	const char *payload; /* into the element, or set by the caller */
	size_t payload_len;
};

/* Whether the bytes begin like a header: then every reader takes them for one. */
bool mq_envelope_signed(const char *, size_t n);

/* Parses an element, into which payload points; mq_envelope_free() frees the headers.
 * Returns 0, or -1 when the header is bad, with a constant *why and nothing to free. */
int mq_envelope_parse(
    const char *element, size_t len, struct mq_envelope *, const char **why);
void mq_envelope_free(struct mq_envelope *);

/* First value of a header, or NULL; valid while the header is unchanged.  A NUL ends the
 * value early. */
const char *mq_envelope_get(const struct mq_envelope *, const char *name);

/* Most runs of a message that are counted, and thus the highest limit. */
#define MQ_ATTEMPTS_MAX 1000000

/* The value of a header that is a whole number >= 0, else fallback.  A higher number counts
 * as LONG_MAX, or as MQ_ATTEMPTS_MAX runs: a message that another program made cannot
 * escape the limit of attempts. */
long mq_envelope_get_long(
    const struct mq_envelope *, const char *name, long fallback);

/* Sets a header to a single value.  The name must be UTF-8; invalid bytes of the value
 * become '?'. */
void mq_envelope_set(struct mq_envelope *, const char *name, const char *value);
void mq_envelope_set_number(struct mq_envelope *, const char *name, int64_t);

/* Adds a value behind those of the header. */
void mq_envelope_add(struct mq_envelope *, const char *name, const char *value);

/* Appends the element: the header if there is one, and the payload. */
void mq_envelope_write(const struct mq_envelope *, struct mq_buf *out);

/* Appends signature, JSON and newline only; headers must not be NULL. */
void mq_envelope_write_header(const struct mq_envelope *, struct mq_buf *out);

/*
 * Splits "Name: value" of option -H into the name, a token of RFC 9110, in canonical form,
 * and the value, maybe empty, without blanks at its ends.  The caller frees both.  Returns
 * 0, or -1 with a constant *why and nothing to free.  A value must be UTF-8 without control
 * characters (a tab inside it, DEL and U+0080 to U+009F are such, too).
 */
int mq_header_split(const char *s, char **name, char **value, const char **why);

/* --- headers ------------------------------------------------------------ */

/* Our headers are plain rmq headers, and survive whatever a Go peer does with a message.
 * The table in headers.c says what each needs of the scripts, which take the letters that
 * they look for from there; see CONTRIBUTING.md. */

/* Set by the publisher, which may copy them from another message. */
#define MQ_HEADER_ID	 "Mq-Id"     /* see id.h */
#define MQ_HEADER_PARAM	 "Mq-Param"  /* 1 to 4 follow: RQ's parameters */
#define MQ_HEADER_ATTACH "Mq-Attach" /* files; see queue/queue.h */
#define MQ_HEADER_DUE	 "Mq-Due"    /* end of the delay, unix ms */

/* Set by the publisher; consumers obey them within the limits that they have. */
#define MQ_HEADER_TIMEOUT  "Mq-Timeout"	 /* longest run, ms */
#define MQ_HEADER_ATTEMPTS "Mq-Attempts" /* most runs */

/* Set by the publisher; the scripts obey them, and the consumer those of time. */
#define MQ_HEADER_PRIORITY   "Mq-Priority" /* -100 to 100; none: 0 */
#define MQ_HEADER_GROUP	     "Mq-Group"
#define MQ_HEADER_KEY	     "Mq-Key"
#define MQ_HEADER_UNIQUE     "Mq-Unique" /* life of the key: queued, done, or ms */
#define MQ_HEADER_FROM_TICK  "Mq-From-Tick"  /* first tick for a run */
#define MQ_HEADER_UNTIL_TICK "Mq-Until-Tick" /* last tick for a run */
#define MQ_HEADER_EXPIRES    "Mq-Expires"    /* last time for a run, unix ms */
#define MQ_HEADER_REPLY_TO   "Mq-Reply-To" /* the message's id, for its result */
#define MQ_HEADER_BATCH	     "Mq-Batch"	   /* the batch that counts its end */
#define MQ_HEADER_AFTER	     "Mq-After" /* batches to wait for: NAME[,NAME]... */

/* Set by the publisher of such a message; the consumer obeys it. */
#define MQ_HEADER_AFTER_OK "Mq-After-Ok" /* no member may be rejected */
#define MQ_HEADER_TO	   "Mq-To"	 /* queue where it goes on, unrun */

/* Set by consumers and cleaners. */
#define MQ_HEADER_ATTEMPT "Mq-Attempt" /* runs so far; none: 0 */
#define MQ_HEADER_ERROR	  "Mq-Error"   /* why the last run failed */
#define MQ_HEADER_NAME	  "Mq-Name"    /* if the id cannot be shown */
#define MQ_HEADER_NOTICE  "Mq-Notice"  /* notice: the queue it is about */
#define MQ_HEADER_COPY	  "Mq-Copy-Of" /* copy: the id of the original */
/* Set by the scripts, for each batch: "NAME TOTAL DONE REJECTED EXPIRED PURGED UNKNOWN". */
#define MQ_HEADER_ENDED "Mq-Ended"
#define MQ_HEADER_DEST	"Mq-Dest" /* in the queue relay: a URL */
/* Duplicate: RQ's full id of its first ancestor. */
#define MQ_HEADER_ORIGIN "Mq-Orig-Id"

enum {
	MQ_TRAIT_OBEYED = 1 << 0, /* scripts obey the header: no plain LPUSH */
	MQ_TRAIT_ORDER = 1 << 1,  /* scripts obey it as a place in line only */
	MQ_TRAIT_LOCK = 1 << 2, /* the message may hold a lock until its end */
	MQ_TRAIT_OWN = 1 << 3	/* duplicates do not have the header */
};

/* Whether a message has a header with one of these traits. */
bool mq_message_has(const struct mq_envelope *, unsigned traits);

#define MQ_UNFIT_MAX 320 /* size of a reason why a message gets no run */

/* Whether it is too late for a run, at unix time now_ms and this tick; the reason goes into
 * why. */
bool mq_message_over(const struct mq_envelope *, int64_t now_ms, int64_t tick,
    char *why, size_t size);

/* Whether messages of a batch were rejected, or expired, although MQ_HEADER_AFTER_OK allows
 * none; the reason goes into why. */
bool mq_message_batch_failed(
    const struct mq_envelope *, char *why, size_t size);

/* The queue where a message goes on without a run, once it has waited for batches; NULL: it runs
 * in this one. */
const char *mq_message_to(const struct mq_envelope *, const char *queue);
/* Appends its header there. */
void mq_message_pass(const struct mq_envelope *, struct mq_buf *header);

/* A limit of the consumer, or that of the message's own header, which may only be lower; a
 * time of 0 is no limit. */
long mq_message_attempts(const struct mq_envelope *, long most);
int64_t mq_message_timeout_ms(const struct mq_envelope *, int64_t most);

/* Why a text is no name of a batch, or, if several may be given, no names with commas between
 * them; NULL: it is. */
const char *mq_message_batches_error(const char *, bool several);
/* Whether the names of batches in the headers are valid, or missing. */
bool mq_message_batches_good(const struct mq_envelope *);
/* Whether these two headers are valid, or missing. */
bool mq_message_limits_good(const struct mq_envelope *);

#define MQ_ERROR_MAX 1024 /* bytes of MQ_HEADER_ERROR */

/* The message's id if it is valid, else NULL. */
const char *mq_message_id(const struct mq_envelope *);

/* The name of a message where other programs choose the ids: its id if mq_id_safe(), or
 * MQ_HEADER_NAME; else NULL. */
const char *mq_message_name(const struct mq_envelope *);

/* Splits an element without JSON, if its header holds a valid id and nothing else, or if it
 * has no header and id becomes empty.  The envelope gets no headers.  False: the element
 * must be parsed. */
bool mq_message_plain(const char *element, size_t len, char id[MQ_ID_LEN + 1],
    struct mq_envelope *);

/* Records a run: the id, which a raw message keeps from now on, the number of runs, and why
 * the last one failed (NULL: that header stays). */
void mq_message_record(
    struct mq_envelope *, const char *id, long attempts, const char *error);

/* Whether MQ_HEADER_UNIQUE is valid, or missing. */
bool mq_message_unique_good(const struct mq_envelope *);

/* How a duplicate differs from its message. */
struct mq_duplicate {
	const char *id;
	int64_t due_ms;	    /* unix ms; 0: at once */
	const char *origin; /* MQ_HEADER_ORIGIN unless there is one; or NULL */
	const char *web;    /* MQ_HEADER_DEST; NULL: none */
	bool stamped;	    /* mq_message_plain() has split a header off */
};

/* Makes a duplicate with the same payload; the caller frees.  The duplicate has no record of
 * runs, no key, which the message itself may hold, and no reply address.  If the message has
 * no headers, the duplicate gets only those that it needs. */
void mq_message_duplicate(const struct mq_envelope *,
    const struct mq_duplicate *, struct mq_envelope *);

/* Unix time in ms when the message became claimable: when it was published, or its delay
 * ended; 0: unknown. */
int64_t mq_message_since_ms(const struct mq_envelope *);

/* --- history ------------------------------------------------------------ */

/*
 * The failed attempts of a message: a header Mq-History with one value for each, the
 * oldest first.  A value is a JSON object,
 *
 *	{"at_ms": 1795207725000, "attempt": 1, "host": "web1",
 *	 "status": 1, "text": "no such user", "stderr": "the last lines"}
 *
 * with "signal": "SEGV" in place of status for a run that was killed, and neither if the
 * consumer died.  Only the last MQ_HISTORY_MAX attempts are kept, the first MQ_HISTORY_TEXT
 * bytes of text, and the last MQ_HISTORY_STDERR bytes of stderr.
 */
#define MQ_HEADER_HISTORY "Mq-History"
#define MQ_HISTORY_MAX	  15
#define MQ_HISTORY_TEXT	  256
#define MQ_HISTORY_STDERR 512

struct mq_failure {
	int64_t at_ms; /* unix ms, by the clock of its host; 0: not known */
	long attempt;  /* from 1; 0: not known */
	int status;    /* exit status; -1: none */
	const char *signal; /* name without SIG, or number; NULL: none */
	const char *host;   /* NULL: not known */
	const char *text;   /* the reason; NULL: none */
	const char *errors; /* the end of stderr; NULL: none */
};

/* Adds a failure.  Strings are cut to their limits, errors from the front, and
 * bytes that are not UTF-8 become '?'. */
void mq_history_add(struct mq_envelope *, const struct mq_failure *);

/* Records that the consumer died, on this host (NULL: unknown).  last: the message may not
 * run again. */
void mq_history_crash(
    struct mq_envelope *, long attempt, bool last, const char *host);

/* All failures, oldest first, or only the last one, as a JSON list of objects, a new
 * reference; members of wrong types are left out. */
json_t *mq_history_list(const struct mq_envelope *, bool last);

/* "at_ms" or "attempt" of the last failure; 0: there is none. */
json_int_t mq_history_last_number(const struct mq_envelope *, const char *name);

/* --- result ------------------------------------------------------------- */

/*
 * The result of a message, for a publisher that waits and for later questions: one
 * JSON object on one line,
 *
 *	{"id": "...", "state": "done", "text": "what the script said last",
 *	 "status": 0, "seconds": 0.25, "attempts": 1, "host": "web1",
 *	 "finished_ms": 1795207725000}
 *
 * with "signal": "SEGV" in place of status for a run that was killed, neither if nothing
 * ran, "queue": QUEUE in a notice, and "to": QUEUE if the message goes on in another queue.
 * Unknown members are left out.  The scripts of the queues write results, too.
 */

#define MQ_RESULT_KEEP_MS 3600000 /* life of a result on the server */

enum mq_end {
	MQ_END_DONE,
	MQ_END_REJECTED,
	MQ_END_PUSHED, /* the message goes on in another queue */
	MQ_END_PURGED,
	MQ_END_EXPIRED
};

/* The word for an end in results and outputs. */
const char *mq_end_name(enum mq_end);

struct mq_ending {
	char id[MQ_ID_LEN + 1]; /* empty: the message has none */
	const char *queue;	/* for writing only; NULL: left out */
	enum mq_end state;
	const char *text;    /* NULL: none */
	int status;	     /* exit status of the last run; -1: none */
	const char *signal;  /* name without SIG, or number; NULL: none */
	double seconds;	     /* that the last run took; 0: not known */
	long attempts;	     /* runs of the message */
	const char *host;    /* host of the last run; NULL: not known */
	const char *to;	     /* PUSHED: the queue; else NULL */
	int64_t finished_ms; /* unix ms; 0: not known */
	const char *result;  /* output of the last run; NULL: none */
	size_t result_len;
	bool result_cut; /* there was more output */
	char *decoded;	 /* after reading: `result`, if it was base64 */
	json_t *json;	 /* after reading: owner of the strings */
};

/* Appends the result.  Bytes of strings that are not UTF-8 become '?'. */
void mq_ending_write(const struct mq_ending *, struct mq_buf *out);

/* Appends a notice that a message has ended in this queue, as an element for another queue:
 * the payload is the result. */
void mq_notice_write(const char id[MQ_ID_LEN + 1], const char *queue,
    const struct mq_buf *text, struct mq_buf *out);

/* Parses a result; mq_ending_free() frees.  Returns 0, or -1 if the text is no result, with
 * nothing to free. */
int mq_ending_read(const char *, size_t n, struct mq_ending *);
void mq_ending_free(struct mq_ending *);

/* Whether the message asks for its result. */
bool mq_result_wanted(const struct mq_envelope *);

#endif
