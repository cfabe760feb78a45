/*
 * What a script writes, and how its run is judged by that and by its end.
 */
#ifndef MQ_VERDICT_H
#define MQ_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- verbs -------------------------------------------------------------- */

/*
 * The verbs that a script writes to its pipe.
 *
 * A line is VERB[ TEXT]: leading blanks are skipped, blanks separate the verb from the
 * text, which keeps its own.  Blanks are spaces, tabs and carriage returns (of "done\r\n");
 * a line of nothing else is no line.  A line longer than MQ_VERB_LINE is cut.  Known, in
 * this case: run, done, relayed (= done), err, fail, fails (= err), resend [DUE[-TEXT]], push [TEXT], pause
 * [SECS[-TEXT]], and dup (see queue/dup.h); any other verb is progress, like run, but may be
 * a slip for a final one, and is remembered.  The first final verb decides, the last text
 * is the one shown.  DUE and SECS are read as RQ does: "5-b" and "5" are 5, "1_0" is 10,
 * "1.9" is 1, and a word that does not start with a digit is 0; but the word "tick" as DUE
 * is the next tick.  A DUE without a TEXT is not shown.
 *
 * For a script that has several messages at once, a verb is about all of them, or about
 * one if the text begins with its number: "done #3", "resend #12 60-later".  Another text
 * that begins with '#' is an error of the script.
 */
#define MQ_VERB_LINE 4096
#define MQ_VERB_WORD 24 /* bytes that are remembered of an unknown verb */

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
	char *text; /* the last; free(); NULL: none */
	char unknown[MQ_VERB_WORD + 1];
};

/* The verbs of one run; starts zeroed, owns no memory. */
struct mq_verbs {
	enum mq_verb_final final;
	bool spoke; /* any line came that was not about one of several */
	bool stray; /* one was about a message that does not exist */
	/* The last unknown verb about all, in printable ASCII; empty: none. */
	char unknown[MQ_VERB_WORD + 1];
	struct mq_verb_one *ones; /* the caller's; NULL: the script has one
				   * message */
	int count;		  /* of them */
	int about; /* which of them the last line was about, from 1; 0: all */
	int64_t resend_s; /* RESEND, PAUSE: whole seconds, 0 to 10 years */
	char text[MQ_VERB_LINE + 1]; /* last text about all, NUL-terminated; a
				      * NUL byte from the script became '?' */
	char line[MQ_VERB_LINE + 1];
	size_t line_len;
	/* Called for each dup, as its line comes, or NULL.  which: of several messages,
	 * from 0; -1: none was named; count: one that does not exist.  text: NULL if the
	 * line was too long. */
	void (*on_dup)(void *arg, int which, const char *text);
	void *arg;
};

/* Begins another run, as if zeroed, without touching all the memory. */
void mq_verbs_begin(struct mq_verbs *);

/* The DUE that begins at s, in seconds. */
int64_t mq_verb_due(const char *s);

/* Takes n more bytes from the pipe.  When the pipe has ended (or is given up), a newline
 * ends a last line without one. */
void mq_verbs_feed(struct mq_verbs *, const char *p, size_t n);

/* Takes the next of n bytes, not beyond the end of a line; returns how many. */
size_t mq_verbs_feed_line(struct mq_verbs *, const char *p, size_t n);

/* Begins the next message of the same run. */
void mq_verbs_next(struct mq_verbs *);

/* --- verdict ------------------------------------------------------------ */

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
 * Judges a run of this status of waitpid(2); timed_out: we ended it, as its time was up.
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
