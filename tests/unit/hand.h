/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * A hand of three queues, a, b and c.  A raw message is the name of its queue and a number:
 * a1, a2, b1.
 */
#ifndef TEST_HAND_H
#define TEST_HAND_H

#include <ev.h>

#include "base/say.h"
#include "mq-consume/fact.h"
#include "mq-consume/hand.h"
#include "queue/consumer.h"
#include "record.h"

struct fixture {
	struct ev_loop *loop;
	struct options opt;
	char *command[1];
	struct mq_layout layout;
	struct mq_consumer server;
	struct mq_idgen ids;
	struct hand *hand;
	struct facts *facts;
	FILE *say; /* what is said to the user, which goes nowhere */
};

static const char *const queue_names[] = {"a", "b", "c"};

/* The payload of an element that is text, with a header or without. */
static inline const char *
payload_of(const char *element, size_t len)
{
	static char payload[64];
	const char *end = mq_envelope_signed(element, len) ?
	    memchr(element, '\n', len) :
	    NULL;
	size_t header = end != NULL ? (size_t)(end + 1 - element) : 0;

	snprintf(payload, sizeof(payload), "%.*s", (int)(len - header),
	    element + header);
	return payload;
}

static inline const char *
name_of(const struct message *m)
{
	return payload_of(m->element, m->len);
}

static inline int
queue_of(const char *name)
{
	return name[0] - 'a';
}

/* The queue that is named; -1: all. */
static inline int
which(const char *name)
{
	return *name != '\0' ? queue_of(name) : -1;
}

static inline void
fixture_init(struct fixture *f)
{
	*f = (struct fixture){.opt = {.queues = queue_names,
				  .queue_count = (int)COUNT(queue_names),
				  .given = MQ_SETTINGS_NONE,
				  .batch_wait_ms = -1},
	    .layout = {.has = MQ_HAS_CLAIMS}};
	f->opt.given.attempts = 5;
	f->opt.given.slots = 64;
	rules_init(&f->opt);
	f->loop = ev_loop_new(EVFLAG_AUTO);
	f->server.layout = f->opt.layout = &f->layout;
	f->server.session.wake = "me";
	f->say = fopen("/dev/null", "w");
	mq_say_to(f->say);
	f->opt.command = f->command;
	f->hand = hand_new(&f->opt);
	f->facts = facts_new();
}

static inline void
fixture_free(struct fixture *f)
{
	facts_free(f->facts);
	hand_free(f->hand);
	rules_free(&f->opt);
	ev_loop_destroy(f->loop);
	mq_say_to(NULL);
	fclose(f->say);
	record_clear();
}

static inline void
add(struct fixture *f, const char *names)
{
	char name[64];

	while (next_word(&names, name))
		hand_add(
		    f->hand, queue_of(name), mq_xstrdup(name), strlen(name));
}

/* One with a header. */
static inline struct message *
add_with(
    struct fixture *f, const char *name, const char *header, const char *value)
{
	struct mq_envelope e = {.payload = name, .payload_len = strlen(name)};
	struct mq_buf element = {0};

	mq_envelope_set(&e, header, value);
	mq_envelope_write(&e, &element);
	mq_envelope_free(&e);
	return hand_add(f->hand, queue_of(name), element.data, element.len);
}

/* The oldest of that name, or the nth: a1#2. */
static inline struct message *
find(const struct fixture *f, const char *word)
{
	struct message *m = NULL;
	char name[8];
	int n = 1;

	assert_true(sscanf(word, "%7[^#]#%d", name, &n) > 0);
	while ((m = hand_after(f->hand, -1, m)) != NULL)
		if (strcmp(name_of(m), name) == 0 && --n == 0)
			return m;
	fail_msg("there is no %s", word);
	return NULL;
}

static inline void
record_all(const struct hand *hand, int queue)
{
	const struct message *m = NULL;

	while ((m = hand_after(hand, queue, m)) != NULL)
		record("%s", name_of(m));
}

/* How many are held, run, have ended, are settling, and are settled. */
static inline void
record_states(const struct hand *hand, int queue)
{
	int state;

	for (state = 0; state < MESSAGE_STATES; state++)
		record(
		    "%d", hand_count(hand, queue, (enum message_state)state));
}

#endif
