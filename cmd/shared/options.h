/*
 * The folder cmd/shared: what several tools have in common: startup, options,
 * operands, filters, selections, progress.  Files here may call everything in common/
 * but the files of a layout, and never a tool.  Unlike common/, they may print and
 * exit.
 *
 * The options that all tools share.  A wrong command line ends the program with exit
 * 64 and one line.
 */
#ifndef MQ_OPTIONS_H
#define MQ_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rate.h"
#include "message/frame.h"
#include "operands.h"
#include "queue/queue.h"
#include "queue/rights.h"
#include "startup.h"

/* The options that every tool takes; a tool adds its own. */
/* clang-format off */
#define MQ_SHARED_SHORT "u:L:qvhV"
#define MQ_SHARED_LONG                                                         \
	{"url", required_argument, NULL, 'u'},                                 \
	    {"layout", required_argument, NULL, 'L'},                          \
	    {"quiet", no_argument, NULL, 'q'},                                 \
	    {"verbose", no_argument, NULL, 'v'},                               \
	    {"help", optional_argument, NULL, 'h'},                                  \
	    {"version", no_argument, NULL, 'V'},                               \
	    {"print-acl", no_argument, NULL, MQ_OPT_PRINT_ACL}

/* The shared part of every --help. */
#define MQ_SHARED_HELP                                                         \
	"+ -u, --url URL          where the server is: redis[s]://, unix://,\n"    \
	"                         private: (default: MQ_URL, mq/env, private:)\n" \
	"  -L, --layout LAYOUT    queue format: rmq (default) or rsmq\n"       \
	"  -q, --quiet            say less\n"                                  \
	"  -v, --verbose          say more\n"                                  \
	"  -h, --help[=all]       show the options that matter most, or all\n"                            \
	"  -V, --version          show the version\n"                          \
	"      --print-acl        print what a user needs, for ACL SETUSER\n"
/* Of a tool that makes the queues that it is given. */
#define MQ_MAKES_LONG                                                          \
	{"existing", no_argument, NULL, MQ_OPT_EXISTING},                      \
	    {"new", no_argument, NULL, MQ_OPT_NEW}
#define MQ_MAKES_HELP                                                          \
	"      --existing         exit 1 if there is no such queue, make none\n"   \
	"      --new              a new queue is meant: do not note that it is\n"
/* The framings, with what --help says of them being the tool's own. */
#define MQ_FRAMING_SHORT "l0"
#define MQ_FRAMING_LONG                                                        \
	{"lines", no_argument, NULL, 'l'},                                     \
	    {"null", no_argument, NULL, '0'},                                  \
	    {"netstring", no_argument, NULL, MQ_OPT_NETSTRING},                \
	    {"jsonl", no_argument, NULL, MQ_OPT_JSONL}
/* clang-format on */

/* Long options without a letter; a tool's own begin with MQ_OPT_OWN. */
enum {
	MQ_OPT_NETSTRING = 256,
	MQ_OPT_JSONL,
	MQ_OPT_PRINT_ACL,
	MQ_OPT_EXISTING,
	MQ_OPT_NEW,
	MQ_OPT_OWN
};

struct mq_shared {
	char *url; /* NULL: not given; allocated */
	bool quiet, verbose;
	bool names_server; /* which is all that -v does */
	bool print_acl;
	bool existing;	  /* no queue is to be made */
	bool fresh;	  /* or one is, and that needs no note */
	const char *help; /* what --help=all prints; --help only what is
					 * ahead of the options, and those with '+' */
	const struct option *options;	/* the tool's long ones */
	const struct mq_layout *layout; /* NULL: not given, and not found yet */
	unsigned noted;			/* see mq_option_note() */
	const char *targets[2];		/* see mq_option_target() */
	int target_count;
	char **names; /* see mq_option_queue() */
	size_t name_count;
};

/* Frees what the others have allocated. */
void mq_option_free(struct mq_shared *);

/* getopt_long(3), with the tool's long options. */
int mq_option_next(
    const struct mq_shared *, int argc, char *argv[], const char *letters);

/* The option that mq_option_next() has returned as the user wrote it: its letter,
 * or the long name that is given.  What is no name of that option is left alone. */
const char *mq_option_typed(const char *name);

/*
 * Takes one result of mq_option_next(), called with opterr 0 and a leading ':'
 * (after a '+', if any).  Returns false when it is one of the tool's own.
 * -h and -V print and exit.
 */
bool mq_option_shared(struct mq_shared *, int ch, char *const argv[]);

/* Takes one of the framings, which begins as MQ_FRAME_WHOLE.  Returns false
 * when it is another option. */
bool mq_option_framing(enum mq_framing *, int ch);

/* The long option of a framing other than MQ_FRAME_WHOLE. */
const char *mq_option_framing_name(enum mq_framing);

/* The argument of an option that need not have one: behind a '=', or the next word if
 * that is a duration; NULL: none. */
char *mq_option_next_duration(char *const argv[]);

/* A whole number from min to max. */
long mq_option_number(const char *name, const char *arg, long min, long max);

/* A duration in milliseconds. */
int64_t mq_option_duration(const char *name, const char *arg);

/* A rate, as mq_rate_parse() reads it. */
void mq_option_rate(const char *name, const char *arg, struct mq_rate *);

#endif
