/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Framings of messages in one stream, read by mq-publish and written by mq-consume.
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

/* A reader of records.  Starts zeroed except the first three members. */
struct mq_frame_reader {
	int fd; /* stays the caller's */
	enum mq_framing framing;
	size_t max;	       /* longest record allowed, bytes */
	unsigned long records; /* returned so far */
	char error[160];       /* after MQ_FRAME_BAD */
	struct mq_buf buf;     /* the caller frees it at the end */
	size_t start;	       /* first unread byte of buf */
	size_t scanned;	       /* bytes from start on that hold no separator */
	bool eof;
};

/* The outcome of mq_frame_read(). */
enum mq_frame_result {
	MQ_FRAME_RECORD, /* *p and *n are set */
	MQ_FRAME_END,	 /* the stream ended after a complete record */
	MQ_FRAME_WAIT,	 /* no record is complete, and read(2) would block */
	MQ_FRAME_BAD,	 /* the data is wrong; error says how */
	MQ_FRAME_FAILED	 /* read(2) failed; errno says why */
};

/*
 * Reads the next record, *n bytes at *p, valid until the next call, without waiting: after
 * MQ_FRAME_WAIT the caller polls fd for input.  Framing whole yields exactly one record,
 * even for an empty stream; jsonl yields the raw line, for mq_frame_decode_json().  BAD,
 * END, and FAILED with a lasting cause are returned by each further call.  The buffer takes
 * at most 1.5 times the longest record plus 256 KiB.
 */
enum mq_frame_result mq_frame_read(
    struct mq_frame_reader *, const char **p, size_t *n);

/* A jsonl line without its payload, as read. */
struct mq_frame_line {
	/* An object (owned) whose values are lists of strings or null, or NULL. */
	json_t *headers;
	bool copied; /* the line has a member queue, as our outputs have */
	bool raw;    /* the copied message has no headers */
	int64_t
	    due_ms; /* end of the copied message's delay, unix ms; 0: none */
};

/*
 * Parses one jsonl line: appends its payload to *payload, and stores the rest in *out.  A
 * header's value may be a string or a list of strings; unknown members are ignored.
 * Returns 0, or -1 with a constant *why, *payload unchanged, and nothing to free.
 */
int mq_frame_decode_json(const char *line, size_t n, struct mq_buf *payload,
    struct mq_frame_line *out, const char **why);

/* A jsonl line without its headers and payload, as written. */
struct mq_frame_meta {
	const char *id;	   /* NULL: none, left out */
	const char *queue; /* NULL: none, left out */
	long attempt;	   /* number of the next run, from 1; 0: left out */
	json_t *more;	   /* further members, names without escapes; or NULL */
	/* The id that mq_message_plain() has split off as the only header; or NULL. */
	const char *stamp;
};

/*
 * Appends one framed message to *out.  With lines and null, a separator in the payload is
 * not escaped.  jsonl: {"id":…,"queue":…,"attempt":…,MORE,"headers":{…},"payload":…}, with
 * payload_base64 if the payload is not UTF-8, and headers unless the message is raw.  Bytes
 * of id and queue that are not UTF-8 become \xNN.  Only jsonl writes headers and meta.
 */
void mq_frame_write(struct mq_buf *out, enum mq_framing,
    const struct mq_envelope *, const struct mq_frame_meta *);

#endif
