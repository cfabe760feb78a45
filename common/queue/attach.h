/*
 * Attachments: files of messages in the layout rmq.  The messages that refer to a set of
 * files name it in MQ_HEADER_ATTACH, and the set knows their ids.
 *
 * A file is in the server as chunks of 1 MiB, so no command is longer and neither side
 * has more of it in memory.  All keys of a set expire after an hour until the step that
 * publishes its message (mq_publishing.files); from then on they stay until the last
 * message that refers to them has ended.  So a crash leaves no message without its files,
 * and keys without a message expire, or mq-clean lets them expire.
 *
 * All functions wait.  Unless they say otherwise they return 0, or -1 with the error
 * in struct mq_redis.
 */
#ifndef MQ_ATTACH_H
#define MQ_ATTACH_H

#include "base/id.h"
#include "redis/connection.h"

/* Why no attachment can have this name, constant text; NULL: it can.  A good one is
 * the name of a file in any directory. */
const char *mq_attach_name_error(const char *name);

/* A set that is being made.  Starts zeroed but for redis. */
struct mq_attach {
	struct mq_redis *redis;
	char set[MQ_ID_LEN + 1]; /* for the header */
	long long chunks;	 /* so far */
	double renewed_s;	 /* when their hour began, CLOCK_MONOTONIC */
};

/* What a layout does with them. */
struct mq_attachments {
	/* For a message of this queue. */
	void (*begin)(struct mq_attach *, const char *queue);
	/* Adds what can be read from a descriptor.  An error of read(2) has the
	 * status MQ_EXIT_IO, and a file that changes meanwhile MQ_EXIT_AGAIN. */
	int (*add)(struct mq_attach *, const char *name, int fd);
	/* All have been added; this message is about to be published with them. */
	int (*close)(struct mq_attach *, const char *id);
	/* Writes the files of a set into a directory, and notes that the message refers
	 * to it.  Returns 1 with *why if there are none, or some are not what was
	 * published: no retry helps; -1 also if a file cannot be written. */
	int (*fetch)(struct mq_redis *, const char *set, const char *id,
	    int dir, struct mq_buf *why);
	/* A message has ended: the last one of a set takes the files with it. */
	int (*release)(struct mq_redis *, const char *set, const char *id);
	/* How many sets there may be. */
	int (*count)(struct mq_redis *, long long *);
	/* Another message refers to a set, or (made) the first: the reply is the
	 * integer 1, or 0 when the set is gone. */
	void (*refer)(
	    struct mq_command *, const char *set, const char *id, bool made);
};

/* As refer(), at once, for one message more; nothing happens if the set is gone. */
int mq_attach_refer(struct mq_redis *, const struct mq_attachments *,
    const char *set, const char *id);

#endif
