/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The verbs that a script writes, and the verdict on its run. */
#ifndef MQ_VERDICT_H
#define MQ_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- verbs -------------------------------------------------------------- */

/*
 * A line on a script's pipe is VERB[ TEXT]: leading blanks are skipped, and blanks separate
 * the verb from the text, which keeps its own.  Blanks are spaces, tabs and carriage returns
 * (of "done\r\n"); a blank line is ignored.  A line longer than MQ_VERB_LINE is cut.
 *
 * Known verbs, in lower case: run, done, relayed (= done), err, fail, fails (= err), resend
 * [DUE[-TEXT]], push [TEXT], pause [SECS[-TEXT]], and dup (see queue/dup.h).  Any other verb
 * is progress, like run, but is remembered: it may be a slip for a final one.  The first
 * final verb decides, the last text is shown.
 *
 * DUE and SECS are read as in RQ: "5-b" and "5" are 5, "1_0" is 10, "1.9" is 1, and a word
 * that does not start with a digit is 0; but "tick" as DUE is the next tick.  A DUE without
 * a TEXT is not shown.
 *
 * If a script has several messages at once, a verb is about all of them, or, if the text
 * begins with a number, about one: "done #3", "resend #12 60-later".  Any other text that
 * begins with '#' is an error of the script.
 */
#define MQ_VERB_LINE 4096
#define MQ_VERB_WORD 24 /* bytes of an unknown verb that are remembered */

enum mq_verb_final {
	MQ_FINAL_NONE, /* no final verb came */
	MQ_FINAL_DONE,
	MQ_FINAL_ERR,
	MQ_FINAL_RESEND,
	MQ_FINAL_TICK, /* resend at the next tick */
	MQ_FINAL_PAUSE,
	MQ_FINAL_PUSH
};

/* The verbs about one message of several; starts zeroed. */
struct mq_verb_one {
	enum mq_verb_final final;
	int64_t resend_s;
	char *text; /* the last one; free(); NULL: none */
	char unknown[MQ_VERB_WORD + 1];
};

/* The verbs of one run; starts zeroed, owns no memory. */
struct mq_verbs {
	enum mq_verb_final final;
	bool spoke; /* a line came that was about all messages */
	bool stray; /* a line named a message that does not exist */
	/* The last unknown verb about all, in printable ASCII; empty: none. */
	char unknown[MQ_VERB_WORD + 1];
	struct mq_verb_one *ones; /* the caller's; NULL: one message */
	int count;		  /* elements of ones */
	int about;	  /* the message of the last line, from 1; 0: all */
	int64_t resend_s; /* RESEND, PAUSE: whole seconds, 0 to 10 years */
	char text[MQ_VERB_LINE + 1]; /* last text about all; '?' for NULs */
	char line[MQ_VERB_LINE + 1];
	size_t line_len;
	/* Called for each dup when its line is complete, or NULL.  which: index of the
	 * message; -1: none was named; count: it does not exist.  text: NULL if the line
	 * was too long. */
	void (*on_dup)(void *arg, int which, const char *text);
	void *arg;
};

/* Resets for another run, without the cost of zeroing all. */
void mq_verbs_begin(struct mq_verbs *);

/* The DUE that begins at s, in seconds. */
int64_t mq_verb_due(const char *s);

/* The percentage at the beginning of the text of a verb: "40%", or "40% TEXT", with 0 to 100.
 * -1: there is none. */
int mq_verb_percent(const char *text);

/* Parses n more bytes from the pipe.  At its end, the caller adds a newline for a last line
 * without one. */
void mq_verbs_feed(struct mq_verbs *, const char *p, size_t n);

/* Parses the next of n bytes, up to the end of a line, and returns their number. */
size_t mq_verbs_feed_line(struct mq_verbs *, const char *p, size_t n);

/* Begins the next message of the same run. */
void mq_verbs_next(struct mq_verbs *);

/* --- verdict ------------------------------------------------------------ */

enum mq_verdict_kind {
	MQ_VERDICT_DONE,
	MQ_VERDICT_ERR,	   /* reject, with reason */
	MQ_VERDICT_RESEND, /* again after resend_s */
	MQ_VERDICT_TICK,   /* again at the next tick */
	MQ_VERDICT_PAUSE,  /* again after resend_s, and the whole queue, too */
	MQ_VERDICT_PUSH,   /* on to the next queue */
	MQ_VERDICT_RETRY,  /* again after a backoff of the consumer's choice */
	MQ_VERDICT_BROKEN, /* like RETRY; in a row: the command cannot run */
	MQ_VERDICT_STOPPED /* by an operator; no verb means this */
};

struct mq_verdict {
	enum mq_verdict_kind kind;
	int64_t resend_s;	     /* RESEND and PAUSE only */
	int status;		     /* from waitpid(2) */
	char text[MQ_VERB_LINE + 1]; /* the last text, unfiltered */
	char how[64]; /* how the run ended, in words; empty: as usual */
};

/* Without a final verb. */
enum mq_strict {
	MQ_NOT_STRICT, /* the exit status decides */
	MQ_STRICT,     /* exit status 0 is an error */
	MQ_STRICT_RQ   /* every exit status is an error, as in RQ */
};

/*
 * Judges a run with a status from waitpid(2); timed_out: mq-consume ended it.
 *
 *  - err stands whatever the exit status.
 *  - any other final verb with a non-zero exit or a signal: ERR.
 *  - no final verb, but an unknown one, or strict and any line: ERR (even with 75, 126
 *    or 127).
 *  - otherwise: 0 = DONE (strict: ERR), 75 = RETRY, 126 and 127 = BROKEN
 *    (MQ_STRICT_RQ: all these ERR), anything else or a signal = ERR.
 *  - timed_out: a final verb with exit 0 stands, anything else is ERR
 *    "timed out" (err keeps its own text).
 */
void mq_verdict(const struct mq_verbs *, int status, bool timed_out,
    enum mq_strict, struct mq_verdict *out);

/*
 * Judges one of several messages of a run, by its index.
 *
 *  - the script was killed by a signal, but not by mq-consume: RETRY for all, since any
 *    message may have caused that; only an err stands.
 *  - a final verb about this message stands whatever the exit status.
 *  - otherwise the verdict is that of mq_verdict(); but a run that ended well is ERR if a
 *    verb named a message that does not exist.
 */
void mq_verdict_one(const struct mq_verbs *, int which, int status,
    bool timed_out, enum mq_strict, struct mq_verdict *out);

/* The verdict on a run that was ended for an operator. */
void mq_verdict_stopped(int status, struct mq_verdict *out);

/* How a run with a status from waitpid(2) ended, in words. */
void mq_verdict_end(int status, char *out, size_t size);

/*
 * The reason of a verdict for people, in at most size bytes: the last text, else the last
 * line of stderr (errors) without control characters; then how the run ended, in parentheses,
 * never cut off.  Empty: nothing is known.
 */
void mq_verdict_reason(
    const struct mq_verdict *, const char *errors, char *out, size_t size);

#endif
