/*
 * The connection that holds messages by receipt, for lease.c, which takes them,
 * and receipt.c, which settles them.  An int is -1 after an error, which struct
 * mq_redis has.
 */
#ifndef MQ_RECEIPT_SESSION_H
#define MQ_RECEIPT_SESSION_H

#include "lease.h"
#include "message/result.h"

/* A message that was handed out, and to whom.  Starts zeroed. */
struct mq_receipt {
	char *connection; /* NULL: nobody holds it */
	char *number;	  /* of its receipt; NULL: found by its id */
	struct mq_buf element;
};

struct receipt_session {
	struct mq_lease_queue queue;
	struct mq_session session; /* of one queue, named by queue.name */
	struct mq_idgen ids;
};

/* The struct may not be moved from then on. */
void receipt_session_open(
    struct receipt_session *, const struct mq_lease_queue *);
/* The first `steps` steps of renewing.  1: the lease holds for ms from now on (0:
 * for the layout's usual time); 0: it was over. */
int receipt_session_renew(
    const struct receipt_session *, int64_t ms, int steps);
/* Removes the connection if it holds no messages. */
int receipt_session_vacate(const struct receipt_session *);
/* Adds to the queue's counts, if the user may do that. */
void receipt_session_count(
    const struct receipt_session *, const struct mq_counts *);

/* Takes an element, which has to stay, apart.  Returns why its header is bad
 * (constant text), or NULL. */
const char *receipt_session_unpack(const struct receipt_session *,
    struct mq_leased *, const char *element, size_t len);
/*
 * Settle a message in one step: 1; 0: the session does not hold it any more.
 * number is that of its receipt; NULL: it has none yet, or was found by its id.
 * changed: its headers are not those of the element.  end, whose id is filled
 * in, is for those who wait for the message.
 */
int receipt_session_ack(struct receipt_session *, const struct mq_leased *,
    const char *number, struct mq_ending *end);
int receipt_session_reject(struct receipt_session *, const struct mq_leased *,
    bool changed, const char *number, struct mq_ending *end);
/* To the front of the queue, as if it had not been taken. */
int receipt_session_return(
    struct receipt_session *, const struct mq_leased *, const char *number);

#endif
