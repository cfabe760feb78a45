/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Messages on this host's disk, because their server was away: $XDG_STATE_HOME/mq/spool.
 *
 * A file has what one program could not publish to one queue; it is whole, or not there.  Its
 * name is an id, so that names sort by time.  Its first line is an object of JSON, the head.
 * Each batch has a line of JSON that says how it is published, and how many messages it has;
 * each of these has a line with 32 bytes that make it unique and the lengths of its header and
 * of its payload, then those bytes and a newline.  The last line is the batch of no messages.
 *
 * Beside a file NAME can be NAME.state, a line of JSON about attempts to publish it.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include "options.h"

#define SPOOL_USUAL ((size_t)64 << 20) /* bytes of all files */

struct spool_head {
	char *server; /* the name for people: no password */
	char *layout, *queue;
	/* The publisher whose marks tell which batches are done; its batches, and its
	 * messages, before those of the file. */
	char publisher[MQ_ID_LEN + 1];
	unsigned long begun;
	long long before;
	int64_t since_ms; /* unix time on this host */
	/* The server's unix time before which no batch was sent; 0: none was. */
	int64_t begun_ms;
	struct mq_attributes attributes; /* for a new queue */
	long long messages;
};

/* The last attempt to publish a file.  Starts zeroed. */
struct spool_state {
	int64_t begun_ms; /* as in the head */
	int64_t tried_ms; /* unix time on this host */
	/* If the attempt failed: mq_exit, and the reason; else 0 and NULL. */
	int status;
	char *why;
};

/* Names of whole files, the oldest first; refused: those that were set aside, too.  0, or -1 with
 * errno. */
int spool_list(struct mq_names *, bool refused);
/* Waits until no other program publishes from here; -1 with errno.  Closing it frees the lock.
 * Removes what programs that were killed have left. */
int spool_lock(void);
/* Forgets a file that is published. */
int spool_remove(const char *name);
/* Keeps a file that the server refuses for good, as NAME.refused. */
int spool_set_aside(const char *name, const char *why);

void spool_read_state(const char *name, struct spool_state *);
int spool_write_state(const char *name, const struct spool_state *);

/* --- writing ------------------------------------------------------------------- */

struct spool_writer {
	char *name, *path; /* the file has this path until it is whole */
	FILE *file;	   /* NULL: none is open */
	size_t room;	   /* bytes */
	struct spool_head head;
};

/* Begins a file; the head's texts stay the caller's, and its messages are counted.  max: bytes of all
 * files.  0, or -1 with errno; EDQUOT: there are max bytes. */
int spool_begin(struct spool_writer *, const struct spool_head *, size_t max);
/* Appends a message to the text of a batch. */
void spool_add(struct mq_buf *text, const char unique[MQ_ID_LEN + 1],
    const struct mq_buf *header, const char *payload, size_t n);
/* Writes a batch of n messages: 0, or -1 with errno, and the file is gone. */
int spool_batch(struct spool_writer *, const struct mq_publishing *, int n,
    const struct mq_buf *text);
/* Removes what was written, and leaves errno; returns -1. */
int spool_discard(struct spool_writer *);
/* The file is whole, and on disk, in the place of the file `as`; NULL: of none.  0, or -1 with
 * errno, and it is gone. */
int spool_end(struct spool_writer *, const char *as);

/* --- reading ------------------------------------------------------------------- */

struct spool_reader {
	FILE *file;
	char *ahead; /* the buffer of file */
	char *line;
	size_t size;
	int left; /* messages of the batch */
	struct spool_head head;
	struct mq_buf header, payload;
};

/* Opens a file, and reads its head: 0, or -1 with errno; EILSEQ: the file is damaged.
 * spool_close() in either case. */
int spool_open(struct spool_reader *, const char *name);
/* The next batch, and its messages: their number, 0: that was the last one, -1: damaged. */
int spool_next(struct spool_reader *, struct mq_publishing *);
/* The next message of the batch, into header and payload.  False: damaged. */
bool spool_read(struct spool_reader *, char unique[MQ_ID_LEN + 1]);
void spool_close(struct spool_reader *);

#endif
