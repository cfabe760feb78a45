/*
 * The inside of the session, for the files of this folder.
 */
#ifndef SESSION_PARTS_H
#define SESSION_PARTS_H

#include "session.h"

/* Seconds until a lost connection is tried again, the first time. */
#define SESSION_RETRY_MIN 0.05

/* Nodes that are away keep it from joining: says so, and tries again later. */
void session_wait(struct session *, const char *why);
/* Ends a consumer that is not to wait, when it has waited long. */
void session_check_wait(struct session *);
/* Says a final error, and ends: the runs must not outlive the lease. */
void session_give_up(struct session *, const char *error);
/* Says and reports that the lease is lost, and takes a new name. */
void session_lose_lease(struct session *, const char *why);
/* The connections are open: renews the lease, or joins. */
void session_renew_or_join(void *session);

/* Asks for all settings from time to time, where nothing tells of changes. */
void session_check_settings(struct session *);

#endif
