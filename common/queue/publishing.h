/*
 * How messages are published, and what a queue accepts.
 */
#ifndef MQ_PUBLISHING_H
#define MQ_PUBLISHING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* No clock of a queue goes further: the scores of ticks have to be exact. */
#define MQ_TICK_MAX (1LL << 48)

struct mq_attach;

/* When a published message is to be ready. */
struct mq_when {
	enum {
		MQ_WHEN_NOW,
		MQ_WHEN_IN, /* ms milliseconds from now */
		MQ_WHEN_AT  /* at unix time ms, milliseconds */
	} kind;
	int64_t ms; /* NOW: 0 */
	bool said;  /* NOW: even if the queue has a delay of its own */
};

/*
 * How many messages may be there for another one to be accepted, -1 any number:
 * claimable ones, and those that are delayed for whatever reason; and the same
 * for a message with a priority above 0.  Without the first, as the settings of the
 * queue say.
 */
struct mq_limits {
	long ready, ready_high, delayed, delayed_high;
};
/* Not even by the settings of the queue: of messages that are there already. */
#define MQ_UNLIMITED                                                           \
	{                                                                      \
		LONG_MAX, LONG_MAX, -1, -1                                     \
	}

/* One of the batches of a publisher that may have to ask whether the server has
 * done it; see mark.h. */
struct mq_mark {
	const char *publisher; /* an id; NULL: nobody will ask */
	int place;	       /* 0 to MQ_MARKS - 1, in turn */
	long long before; /* messages in the batches before it; none is empty */
};

/* How messages are published. */
struct mq_publishing {
	struct mq_mark mark;
	struct mq_when when;
	/* Messages may have options (a priority, a group, a key, a tick, an
	 * answer), or there are limits. */
	bool special;
	bool alike; /* all ask for the same, none for an answer; their headers
		     * differ in the id, which is what makes them unique, and in
		     * times, and in no length */
	/* Special ones, alike and without limits, that have no options but these: */
	bool ordered;
	int priority;
	bool in_tick; /* from tick 0 on */
	/* The server's unix time, about, in microseconds, later for each message of
	 * a publisher than for those before it; 0: unknown. */
	int64_t now_us;
	bool join; /* a key that a message has until it is claimed is shared */
	bool direct; /* a plain command may put special ones in */
	struct mq_limits limits;
	bool realtime; /* each message is published to listeners, as by node */
	const struct mq_attach *files; /* of the only message; NULL: none */
};

/*
 * The attributes of a queue, in layouts that have them.
 * MQ_ATTRIBUTE_NONE: not said.
 */
enum { MQ_ATTRIBUTE_NONE = -2 };
#define MQ_ATTRIBUTES_NONE                                                     \
	{                                                                      \
		MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE, MQ_ATTRIBUTE_NONE        \
	}
struct mq_attributes {
	long vt_s;    /* hidden so long once received */
	long delay_s; /* of a message that says nothing of its own */
	long maxsize; /* of a body, in units of UTF-16; -1: any */
};

/* The result of publishing a message. */
enum mq_published {
	MQ_PUBLISHED_NONSENSE = -1, /* a reply of the wrong form */
	MQ_PUBLISHED,		    /* it is there */
	MQ_PUBLISHED_DUPLICATE,	    /* another one has its key */
	MQ_PUBLISHED_JOINED,	    /* the same, and that one is for both */
	MQ_PUBLISHED_FULL,	    /* there are too many */
	MQ_PUBLISHED_STALE,	    /* its last tick is over */
	MQ_PUBLISHED_TOO_LONG	    /* for the queue's maxsize */
};

#endif
