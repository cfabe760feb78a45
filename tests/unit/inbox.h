/*
 * An inbox of three queues, a, b and c, whose neighbours record what they see.  A
 * raw message is the name of its queue and a number: a1, a2, b1.
 */
#ifndef TEST_INBOX_H
#define TEST_INBOX_H

#include "base/say.h"
#include "mq-consume/inbox/inbox.h"
#include "record.h"

struct fixture {
	struct ev_loop *loop;
	struct options opt;
	char *command[1];
	struct mq_layout layout;
	struct mq_consumer server;
	struct mq_idgen ids;
	struct policy policy; /* does not stop */
	struct session session;
	struct inbox inbox;
	int room;  /* for this many messages */
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

/* --- the neighbours --- */

static bool up;

bool
session_is_up(const struct session *s)
{
	return up;
}

static bool full; /* the disk of the server */

int
mq_server_room(
    const struct mq_server *s, size_t bytes, char *error, size_t error_size)
{
	return full;
}

static inline int
on_room(void *arg, int queue)
{
	struct fixture *f = arg;
	int room = f->room - f->inbox.held;

	return room > 0 ? room : 0;
}

/* Writes down what the inbox tells. */
static inline void
on_fact(void *arg, const struct fact *f)
{
	static const char *const unfits[] = {[UNFIT_HEADER] = "header",
	    [UNFIT_RUN] = "files",
	    [UNFIT_EXPIRED] = "expired",
	    [UNFIT_SPENT] = "spent",
	    [UNFIT_CRASHED] = "crashed"};

	if (f->kind == FACT_CLAIM_REFUSED)
		record("%s:%s", f->yes ? "first-refused" : "refused", f->text);
	else if (f->kind == FACT_QUEUE_PAUSED)
		record("paused:%s", queue_names[f->queue]);
	else if (f->kind == FACT_CAREFUL)
		record(f->yes ? "alone" : "careful");
	else if (f->kind == FACT_UNFIT)
		record("%s:%s", unfits[f->unfit], name_of(f->message));
	else if (f->kind == FACT_CLAIMED && f->status != 0)
		record(f->status > 0		   ? "arrived" :
			f->status == MQ_CLAIM_LOST ? "lost" :
						     "nonsense");
}

static inline bool
key_queue(const char *key, size_t len, const char **queue, size_t *n)
{
	*queue = key + strlen("key:");
	*n = len - strlen("key:");
	return strncmp(key, "key:", strlen("key:")) == 0;
}

/* --- the server --- */

static mq_answer_fn *claimed_fn;

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_answer_fn *fn, void *arg)
{
	claimed_fn = fn;
	record("claim:%s:%d%s%s", queue_names[queue], how->max,
	    how->max > 0 && how->tracked ? "-tracked" : "",
	    how->why == MQ_CLAIM_LOOK ? "-look" : "");
}

static mq_looked_fn *looked_fn;
static void *looked_arg;

void
mq_consumer_look(struct mq_consumer *k, const int *queues, int n,
    enum mq_look how, mq_looked_fn *fn, void *arg)
{
	static const char *const names[] = {
	    [MQ_LOOK_ANY] = "look", "left", "check"};
	int i;

	looked_fn = fn;
	looked_arg = arg;
	for (i = 0; i < n; i++)
		record("%s:%s", names[how], queue_names[queues[i]]);
}

void
mq_consumer_pass(struct mq_consumer *k, int queue)
{
	record("pass:%s", queue_names[queue]);
}

struct elements {
	struct mq_element list[16];
	int n;
};

static inline struct elements
make_elements(const char *names)
{
	struct elements e = {0};
	char name[64];

	while (next_word(&names, name)) {
		assert_between(e.n, 0, COUNT(e.list) - 1);
		e.list[e.n++] =
		    (struct mq_element){mq_xstrdup(name), strlen(name)};
	}
	return e;
}

static inline void
free_elements(struct elements *e)
{
	while (e->n > 0)
		free(e->list[--e->n].data);
}

/* --- the inbox --- */

static inline void
fixture_init(struct fixture *f)
{
	*f = (struct fixture){.opt = {.queues = queue_names,
				  .queue_count = (int)COUNT(queue_names),
				  .given = MQ_SETTINGS_NONE,
				  .batch_wait_ms = -1},
	    .layout = {.has = MQ_HAS_CLAIMS, .key_queue = key_queue},
	    .room = 10};
	up = true;
	full = false;
	f->opt.given.attempts = 5;
	f->opt.given.slots = 64;
	rules_init(&f->opt);
	f->loop = ev_loop_new(EVFLAG_AUTO);
	f->server.layout = f->opt.layout = &f->layout;
	f->server.session.wake = "me";
	f->say = fopen("/dev/null", "w");
	mq_say_to(f->say);
	f->opt.command = f->command;
	f->inbox = (struct inbox){.loop = f->loop,
	    .opt = &f->opt,
	    .session = &f->session,
	    .server = &f->server,
	    .ids = &f->ids,
	    .policy = &f->policy,
	    .hear = on_fact,
	    .room = on_room,
	    .arg = f};
	inbox_init(&f->inbox);
}

static inline void
fixture_free(struct fixture *f)
{
	inbox_free(&f->inbox);
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
		inbox_add(
		    &f->inbox, queue_of(name), mq_xstrdup(name), strlen(name));
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
	return inbox_add(&f->inbox, queue_of(name), element.data, element.len);
}

/* The oldest of that name. */
static inline struct message *
find(struct fixture *f, const char *name)
{
	struct message *m;

	for (m = TAILQ_FIRST(&f->inbox.all); m != NULL; m = TAILQ_NEXT(m, link))
		if (strcmp(name_of(m), name) == 0)
			return m;
	fail_msg("there is no %s", name);
	return NULL;
}

/* Starts all that may start, and records them. */
static inline void
start_all(struct fixture *f, int queue)
{
	struct message *m;

	while ((m = inbox_next(&f->inbox, queue)) != NULL)
		record("%s", name_of(m));
}

#endif
