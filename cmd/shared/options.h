/*
 * What the command lines of all tools have in common.  These functions end
 * the program with exit 64 and one line when the user got it wrong.
 */
#ifndef MQ_OPTIONS_H
#define MQ_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "message/frame.h"
#include "queue/queue.h"
#include "queue/rights.h"
#include "redis/connection.h"
#include "redis/server.h"

/* The options that every tool takes; a tool adds its own. */
/* clang-format off */
#define MQ_SHARED_SHORT "u:L:qvhV"
#define MQ_SHARED_LONG                                                         \
	{"url", required_argument, NULL, 'u'},                                 \
	    {"layout", required_argument, NULL, 'L'},                          \
	    {"quiet", no_argument, NULL, 'q'},                                 \
	    {"verbose", no_argument, NULL, 'v'},                               \
	    {"help", no_argument, NULL, 'h'},                                  \
	    {"version", no_argument, NULL, 'V'},                               \
	    {"print-acl", no_argument, NULL, MQ_OPT_PRINT_ACL}

/* The shared part of every --help. */
#define MQ_SHARED_HELP                                                         \
	"  -u, --url URL          where the server is: redis://, unix://,\n"    \
	"                         private: (default: MQ_URL, mq/env, private:)\n" \
	"  -L, --layout LAYOUT    rmq (default) or rsmq: whose keys it has\n"  \
	"  -q, --quiet            say less\n"                                  \
	"  -v, --verbose          say more\n"                                  \
	"  -h, --help             show this help\n"                            \
	"  -V, --version          show the version\n"                          \
	"      --print-acl        print what a user needs, for ACL SETUSER\n"
/* The framings, with what --help says of them being the tool's own. */
#define MQ_FRAMING_SHORT "l0"
#define MQ_FRAMING_LONG                                                        \
	{"lines", no_argument, NULL, 'l'},                                     \
	    {"null", no_argument, NULL, '0'},                                  \
	    {"netstring", no_argument, NULL, MQ_OPT_NETSTRING},                \
	    {"jsonl", no_argument, NULL, MQ_OPT_JSONL}
/* clang-format on */

/* Long options without a letter; a tool's own begin with MQ_OPT_OWN. */
enum { MQ_OPT_NETSTRING = 256, MQ_OPT_JSONL, MQ_OPT_PRINT_ACL, MQ_OPT_OWN };

struct mq_shared {
	char *url; /* NULL: not given; allocated */
	bool quiet, verbose;
	bool print_acl;
	const char *help;		/* what --help prints */
	const struct option *options;	/* the tool's long ones */
	const struct mq_layout *layout; /* NULL: not given, and not found yet */
	unsigned noted;			/* see mq_option_note() */
	char **names;			/* see mq_option_queue() */
	size_t name_count;
};

/* Frees what the others have allocated. */
void mq_option_free(struct mq_shared *);

/*
 * To be called first.  Memory that the libraries lack ends the program, as xalloc.h
 * says.  If one of the descriptors 0 to 2 is closed, /dev/null takes its place, so
 * that no connection ever gets its number; standard input cannot be read then, nor
 * standard output be written to.  A server or a reader that goes away is an error
 * like any other, and no signal; other signals end the first process of a
 * container, too.
 */
void mq_option_begin(void);

/* Payloads come from standard input: ends with exit 74 if it cannot be read. */
void mq_option_reads(void);

/*
 * Whether the tool prints results on standard output.  If it does, and cannot write
 * there, it ends with exit 74: to be called before anything is changed.  If it does
 * not, what its children write there goes to /dev/null.
 */
void mq_option_prints(bool results);

/*
 * Takes one result of getopt_long(3), called with opterr 0 and a leading ':'
 * (after a '+', if any).  Returns false when it is one of the tool's own.
 * -h and -V print and exit.
 */
bool mq_option_shared(struct mq_shared *, int ch, char *const argv[]);

/*
 * With --print-acl, prints what a tool (as of rights.h) needs for the queues
 * that are named, or for any queue, and exits.  For when all options are known.
 */
void mq_option_rights(
    struct mq_shared *, unsigned tool, char *operands[], int count);

/* Takes one of the framings, which begins as MQ_FRAME_WHOLE.  Returns false
 * when it is another option. */
bool mq_option_framing(enum mq_framing *, int ch);

/*
 * For an option that takes a duration behind a '=' only, and has none: ends
 * with exit 64 when the next word is one, which would be taken for a queue.
 */
void mq_option_no_duration(const char *name, char *const argv[]);

/* A whole number from min to max. */
long mq_option_number(const char *name, const char *arg, long min, long max);

/* A duration in milliseconds. */
int64_t mq_option_duration(const char *name, const char *arg);

/*
 * Finds the server that the options name, and the layout of its queues: that
 * of -L, of the URL, of MQ_LAYOUT, or rmq.  Returns 0, or an mq_exit status
 * with one line in error.
 */
int mq_option_find(
    struct mq_shared *, struct mq_server *, char *error, size_t error_size);
/* The same; ends the program if it cannot.  Returns the layout. */
const struct mq_layout *mq_option_server(
    struct mq_shared *, struct mq_server *);

/*
 * The name by which the layout, which has been found, knows the queue that the
 * user calls so: with its namespace in front, if the URL has one.  Ends with
 * exit 64 unless it can be the name of a queue.
 */
const char *mq_option_queue(
    struct mq_shared *, const struct mq_server *, const char *queue);

/* The same for operands, in place. */
void mq_option_queues(
    struct mq_shared *, const struct mq_server *, char *operands[], int count);

/* An option that needs something that not every layout has (MQ_HAS_*). */
struct mq_need {
	int ch;		    /* as getopt_long(3) returns it; the last: 0 */
	const char *option; /* as the user knows it */
	unsigned what;
};
/* Notes which of them are given; the check is for when the layout is known,
 * and ends with exit 64 if it lacks what one of them needs. */
void mq_option_note(struct mq_shared *, const struct mq_need *, int ch);
void mq_option_check(const struct mq_shared *, const struct mq_need *);

/* Says that there is no such queue, and where there is one.  Waits. */
void mq_option_unknown(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* Says that a queue was made, to a person or with -v: its name may have been
 * mistyped.  Waits. */
void mq_option_made(
    const struct mq_shared *, struct mq_redis *, const char *queue);

/* Ends with exit 64 unless the layout has what an option needs (MQ_HAS_*). */
void mq_option_needs(
    const struct mq_shared *, const char *option, unsigned what);

#endif
