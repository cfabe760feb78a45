/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The settings of a queue, which consumers and publishers obey unless an option of their own
 * wins.  A hash has them as texts: mq-layout(7). */
#ifndef MQ_SETTINGS_H
#define MQ_SETTINGS_H

#include "queue.h"

#define MQ_SLOTS_MAX	    1000 /* most messages that one consumer runs at once */
#define MQ_SLOTS_SHARED_MAX 100000 /* most of all consumers */
#define MQ_GROUP_SLOTS_MAX  32	   /* most messages of a group in flight */

/* -1, or NULL: not set. */
struct mq_settings {
	int attempts;
	int64_t backoff_min_ms, backoff_max_ms;
	int64_t timeout_ms; /* 0: none */
	int64_t keep_ms;    /* 0: only if the message wants its result */
	int retry_err;	    /* 1: err is a retry */
	int slots;
	int slots_shared; /* messages of all consumers together; scripts read it */
	struct mq_rate rate;	   /* for all consumers together; 0: no limit */
	const char *push, *notify; /* names of queues */
	bool trims;		   /* keep-rejected is set; cleaners read it */
};
#define MQ_SETTINGS_NONE                                                       \
	{                                                                      \
		.attempts = -1, .backoff_min_ms = -1, .backoff_max_ms = -1,    \
		.timeout_ms = -1, .keep_ms = -1, .retry_err = -1, .slots = -1, \
		.slots_shared = -1, .rate.per_s = -1                           \
	}

/* All settings, in the order of outputs. */
enum { MQ_SETTINGS = 13 };
struct mq_setting {
	const char *name, *form; /* form: of a value, for people */
};
extern const struct mq_setting mq_setting_list[MQ_SETTINGS];

/* Stored values in that order, maybe invalid; NULL: not set. */
struct mq_setting_texts {
	char *text[MQ_SETTINGS];
};
void mq_setting_texts_free(struct mq_setting_texts *);

/* Parses one value.  False: the value is invalid, and nothing has changed.  stored: another
 * program may have stored it, and a number that is too high counts as the highest.  A queue's
 * name is borrowed, and not checked; what scripts enforce, max-length and group-slots, is only
 * checked. */
bool mq_setting_parse(
    struct mq_settings *, int which, const char *value, bool stored);
/* Parses keep-rejected: how long after its last failure a rejected message stays, in ms, and how
 * many stay; -1: not limited.  False: it is invalid. */
#define MQ_KEEP_REJECTED "keep-rejected"
bool mq_keep_rejected_parse(const char *, int64_t *ms, int64_t *most);
/* Replaces the settings that `over` sets; names are borrowed. */
void mq_settings_overlay(struct mq_settings *, const struct mq_settings *over);

/* Read and write the stored values, and wait: 0, or -1 with the error in struct mq_redis.
 * mq_settings_put() writes texts that are not NULL, all in one step; an empty one ends the
 * setting. */
int mq_settings_get(struct mq_redis *, const struct mq_layout *,
    const char *queue, struct mq_setting_texts *);
int mq_settings_put(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_setting_texts *);

/* Build the command that reads the settings, and parse its reply, an array. */
void mq_settings_ask(
    const struct mq_layout *, const char *queue, struct mq_command *);
void mq_settings_read(const redisReply *, struct mq_setting_texts *);

#endif
