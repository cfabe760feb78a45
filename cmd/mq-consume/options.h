/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The options and operands of mq-consume, and the rules of its queues.  Most files need the
 * headers included here. */
#ifndef MQ_CONSUME_OPTIONS_H
#define MQ_CONSUME_OPTIONS_H

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/frame.h"
#include "message/verdict.h"
#include "queue/settings.h"

struct mq_shared;

#define TAG_MAX	  64
#define NAME_SIZE (TAG_MAX + 8) /* tag, '-', 6 characters, NUL */

/* --output: how to tell the output of several runs apart. */
enum output_form { OUTPUT_LIVE, OUTPUT_LINES, OUTPUT_RUNS };

/* The rules of a queue for its messages: the options, else the settings of the queue, which may
 * change at any time, else the defaults. */
struct rules {
	struct mq_settings effective;
	struct mq_setting_texts stored; /* the settings of the queue */
};

struct queue_name {
	const char *name;
	size_t len;
	int queue;
};

struct options {
	const struct mq_layout *layout;
	const char *const *queues; /* with their namespace */
	int queue_count;
	char **typed;	     /* the queues, as typed */
	char **words;	     /* the command line as typed; NULL ends it */
	char **command;	     /* NULL: print the payloads */
	const char *replace; /* token in arguments; NULL: none */
	enum mq_framing framing;
	struct mq_settings given;   /* by options; for every queue */
	struct rules *rules;	    /* by queue */
	struct queue_name *by_name; /* the queues, by their names */
	int prefetch;		    /* messages; -1: by the duration of runs */
	long limit;		    /* runs; 0: any number */
	long halt; /* messages rejected in a row; 0: any number */
	bool drain;
	int64_t idle_ms; /* -1: never */
	int64_t grace_ms;
	struct mq_rate rate;
	int64_t rest_min_ms, rest_max_ms; /* 0: none */
	enum mq_strict strict;
	bool rq;	       /* as RQ runs scripts; implies MQ_STRICT_RQ */
	int batch;	       /* messages a run; 0: one, unframed */
	bool stream;	       /* workers read one message after the other */
	bool at_most_once;     /* printing: acks come first */
	int window;	       /* messages in a worker; 0: by their duration */
	int64_t batch_wait_ms; /* longest wait for a full batch; -1: none */
	bool no_clean;
	const char *log_dir, *work_dir; /* NULL: none */
	const char *joblog;		/* NULL: none */
	enum output_form output;
	size_t output_keep; /* bytes; 0: output is not kept */
	int64_t output_keep_ms;
	size_t result; /* most bytes; 0: output is not the result */
	const char *tag;
	bool quiet, verbose;
};

/* Whether the consumer ends by itself: --drain, -n or --idle. */
static inline bool
options_have_end(const struct options *opt)
{
	return opt->drain || opt->limit > 0 || opt->idle_ms >= 0;
}

/* Reads the command line and finds the server; says which queues do not exist.  Changes nothing
 * at the server.  Ends the program with
 *
 *	1	a queue does not exist, and --existing is given
 *	64	the command line is wrong; a queue is named twice, is also a target of messages,
 *		or is likely a command without "--" before it
 *	other	the status of the refusal, if a queue cannot be used
 *
 * Returns whether missing queues are to be made: --drain makes none. */
bool options_take(struct options *, struct mq_shared *, struct mq_server *,
    int argc, char *argv[]);

/* --- rules.c -------------------------------------------------------------- */

/* Sets the rules without settings, and the index of the names; rules_free() frees both. */
void rules_init(struct options *);
void rules_free(struct options *);

/* The number of the queue with that name, of len bytes; -1: not consumed here. */
int options_queue(const struct options *, const char *name, size_t len);

static inline const struct mq_settings *
rules_of(const struct options *opt, int queue)
{
	return &opt->rules[queue].effective;
}

/* Makes rules of the settings of a queue, whose texts it takes; says which settings are not
 * valid.  Returns false if there are no settings, and were none. */
bool rules_take(const struct options *, int queue, struct mq_setting_texts *);
/* How many commands may run at once: the slots of the queue with the most.  If a queue has
 * fewer, *differ becomes true; differ may be NULL. */
int rules_slots(const struct options *, bool *differ);
/* Whether consumers of a queue share slots. */
bool rules_share_slots(const struct options *);
/* Whether they share slots or a rate: what one claims ahead, another may not claim. */
bool rules_share(const struct options *);

#endif
