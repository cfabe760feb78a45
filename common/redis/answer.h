/*
 * The answer to a command, for callers that do not take replies apart.
 */
#ifndef MQ_ANSWER_H
#define MQ_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A callback gets NULL instead when the connection was lost before the answer
 * came: nothing is known of the command then.
 */
struct mq_answer {
	const char *error; /* why the server refused; NULL: it did not.  Valid
			    * until the callback returns */
	int status;	   /* mq_exit that fits it; 0: no error */
	bool missing;	   /* the node is away, as mq_reply_missing() says */
};

/* Whether there is an answer, and no error. */
static inline bool
mq_answer_good(const struct mq_answer *a)
{
	return a != NULL && a->error == NULL;
}

/* Whatever else a callback gets is set only when there is an answer, and no
 * error. */
typedef void mq_answer_fn(void *arg, const struct mq_answer *);
typedef void mq_number_fn(void *arg, const struct mq_answer *, long long n);

#endif
