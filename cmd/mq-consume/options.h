/* The options and operands of mq-consume, and the rules of its queues.  Includes what most
 * files need. */
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

/* --output: how the output of several runs is told apart. */
enum output_form { OUTPUT_LIVE, OUTPUT_LINES, OUTPUT_RUNS };

/* The rules of a queue for its messages: what the options say, else what the settings of
 * the queue say, else the defaults.  The settings may change at any time. */
struct rules {
	struct mq_settings now;
	struct mq_setting_texts texts; /* the settings; names are in them */
};

struct queue_name {
	const char *name;
	size_t len;
	int queue;
};

struct options {
	const struct mq_layout *layout;
	const char *const *queues; /* as the layout knows them */
	int queue_count;
	char **typed;	     /* as the user typed them */
	char **words;	     /* the command line as typed; NULL ends it */
	char **command;	     /* NULL: print the payloads */
	const char *replace; /* in its arguments, by the payload; NULL: none */
	enum mq_framing framing;
	struct mq_settings given;   /* for every queue */
	struct rules *rules;	    /* of each queue */
	struct queue_name *by_name; /* the queues, by their names */
	int prefetch;		    /* -1: by the duration of runs */
	long limit;		    /* runs; 0: no limit */
	bool drain;
	int64_t idle_ms; /* -1: never */
	int64_t grace_ms;
	struct mq_rate rate;
	int64_t rest_min_ms, rest_max_ms; /* 0: none */
	enum mq_strict strict;
	bool rq;	   /* as RQ runs scripts; implies MQ_STRICT_RQ */
	int batch;	   /* messages for one script; 0: one, unframed */
	bool stream;	   /* workers stay, and read messages */
	bool at_most_once; /* messages are acked before they are printed */
	int window; /* messages ahead of a worker; 0: by their duration */
	int64_t batch_wait_ms; /* for a batch to become full; -1: not */
	bool no_clean;
	const char *log_dir, *work_dir; /* NULL: none */
	const char *joblog;		/* NULL: none */
	enum output_form output;
	const char *tag;
	bool quiet, verbose;
};

/* Whether the consumer ends by itself: --drain, -n or --idle. */
static inline bool
options_have_end(const struct options *opt)
{
	return opt->drain || opt->limit > 0 || opt->idle_ms >= 0;
}

/* Reads the command line, which names the server, and says which queues do not exist;
 * changes nothing at the server.  Ends the program with 1 if --existing forbids that, with
 * 64 if the command line is wrong, a queue is named twice, is also one that gets messages
 * from here, or looks like a command without "--" before it, or with the status of the
 * refusal if a queue cannot be used.  Returns whether missing queues are to be made:
 * --drain makes none. */
bool options_take(struct options *, struct mq_shared *, struct mq_server *,
    int argc, char *argv[]);

/* --- rules.c -------------------------------------------------------------- */

/* The rules as long as no settings are known; and the index of the names. */
void rules_init(struct options *);
void rules_free(struct options *);

/* The index of the queue with that name, of len bytes; -1: none of ours. */
int options_queue(const struct options *, const char *name, size_t len);

static inline const struct mq_settings *
rules_of(const struct options *opt, int queue)
{
	return &opt->rules[queue].now;
}

/* Takes the settings of a queue, and keeps the texts; says which ones are of no use.
 * False: there are none, and were none. */
bool rules_take(const struct options *, int queue, struct mq_setting_texts *);
/* How many commands may run at once: as many as that queue allows that allows most.  If
 * another one allows fewer, *differ becomes true; differ may be NULL. */
int rules_slots(const struct options *, bool *differ);
/* Whether consumers of a queue share a rate. */
bool rules_share_rate(const struct options *);

#endif
