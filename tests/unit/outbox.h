/*
 * An outbox, with the inbox of inbox.h, whose neighbours record what they see.
 */
#ifndef TEST_OUTBOX_H
#define TEST_OUTBOX_H

#include "base/exit.h"
#include "inbox.h"
#include "mq-consume/outbox/outbox.h"

/* --- the server --- */

struct house {
	struct fixture f; /* first: see fixture_init() */
	struct counters counters;
	struct mq_counts counted; /* the last of a queue */
	char oldest[64];	  /* that the last batch of acks named */
	struct result_rules results;
	struct outbox outbox;
	bool full;
	struct {
		mq_settled_fn *fn;
		void *arg;
	} sent[64]; /* without an answer, in order */
	int sent_count;
	mq_answer_fn *paused_fn;
	void *paused_arg;
	mq_number_fn *back_fn; /* NULL: nothing goes back */
	void *back_arg;
};

static struct house *house;

static const char *const outcomes[] = {
    "ack", "reject", "front", "again", "push"};

static inline void
await_answer(mq_settled_fn *fn, void *arg)
{
	assert_in_range(house->sent_count, 0, COUNT(house->sent) - 1);
	house->sent[house->sent_count].fn = fn;
	house->sent[house->sent_count++].arg = arg;
}

void
mq_consumer_settle(struct mq_consumer *k, int queue,
    const struct mq_settlement *how, int n, mq_settled_fn *fn, void *arg)
{
	int i;

	(void)k;
	if (n > 1)
		record("equal:%s(", queue_names[queue]);
	for (i = 0; i < n; i++)
		record("%s:%s%s", outcomes[how[i].outcome],
		    payload_of(how[i].element, how[i].len),
		    how[i].result != NULL ? ":result" : "");
	if (n > 1)
		record(")");
	await_answer(fn, arg);
}

void
mq_consumer_ack_oldest(struct mq_consumer *k, int queue,
    const struct mq_acks *acks, mq_settled_fn *fn, void *arg)
{
	int i;

	(void)k;
	snprintf(house->oldest, sizeof(house->oldest), "%s",
	    payload_of(acks->oldest.p, acks->oldest.n));
	record("oldest:%s%s(", queue_names[queue], acks->holds ? ":holds" : "");
	for (i = 0; i < acks->n; i++)
		record("%s%s%.0d",
		    payload_of(acks->elements[i].p, acks->elements[i].n),
		    acks->places[i] > i + 1 ? "@" : "",
		    acks->places[i] > i + 1 ? acks->places[i] : 0);
	record(")");
	await_answer(fn, arg);
}

void
mq_consumer_give_back(struct mq_consumer *k, int queue,
    const struct mq_newest *newest, mq_number_fn *fn, void *arg)
{
	int i;

	(void)k;
	record("back:%s%s(", queue_names[queue], newest->each ? ":each" : "");
	for (i = 0; i < newest->n; i++)
		record("%s",
		    payload_of(newest->elements[i].p, newest->elements[i].n));
	record(")");
	assert_null(house->back_fn);
	house->back_fn = fn;
	house->back_arg = arg;
}

void
mq_consumer_pause(struct mq_consumer *k, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg)
{
	(void)k;
	record("pause:%s:%d", queue, (int)ms);
	house->paused_fn = fn;
	house->paused_arg = arg;
}

void
mq_consumer_count(struct mq_consumer *k, const char *queue,
    const struct mq_counts *n, mq_answer_fn *fn, void *arg)
{
	(void)k;
	(void)fn;
	(void)arg;
	house->counted = *n;
	record("%s:done=%lld,failed=%lld,retried=%lld,lost=%lld%s%.0lld", queue,
	    n->done, n->failed, n->retried, n->lease_lost,
	    n->published > 0 ? ":" : "", n->published);
}

void
mq_consumer_tell_running(struct mq_consumer *k, const struct mq_buf *text,
    mq_answer_fn *fn, void *arg)
{
	(void)k;
	(void)fn;
	(void)arg;
	record("runs:%.*s", (int)text->len, text->len > 0 ? text->data : "");
}

/* The oldest sending is answered; NULL: the connection was lost. */
static inline void
answer_with(const struct mq_answer *answer, enum mq_settled how)
{
	mq_settled_fn *fn = house->sent[0].fn;
	void *arg = house->sent[0].arg;

	assert_true(house->sent_count > 0);
	memmove(house->sent, house->sent + 1,
	    (size_t)--house->sent_count * sizeof(house->sent[0]));
	fn(arg, answer, how);
}

static inline void
answer(enum mq_settled how)
{
	answer_with(&(struct mq_answer){0}, how);
}

static inline void
refuse(int status)
{
	answer_with(&(struct mq_answer){.error = "no", .status = status},
	    MQ_SETTLED_LOST);
}

/* What goes back is answered: so many of it went. */
static inline void
answer_back(const struct mq_answer *answer, int n)
{
	mq_number_fn *fn = house->back_fn;

	assert_non_null(fn);
	house->back_fn = NULL;
	fn(house->back_arg, answer, n);
}

static inline void
went_back(int n)
{
	answer_back(&(struct mq_answer){0}, n);
}

static inline void
lose_connection(struct house *h)
{
	up = false;
	if (h->back_fn != NULL)
		answer_back(NULL, 0);
	while (h->sent_count > 0)
		answer_with(NULL, MQ_SETTLED_LOST);
	up = true;
}

/* --- the engine --- */

static inline bool
on_has_room(void *arg, size_t bytes)
{
	(void)bytes;
	return !((struct house *)arg)->full;
}

/* Writes down what the outbox tells. */
static inline void
on_outbox_fact(void *arg, const struct fact *f)
{
	struct house *h = arg;

	switch (f->kind) {
	case FACT_SETTLED:
		record("%s:%s", f->yes ? "done" : "over", name_of(f->message));
		inbox_forget(&h->f.inbox, f->message);
		break;
	case FACT_TOO_LONG:
		record("too-long:%s", name_of(f->message));
		break;
	case FACT_WRONG_KEY:
		record("wrong-key");
		break;
	case FACT_REFUSED:
		record("refused:%s", f->text);
		break;
	case FACT_PAUSING:
		record("%s:%s", f->yes ? "pausing" : "answered",
		    queue_names[f->queue]);
		break;
	case FACT_PAUSED:
		record("paused:%s", queue_names[f->queue]);
		break;
	default:
		break;
	}
}

/* All of them are started. */
static inline void
run(struct house *h, const char *names)
{
	add(&h->f, names);
	start_all(&h->f, -1);
	(void)recorded();
}

/* The nth message of this name, from 1. */
static inline struct message *
nth(struct house *h, const char *name, int n)
{
	struct message *m = find(&h->f, name);

	while (n > 1) {
		m = TAILQ_NEXT(m, link);
		assert_non_null(m);
		n -= strcmp(name_of(m), name) == 0;
	}
	return m;
}

struct settling {
	struct house *house;
	enum mq_outcome outcome;
};

static inline void
settle_one(void *arg, const char *name)
{
	struct settling *s = arg;

	outbox_settle(&s->house->outbox, find(&s->house->f, name), s->outcome);
}

static inline void
settle(struct house *h, const char *names, enum mq_outcome outcome)
{
	each_word(names, settle_one, &(struct settling){h, outcome});
}

static inline int
house_setup(void **state)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));
	struct fixture *f = &h->f;

	fixture_init(f);
	h->results.opt = &f->opt;
	counters_init(&h->counters, &f->opt, &f->server, "server");
	h->outbox = (struct outbox){.loop = f->loop,
	    .opt = &f->opt,
	    .server = &f->server,
	    .ids = &f->ids,
	    .inbox = &f->inbox,
	    .counters = &h->counters,
	    .results = &h->results,
	    .hear = on_outbox_fact,
	    .has_room = on_has_room,
	    .arg = h};
	outbox_init(&h->outbox);
	*state = h;
	return 0;
}

static inline int
house_teardown(void **state)
{
	struct house *h = *state;

	lose_connection(h);
	outbox_free(&h->outbox);
	counters_free(&h->counters);
	fixture_free(&h->f);
	free(h);
	return 0;
}

#endif
