/*
 * What goes out when runs have ended: settlements, and what others hear of them.
 *
 * The outbox settles messages at the server, by the outcome that lies in them.  After an
 * error, a settlement is sent again on the next tick; after a lost connection, once the next
 * join has compared all messages.  The outbox never decides an outcome, but for a wrong key.
 */
#ifndef MQ_CONSUME_OUTBOX_H
#define MQ_CONSUME_OUTBOX_H

#include "mq-consume/fact.h"
#include "mq-consume/hand.h"
#include "queue/consumer.h"

struct ev_loop;
struct outbox;

/* The pointers stay the caller's.  many: messages end many at a time. */
struct outbox *outbox_new(struct ev_loop *, const struct options *,
    struct hand *, struct facts *, struct mq_consumer *, struct mq_server *,
    struct mq_idgen *, bool many);
void outbox_free(struct outbox *);

/* The session is joined, and its messages have been compared with ours; or its connection
 * is lost.  What is not settled yet is sent again when it is up. */
void outbox_up(struct outbox *);
void outbox_down(struct outbox *);

/* Settles a message, whose outcome is set.  If it goes to the front, it waits for those of
 * its queue that go back already. */
void outbox_settle(struct outbox *, struct message *);
/* The same with one that goes back unstarted, with others of its queue. */
void outbox_give_back(struct outbox *, struct message *);

/* Sends the waiting acks: all; or all if one of them may hold a key or a group; or what goes
 * well with a claim, which wakes the server anyway: all, but where messages end many at a
 * time, those that are not behind others; or those that are enough to go together.  And what
 * waits for equal ones, if it may. */
enum outbox_acks { OUTBOX_ENOUGH, OUTBOX_CLAIM, OUTBOX_HOLDERS, OUTBOX_ALL };
void outbox_flush(struct outbox *, enum outbox_acks);
/* Sends the next messages that go back; to be called once per turn. */
void outbox_send_back(struct outbox *);
/* Once a second: sends all settlements that are not in flight. */
void outbox_send_again(struct outbox *);
/* The next queue in which a settlement that was sent may make a message ready, and when the
 * settled one was claimed, steady time.  False: there is none. */
bool outbox_leads(struct outbox *, int *queue, double *since);

/* Confirms a message whose answer was lost: the server has settled it. */
void outbox_confirm(struct outbox *, struct message *);
/* Says why the outcome does not count. */
void outbox_lose(struct outbox *, struct message *, const char *why);
/* A message that is settling does not wait in any line now. */
void outbox_drop(struct outbox *, struct message *);

/* Whether a refused settlement waits for the next tick. */
bool outbox_refused(const struct outbox *);
/* Whether messages of a queue go back together. */
bool outbox_gives_back(const struct outbox *, int queue);
/* Bytes that the server copies for the settlements in flight, about. */
size_t outbox_copying(const struct outbox *);

/* --- reports.c: counters ------------------------------------------------- */

/* What the server is told once a second, for mq-stats: the counts of settlements and runs,
 * by queue, and the long runs, if these have changed.  If the connection is lost before
 * the answer, counts may be lost: none is counted twice. */

void counters_ran(struct outbox *, int queue, double seconds);
/* A run whose consumer died. */
void counters_crashed(struct outbox *, int queue);
/* Sends the counts since the last call. */
void counters_send(struct outbox *);
/* Tells the long runs: text as of queue/stats.h, taken; empty: nothing runs. */
void counters_tell_runs(struct outbox *, struct mq_buf *text);
/* Since the start: done, failed, retried and lease_lost; the others are 0.  *returned:
 * unstarted; may be NULL. */
struct mq_counts counters_totals(const struct outbox *, long *returned);

#endif
