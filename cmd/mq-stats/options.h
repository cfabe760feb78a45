/* The command line of mq-stats. */
#ifndef MQ_STATS_OPTIONS_H
#define MQ_STATS_OPTIONS_H

#include "list.h"
#include "order.h"
#include "shared/http.h"
#include "shared/options.h"
#include "watch.h"

/* The subject of the output... */
enum subject {
	SUBJECT_QUEUES, /* or connections */
	SUBJECT_LIST,
	SUBJECT_REASONS,
	SUBJECT_RUNNING,
	SUBJECT_ONE,
	SUBJECT_HTML,
	SUBJECT_SERVER,
	SUBJECT_HTTP, /* until the request is known */
	SUBJECT_CONTENTS,
	SUBJECT_HEALTH,
	SUBJECTS
};

/* ...and its form. */
enum format {
	FORMAT_TABLE, /* or as the subject is shown to people */
	FORMAT_JSON,
	FORMAT_PROMETHEUS,
	FORMAT_CHECK,
	FORMATS
};

struct stats_options {
	struct mq_shared shared;
	enum subject subject;
	enum format format;
	struct list_options list;   /* also what --reasons and --id take */
	struct watch_options watch; /* interval_ms 0: once */
	struct order order;	    /* of the queues in a table */
	const char *checks;	    /* of --check */
	long refresh;		    /* of --html; 0: none */
	bool offset;		    /* was given */
	bool payloads;		    /* are shown */
	bool requested;		    /* by --http */
	struct http_hosts hosts;    /* of its requests */
	char *name;		    /* what its path ends with, own */
	char *only;		    /* name, as the queue that it is about */
	char **queues;		    /* NS:QUEUE once the layout is known */
	int count;
};

/* Ends with exit 64 when the user got it wrong.  options_free() frees. */
void options_parse(struct stats_options *, int argc, char *argv[]);
void options_free(struct stats_options *);

#endif
