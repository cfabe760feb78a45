/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The session is this consumer's membership at its server: connections, for commands and for news
 * of changed keys; the lease; and joining, under a new name or, after a lost connection, the old
 * one.  The session never claims, runs or settles a message.
 */
#ifndef MQ_CONSUME_SESSION_H
#define MQ_CONSUME_SESSION_H

#include "mq-consume/fact.h"
#include "mq-consume/hand.h"
#include "process/process.h"
#include "queue/consumer.h"
#include "redis/server.h"

struct session;

/* The pointers stay the caller's. */
struct session *session_new(struct ev_loop *, const struct options *,
    const struct hand *, struct facts *, struct mq_server *,
    struct mq_children *, struct mq_idgen *);
/* The sender of commands; valid until session_free(). */
struct mq_consumer *session_consumer(struct session *);
/* Begins to connect.  make: makes missing queues; slots: executor_capacity(). */
void session_begin(struct session *, bool make, int slots);
/* Goes on with joining after FACT_ENTER. */
void session_enter(struct session *, int slots);
/* Leaves; FACT_LEFT tells the end of that, or its failure. */
void session_leave(struct session *);
void session_free(struct session *);

bool session_is_up(const struct session *);
/* Whether the session is connecting or joining: the hand, which is compared with the server's
 * holdings then, must not change. */
bool session_is_joining(const struct session *);
/* Whether the server may know our name, although the session has not joined. */
bool session_may_be_known(const struct session *);

/* False: the lease may have lapsed, and session_lapsed() is to be called. */
bool session_holds_lease(const struct session *);
/* After a lapse of the lease without heartbeats, or its loss by the server: takes a new name, and
 * joins. */
void session_lapsed(struct session *);
void session_rejoin(struct session *);
/* Whether a heartbeat is on its way: other commands cost the server no extra round. */
bool session_renews(const struct session *);
/* Whether the server has cut answers with messages: messages are to be claimed one by one. */
bool session_one_by_one(const struct session *);

/* Drops the connections, says why, and connects again later. */
void session_reset(struct session *, const char *why);
/* The settings of a queue, which make its rules, or the pause of all queues may have changed: asks
 * for them. */
void session_ask_settings(struct session *, int queue);
void session_ask_pause(struct session *);
/* Tells the server that this many messages can run here. */
void session_tell_slots(struct session *, int slots);
/* Says an error of the server, unless it was the last complaint, too; NULL: the complaint is
 * over. */
void session_complain(struct session *, const char *error);
bool session_complains(const struct session *);

#endif
