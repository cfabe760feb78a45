/*
 * mq-publish inside.
 */
#ifndef MQ_PUBLISH_H
#define MQ_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/id.h"
#include "message/frame.h"
#include "queue/mark.h"
#include "queue/queue.h"
#include "shared/options.h"

/* A batch is sent when it has so many messages or bytes. */
#define BATCH_COUNT 1000
#define BATCH_BYTES 65536
/* So many batches are under way at most. */
#define UNDER_WAY MQ_MARKS
/* A server may be silent for so long, or not be there. */
#define PATIENCE_MS 60000

struct options {
	const struct mq_shared *shared;
	const char *queue;
	bool existing; /* the queue is not made */
	enum mq_framing framing;
	struct mq_when when;
	const char *at; /* --at as it was given */
	bool ids, raw, quiet;
	bool wait;		       /* until they have ended */
	int64_t wait_ms;	       /* for so long at most; -1: for ever */
	struct mq_envelope headers;    /* those that all messages get */
	bool key, unique;	       /* they have one, and a --unique */
	bool special;		       /* they ask for something */
	int64_t expires_ms;	       /* after it is ready; 0: never */
	int64_t tick;		       /* to set the queue's clock to; -1: no */
	int64_t from_tick, until_tick; /* of the messages; -1: none */
	struct mq_limits limits;
	bool limited;			 /* there are any */
	bool low;			 /* they have a priority below 0 */
	struct mq_attributes attributes; /* of the queue, if it is made... */
	bool set;			 /* ...or already there */
	bool realtime;
	bool durable;
};

/* Messages that go out, or are on their way, in one command. */
struct batch {
	struct mq_command command;
	int count;
	struct mq_buf ids; /* MQ_ID_LEN each; if anybody needs them */
	bool whole; /* the command marks and counts them, if anything does */
	struct mq_mark mark; /* whether it was done can be asked by this */
	int64_t sent_ms;     /* CLOCK_BOOTTIME */
};

/* When messages are safe, and which ones are known to be so. */
struct durable {
	bool disk;    /* on the disk of the server... */
	bool waitaof; /* ...which they are when WAITAOF says so; else at once */
	int replicas; /* and on so many */
	char where[48];	    /* both in words: " on disk and 2 replicas" */
	char run_id[48];    /* of the server that said all this */
	unsigned long safe; /* of those that were accepted */
	bool unsure;	    /* there are others, or duplicates of others */
	bool ours; /* no write of this connection came before any of them */
	struct mq_buf held; /* ids that are printed when their messages are */
};

struct publisher {
	const struct options *opt;
	const struct mq_layout *layout;
	struct mq_redis redis;
	struct mq_idgen idgen;
	uint64_t last_us;	  /* the time in the last id */
	unsigned long made;	  /* ids made */
	unsigned long seen;	  /* messages that were to be published */
	struct mq_when when;	  /* the messages are ready, by the options */
	struct mq_publishing how; /* the batch goes out */
	int64_t clock_us;	  /* the server's clock minus the steady one */
	struct mq_buf header;	  /* of a message without headers of its own */
	size_t id_at;		  /* where its id goes */
	size_t reply_at;	  /* and once more; 0: nowhere */
	struct mq_command mark;	  /* that goes with a batch */
	/* Where the time goes that it is due, or expires; 0: nowhere. */
	size_t due_at, expires_at;
	struct batch ring[UNDER_WAY];
	unsigned first, used;	/* batches under way; the next one is filled */
	size_t bytes;		/* in those under way */
	bool known;		/* the server knows the script that publishes */
	char id[MQ_ID_LEN + 1]; /* of the marks */
	bool marks;		/* batches are marked, */
	bool marked;		/* and one was */
	bool named;		/* the connection has a name to find it by */
	bool loose;		/* one before it may be alive, and deliver */
	bool ending;		/* nothing is sent again */
	unsigned long batches;	/* begun so far */
	long long sent;		/* messages in those that were sent */
	long long confirmed;	/* those that the server has answered for, */
	long long confirmed_last;  /* and before the last batch of them; -1 */
	int64_t confirmed_ms;	   /* when it did, CLOCK_BOOTTIME */
	int64_t lost_ms, pause_ms; /* since the last answer: when first the
				    * connection was lost, 0; the next pause */
	long long uncounted;	   /* accepted without being counted */
	struct mq_buf awaited; /* ids of those to wait for, MQ_ID_LEN each */
	unsigned long accepted, duplicates, stale, too_long;
	struct durable durable;
	bool full; /* it took no more */
};

/* Options that say what is to become of messages; 64 when they are wrong. */
void publish_option_header(struct options *, const char *arg);
void publish_option_param(struct options *, const char *arg);
void publish_option_expires(struct options *, const char *arg);
void publish_option_priority(struct options *, const char *arg);
void publish_option_key(struct options *, const char *arg);
void publish_option_unique(struct options *, const char *arg);
void publish_option_group(struct options *, const char *arg);
int64_t publish_option_tick(const char *option, const char *arg);
void publish_option_ticks(
    struct options *, const char *option, const char *arg, bool until);
/* N or N:HIGH, which is taken apart. */
void publish_option_max(const char *option, char *arg, long *max, long *high);
void publish_option_vt(struct options *, const char *arg);
void publish_option_maxsize(struct options *, const char *arg);
void publish_option_set(struct options *, const char *arg);
/* When all are there: whether they go together, and with the operands. */
void publish_options_check(struct options *, char *const operands[], int count);

/* The same for what is not clear before the layout is known. */
void publish_options_suit(const struct options *, const struct mq_shared *);

/*
 * One round: the queue is known from now on, which also tells whether we may
 * write at all, and we know the server's time.
 */
void publish_open(struct publisher *);
/* Instead of publishing: the queue's clock goes on, or it gets attributes. */
void publish_tick(struct publisher *);
void publish_set(struct publisher *);

/* What --at says, unix ms, when it is now_ms; 64 when it is no time. */
int64_t publish_time(const char *at, int64_t now_ms);
/* When the messages will be ready, now that the server's clock is known. */
void publish_prepare_when(struct publisher *);

/* Says what is wrong with a message, counted from 1, and ends with exit 65. */
void publish_bad(struct publisher *, unsigned long record, const char *why);
/* Publishes what comes from a descriptor, to its end. */
void publish_stream(struct publisher *, int fd);

/*
 * The header of messages that have none of their own, with gaps for the id and,
 * when it is delayed, for the time that it is due.  To be called when it is
 * known when that will be.
 */
void publish_prepare(struct publisher *);
/* Adds a message to the batch, with this header. */
void publish_message(struct publisher *, const char *payload, size_t n);
/* The same for what a line of JSON has besides its payload; its headers are
 * changed. */
void publish_line(struct publisher *, const struct mq_frame_line *,
    const char *payload, size_t n);

/*
 * --durable: finds out when messages will be safe; ends with exit 78 if they
 * never would be.  To be called before anything is written.
 */
void publish_durable_open(struct publisher *);
/*
 * Waits until all that the server has confirmed is safe; for a minute at most.
 * If it is not, or nobody knows, it returns false with the error set.
 */
bool publish_durable(struct publisher *);

/* Waits for the end of all that were accepted, says how it was, and returns
 * the exit status. */
int publish_await(struct publisher *);

/* From now on INT and TERM are noted; see publish_check(). */
void publish_catch_signals(void);

/* The batch to add to, and before the first message. */
struct batch *publish_batch(struct publisher *);
void publish_begin(struct publisher *, struct batch *);
/* Sends it, and waits until there is room for the next one. */
void publish_send(struct publisher *);
/* Sends it, and waits until the server has confirmed everything. */
void publish_flush(struct publisher *);
/* The same, and with --durable until all of it is safe. */
void publish_settle(struct publisher *);
/*
 * Waits for input on a descriptor.  False when none came for so long; NULL
 * waits for ever.
 */
bool publish_wait(struct publisher *, int fd, const struct timespec *timeout);
/* Ends the program when a signal has come. */
void publish_check(struct publisher *);

/* Sends a batch, the text of its script with it if so wanted.  -1: the
 * connection is lost. */
int publish_transmit(struct publisher *, struct batch *, bool eval);
/* The next reply, which may take so long; NULL: the connection is lost, and
 * only to be closed. */
redisReply *publish_answer(struct publisher *, int64_t ms);
/* What the server says of the oldest batch under way, as a reply to its own
 * command; NULL likewise.  An error that leaves it without a mark is not
 * about the batch: it can be sent again so. */
redisReply *publish_reply(struct publisher *, struct batch *);

/*
 * The connection is lost: it is made again, what was done meanwhile is found
 * out, and the rest of what is under way sent again.
 */
void publish_resume(struct publisher *);
/* Takes what was said of a batch; false when it makes no sense. */
bool publish_verdicts(
    struct publisher *, const struct batch *, const redisReply *);
/* The server has answered for it: it is empty. */
void publish_done(struct publisher *, struct batch *);
/* Ends the program: nobody can know what became of what is under way. */
void publish_lost(struct publisher *) __attribute__((noreturn));
/*
 * Connects again, as often as it takes; *pause_ms is the next pause.  False
 * when it was not possible until then, CLOCK_BOOTTIME; -1 is never.  Ends the
 * program when the server refuses.
 */
bool publish_reconnect(struct publisher *, int64_t until_ms, int64_t *pause_ms);
int64_t publish_now_ms(void);
/* A name for the connection, and what it says to that: whether it has one. */
void publish_name(struct publisher *, struct mq_command *);
/* In the end: nobody will ask any more. */
void publish_forget(struct publisher *);
/* Says how many messages were accepted, and of how many nobody knows. */
void publish_report(const struct publisher *, unsigned long unknown);
/* The same at the end, when there is a need for it. */
void publish_verdict(const struct publisher *, const struct mq_shared *);

/*
 * All of these end the program, after saying how many messages were accepted,
 * when the server refuses some, is lost, or a signal comes.
 */

#endif
