/*
 * News of another master, for mq-consume: a sentinel tells at once, while the old master
 * may go on for seconds.  Nobody waits for a sentinel that has died; a lost connection to
 * the master tells the same.
 */
#ifndef MQ_SWITCH_H
#define MQ_SWITCH_H

#include "async.h"

/* The caller sets the first three. */
struct mq_switch {
	struct ev_loop *loop;
	/* There is another master.  May close this. */
	void (*changed)(void *arg);
	void *arg;
	struct mq_async async;
	struct mq_server sentinel;
	const char *name; /* of the master */
};

/* Listens to the sentinel that has named the master last; nothing for a URL without
 * sentinels.  The server must outlive it. */
void mq_switch_listen(struct mq_switch *, const struct mq_server *);
void mq_switch_close(struct mq_switch *);

#endif
