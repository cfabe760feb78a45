/*
 * Which messages are meant: the filters that tools have in common.  All that
 * are given must match.
 */
#ifndef MQ_FILTER_H
#define MQ_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "queue/queue.h"

/* The options; a tool that has them puts these into its tables. */
enum {
	MQ_OPT_MATCH = MQ_OPT_OWN + 1000,
	MQ_OPT_REASON,
	MQ_OPT_STDERR,
	MQ_OPT_HEADER,
	MQ_OPT_KEY,
	MQ_OPT_SINCE,
	MQ_OPT_OLDER,
	MQ_OPT_ID,
	MQ_OPT_NOT
};

/* clang-format off */
#define MQ_FILTER_LONG                                                         \
	{"match", required_argument, NULL, MQ_OPT_MATCH},                      \
	    {"reason", required_argument, NULL, MQ_OPT_REASON},                \
	    {"stderr", required_argument, NULL, MQ_OPT_STDERR},                \
	    {"header", required_argument, NULL, MQ_OPT_HEADER},                \
	    {"key", required_argument, NULL, MQ_OPT_KEY},                      \
	    {"since", required_argument, NULL, MQ_OPT_SINCE},                  \
	    {"older-than", required_argument, NULL, MQ_OPT_OLDER},             \
	    {"id", required_argument, NULL, MQ_OPT_ID},                        \
	    {"not", no_argument, NULL, MQ_OPT_NOT}
/* All but --id, which means something else where it is alone. */
#define MQ_FILTER_HELP_BUT_ID                                                  \
	"      --match RE         the payload matches the regular expression\n" \
	"+     --reason RE        the last reason (Mq-Error) matches\n"      \
	"      --stderr RE        the last run wrote a line that matches\n"   \
	"      --header NAME=RE   the header NAME matches\n"       \
	"      --key KEY          the key is KEY (mq-publish -k)\n"         \
	"+     --since DUR        failed, or became ready, in the last DUR\n" \
	"      --older-than DUR   failed, or became ready, longer ago\n"
#define MQ_FILTER_HELP_NOT                                                     \
	"      --not              before one of these: reverses it\n"
#define MQ_FILTER_HELP                                                         \
	MQ_FILTER_HELP_BUT_ID                                                  \
	"+     --id ID            the message with this id\n"               \
	MQ_FILTER_HELP_NOT
/* clang-format on */

struct mq_filter {
	const char
	    *id; /* without --not; NULL: any; also the needle for a scan */
	struct mq_condition *conditions; /* all others */
	bool negated;			 /* of the next condition */
};

/*
 * Takes one of the options above with its argument.  Returns false when it is
 * another one; ends the program with exit 64 when the argument is bad.  The
 * filter starts zeroed.  To be called before any setlocale(3), so that
 * expressions are about bytes.
 */
bool mq_filter_option(struct mq_filter *, int ch, const char *arg);

/* Ends with exit 64 if an id cannot be one of this layout, or if nothing follows
 * --not. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/* The option that was given first, but for an id without --not; NULL: none. */
const char *mq_filter_option_given(const struct mq_filter *);

/*
 * Whether a message matches.  One with a bad header counts as a payload
 * without headers.
 */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

#endif
