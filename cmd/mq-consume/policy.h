/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The policy says how fast messages may start, how carefully, and when to end.  It owns the
 * rate, the stop levels and the signals that raise them; the engine carries out what a level
 * means. */
#ifndef MQ_CONSUME_POLICY_H
#define MQ_CONSUME_POLICY_H

#include <signal.h>

#include "fact.h"
#include "hand.h"

/* Seconds that a command has to end after TERM, or after the end of one of its descriptors; and
 * for the last settlements. */
#define KILL_AFTER 5.0

enum stop_level {
	STOP_NOT,
	STOP_FETCHING, /* USR1: no more claims */
	STOP_SOON,     /* TERM, INT: also no starts; end after the last run */
	STOP_NOW       /* INT again: also kill the commands */
};

struct ev_loop;
struct policy;

/* ignored: the signals that were ignored when this program was started. */
struct policy *policy_new(struct ev_loop *, const struct options *,
    const struct hand *, struct facts *, const sigset_t *ignored);

/* --- starting --- */

/* Whether the rate allows a message to start now; policy_start() counts one that starts. */
bool policy_may_start(const struct policy *);
void policy_start(struct policy *);
/* How many of `room` more messages of a queue may be claimed; may be below 0.  Without
 * --prefetch, no message is claimed before the rate allows its start; none is claimed
 * beyond --limit. */
long policy_room(const struct policy *, int queue, long room);
/* Whether --limit allows no run beyond those begun and `more` others. */
bool policy_limit_reached(const struct policy *, long more);

/* A message that has failed before is about to start: for 60 s no ack waits for others.
 * alone: the message may crash this consumer, so for 60 s no message is claimed ahead. */
void policy_be_careful(struct policy *, bool alone);
bool policy_is_careful(const struct policy *, bool alone);

/* --- ending --- */

enum stop_level policy_level(const struct policy *);
/* Whether all commands have been sent KILL. */
bool policy_has_killed(const struct policy *);
/* Whether commands were sent a signal less than 1 s ago, and so may be about to end. */
bool policy_has_just_signalled(const struct policy *);
/* Raises the level.  The program ends with the status, or by the signal (0: none), of the first
 * call that has either. */
void policy_stop(struct policy *, enum stop_level, int status, int sig);
/* Stops this process until SIGCONT: the shell sees a stopped job. */
void policy_suspend(struct policy *);
/* Notes that a message came or went, for --idle. */
void policy_active(struct policy *);
/* A run of the message has given it its outcome: with --halt, enough rejected ones stop the
 * consumer. */
void policy_ran(struct policy *, const struct message *);
/* The outcome of a message is confirmed. */
void policy_settled(struct policy *, const struct message *);
/* Frees the policy, and returns the exit status, or ends the program by the signal set: to be
 * called last.  failed: the status of a final error, which goes first; 0: none.  If no status
 * or signal was set, and --drain, -n or --idle are given: 1 if a message was rejected, else 75
 * if a message was sent back and not ended since. */
int policy_exit(struct policy *, int failed);

#endif
