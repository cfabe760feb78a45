/*
 * The session inside, for the files of this folder.
 */
#ifndef MQ_CONSUME_SESSION_PARTS_H
#define MQ_CONSUME_SESSION_PARTS_H

#include "session.h"

/* Seconds until a lost connection is tried again, the first time. */
#define SESSION_RETRY_MIN 0.05

/* Trying again would change nothing, and what runs here would outlive its
 * lease: says so, and ends. */
void session_give_up(struct session *, const char *error);
/* Nothing that was ours is, any more: says so, and takes a new name. */
void session_lose_lease(struct session *, const char *why);
/* The connections are open: under the name that there is, or a new one. */
void session_renew_or_join(void *session);

#endif
