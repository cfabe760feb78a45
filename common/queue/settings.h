/* The settings of a queue: what each consumer and publisher takes unless an option of its
 * own says otherwise.  A hash has them as users gave them: mq-layout(7). */
#ifndef MQ_SETTINGS_H
#define MQ_SETTINGS_H

#include "queue.h"

/* The most messages that one consumer runs at once. */
#define MQ_SLOTS_MAX 1000

/* -1, or NULL: not set. */
struct mq_settings {
	int attempts;
	int64_t backoff_min_ms, backoff_max_ms;
	int64_t timeout_ms; /* 0: none */
	int64_t keep_ms;    /* 0: only if it is asked for */
	int retry_err;	    /* 1: err is a retry */
	int slots;
	struct mq_rate rate;	   /* of all consumers together; 0: no limit */
	const char *push, *notify; /* names of queues */
};
#define MQ_SETTINGS_NONE                                                       \
	{                                                                      \
		.attempts = -1, .backoff_min_ms = -1, .backoff_max_ms = -1,    \
		.timeout_ms = -1, .keep_ms = -1, .retry_err = -1, .slots = -1, \
		.rate.per_s = -1                                               \
	}

/* In the order in which they are shown; constant texts. */
enum { MQ_SETTINGS = 10 };
struct mq_setting {
	const char *name, *form; /* what a value looks like */
};
extern const struct mq_setting mq_setting_list[MQ_SETTINGS];

/* The values as they are kept, in that order; NULL: not set.  Bytes of anybody's. */
struct mq_setting_texts {
	char *text[MQ_SETTINGS];
};
void mq_setting_texts_free(struct mq_setting_texts *);

/* Takes one value.  False: it has not the form, and nothing has changed.  stored: anybody
 * may have stored it, and a whole number that is too high counts as the highest.  The name
 * of a queue is borrowed, and not checked; a max-length, which the server obeys, only
 * checked. */
bool mq_setting_take(
    struct mq_settings *, int which, const char *value, bool stored);
/* Replaces those that `over` sets; names are borrowed. */
void mq_settings_overlay(struct mq_settings *, const struct mq_settings *over);

/* Both wait: 0, or -1 with the error in struct mq_redis.  mq_settings_put() sets those
 * whose text is not NULL, all in one step; an empty text ends a setting. */
int mq_settings_get(struct mq_redis *, const struct mq_layout *,
    const char *queue, struct mq_setting_texts *);
int mq_settings_put(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_setting_texts *);

/* The question, and what a reply to it, an array, says. */
void mq_settings_ask(
    const struct mq_layout *, const char *queue, struct mq_command *);
void mq_settings_read(const redisReply *, struct mq_setting_texts *);

#endif
