/*
 * Framings: how several messages stand in one stream.  The same vocabulary
 * reads in mq-publish and writes in mq-consume.
 *
 *	whole		the entire stream is one message
 *	lines		one a line, without its newline; the last needs none
 *	null		one before each NUL byte; the last needs none
 *	netstring	LEN:BYTES,
 *	jsonl		one JSON object a line: {"payload": "text"} or
 *			{"payload_base64": "..."}, with "headers" optional
 */
#ifndef MQ_FRAME_H
#define MQ_FRAME_H

#include "headers.h"

enum mq_framing {
	MQ_FRAME_WHOLE,
	MQ_FRAME_LINES,
	MQ_FRAME_NULL,
	MQ_FRAME_NETSTRING,
	MQ_FRAME_JSONL
};

/* Reads records.  Starts zeroed but for the first three. */
struct mq_frame_reader {
	int fd; /* stays the caller's */
	enum mq_framing framing;
	size_t max;	       /* longest record allowed, bytes */
	unsigned long records; /* records delivered so far */
	char error[160];       /* what was wrong, after MQ_FRAME_BAD */
	struct mq_buf buf;     /* the caller frees it at the end */
	size_t start;	       /* first unread byte of buf */
	size_t scanned;	       /* bytes from start on known to hold no end */
	bool eof;
};

/* The outcome of mq_frame_read(). */
enum mq_frame_result {
	MQ_FRAME_RECORD, /* *p and *n are set */
	MQ_FRAME_END,	 /* the stream ended after a whole record */
	MQ_FRAME_WAIT,	 /* no whole record is here, and reading would block */
	MQ_FRAME_BAD,	 /* the data is wrong; error says how */
	MQ_FRAME_FAILED	 /* read(2) failed; errno says why */
};

/*
 * The next record: *n bytes at *p, valid until the next call.  It never waits: after
 * MQ_FRAME_WAIT the caller polls fd for input.  Framing whole yields exactly one record,
 * even for an empty stream; jsonl yields the raw line, for mq_frame_decode_json().  BAD,
 * END and FAILED with a lasting cause come again on every further call.  Memory: one buffer,
 * half as large again as the longest record and 256 KiB at most.
 */
enum mq_frame_result mq_frame_read(
    struct mq_frame_reader *, const char **p, size_t *n);

/* A jsonl line without its payload, as read. */
struct mq_frame_line {
	/* An object (owned) whose values are lists of strings or null, or NULL. */
	json_t *headers;
	/* The line has a member queue, as ours have: it is a copy of a message ... */
	bool copied;
	bool raw;	/* ... that has no headers ... */
	int64_t due_ms; /* ... and is due at this unix ms; 0: no delay */
};

/*
 * Takes one jsonl line apart: appends its payload to *payload, and puts the rest into *out.
 * A header may be given as a string or a list of strings; names are taken as they are;
 * unknown members are ignored.  Returns 0, or -1 with a constant *why; *payload is then
 * unchanged and nothing needs freeing.
 */
int mq_frame_decode_json(const char *line, size_t n, struct mq_buf *payload,
    struct mq_frame_line *out, const char **why);

/* A jsonl line without its headers and payload, as written. */
struct mq_frame_meta {
	const char *id;	   /* NULL: none, left out */
	const char *queue; /* NULL: none, left out */
	long attempt;	   /* which run this would be, from 1; 0: none */
	json_t *more;	   /* further members, names without escapes; or NULL */
	/* The id that is the only header of an envelope without parsed ones;
	 * NULL: the envelope has no more. */
	const char *stamp;
};

/*
 * Appends one framed message to *out.  A separator in the payload of lines, null is not
 * escaped.  jsonl: {"id":…,"queue":…,"attempt":…,MORE,"headers":{…},"payload":…}, with
 * payload_base64 where it is not UTF-8, and headers unless the message is raw.  Bytes of id
 * and queue that are not UTF-8 become \xNN.  Only jsonl looks at the headers and at meta.
 */
void mq_frame_write(struct mq_buf *out, enum mq_framing,
    const struct mq_envelope *, const struct mq_frame_meta *);

#endif
