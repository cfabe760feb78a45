/*
 * The locks of one queue as they were when a repair began; see
 * repair.c.  For this folder only.
 */
#ifndef MQ_RMQ_LOCKS_H
#define MQ_RMQ_LOCKS_H

#include "cleaner.h"

struct rmq_lock {
	char id[MQ_ID_LEN + 1]; /* of its holder */
	char *field, *value;
	size_t field_len, value_len;
	bool seen; /* the holder is somewhere */
	bool over; /* it was kept until a time that has come */
};

struct rmq_locks {
	struct rmq_lock *list; /* sorted by id once all are there */
	size_t n, cap;
	size_t held; /* those that are not over */
	bool late;   /* some message may be too late by now */
};

/* Reads all.  now: unix ms; tick: the queue's. */
int rmq_locks_load(struct rmq_cleaner *, const char *queue, long long now,
    long long tick, struct rmq_locks *);
/* Whether some holder was not seen. */
bool rmq_locks_unseen(const struct rmq_locks *);
/* The holder with this id is somewhere. */
void rmq_locks_seen(struct rmq_locks *, const char *id);
/*
 * Lets go of those that are over, or of the others whose holders were not seen;
 * *n: how many.
 */
int rmq_locks_free_over(
    struct rmq_cleaner *, const char *queue, const struct rmq_locks *, long *n);
int rmq_locks_free_unseen(
    struct rmq_cleaner *, const char *queue, const struct rmq_locks *, long *n);
void rmq_locks_clear(struct rmq_locks *);

#endif
