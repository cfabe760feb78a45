/*
 * What a script says on its verb pipe, and the verdict that follows.
 *
 * A line is VERB[ TEXT]: leading blanks are skipped, blanks separate the verb
 * from the text, the text keeps its own blanks.  Blanks are spaces, tabs and
 * carriage returns (of "done\r\n"); a line of nothing else is no line.  Verbs
 * are case-sensitive.  Known: run, done, relayed (= done), err, fail, fails
 * (= err), resend [DUE[-TEXT]], push [TEXT], pause [SECS[-TEXT]]; any other
 * verb is progress, like run.  dup is, too, but somebody is told at once: see
 * dup.h.  Lines come in any number of reads; the last one needs no newline; a
 * line longer than MQ_VERB_LINE is cut.  The first final verb decides, the last
 * text is the one shown.  DUE and SECS are read as RQ does: "5-b" and "5" are
 * 5, "1_0" is 10, "1.9" is 1, and what does not start with a digit is 0; but
 * the word "tick" as DUE is the next tick.
 *
 * A script that has several messages at once may say of one of them what a
 * verb says of all, with its number as the first word of the text: "done #3",
 * "resend #12 60-later".  A text that begins with '#' and is no such number
 * could be meant for anything, and is an error of the script.
 */
#ifndef MQ_VERB_H
#define MQ_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQ_VERB_LINE 4096

enum mq_verb_final {
	MQ_FINAL_NONE, /* nothing final was said */
	MQ_FINAL_DONE,
	MQ_FINAL_ERR,
	MQ_FINAL_RESEND,
	MQ_FINAL_TICK, /* resend at the next tick */
	MQ_FINAL_PAUSE,
	MQ_FINAL_PUSH
};

/* What was said of one message of several; starts zeroed. */
struct mq_verb_one {
	enum mq_verb_final final;
	int64_t resend_s;
	char *text; /* the last; free(); NULL: none */
};

/* One run's conversation; starts zeroed, owns no memory. */
struct mq_verbs {
	enum mq_verb_final final;
	bool spoke; /* any line came that was not about one of several */
	bool stray; /* one was about a message that there is not */
	struct mq_verb_one *ones; /* the caller's; NULL: the script has one
				   * message */
	int count;		  /* of them */
	int about; /* which of them the last line was about, from 1; 0: all */
	int64_t resend_s; /* RESEND, PAUSE: whole seconds, 0 to 10 years */
	char text[MQ_VERB_LINE + 1]; /* last text about all, NUL-terminated; a
				      * NUL byte from the script became '?' */
	char line[MQ_VERB_LINE];
	size_t line_len;
	/* For each dup, as its line comes: which of several messages, from 0,
	 * -1 when none was named, or count for one that there is not; and its
	 * text, or NULL when the line was too long.  NULL: nobody wants to
	 * know. */
	void (*on_dup)(void *arg, int which, const char *text);
	void *arg;
};

/* Begins another one, as if zeroed, without touching all the memory. */
void mq_verbs_begin(struct mq_verbs *);

/* A DUE, which begins at s. */
int64_t mq_verb_due(const char *s);

/* Takes n more bytes from the pipe. */
void mq_verbs_feed(struct mq_verbs *, const char *p, size_t n);

/* Takes the next of n bytes, not beyond the end of a line; how many. */
size_t mq_verbs_feed_line(struct mq_verbs *, const char *p, size_t n);

/* The last text, be it about all or about one; valid until the next line. */
const char *mq_verbs_text(const struct mq_verbs *);

/* What was said is over; the next message begins. */
void mq_verbs_next(struct mq_verbs *);

/* The pipe has ended (or is given up): takes a last line without newline. */
void mq_verbs_end(struct mq_verbs *);

enum mq_verdict_kind {
	MQ_VERDICT_DONE,
	MQ_VERDICT_ERR,	   /* reject, with reason */
	MQ_VERDICT_RESEND, /* again after resend_s */
	MQ_VERDICT_TICK,   /* again, at the next tick */
	MQ_VERDICT_PAUSE,  /* again after resend_s, and the whole queue, too */
	MQ_VERDICT_PUSH,   /* on to the next queue */
	MQ_VERDICT_RETRY,  /* again, after a backoff that the consumer picks */
	MQ_VERDICT_STOP	   /* the command cannot run at all: give the
			    * message back and stop the consumer */
};

struct mq_verdict {
	enum mq_verdict_kind kind;
	int64_t resend_s; /* RESEND and PAUSE only */
	int status;	  /* as it was given: from waitpid(2) */
	/* What to show or record; empty when nothing was said.  Control characters
	 * of the script are still in it. */
	char reason[MQ_VERB_LINE + 128];
};

/*
 * Judges one run.  status is from waitpid(2); timed_out says that we ended it
 * because its time was up; strict makes silence an error, as RQ does.
 *
 *  - err stands whatever the exit status.
 *  - any other final verb with a non-zero exit or a signal: ERR.
 *  - no final verb but some line: ERR (also for 75, 126 and 127).
 *  - silence: 0 = DONE (strict: ERR), 75 = RETRY, 126 and 127 = STOP,
 *    anything else or a signal = ERR.  (strict: 75, 126, 127 keep meaning
 *    what they mean.)
 *  - timed_out: a final verb with exit 0 stands, anything else is ERR
 *    "timed out" (err keeps its own text).
 */
void mq_verdict(const struct mq_verbs *, int status, bool timed_out,
    bool strict, struct mq_verdict *out);

/*
 * The same for one of several messages, from 0.
 *
 *  - the script was killed by a signal, and not by us: nobody knows which of
 *    them did that, so it is RETRY for all; only an err stands.
 *  - a final verb about this one stands whatever the exit status.
 *  - otherwise it shares what mq_verdict() says; but ERR instead of any good
 *    end when the script spoke of a message that there is not.
 */
void mq_verdict_one(const struct mq_verbs *, int which, int status,
    bool timed_out, bool strict, struct mq_verdict *out);

#endif
