/*
 * The floor common/message: what a message is, as bytes and as a value, and the verbs and
 * the verdict of its script.  Pure: the only system call is the read(2) of frame.c.  Files
 * here may call common/base and jansson.  Nothing here knows where a message is kept.
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
 * That of adjust/rmq: an element of a queue is either the bare payload, or
 *
 *	FF 00 BE BE 4A, a JSON object on one line, \n, payload
 *
 * where the object is Go's http.Header: name -> list of strings, names in
 * canonical form (X-Trace-Id).  {}, null, and values that are null or [] are good, and a
 * null inside a list is "".  Bytes of strings that are not Unicode become U+FFFD.  Elements,
 * payloads, names (see json.h) and values may hold NULs.
 */
struct mq_envelope {
	/* Object or JSON null (owned), or NULL: the element is raw.  An
	 * object's values are lists of strings, or null. */
	json_t *headers;
	const char *payload; /* into the element, or whatever the user set */
	size_t payload_len;
};

/* Whether the bytes begin as a header does; every reader takes them for one. */
bool mq_envelope_signed(const char *, size_t n);

/* Takes an element apart, to which payload points; mq_envelope_free() frees the headers.
 * Returns 0, or -1 when the header is bad, with a constant *why; nothing needs freeing. */
int mq_envelope_parse(
    const char *element, size_t len, struct mq_envelope *, const char **why);
void mq_envelope_free(struct mq_envelope *);

/* First value of a header, or NULL; valid while the header stays as it is.  A NUL in it
 * ends it early. */
const char *mq_envelope_get(const struct mq_envelope *, const char *name);

/* The highest number of runs of a message that is counted, and thus the highest limit. */
#define MQ_ATTEMPTS_MAX 1000000

/* A header that must be a whole number >= 0: its value, or fallback.  A number that is too
 * high counts as the highest: of runs, MQ_ATTEMPTS_MAX, so that a message which others
 * have made cannot escape its limit. */
long mq_envelope_get_long(
    const struct mq_envelope *, const char *name, long fallback);

/* Sets a header to this one value.  The name must be UTF-8; bytes of the value that are not
 * become '?'. */
void mq_envelope_set(struct mq_envelope *, const char *name, const char *value);
void mq_envelope_set_number(struct mq_envelope *, const char *name, int64_t);

/* The same behind the values that it has. */
void mq_envelope_add(struct mq_envelope *, const char *name, const char *value);

/* Appends the element: the header if there is one, and the payload. */
void mq_envelope_write(const struct mq_envelope *, struct mq_buf *out);

/* Appends signature, JSON and newline only; headers must not be NULL. */
void mq_envelope_write_header(const struct mq_envelope *, struct mq_buf *out);

/*
 * Splits "Name: value" as -H takes it: the name, a token of RFC 9110, in canonical form,
 * the value without blanks at its ends; it may be empty.  The caller frees both.  Returns
 * 0, or -1 with a constant *why and nothing to free; a value that is not UTF-8 or holds
 * control characters (a tab inside it, DEL and U+0080 to U+009F included) is refused.
 */
int mq_header_split(const char *s, char **name, char **value, const char **why);

/* --- headers ------------------------------------------------------------ */

/* Ours are plain rmq headers, so that they survive whatever a Go peer does with a
 * message. */
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
#define MQ_HEADER_ATTACH "Mq-Attach"  /* its files; see queue/queue.h */

/* Options; the scripts of the queues obey those with a star. */
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

/* Of a reason that is kept, in bytes. */
#define MQ_ERROR_MAX 1024

/* The message's id when it has a valid one, else NULL. */
const char *mq_message_id(const struct mq_envelope *);

/* The name of a message where other programs make up the ids: its id, if
 * mq_id_safe(), or MQ_HEADER_NAME; else NULL. */
const char *mq_message_name(const struct mq_envelope *);

/* Takes apart, without parsing, an element whose header holds a valid id and nothing else,
 * or, id is empty then, that has none.  The envelope gets no headers.  False: it may be any
 * other. */
bool mq_message_plain(const char *element, size_t len, char id[MQ_ID_LEN + 1],
    struct mq_envelope *);

/* Records a run: the id (so that a raw message keeps the one it ran under), how many
 * runs there have been, and why the last one failed (NULL: that header stays). */
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

/* Makes a duplicate with the same payload; the caller frees.  It has no record of runs, no
 * key, which the message itself may hold, and no reply address; of a message without
 * headers, only those that it needs. */
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

/* Records that its consumer died; host: where, NULL: unknown.  last: the message may not
 * run again. */
void mq_history_crash(
    struct mq_envelope *, long attempt, bool last, const char *host);

/* The failures, or only the last one, as a JSON list of such objects, oldest first; members
 * of the wrong types are left out.  A new reference. */
json_t *mq_history_list(const struct mq_envelope *, bool last);

/* "at_ms" or "attempt" of the last one; 0: there is none. */
json_int_t mq_history_last_number(const struct mq_envelope *, const char *name);

/* --- result ------------------------------------------------------------- */

/*
 * The result of a message, for a publisher that waits and for later questions: one
 * JSON object on one line,
 *
 *	{"id": "...", "state": "done", "text": "what the script said last",
 *	 "status": 0, "attempts": 1, "host": "web1",
 *	 "finished_ms": 1795207725000}
 *
 * with "signal": "SEGV" in place of status for a run that was killed, neither where
 * nothing ran, "queue": QUEUE in a notice, and "to": QUEUE where the message goes on in
 * another one.  Unknown members are left out.  The scripts of the queues write results, too.
 */

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
