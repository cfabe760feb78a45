/* The policy says how fast messages may start, how carefully, and when to end.  It owns the
 * rate, the stop levels and the signals that raise them; the engine carries out what a level
 * means. */
#ifndef MQ_CONSUME_POLICY_H
#define MQ_CONSUME_POLICY_H

#include <signal.h>

#include "fact.h"
#include "hand.h"

/* Seconds from TERM to KILL of a command; and from the end of one of its descriptors to
 * its own, and for the last settlements. */
#define KILL_AFTER 5.0

enum stop_level {
	STOP_NOT,
	STOP_FETCHING, /* USR1: no more claims */
	STOP_SOON,     /* TERM, INT: also no starts; end with the scripts */
	STOP_NOW       /* INT again: also kill the scripts */
};

struct ev_loop;
struct policy;

/* ignored: the signals that this program was started to ignore. */
struct policy *policy_new(struct ev_loop *, const struct options *,
    const struct hand *, struct facts *, const sigset_t *ignored);

/* --- starting --- */

/* Whether a message may start now. */
bool policy_may_start(const struct policy *);
/* One starts. */
void policy_start(struct policy *);
/* How many of `room` more messages of a queue may be claimed; may be below 0.  Without
 * --prefetch, no message is claimed before the rate allows its start; none is claimed
 * beyond --limit. */
long policy_room(const struct policy *, int queue, long room);
/* Whether the runs that --limit allows have all started, with so many messages more. */
bool policy_limit_reached(const struct policy *, long more);

/* A message that has failed before is about to start: for 60 s no ack waits for
 * others.  alone: the message may crash this consumer, so for 60 s none is
 * claimed ahead. */
void policy_be_careful(struct policy *, bool alone);
bool policy_is_careful(const struct policy *, bool alone);

/* --- ending --- */

enum stop_level policy_level(const struct policy *);
/* Whether all commands have been sent KILL. */
bool policy_has_killed(const struct policy *);
/* Whether they were sent a signal so short a time ago that one which obeys may not have
 * ended yet. */
bool policy_has_just_signalled(const struct policy *);
/* Raises the level.  The program ends with this status, or by this signal (0:
 * none), unless an earlier call set one. */
void policy_stop(struct policy *, enum stop_level, int status, int sig);
/* Stops this process, as if SIGTSTP had not been handled, until it is continued. */
void policy_suspend(struct policy *);
/* Notes that a message came or went, for --idle. */
void policy_active(struct policy *);
/* The outcome of a message is confirmed. */
void policy_settled(struct policy *, const struct message *);
/* To be called last; frees.  Returns the exit status, or ends the program by the signal set.
 * failed: the status of a final error, which comes first; 0: none.  If nothing else was
 * set, and --drain, -n or --idle are given: 1 if a message was rejected, else 75 if one
 * was sent back and not ended since. */
int policy_exit(struct policy *, int failed);

#endif
