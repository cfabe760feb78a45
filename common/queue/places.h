/*
 * Where messages are, walks through them, and the deletion of a queue.
 */
#ifndef MQ_PLACES_H
#define MQ_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a message is. */
enum mq_state { MQ_READY, MQ_DELAYED, MQ_UNACKED, MQ_REJECTED, MQ_STATES };

/* The word of a state, on the command line and in outputs. */
const char *mq_state_name(enum mq_state);
/* The other way round: 0, or -1 when the word is none of them. */
int mq_state_parse(const char *word, enum mq_state *);

/* Messages in one state of one queue. */
struct mq_place {
	const char *queue;
	enum mq_state state;
	const char *connection; /* UNACKED: of this one; NULL: of all; "-": of
				 * those that nobody knows, if there can be */
	/* DELAYED, when all that is meant is to be dropped: those in line for
	 * their group come first, so that none has its turn meanwhile. */
	bool line_first;
};

/* One message that was found, as it is kept.  Bytes. */
struct mq_item {
	const char *element;
	size_t len;
	/* DELAYED: it waits for its group's turn; or, unless 0, for a tick; or
	 * until due_ms, unix ms. */
	bool in_line;
	int64_t tick, due_ms;
	const char *connection; /* UNACKED: whose it is; NULL: nobody knows */
	size_t prefix;		/* the layout's own */
};

struct mq_walk;

/*
 * A walk through a place, the next to be claimed first, slice by slice: no
 * slice keeps the server, or our memory, longer or fuller than about 1000
 * messages or 1 MiB do (but a slice has at least one message).  Starts zeroed
 * but for place, needle and skip.  Messages that come or go meanwhile may be seen or
 * not; those that stay are seen once.
 */
struct mq_scan {
	struct mq_place place;
	const char *needle;    /* an element must contain it; NULL: any */
	long skip;	       /* this many are stepped over first; not with
				* those of all connections */
	struct mq_item *items; /* this slice; valid until the next */
	int count;	       /* may be 0 with a needle, and more to come */
	long seen;	       /* messages looked at so far, needle or not */
	bool end;	       /* no slice follows */
	struct mq_walk *walk;  /* the layout's own */
};
void mq_scan_free(struct mq_scan *);

struct mq_deletion {
	bool dry_run; /* only tell what would be removed */
	/* Live consumers, and messages of dead ones: if there are any, nothing
	 * is done. */
	long consumers, unacked;
	bool cluster; /* there are keys of it in rmq's form for a cluster:
		       * nothing is done, either */
	bool known;   /* whether anybody ever opened it */
	long ready, delayed, rejected; /* messages removed with it */
	/* Somebody may wait for what becomes of those.  Who drops them one by
	 * one before tells them. */
	bool awaited;
};

#endif
