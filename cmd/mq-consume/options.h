/*
 * The options and operands of mq-consume.
 */
#ifndef MQ_CONSUME_OPTIONS_H
#define MQ_CONSUME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rate.h"
#include "message/frame.h"
#include "message/verdict.h"
#include "queue/queue.h"
#include "queue/settings.h"

struct mq_shared;
struct rules;

#define TAG_MAX	  64
#define NAME_SIZE (TAG_MAX + 8) /* tag, '-', 6 characters, NUL */

/* --output: how the output of several runs is told apart. */
enum output_form { OUTPUT_LIVE, OUTPUT_LINES, OUTPUT_RUNS };

struct options {
	const struct mq_layout *layout;
	const char *const *queues; /* as the layout knows them */
	int queue_count;
	char **typed;	     /* as the user typed them */
	char **words;	     /* the command line as typed; NULL ends it */
	char **command;	     /* NULL: print the payloads */
	const char *replace; /* in its arguments, by the payload; NULL: none */
	enum mq_framing framing;
	struct mq_settings given; /* for every queue */
	struct rules *rules;	  /* of each queue; see rules.h */
	int prefetch;		  /* -1: by the duration of runs */
	long limit;		  /* runs; 0: no limit */
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

/* Reads the command line; ends the program if that is wrong.  Returns the queues, as the
 * user typed them. */
char **options_parse(
    struct options *, struct mq_shared *, int argc, char *argv[]);

/* Checks names, which needs the layout; operands: as of options_parse().  Ends the program
 * with 64 if a queue is named twice, is also one that gets messages from here, or looks
 * like a command without "--" before it. */
void options_take_queues(struct options *, struct mq_shared *,
    const struct mq_server *, char *operands[]);
/*
 * To be called before any change on the server.  Says which queues do not exist.
 * Ends the program with 1 if --existing forbids that, with 64 if a queue looks like a
 * command without "--" before it, or with the status of the refusal if a queue cannot be
 * used.  Returns whether missing queues are to be made: --drain makes none.
 */
bool options_look(
    const struct options *, const struct mq_shared *, struct mq_redis *);

#endif
