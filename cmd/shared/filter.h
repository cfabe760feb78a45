/*
 * Which messages are meant: the filters that tools have in common.  All that
 * are given must match.
 */
#ifndef MQ_FILTER_H
#define MQ_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <regex.h>

#include "options.h"
#include "queue/queue.h"

/* The options; a tool that has them puts these into its tables. */
enum {
	MQ_OPT_MATCH = MQ_OPT_OWN + 1000,
	MQ_OPT_REASON,
	MQ_OPT_STDERR,
	MQ_OPT_SINCE,
	MQ_OPT_OLDER,
	MQ_OPT_ID
};

/* clang-format off */
#define MQ_FILTER_LONG                                                         \
	{"match", required_argument, NULL, MQ_OPT_MATCH},                      \
	    {"reason", required_argument, NULL, MQ_OPT_REASON},                \
	    {"stderr", required_argument, NULL, MQ_OPT_STDERR},                \
	    {"since", required_argument, NULL, MQ_OPT_SINCE},                  \
	    {"id", required_argument, NULL, MQ_OPT_ID}
#define MQ_FILTER_HELP                                                         \
	"      --match RE         whose payload matches the regular expression\n" \
	"      --reason RE        whose last reason (Mq-Error) matches\n"      \
	"      --stderr RE        whose last run wrote a line that matches\n"   \
	"      --since DUR        that failed, or became ready, in the last DUR\n" \
	"      --id ID            the one message with this id\n"
/* clang-format on */

struct mq_filter {
	const char *id; /* NULL: any; also the needle for a scan */
	bool match, reason, errors;
	regex_t match_re, reason_re, errors_re; /* errors: stderr */
	int64_t since_ms;			/* unix ms; 0: any time */
	int64_t older_ms; /* the same; what is younger does not match */
};

/*
 * Takes one of the options above with its argument.  Returns false when it is
 * another one; ends the program with exit 64 when the argument is bad.  The
 * filter starts zeroed.  To be called before any setlocale(3), so that
 * expressions are about bytes.
 */
bool mq_filter_option(struct mq_filter *, int ch, const char *arg);

/* Ends with exit 64 if the id cannot be one of this layout. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/*
 * Whether a message matches.  One with a bad header counts as a payload
 * without headers.
 */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

#endif
