/*
 * Judges a run by its verbs and its end.
 */
#ifndef MQ_VERDICT_H
#define MQ_VERDICT_H

#include "verb.h"

enum mq_verdict_kind {
	MQ_VERDICT_DONE,
	MQ_VERDICT_ERR,	   /* reject, with reason */
	MQ_VERDICT_RESEND, /* again after resend_s */
	MQ_VERDICT_TICK,   /* again, at the next tick */
	MQ_VERDICT_PAUSE,  /* again after resend_s, and the whole queue, too */
	MQ_VERDICT_PUSH,   /* on to the next queue */
	MQ_VERDICT_RETRY,  /* again, after a backoff that the consumer picks */
	MQ_VERDICT_BROKEN, /* as RETRY; but if others end so, too, it is the command
			    * that cannot run */
	MQ_VERDICT_STOPPED /* by an operator; no verb means this */
};

struct mq_verdict {
	enum mq_verdict_kind kind;
	int64_t resend_s;	     /* RESEND and PAUSE only */
	int status;		     /* from waitpid(2) */
	char text[MQ_VERB_LINE + 1]; /* the last text, unfiltered */
	char how[64]; /* how the run ended, in words; empty: as usual */
};

/* What the lack of a final verb means: the exit status decides; 0 is an error; or any
 * status is, as in RQ. */
enum mq_strict { MQ_NOT_STRICT, MQ_STRICT, MQ_STRICT_RQ };

/*
 * Judges one run.  status is from waitpid(2); timed_out: we ended the run because its
 * time was up.
 *
 *  - err stands whatever the exit status.
 *  - any other final verb with a non-zero exit or a signal: ERR.
 *  - no final verb, but an unknown one, or strict and any line: ERR (also for 75, 126
 *    and 127).
 *  - otherwise: 0 = DONE (strict: ERR), 75 = RETRY, 126 and 127 = BROKEN
 *    (MQ_STRICT_RQ: all these ERR), anything else or a signal = ERR.
 *  - timed_out: a final verb with exit 0 stands, anything else is ERR
 *    "timed out" (err keeps its own text).
 */
void mq_verdict(const struct mq_verbs *, int status, bool timed_out,
    enum mq_strict, struct mq_verdict *out);

/*
 * The same for one of several messages, from 0.
 *
 *  - the script was killed by a signal, and not by us: RETRY for all, as nobody knows
 *    which message caused that; only an err stands.
 *  - a final verb about this message stands whatever the exit status.
 *  - otherwise the verdict is that of mq_verdict(), but ERR instead of any good end
 *    if a verb was about a message that does not exist.
 */
void mq_verdict_one(const struct mq_verbs *, int which, int status,
    bool timed_out, enum mq_strict, struct mq_verdict *out);

/* We ended the run, of this status, for an operator. */
void mq_verdict_stopped(int status, struct mq_verdict *out);

/* How a run with a status from waitpid(2) ended, in words. */
void mq_verdict_end(int status, char *out, size_t size);

/*
 * The reason of a verdict, for people, in at most size bytes: the last text,
 * else the last line of stderr, errors, made fit to print; then how the run ended, in
 * parentheses, which are never cut off.  Empty if nothing is known.
 */
void mq_verdict_reason(
    const struct mq_verdict *, const char *errors, char *out, size_t size);

#endif
