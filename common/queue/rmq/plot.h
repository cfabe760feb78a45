/*
 * One queue of a dead connection, on its way to where its messages belong; see
 * lua/bury.lua.  For this folder only.
 */
#ifndef MQ_RMQ_PLOT_H
#define MQ_RMQ_PLOT_H

#include "clean.h"

/* Most headers in one reply, as in bury.lua. */
#define RMQ_HEADERS 64

struct rmq_grave {
	const char *connection, *host; /* host: NULL: not known */
	long slots; /* so many messages could run at once; 0: it does not say */
	int attempts; /* so many runs may a message have had there */
	bool ours;    /* it has told about itself */
	bool failed;  /* it is to stay listed */
	bool cluster; /* it has keys in the form for a cluster: failed */
	bool closed;  /* it is not listed any more */
};

struct rmq_plot {
	struct rmq_grave *grave;
	const char *queue;
	long left;	   /* messages to be dealt with; at first LONG_MAX */
	long at;	   /* dry run: headers that were asked for before */
	bool looks;	   /* this step only shows the first headers */
	bool looked;	   /* there was such a step */
	redisReply *shown; /* the last reply; NULL: none yet */
	enum rmq_charge charged[RMQ_HEADERS]; /* the messages shown in it */
};

/* So many messages are kept until headers are shown. */
long rmq_plot_kept(const struct rmq_plot *);
/* Builds the next step: show says whether headers may come with its reply. */
void rmq_plot_step(
    struct rmq_round *, struct rmq_plot *, bool show, struct mq_command *);
/* Takes its reply. */
void rmq_plot_reply(struct rmq_round *, struct rmq_plot *, redisReply *);
void rmq_plot_free(struct rmq_plot *);

#endif
