/*
 * Makes messages: ids, headers, and when they are due.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "base/id.h"
#include "batch.h"
#include "message/frame.h"

struct attachments;

/* All messages are made like this. */
struct message_options {
	bool raw;	/* no header */
	bool ids, wait; /* somebody asks for their ids, or for their ends */
	bool awaited;	/* or may ask for their ends later */
	bool notes;	/* somebody reads notes */
	bool quiet;	/* nobody does */
	struct mq_envelope headers;
	int64_t expires_ms;		 /* after it is ready; 0: never */
	struct mq_when when;		 /* they are ready */
	struct attachments *attachments; /* NULL: none */
};

/* Ids that sort in the order of publishing, by the clock of the server. */
struct stamp {
	struct mq_idgen random;
	int64_t clock_us;   /* the server's clock minus the steady one */
	uint64_t last_us;   /* the time in the last id */
	unsigned long made; /* since the clock was looked at in any case */
};

/* To be made by message_init(). */
struct messages {
	const struct message_options *opt;
	const struct mq_layout *layout;
	struct batcher *batches;
	struct stamp stamp;
	unsigned long seen;   /* messages that were to be published */
	bool noted_large;     /* a large payload was noted */
	bool noted_past;      /* and a time that is over */
	struct mq_buf header; /* of a message without headers of its own */
	/* Where there are gaps in it, for the id (twice), and for the time that
	 * it is due, or expires; 0: nowhere. */
	size_t id_at, reply_at, due_at, expires_at;
};

/* opt->when is what the options say, by the clock of the server. */
void message_init(struct messages *, const struct message_options *,
    const struct mq_layout *, struct batcher *, int64_t clock_us);
void message_free(struct messages *);

/* Adds a message to the batch: a payload with the headers of all, or a line of JSON,
 * whose headers are changed.  Ends with exit 65 if it cannot be published. */
void message_add(struct messages *, const char *payload, size_t n);
void message_add_line(struct messages *, const struct mq_frame_line *,
    const char *payload, size_t n);

/* Time has passed without a message. */
void message_rested(struct messages *);

#endif
