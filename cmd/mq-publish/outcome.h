/*
 * The fate of the messages: counts them, prints the ids of the accepted ones (with
 * --durable once their messages are safe), and says how many there are when the
 * program ends.
 */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "queue/publisher.h"
#include "redis/durable.h"

/* The caller sets the first seven; the others are the module's own. */
struct outcome {
	const char *queue;
	const char *what; /* a duplicate shares with another message: "key" */
	bool print_ids, collect_ids;
	bool http; /* the exit status is for an answer, see shared/http.h */
	/* Called at the end if the server has taken none; NULL: not. */
	void (*refused)(void *arg);
	void *refused_arg;
	unsigned long accepted, joined, duplicates, stale, too_long;
	bool full;	   /* the queue took no more */
	struct mq_buf ids; /* of the accepted, MQ_ID_LEN each, if collected */
	/* With --durable only: */
	const struct mq_publisher *publisher; /* NULL without */
	struct mq_durable promise;
	char where[48];	    /* in words: " on disk and 2 replicas" */
	unsigned long safe; /* of those accepted */
	bool unsure;	    /* there are others, or duplicates of others */
	bool ours;  /* no write of this connection came before any of them */
	bool moved; /* the promise is that of another server */
	struct mq_buf held; /* ids that are printed when their messages are */
};
void outcome_free(struct outcome *);

/*
 * --durable: finds out when messages will be safe; ends the program if they never
 * would be, or nobody knows.  To be called before anything is written.
 */
void outcome_be_durable(struct outcome *, const struct mq_publisher *);
/* Waits until all messages are safe, a minute at most.  False, with the error: they
 * are not, or nobody knows.  Without --durable they are. */
bool outcome_settle(struct outcome *);
/* Whether it is time for that. */
bool outcome_holds_many(const struct outcome *);
/* With --durable: whether some that were accepted are not known to be safe. */
bool outcome_unsafe(const struct outcome *);
/* Nothing was written on this connection yet.  Another server may be at its end. */
void outcome_reconnected(struct outcome *);

/* Takes what the server said of a message; its id, or that of the one that it has
 * joined, may be NULL if nobody wants ids. */
void outcome_take(struct outcome *, const char *id, enum mq_published);
bool outcome_full(const struct outcome *);
/* The ids that were collected, MQ_ID_LEN each. */
const char *outcome_ids(const struct outcome *, size_t *count);

/* Says how many messages were accepted, and of how many nobody knows. */
void outcome_end(const struct outcome *, unsigned long unknown, int status)
    __attribute__((noreturn));
/* Ends likewise, by the signal that has come. */
void outcome_interrupt(const struct outcome *, unsigned long unknown)
    __attribute__((noreturn));
/* The server has come back without up to so many that it had confirmed. */
void outcome_lose(struct outcome *, long long messages)
    __attribute__((noreturn));
/* All is done: says what is needed, and returns the exit status. */
int outcome_finish(const struct outcome *, bool quiet, bool verbose);

#endif
