/*
 * The data that all layouts keep beside a queue in the same way: its pause, its
 * settings, its counters, the marks of its publishers, and the runs of its consumers.  A layout
 * only names these keys.
 */
#ifndef MQ_SIDE_H
#define MQ_SIDE_H

#include "queue.h"

/* Each function appends one key to a command. */
struct mq_side {
	void (*paused)(struct mq_command *, const char *queue);
	void (*counters)(struct mq_command *, const char *queue);
	void (*settings)(struct mq_command *, const char *queue);
	/* A key without which nothing is counted, as the queue does not exist;
	 * NULL: queues without any key do. */
	void (*exists)(struct mq_command *, const char *queue);
	/* Two keys: who is on watch, and who is idle; see lua/lib/role.lua. */
	void (*waits)(struct mq_command *, const char *queue);
	void (*marks)(
	    struct mq_command *, const char *queue, const char *publisher);
	void (*running)(
	    struct mq_command *, const char *connection, const char *queue);
	/* Who cleans: a queue, or all of its server. */
	void (*cleaning)(struct mq_command *, const char *queue, bool all);
	void (*heartbeat)(
	    struct mq_command *, const char *connection, const char *queue);
};

/* The setting that the server itself holds publishers to: "N", or "N:HIGH". */
#define MQ_MAX_LENGTH "max-length"

/* How long what runs is kept unless it is renewed, in seconds: as long as a lease. */
#define MQ_SIDE_RUNNING_S 60

/* Consumers of these tools claim nothing from a paused queue: for ms milliseconds, or
 * until it is resumed (-1).  The reply to resume is the integer 1, or 0 when the queue
 * was not paused. */
void mq_side_pause(
    const struct mq_side *, struct mq_command *, const char *queue, int64_t ms);
void mq_side_resume(
    const struct mq_side *, struct mq_command *, const char *queue);
/* As mq_side_pause(), but it never ends a pause earlier. */
void mq_side_pause_at_least(
    const struct mq_side *, struct mq_command *, const char *queue, int64_t ms);

/* Adds to the counts of a queue. */
void mq_side_count(const struct mq_side *, struct mq_command *,
    const char *queue, const struct mq_counts *);
/* A plain command for the one count that publishers have; n below 0 takes off again.
 * The reply is an integer when it was carried out. */
void mq_side_count_published(const struct mq_side *, struct mq_command *,
    const char *queue, long long n);

/* The consumer of the session waits for the queue's messages no more. */
void mq_side_pass(const struct mq_side *, const struct mq_session *,
    const char *queue, struct mq_command *);

/* Starts a plain command on the key with a publisher's marks. */
void mq_side_marks(const struct mq_side *, struct mq_command *,
    const char *verb, const char *queue, const char *publisher);

/* Tells others what runs here: text as of running.h, which the renewal of the lease
 * keeps, too.  n 0: nothing runs. */
void mq_side_tell_running(const struct mq_side *, const struct mq_session *,
    const char *text, size_t n, struct mq_command *);

/* Competes for the rounds of cleaning of a queue, or of the server (-1); the reply is
 * the integer 0 if they are ours for ms milliseconds, or else until when they are
 * another's, in milliseconds. */
void mq_side_compete(const struct mq_side *, const struct mq_session *,
    int queue, int64_t ms, struct mq_command *);
/* Lets go of those of the server. */
void mq_side_resign(
    const struct mq_side *, const struct mq_session *, struct mq_command *);

#endif
