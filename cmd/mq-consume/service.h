/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Messages to the service manager, by the protocol of sd_notify(3):
 *
 *	READY=1		the consumer has joined for the first time
 *	STATUS=...	counts, when they have changed; at most once a second
 *	WATCHDOG=1	the loop turns; twice in each period that the manager sets
 *	STOPPING=1	no more messages are started
 *
 * Without a manager, nothing is sent.
 */
#ifndef MQ_CONSUME_SERVICE_H
#define MQ_CONSUME_SERVICE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/timer.h"
#include "message.h"

struct service {
	int fd; /* -1: there is no manager */
	struct sockaddr_un address;
	socklen_t address_len;
	double watchdog_s; /* seconds; 0: no watchdog */
	bool ready, stopping, failing;
	char status[128]; /* as last sent */
	struct mq_timer watchdog;
};

/* Reads the variables of the manager and removes them from the environment, so that neither
 * workers nor a private server speak for us: to be called before any program is started.
 * Reports a NOTIFY_SOCKET that cannot be used. */
void service_init(struct service *);
/* Begins to answer the watchdog. */
void service_start(struct service *, struct ev_loop *);
/* up: the consumer has joined; running: messages; the counts are since the start. */
void service_report(struct service *, bool up, int running, struct mq_counts);
void service_stop(struct service *);

#endif
