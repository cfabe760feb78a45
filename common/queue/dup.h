/*
 * The request of the verb dup: DUE-X-DEST, as RQ has it.
 *
 * DUE is read as that of resend; what is between the first two dashes is
 * ignored; DEST may have dashes.  DEST is the name of a queue, or
 *
 *	http://…, https://…	for the queue "relay", which knows what to do
 *				with it
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
	int64_t due_s; /* whole seconds from now, 0 to 10 years */
	char *queue;   /* its name, which may be invalid */
	char *web;     /* the http URL, as given; NULL: it is none */
	char *remote;  /* the URL of the server, maybe with a password; NULL:
		       * ours */
	char *layout, *ns; /* of that URL; NULL: it names none */
	char *shown;	   /* DEST for people: without passwords */
};

/* Fills *d, which mq_dup_free() frees.  Returns NULL, or why there can be no duplicate,
 * constant text; due_s and shown ("" if there is none) are set nevertheless. */
const char *mq_dup_parse(const char *text, struct mq_dup *);
void mq_dup_free(struct mq_dup *);

#endif
