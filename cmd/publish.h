/*
 * mq-publish inside: publish-batch.c has what is under way to the server,
 * mq-publish.c everything before.
 */
#ifndef MQ_PUBLISH_H
#define MQ_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "frame.h"
#include "id.h"
#include "layout.h"

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536
/* So many batches are under way at most. */
#define UNDER_WAY 16

struct options {
	const char *queue;
	enum mq_framing framing;
	struct mq_when when;
	const char *at; /* --at as it was given */
	bool ids, raw;
	struct mq_envelope headers; /* those that all messages get */
	bool special;		    /* they ask for something */
	int64_t expires_ms;	    /* after it is ready; 0: never */
	int64_t tick;		    /* to set the queue's clock to; -1: no */
	struct mq_limits limits;
};

/* Messages that go out, or are on their way, in one command. */
struct batch {
	struct mq_command command;
	int count;
	struct mq_buf ids; /* MQ_ID_LEN each; with -i only */
	bool again;	   /* sent once more, without the command that counts */
	bool counted;	   /* the server has counted them as published */
};

struct publisher {
	const struct options *opt;
	const struct mq_layout *layout;
	struct mq_redis redis;
	struct mq_idgen idgen;
	uint64_t last_us;   /* the time in the last id */
	unsigned long made; /* ids made */
	struct mq_publishing how;
	int64_t clock_us;	 /* the server's clock minus ours */
	struct mq_buf header;	 /* of a message without headers of its own */
	size_t id_at;		 /* where its id goes */
	struct mq_command count; /* that goes with a batch */
	/* Where the time goes that it is due, or expires; 0: nowhere. */
	size_t due_at, expires_at;
	struct batch ring[UNDER_WAY];
	unsigned first, used; /* batches under way; the next one is filled */
	size_t bytes;	      /* in those under way */
	unsigned long accepted, duplicates;
	enum mq_published refusal; /* why the server took no more; else 0 */
	long long miscounted;	   /* counted as published, and then refused */
};

/*
 * The header of messages that have none of their own, with gaps for the id and,
 * when it is delayed, for the time that it is due.  To be called when it is
 * known when that will be.
 */
void publish_prepare(struct publisher *);
/* Adds a message to the batch, with this header. */
void publish_message(struct publisher *, const char *payload, size_t n);
/* The same for one that has headers of its own, which are changed. */
void publish_with_headers(
    struct publisher *, json_t *headers, const char *payload, size_t n);

/* From now on INT and TERM are noted; see publish_check(). */
void publish_catch_signals(void);

/* The batch to add to. */
struct batch *publish_batch(struct publisher *);
/* Sends it, and waits until there is room for the next one. */
void publish_send(struct publisher *);
/* Sends it, and waits until the server has confirmed everything. */
void publish_flush(struct publisher *);
/*
 * Waits for input on a descriptor.  False when none came for so long; NULL
 * waits for ever.
 */
bool publish_wait(struct publisher *, int fd, const struct timespec *timeout);
/* Ends the program when a signal has come. */
void publish_check(struct publisher *);
/* Says how many messages were accepted, and of how many nobody knows. */
void publish_report(const struct publisher *, unsigned long unknown);

/*
 * All of these end the program, after saying how many messages were accepted,
 * when the server refuses some, is lost, or a signal comes.
 */

#endif
