/* The policy says how fast messages may start, how carefully, and when to end.
 * The policy owns the rate, the count of runs, the stop levels and the signals
 * that raise them.  The policy calls no other module: the engine carries out
 * what a level means. */
#ifndef MQ_CONSUME_POLICY_H
#define MQ_CONSUME_POLICY_H

#include <signal.h>

#include <ev.h>

#include "fact.h"

/* So many in a row say that the command is broken, and not the messages. */
#define POLICY_BROKEN 10

/* Seconds from TERM to KILL of a command; and from the end of one of its descriptors to
 * its own, and for the last settlements. */
#define KILL_AFTER 5.0

enum stop_level {
	STOP_NOT,
	STOP_FETCHING, /* USR1: no more claims */
	STOP_SOON,     /* TERM, INT: also no starts; end with the scripts */
	STOP_NOW       /* INT again: also kill the scripts */
};

struct policy {
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	fact_fn *hear;
	void *arg;

	/* Others read these. */
	enum stop_level stop;
	bool killed;	  /* all commands have been sent KILL */
	double signalled; /* steady time of the last signal to all of them */

	struct mq_bucket bucket;
	long started;		 /* count of runs */
	double careful_until[2]; /* steady time; [1]: alone */
	int broken; /* messages in a row for which the command could not run */
	char broken_ids[POLICY_BROKEN][MQ_ID_MAX + 1];
	bool hup_ends;	   /* HUP was not ignored at the start */
	bool had_terminal; /* a controlling terminal, at the start */
	int exit_status, exit_signal;
	bool rejected; /* a message, for good, and not one of a dead consumer */
	json_t *owed; /* by the ids of messages sent back and not ended since */
	ev_signal signals[5];
	ev_timer rate_timer, grace_timer, idle_timer;
};

/* ignored: the signals that this program was started to ignore. */
void policy_init(struct policy *, const sigset_t *ignored);

/* --- starting --- */

/* Whether a message may start now. */
bool policy_may_start(const struct policy *);
/* Counts a start, or takes it back. */
void policy_started(struct policy *);
void policy_unstarted(struct policy *);
/* How many of `room` more messages may be claimed, with `held` unstarted; may be
 * below 0.  Without --prefetch, no message is claimed before the rate allows
 * its start; none is claimed beyond --limit.  gathered: held for the next batch. */
long policy_room(const struct policy *, long room, long held, int gathered);
/* Whether the runs that --limit allows have all started. */
bool policy_limit_reached(const struct policy *, long held);

/* --- caution --- */

/* A message that has failed before is about to start: for 60 s no ack waits for
 * others.  alone: the message may crash this consumer, so for 60 s none is
 * claimed ahead. */
void policy_be_careful(struct policy *, bool alone);
bool policy_is_careful(const struct policy *, bool alone);

/* A run of the message has ended; broken: as if the command could not run.  True: the
 * tenth in a row that ended so, each of another message. */
bool policy_ran(struct policy *, const char *id, bool broken);
/* Whether ten have ended so, and none otherwise since. */
bool policy_is_broken(const struct policy *);
/* How long a slot rests after that many failures in a row, in seconds. */
double policy_rest_s(const struct policy *, int failures);

/* --- ending --- */

/* Raises the level.  The program ends with this status, or by this signal (0:
 * none), unless an earlier call set one. */
void policy_stop(struct policy *, enum stop_level, int status, int sig);
/* Notes that a message came or went, for --idle. */
void policy_active(struct policy *);
/* The outcome of a message is confirmed. */
void policy_settled(struct policy *, const struct message *);
/* To be called last.  Returns the exit status, or ends the program by the signal set.
 * failed: the status of a final error, which comes first; 0: none.  If nothing else was
 * set, and --drain, -n or --idle are given: 1 if a message was rejected, else 75 if one
 * was sent back and not ended since. */
int policy_exit(struct policy *, int failed);

#endif
