/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * cmd/mq-consume/duplicates.c, at our own server: in which order requests are carried out,
 * and what a slot hears of them.
 */
#include "mq-consume/duplicates.c"

#include "hand.h"

struct house {
	struct fixture f;
	struct mq_server server;
	struct mq_children children;
	struct mq_answers answers;
	struct message *m;
	struct duplicates *duplicates; /* NULL: freed */
	struct requests *requests;
	mq_answer_fn *fn; /* of the last command; NULL: it is answered */
	void *arg;
};

static struct house *house;

/* --- a test a row ----------------------------------------------------------- */

static const struct row duplicates_rows[] = {
    {"it is made if the queue exists",
	{"up", "empty -> yes", "ask q -> known:q", "empty -> no",
	    "known 1 -> publish:q", "done -> ok", "empty -> yes",
	    "ask q -> known:q",
	    "known 0 -> 'fail couldn't connect to queue - q'", "empty -> yes"}},
    {"one after the other",
	{"up", "ask q -> known:q", "ask r", "ask-wrong", "known 1 -> publish:q",
	    "done -> ok known:r", "known 1 -> publish:r",
	    "done -> ok 'fail dup failed - wrong'", "empty -> yes",
	    "ask-wrong -> 'fail dup failed - wrong'"}},
    {"they wait for the server",
	{"ask q", "ask r", "up -> known:q", "known 1 -> publish:q",
	    "done -> ok known:r"}},
    {"and go on with another connection",
	{"up", "ask q -> known:q", "lost", "down", "ask r", "up -> known:q",
	    "known 1 -> publish:q",
	    "lost -> 'fail dup failed - the connection was lost; the duplicate may exist' known:r",
	    "lost", "down", "up -> known:r"}},
    {"the slot hears when it may ask for more",
	{"up", "ask q -> known:q", "ask-many 62", "full -> no", "ask q",
	    "full -> yes", "ask q", "known 1 -> publish:q",
	    "done -> ok known:q", "full -> yes", "known 1 -> publish:q",
	    "done -> ok known:q answered:7", "full -> no",
	    "known 1 -> publish:q", "done -> ok known:q"}},
    {"or when the last one is answered that it waits for",
	{"up", "await -> no", "ask q -> known:q", "ask r", "await -> yes",
	    "known 1 -> publish:q", "done -> ok known:r",
	    "known 1 -> publish:r", "done -> ok all:7", "await -> no",
	    "ask q -> known:q", "known 1 -> publish:q", "done -> ok"}},
    {"but not before",
	{"up", "ask q -> known:q", "ask-many 64", "full -> yes", "await -> yes",
	    "done-many 64", "full -> no", "known 1 -> publish:q",
	    "done -> ok all:7"}},
    {"without an answer the first is given up",
	{"ask q", "ask r", "patience -> 'fail couldn't connect to queue - q'",
	    "up -> known:r", "known 1 -> publish:r", "patience", "done -> ok"}},
    {"all of a run that has ended are",
	{"ask q", "ask r", "await-ended -> yes",
	    "patience -> 'fail couldn't connect to queue - q' 'fail couldn't connect to queue - r' all:7",
	    "empty -> yes"}},
    {"even those that may be made",
	{"up", "ask q -> known:q", "known 1 -> publish:q", "await -> yes",
	    "hurry",
	    "patience -> 'fail dup failed - no answer; the duplicate may exist' all:7",
	    "done"}},
    {"a lost message has none",
	{"up", "ask q -> known:q", "lose",
	    "known 1 -> 'fail dup failed - the lease of the message was lost'"}},
    {"answers may come when all is over",
	{"up", "ask q -> known:q", "ask r", "end", "known 1"}},
};

/* --- the neighbours --------------------------------------------------------- */

void
mq_ask_known(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, mq_answer_fn *fn, void *arg)
{
	record("known:%s", queue);
	house->fn = fn;
	house->arg = arg;
}

void
mq_ask_attach(struct mq_redis *r, const struct mq_layout *layout,
    const char *set, const char *id, mq_answer_fn *fn, void *arg)
{
	fail_msg("there is nothing attached");
}

void
mq_ask_publish(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_envelope *e, mq_answer_fn *fn,
    void *arg)
{
	record("publish:%s", queue);
	house->fn = fn;
	house->arg = arg;
}

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	fixture_init(&h->f);
	h->f.layout = *mq_layout_find("rmq");
	h->answers = (struct mq_answers){.loop = h->f.loop, .fd = -1};
	assert_int_not_equal(mq_answers_open(&h->answers), -1);
	fcntl(h->answers.worker_fd, F_SETFL, O_NONBLOCK);
	add(&h->f, "a1");
	h->m = find(&h->f, "a1");
	h->duplicates = duplicates_new(h->f.loop, &h->f.opt, h->f.facts,
	    &h->f.server, &h->server, &h->children, &h->f.ids, "host");
	h->requests = requests_new(h->duplicates, &h->answers, 7);
	return h;
}

/* NULL: the connection is lost. */
static void
answer(struct house *h, const struct mq_answer *a)
{
	mq_answer_fn *fn = h->fn;

	h->fn = NULL;
	fn(h->arg, a);
}

static void
end(struct house *h)
{
	if (h->duplicates != NULL)
		duplicates_free(h->duplicates);
	h->duplicates = NULL;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	end(h);
	if (h->fn != NULL)
		answer(h, NULL);
	fixture_free(&h->f);
	free(h);
}

/* --- what happens ----------------------------------------------------------- */

static void
ask(struct house *h, const char *queue)
{
	char text[64];

	snprintf(text, sizeof(text), "0-X-%s", queue);
	requests_ask(h->requests, h->m, NULL, text);
}

static void
answer_with(struct house *h, long long n)
{
	answer(h, &(struct mq_answer){.n = n});
}

static void
done_many(struct house *h, int n)
{
	while (n-- > 0) {
		answer_with(h, 1);
		answer_with(h, MQ_PUBLISHED);
	}
}

static bool
act(struct house *h, const char *word, const char *about)
{
	struct requests *r = h->requests;
	int i;

	WORD("up", duplicates_up(h->duplicates, true));
	WORD("down", duplicates_up(h->duplicates, false));
	WORD("ask", ask(h, about));
	WORD("ask-many", for (i = 0; i < atoi(about); i++) ask(h, "q"));
	WORD("ask-wrong", requests_ask(r, NULL, "wrong", "0-X-q"));
	WORD("known", answer_with(h, atoi(about)));
	WORD("done", answer_with(h, MQ_PUBLISHED));
	WORD("done-many", done_many(h, atoi(about)), record_clear());
	WORD("lost", answer(h, NULL));
	WORD("lose", hand_lose(h->f.hand, h->m, false));
	WORD("empty", answers(requests_empty(r)));
	WORD("full", answers(requests_full(r)));
	WORD("await", answers(requests_await(r, false)));
	WORD("await-ended", answers(requests_await(r, true)));
	WORD("hurry", requests_hurry(r));
	WORD("patience", assert_true(mq_timer_runs(&r->timer)),
	    r->timer.fire(r->timer.arg));
	WORD("end", end(h));
	return false;
}

/* What the slot reads: of good answers only that they are. */
static void
record_answers(const struct house *h, bool many)
{
	char text[8192], *rest = text, *line;
	ssize_t n = h->answers.fd == -1 ?
	    0 :
	    read(h->answers.worker_fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	while (!many && (line = strsep(&rest, "\n")) != NULL)
		if (strncmp(line, "ok ", 3) == 0)
			record("ok");
		else if (*line != '\0')
			record("'%s'", line);
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	struct mq_buf before = {0};
	bool known = act(h, word, about);
	struct fact f;

	/* The commands come behind the answers that made way for them. */
	before = record_new;
	record_new = (struct mq_buf){0};
	record_answers(h, is(word, "done-many"));
	if (before.len > 0)
		record("%s", mq_buf_str(&before));
	mq_buf_free(&before);
	while (fact_take(h->f.facts, &f)) {
		assert_int_equal(f.kind, FACT_ANSWERED);
		record("%s:%lld", f.yes ? "all" : "answered", f.n);
		fact_free(&f);
	}
	return known;
}

TEST_ROWS(duplicates)
