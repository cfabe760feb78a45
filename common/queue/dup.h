/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The text of the verb dup: DUE-X-DEST, as in RQ.
 *
 * DUE is read like that of resend; X is ignored; DEST may have dashes.  DEST is the name of a
 * queue, or
 *
 *	http://…, https://…	for a worker of the queue "relay"
 *	URL?queue=NAME		a queue of another server; URL as of redis/server.h.
 *				After other parameters, as in
 *				unix:///path?db=N, it is &queue=NAME.  %XX is
 *				decoded in NAME
 */
#ifndef MQ_DUP_H
#define MQ_DUP_H

#include <stdint.h>

#include "redis/server.h"

#define MQ_DUP_RELAY "relay"

struct mq_dup {
	int64_t due_s; /* seconds from now, 0 to 10 years */
	char *queue;   /* may be invalid */
	char *web;     /* the http URL, as given; NULL: none */
	char *remote;  /* URL of the server, maybe with a password; NULL: our
			* server */
	char *layout, *ns; /* in that URL; or NULL */
	char *shown;	   /* DEST for people, without passwords */
};

/* Fills *d, which mq_dup_free() frees.  Returns NULL, or an error, constant text; due_s and
 * shown are set even then. */
const char *mq_dup_parse(const char *text, struct mq_dup *);
void mq_dup_free(struct mq_dup *);

#endif
