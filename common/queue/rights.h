/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The rights that a user of the server needs for a tool, as rules of ACL SETUSER. */
#ifndef MQ_RIGHTS_H
#define MQ_RIGHTS_H

#include "queue.h"

/* The tools and their options, each with its letter in the tables of rights. */
enum {
	MQ_PUBLISHES = 1 << 0, /* P */
	MQ_CONSUMES = 1 << 1,  /* C */
	MQ_LOOKS = 1 << 2,     /* L */
	MQ_CLEANS = 1 << 3,    /* K */
	MQ_RETURNS = 1 << 4,   /* R */
	MQ_PURGES = 1 << 5,    /* D */
	MQ_PAUSES = 1 << 6,    /* Z */
	MQ_WAITS = 1 << 7,     /* W: until published messages are safe */
	MQ_TELLS = 1 << 8,     /* E: listeners, of published messages */
	MQ_LEASES = 1 << 9,    /* J */
	/* Beside letters of tools: only on a cluster, or only elsewhere. */
	MQ_ON_CLUSTER = 1 << 10,  /* M */
	MQ_OFF_CLUSTER = 1 << 11, /* S */
	MQ_ATTACHES = 1 << 12,	  /* A: files to published messages */
	MQ_SETS = 1 << 13,	  /* T */
	/* Options, whose rights a tool without them does not need. */
	MQ_HOLDS = 1 << 14,	   /* H: publishes with keys or groups */
	MQ_AWAITS = 1 << 15,	   /* O: the end of published messages */
	MQ_TICKS = 1 << 16,	   /* N: sets a queue's clock */
	MQ_SETTLES = 1 << 17,	   /* V: by receipt */
	MQ_PAUSES_ALL = 1 << 18,   /* F: without naming a queue */
	MQ_CLONES = 1 << 19,	   /* B: returns copies */
	MQ_DESCRIBES = 1 << 20,	   /* Y: the server */
	MQ_DELETES = 1 << 21,	   /* Q: purges queues, too */
	MQ_RESUMES = 1 << 22,	   /* U: ends pauses */
	MQ_CREATES = 1 << 23,	   /* I: a queue that it sets */
	MQ_TARGETS = 1 << 24,	   /* G: only puts messages there */
	MQ_STOPS = 1 << 25,	   /* X: ends runs */
	MQ_KEEPS_OUTPUT = 1 << 26, /* k: of runs */
	MQ_READS_OUTPUT = 1 << 27, /* o: what is kept of it */
	MQ_REPLACES = 1 << 28	   /* r: messages that wait */
};

/* A pattern of keys or of channels; rights.c has the commands.  Before a channel stands
 * "resetchannels": users of Redis 6.2 begin with all channels, and cannot be given another.
 * In a pattern %q stands for the name of a queue, %n for its namespace; %b for the name in
 * brackets, or on a cluster in braces, and %o for the other of these forms. */
struct mq_right {
	const char *rule;  /* NULL: the table ends */
	const char *tools; /* letters: any of the tools, and where */
};

/* Appends the rules of a layout that the tools need for a queue, separated by blanks, unless
 * they are there already.  queue NULL: for any queue of the namespace (ns NULL: the default
 * one). */
void mq_rights_add(struct mq_buf *, const struct mq_layout *, unsigned tool,
    const char *queue, const char *ns);
/* Adds the rules for a database and, on a cluster, for nodes, and changes the patterns to the
 * names of keys there. */
void mq_rights_end(struct mq_buf *, bool cluster, int db);

/* Appends the commands of a layout's rights that the server lacks, separated by blanks, if the
 * user may ask.  Returns 0, or -1 when the connection is lost. */
int mq_rights_lacking(
    struct mq_redis *, const struct mq_layout *, struct mq_buf *);

#endif
