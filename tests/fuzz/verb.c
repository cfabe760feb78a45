/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What a script says: the same in whatever pieces it comes, for one message
 * and for several.  An input is one byte for how many messages there are, one
 * for the pieces, and the talk.
 */
#include "message/verdict.h"

#include "fuzz.h"
#include "queue/dup.h"

#define MESSAGES 4

struct talk {
	struct mq_verbs verbs;
	struct mq_verb_one ones[MESSAGES];
	struct mq_buf dups;
};

static void
on_dup(void *arg, int which, const char *text)
{
	struct talk *t = arg;

	assert(which >= -1 && which <= t->verbs.count);
	assert(text == NULL || strlen(text) <= MQ_VERB_LINE);
	mq_buf_printf(&t->dups, "%d:%s\n", which, text != NULL ? text : "?");
}

/* seed 0: in one piece */
static void
hear(struct talk *t, int count, const uint8_t *p, size_t n, uint32_t seed)
{
	size_t piece, at;

	*t = (struct talk){0};
	mq_verbs_begin(&t->verbs);
	t->verbs.ones = count > 0 ? t->ones : NULL;
	t->verbs.count = count;
	t->verbs.on_dup = on_dup;
	t->verbs.arg = t;
	if (seed == 0) {
		mq_verbs_feed(&t->verbs, (const char *)p, n);
		n = 0;
	}
	for (; n > 0; p += piece, n -= piece) {
		piece = fuzz_piece(&seed);
		if (piece > n)
			piece = n;
		for (at = 0; at < piece;) {
			at += mq_verbs_feed_line(
			    &t->verbs, (const char *)p + at, piece - at);
			(void)strlen(t->verbs.about > 0 ?
				t->verbs.ones[t->verbs.about - 1].text :
				t->verbs.text);
		}
		assert(at == piece);
	}
	mq_verbs_feed(&t->verbs, "\n", 1);
}

static void
check_bounds(const struct talk *t)
{
	static const int status[] = {0, 75 << 8, 127 << 8, 1 << 8, 11};
	struct mq_verdict v;
	char reason[128];
	size_t i;
	int one;

	assert(t->verbs.resend_s >= 0 && t->verbs.resend_s <= 315360000);
	for (i = 0; i < sizeof(status) / sizeof(status[0]); i++) {
		mq_verdict(&t->verbs, status[i], i % 2 == 0, false, &v);
		mq_verdict_reason(&v, mq_buf_str((struct mq_buf *)&t->dups),
		    reason, sizeof(reason));
		assert(strlen(reason) < sizeof(reason));
		for (one = 0; one < t->verbs.count; one++) {
			mq_verdict_one(
			    &t->verbs, one, status[i], false, true, &v);
			/* err stands whatever there is. */
			assert(t->ones[one].final != MQ_FINAL_ERR ||
			    v.kind == MQ_VERDICT_ERR);
		}
	}
}

static void
same(struct talk *a, struct talk *b)
{
	int i;

	assert(a->verbs.final == b->verbs.final &&
	    a->verbs.spoke == b->verbs.spoke &&
	    a->verbs.stray == b->verbs.stray &&
	    a->verbs.resend_s == b->verbs.resend_s &&
	    strcmp(a->verbs.text, b->verbs.text) == 0);
	for (i = 0; i < MESSAGES; i++)
		assert(a->ones[i].final == b->ones[i].final &&
		    a->ones[i].resend_s == b->ones[i].resend_s &&
		    fuzz_same(a->ones[i].text, b->ones[i].text));
	assert(strcmp(mq_buf_str(&a->dups), mq_buf_str(&b->dups)) == 0);
}

static void
forget(struct talk *t)
{
	int i;

	for (i = 0; i < MESSAGES; i++)
		free(t->ones[i].text);
	mq_buf_free(&t->dups);
}

/* The first line as what a dup asks for. */
static void
parse_dup(const uint8_t *p, size_t n)
{
	struct fuzz_input in = {p, n};
	char *text = fuzz_string(&in, n);
	struct mq_dup d;
	const char *why;

	text[strcspn(text, "\n")] = '\0';
	why = mq_dup_parse(text, &d);
	assert(d.due_s >= 0 && d.due_s <= 315360000 && d.shown != NULL);
	assert(why != NULL || d.queue != NULL);
	mq_dup_free(&d);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	int count = fuzz_byte(&in) % (MESSAGES + 1);
	uint32_t seed = fuzz_byte(&in);
	struct talk whole, pieces;

	hear(&whole, count, in.p, in.n, 0);
	hear(&pieces, count, in.p, in.n, seed + 1);
	same(&whole, &pieces);
	check_bounds(&whole);
	parse_dup(in.p, in.n);
	forget(&whole);
	forget(&pieces);
	return 0;
}
