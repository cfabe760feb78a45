/*
 * What the command lines of all tools have in common.  These functions end
 * the program with exit 64 and one line when the user got it wrong.
 */
#ifndef MQ_OPTIONS_H
#define MQ_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "redis.h"
#include "server.h"

/* The options that every tool takes; a tool adds its own. */
/* clang-format off */
#define MQ_SHARED_SHORT "u:qvhV"
#define MQ_SHARED_LONG                                                         \
	{"url", required_argument, NULL, 'u'},                                 \
	    {"quiet", no_argument, NULL, 'q'},                                 \
	    {"verbose", no_argument, NULL, 'v'},                               \
	    {"help", no_argument, NULL, 'h'},                                  \
	    {"version", no_argument, NULL, 'V'}

/* The shared part of every --help. */
#define MQ_SHARED_HELP                                                         \
	"  -u, --url URL          where the server is: redis://, unix://,\n"    \
	"                         private: (default: MQ_URL, mq/env, private:)\n" \
	"  -q, --quiet            say less\n"                                  \
	"  -v, --verbose          say more\n"                                  \
	"  -h, --help             show this help\n"                            \
	"  -V, --version          show the version\n"
/* The framings, with what --help says of them being the tool's own. */
#define MQ_FRAMING_SHORT "l0"
#define MQ_FRAMING_LONG                                                        \
	{"lines", no_argument, NULL, 'l'},                                     \
	    {"null", no_argument, NULL, '0'},                                  \
	    {"netstring", no_argument, NULL, MQ_OPT_NETSTRING},                \
	    {"jsonl", no_argument, NULL, MQ_OPT_JSONL}
/* clang-format on */

/* Long options without a letter; a tool's own begin with MQ_OPT_OWN. */
enum { MQ_OPT_NETSTRING = 256, MQ_OPT_JSONL, MQ_OPT_OWN };

struct mq_shared {
	char *url; /* NULL: not given; allocated */
	bool quiet, verbose;
	const char *help; /* what --help prints */
};

/*
 * To be called first: a descriptor of 0 to 2 that is closed becomes one that
 * fails when it is used, so that no connection ever takes its number.
 */
void mq_option_descriptors(void);

/*
 * Takes one result of getopt_long(3), called with opterr 0 and a leading ':'
 * (after a '+', if any).  Returns false when it is one of the tool's own.
 * -h and -V print and exit.
 */
bool mq_option_shared(struct mq_shared *, int ch, char *const argv[]);

/* Takes one of the framings.  Returns false when it is another option. */
bool mq_option_framing(enum mq_framing *, int ch);

/* A whole number from min to max. */
long mq_option_number(const char *name, const char *arg, long min, long max);

/* A duration in milliseconds. */
int64_t mq_option_duration(const char *name, const char *arg);

/* Ends with exit 64 unless it can be the name of a queue. */
void mq_option_queue(const char *queue);

/* Finds the server that the options name; ends the program if it cannot. */
void mq_option_server(const struct mq_shared *, struct mq_server *);

#endif
