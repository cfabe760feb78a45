/*
 * Policy: how fast messages may start, how carefully, and when to end.  It
 * owns the rate, the count of runs, the stop levels, and the signals that
 * raise them.  Whatever a level means for the others is for the engine.
 */
#ifndef MQ_CONSUME_POLICY_H
#define MQ_CONSUME_POLICY_H

#include <signal.h>
#include <stdbool.h>

#include <ev.h>

#include "base/rate.h"
#include "options.h"

enum stop_level {
	STOP_NOT,
	STOP_FETCHING, /* USR1: no more claims */
	STOP_SOON,     /* TERM, INT: and end when the scripts have ended */
	STOP_NOW       /* and do not wait for them */
};

struct policy_events {
	/* Something that was not allowed may be so now. */
	void (*wake)(void *arg);
	/* A signal asks to end, before the level rises. */
	void (*asked)(void *arg);
	/* The level is higher than it was. */
	void (*stop)(void *arg, enum stop_level);
	/* Whether any command runs; it is sent sig then. */
	bool (*kill)(void *arg, int sig);
	/* The last grace time is over. */
	void (*give_up)(void *arg);
	/* Nothing has happened for --idle; true: and there is nothing to do. */
	bool (*idle)(void *arg);
	/* Log files are to be opened anew. */
	void (*reopen_logs)(void *arg);
};

struct policy {
	struct ev_loop *loop;
	const struct options *opt;
	const struct policy_events *events;
	void *arg;
	struct mq_bucket bucket;
	long started;	      /* runs */
	double careful_until; /* steady time */
	double alone_until;   /* the same */
	enum stop_level stop;
	bool killed;	   /* all that runs has had its KILL */
	bool hup_ends;	   /* it is not ignored */
	bool had_terminal; /* a controlling one, when we were started */
	int exit_status, exit_signal;
	ev_signal signals[4];
	ev_timer rate_timer, grace_timer, idle_timer;
};

/* ignored: the signals that this program was started to ignore. */
void policy_init(struct policy *, struct ev_loop *, const struct options *,
    const sigset_t *ignored, const struct policy_events *, void *arg);

/* --- starting --- */

/* Whether a message may start now. */
bool policy_may_start(const struct policy *);
/* One has; or it has been taken back, as if it had not. */
void policy_started(struct policy *);
void policy_unstarted(struct policy *);
/*
 * How many of `room` more messages may be claimed, with `held` unstarted, so
 * that none waits here for the rate, unless --prefetch wants that, and none is
 * beyond --limit; may be below 0.  batch: messages for one script, of which
 * `gathered` are there; 0: none gather.
 */
long policy_room(
    const struct policy *, long room, long held, int gathered, int batch);
/* Whether the runs that --limit allows have all started. */
bool policy_limit_reached(const struct policy *, long held);

/* --- caution --- */

/* A message that has failed before is about to start: for a while, no ack
 * waits for others.  alone: it may be the end of us, too, so for a while
 * nothing is claimed ahead. */
void policy_be_careful(struct policy *, bool alone);
bool policy_is_careful(const struct policy *);
bool policy_is_alone(const struct policy *);

/* How long a slot rests after so many failures in a row, in seconds. */
double policy_rest_s(const struct policy *, int failures);

/* --- ending --- */

enum stop_level policy_level(const struct policy *);
/* Raises the level; the program ends with this status, or by this signal (0:
 * none), unless it was to end otherwise before. */
void policy_stop(struct policy *, enum stop_level, int status, int sig);
/* The program ends with this status, whatever was said before. */
void policy_fail(struct policy *, int status);
/* Whether what runs has been killed. */
bool policy_killed(const struct policy *);
/* A message came or went. */
void policy_active(struct policy *);
/* Ends the program by its signal, if there was one; else returns its status. */
int policy_exit(const struct policy *);

#endif
