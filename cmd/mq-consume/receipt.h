/*
 * Messages by receipt, for shell loops: handed out under a lease that lives on
 * without us, and settled later by their ids.  All of this waits for its
 * answers; what cannot go on ends the program.
 */
#ifndef MQ_CONSUME_RECEIPT_H
#define MQ_CONSUME_RECEIPT_H

#include "consume.h"

struct desk {
	const struct options *opt;
	const struct mq_layout *layout;
	struct mq_redis redis;
	struct mq_session session;
	char connection[NAME_SIZE], consumer[NAME_SIZE];
	struct mq_idgen ids;
};

/* A message in the hands of the session. */
struct handed {
	const char *element; /* as it is there */
	size_t len;
	struct mq_envelope envelope;
	char id[MQ_ID_MAX + 1]; /* empty: it has none */
	const char *receipt;	/* its number; NULL: settled without one */
	bool changed;		/* its headers have been */
};

void desk_open(struct desk *, const struct options *, struct mq_server *);
void desk_close(struct desk *);
/* The reply, which is no error. */
redisReply *desk_call(struct desk *, struct mq_command *);
/* Takes an element apart.  *why is why its header is bad, or NULL. */
void desk_take(struct desk *, struct handed *, const char *element, size_t len,
    const char **why);
/* False: the session does not hold it any more.  The id of end, which may be
 * NULL, is filled in. */
bool desk_settle(struct desk *, const struct handed *, enum mq_outcome,
    struct mq_ending *end);
void desk_count(struct desk *, const struct mq_counts *);
/* The session goes, if it holds nothing more. */
void desk_vacate(struct desk *);

/* What --lease does; returns the exit status. */
int handout(const struct options *, struct mq_server *);
/* What --ack, --reject, --extend and --return do. */
int receipt(const struct options *, struct mq_server *);
/* Ends with 64 when the options of these do not go together. */
void receipt_check(const struct options *);

#endif
