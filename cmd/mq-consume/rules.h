/*
 * The rules of a queue for its messages: what the options say, else what the settings of
 * the queue say, else the defaults.  The settings may change at any time.
 */
#ifndef MQ_CONSUME_RULES_H
#define MQ_CONSUME_RULES_H

#include "options.h"
#include "queue/settings.h"

struct rules {
	struct mq_settings now;
	struct mq_setting_texts texts; /* the settings; names are in them */
};

/* The rules as long as no settings are known. */
void rules_init(struct options *);
void rules_free(struct options *);

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
/* How many messages may: 0 while they are printed. */
int rules_messages(const struct options *);
/* Whether consumers of a queue share a rate. */
bool rules_share_rate(const struct options *);

#endif
