/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What becomes of a message by the end of its run, or without one; and what others hear of
 * it, which is decided by the way.
 */
#include <ev.h>
#include <signal.h>

#include "mq-consume/verdict.h"
#include "queue/consumer.h"
#include "hand.h"

struct house {
	struct fixture f;
	struct message *m; /* which the row is about */
};

/* Recorded are the outcome, what it asks for, and what is heard of it: the state, and how
 * long it is kept or who is told. */
static const struct row end_rows[] = {
    {"nobody hears of an end, if nobody asks",
	{"end done fine -> ack", "end err bad -> reject",
	    "end resend later -> again:5000", "end push -> reject",
	    "printed -> ack"}},
    {"a result is kept for those who ask later",
	{"keep 1000", "end done fine -> ack done:1000",
	    "says \"text\":\"fine\" -> yes", "says \"status\":0 -> yes",
	    "says \"host\":\"me\" -> yes", "says \"attempts\":1 -> yes",
	    "says \"queue\": -> no", "end err bad -> reject rejected:1000",
	    "says bad -> yes", "printed -> ack done:1000", "says text -> no",
	    "says status -> no"}},
    {"a publisher that waits hears of it, too",
	{"awaited", "end done -> ack done:3600000", "keep 7200000",
	    "end done -> ack done:7200000"}},
    {"a result needs a name",
	{"unnamed", "keep 1000", "end done -> ack", "unfit header -> reject",
	    "notify c", "unfit header -> reject rejected:0:c"}},
    {"a queue hears of it",
	{"notify c", "end done fine -> ack done:0:c",
	    "says \"queue\":\"a\" -> yes", "keep 1000",
	    "end err bad -> reject rejected:1000:c"}},
    {"of a notice no queue hears",
	{"notify c", "notice", "end done fine -> ack", "keep 1000",
	    "end done fine -> ack done:1000", "says queue -> no"}},
    {"nobody hears of what is tried again",
	{"keep 1000", "notify c", "end resend later -> again:5000",
	    "end pause busy -> again:5000:pause", "end retry -> again:some"}},
    {"a push says where the message goes on",
	{"push b", "keep 1000", "end push on -> push:b pushed:1000",
	    "says \"to\":\"b\" -> yes", "says text -> no",
	    /* It was too long. */
	    "unfit run long -> reject rejected:1000", "says long -> yes",
	    "says to\": -> no"}},
    {"without a queue for it a push is an error",
	{"keep 1000", "end push on -> reject rejected:1000", "says on -> yes"}},
    {"the last run decides",
	{"attempts 1", "keep 1000", "end resend late -> reject rejected:1000",
	    "says attempts exhausted: late -> yes",
	    "end retry -> reject rejected:1000", "attempts 2",
	    "end retry -> again:some"}},
    {"a command that cannot run is not the message's",
	{"attempts 1", "keep 1000", "broken -> again:some",
	    "end broken -> reject rejected:1000"}},
    {"err is a retry, if it is said so",
	{"retry-err", "end err bad -> again:some"}},
    {"an operator decides",
	{"keep 1000", "stop return", "end stopped -> again:0", "stop purge",
	    "end stopped -> ack purged:1000", "stopped -> yes"}},
    {"the next tick, if there is one",
	{"end tick -> again:some", "ticks", "end tick -> again:0", "until 8",
	    "end tick -> again:0", "until 7", "end tick -> reject"}},
    {"what does not run is heard of",
	{"keep 1000", "unfit expired late -> reject expired:1000",
	    "says late -> yes", "says \"attempts\":0 -> yes"}},
    {"what has waited for failures is no run that has expired",
	{"keep 1000", "unfit batch failed -> reject rejected:1000",
	    "says \"attempts\":0 -> yes", "header failed -> yes",
	    "header Mq-History -> no"}},
    {"what has no attempts left is heard of",
	{"keep 1000", "unfit spent -> reject rejected:1000",
	    "says attempts exhausted -> yes", "header Mq-History -> no"}},
    {"what has crashed its consumers is heard of, without a text",
	{"keep 1000", "unfit crashed -> reject rejected:1000",
	    "says text -> no", "crashed -> yes", "header Mq-History -> yes"}},
    {"a killed run has a signal",
	{"keep 1000", "killed -> reject rejected:1000",
	    "says \"signal\":\"KILL\" -> yes", "says status -> no"}},
};

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	fixture_init(&h->f);
	add(&h->f, "a1");
	h->m = find(&h->f, "a1");
	h->m->envelope.payload = h->m->element;
	h->m->envelope.payload_len = h->m->len;
	snprintf(h->m->id, sizeof(h->m->id), "the-id");
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	fixture_free(&h->f);
	free(h);
}

/* The rules of queue a. */
static struct mq_settings *
rules(struct house *h)
{
	return &h->f.opt.rules[0].effective;
}

static void
record_end(struct message *m)
{
	static const char *const outcomes[] = {
	    "ack", "reject", "front", "again", "push"};
	struct mq_buf text = {0};
	char state[16];
	const char *at;

	mq_buf_printf(&text, "%s", outcomes[m->outcome]);
	if (m->outcome == MQ_OUTCOME_PUSH)
		mq_buf_printf(&text, ":%s", m->to);
	else if (m->outcome == MQ_OUTCOME_AGAIN && m->delay_ms % 5000 == 0)
		mq_buf_printf(&text, ":%d", (int)m->delay_ms);
	else if (m->outcome == MQ_OUTCOME_AGAIN)
		mq_buf_printf(&text, ":some");
	if (m->outcome == MQ_OUTCOME_AGAIN && m->pause_ms > 0)
		mq_buf_printf(&text, ":pause");
	if (m->result.len > 0) {
		at = strstr(mq_buf_str(&m->result), "\"state\":\"");
		assert_non_null(at);
		assert_int_equal(sscanf(at, "\"state\":\"%15[a-z]", state), 1);
		mq_buf_printf(&text, " %s:%lld%s%s", state,
		    (long long)m->keep_ms, m->notified != NULL ? ":" : "",
		    m->notified != NULL ? m->notified : "");
	}
	record("%s", mq_buf_str(&text));
	mq_buf_free(&text);
}

/* The outcome does not lie in the message yet. */
static void
begin(struct message *m)
{
	m->delay_ms = m->pause_ms = 0;
	m->outcome = MQ_OUTCOME_FRONT;
	m->expired = m->crashed = m->stopped = false;
	mq_buf_clear(&m->header);
	mq_buf_clear(&m->result);
}

static void
end(struct house *h, const char *about, int status, bool broken)
{
	static const char *const kinds[] = {[MQ_VERDICT_DONE] = "done",
	    [MQ_VERDICT_ERR] = "err",
	    [MQ_VERDICT_RESEND] = "resend",
	    [MQ_VERDICT_TICK] = "tick",
	    [MQ_VERDICT_PAUSE] = "pause",
	    [MQ_VERDICT_PUSH] = "push",
	    [MQ_VERDICT_RETRY] = "retry",
	    [MQ_VERDICT_BROKEN] = "broken",
	    [MQ_VERDICT_STOPPED] = "stopped"};
	char errors[] = "";
	struct ending ending = {.errors = errors,
	    .verdict.status = status,
	    .verdict.resend_s = 5,
	    .broken = broken};
	char word[64];
	size_t i;

	assert_true(next_word(&about, word));
	for (i = 0; !is(word, kinds[i]); i++)
		assert_true(i + 1 < COUNT(kinds));
	ending.verdict.kind = (enum mq_verdict_kind)i;
	if (next_word(&about, word))
		snprintf(ending.verdict.text, sizeof(ending.verdict.text), "%s",
		    word);
	begin(h->m);
	verdict_ended(&h->f.opt, "me", 7, h->m, &ending);
	record_end(h->m);
}

static void
print(struct house *h)
{
	begin(h->m);
	verdict_ended(&h->f.opt, "me", 7, h->m, NULL);
	record_end(h->m);
}

static void
reject(struct house *h, const char *about)
{
	static const char *const unfits[] = {[UNFIT_HEADER] = "header",
	    [UNFIT_RUN] = "run",
	    [UNFIT_EXPIRED] = "expired",
	    [UNFIT_BATCH] = "batch",
	    [UNFIT_SPENT] = "spent",
	    [UNFIT_CRASHED] = "crashed"};
	char word[64], why[64] = "";
	size_t i;

	assert_true(next_word(&about, word));
	(void)next_word(&about, why);
	for (i = 0; !is(word, unfits[i]); i++)
		assert_true(i + 1 < COUNT(unfits));
	begin(h->m);
	verdict_unfit(&h->f.opt, "me", h->m, (enum unfit)i,
	    i >= UNFIT_SPENT ? NULL : why);
	record_end(h->m);
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	struct message *m = h->m;

	WORD("keep", rules(h)->keep_ms = atoi(about));
	WORD("notify", rules(h)->notify = about[0] == 'c' ? "c" : NULL);
	WORD("push", rules(h)->push = "b");
	WORD("attempts", rules(h)->attempts = atoi(about));
	WORD("retry-err", rules(h)->retry_err = 1);
	WORD("ticks", h->f.layout.has |= MQ_HAS_TICKS);
	WORD("awaited", m->awaited = true);
	WORD("unnamed", m->id[0] = '\0');
	WORD("notice", mq_envelope_set(&m->envelope, MQ_HEADER_NOTICE, "b"));
	WORD("until",
	    mq_envelope_set(&m->envelope, MQ_HEADER_UNTIL_TICK, about));
	WORD("stop",
	    m->stop = is(about, "purge") ? MQ_STOP_PURGE : MQ_STOP_RETURN);
	WORD("end", end(h, about, 0, false));
	WORD("killed", end(h, "err", SIGKILL, false));
	WORD("broken", end(h, "broken", 127 << 8, true));
	WORD("printed", print(h));
	WORD("unfit", reject(h, about));
	WORD("says", answers(strstr(mq_buf_str(&m->result), about) != NULL));
	WORD("header",
	    answers(memmem(m->header.data, m->header.len, about,
			strlen(about)) != NULL));
	WORD("stopped", answers(m->stopped));
	WORD("crashed", answers(m->crashed));
	return false;
}

TEST_ROWS(end)
