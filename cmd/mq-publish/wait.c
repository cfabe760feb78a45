/*
 * --wait: until the messages that were accepted have come to their end.  What
 * is told of an end stays at the server for a while, so none is missed that
 * came before we asked, or while the connection was lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/result.h"
#include "publish.h"

/* The server waits for so long at a time, and then answers. */
#define BLOCK_MS  5000
#define ANSWER_MS 10000
#define PAUSE_MS  1000
/* While one is waited for, the results of the others must not get lost. */
#define SWEEP_MS (MQ_RESULT_KEEP_MS / 6)

struct awaited {
	char id[MQ_ID_LEN + 1];
	char *queue; /* where it went on; NULL: where it was published */
	bool ended;
	struct mq_ending ending;
};

struct waiting {
	struct publisher *p;
	struct awaited *all;
	size_t count, next; /* those before next are done with */
	int64_t until_ms;   /* CLOCK_BOOTTIME; -1: never */
	int64_t sweep_ms;   /* when to look after all of them, likewise */
	bool told_lost;
	bool terminal; /* so is stdout */
};

static int64_t
left_ms(const struct waiting *w, int64_t most)
{
	int64_t left =
	    w->until_ms == -1 ? most : w->until_ms - publish_now_ms();

	return left < most ? left : most;
}

static const char *
queue_of(const struct waiting *w, const struct awaited *a)
{
	return a->queue != NULL ? a->queue : w->p->opt->queue;
}

/* For so long, or until it is over. */
static void
rest(struct waiting *w, int64_t ms)
{
	struct timespec ts;

	ms = left_ms(w, ms);
	if (ms <= 0)
		return;
	ts = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	(void)publish_wait(w->p, -1, &ts);
}

/* False: the time is over. */
static bool
reconnect(struct waiting *w)
{
	int64_t pause = 0;

	if (!w->told_lost && !w->p->opt->quiet)
		mq_say("%s; reconnecting", w->p->redis.error);
	w->told_lost = true;
	return publish_reconnect(w->p, w->until_ms, &pause);
}

/* It goes on in another queue, if there can be one of that name. */
static void
follow(struct waiting *w, struct awaited *a)
{
	const char *to = a->ending.to;

	if (to == NULL || w->p->layout->queue_error(to) != NULL)
		return;
	a->ended = false;
	free(a->queue);
	a->queue = mq_xstrdup(to);
	mq_ending_free(&a->ending);
}

/* False: the server cannot say now. */
static bool
take(struct waiting *w, struct awaited *a, const redisReply *reply)
{
	struct mq_redis *r = &w->p->redis;

	if (mq_redis_refused(r, reply)) {
		if (r->status != MQ_EXIT_UNAVAILABLE &&
		    r->status != MQ_EXIT_AGAIN)
			mq_die(r->status, "%s", r->error);
		return false;
	}
	if (reply->type != REDIS_REPLY_STRING)
		return true;
	if (mq_ending_read(reply->str, reply->len, &a->ending) == -1)
		mq_die(MQ_EXIT_DATA, "%s: %s: a result that makes no sense",
		    queue_of(w, a), a->id);
	a->ended = true;
	if (a->ending.state == MQ_END_PUSHED)
		follow(w, a);
	return true;
}

/*
 * Asks about one, for up to so long.  False: the server cannot say now, or
 * not in this way: full, it lets nobody wait.
 */
static bool
ask(struct waiting *w, struct awaited *a, int64_t block_ms)
{
	struct publisher *p = w->p;
	struct mq_command c = {0};
	redisReply *reply = NULL;
	bool good;

	if (mq_redis_lost(&p->redis) && !reconnect(w))
		return true;
	p->layout->result(&c, queue_of(w, a), a->id, block_ms);
	if (mq_redis_send(&p->redis, &c) == 0)
		reply = publish_answer(p, block_ms + ANSWER_MS);
	mq_command_free(&c);
	if (reply == NULL) {
		(void)reconnect(w);
		return true;
	}
	good = take(w, a, reply);
	freeReplyObject(reply);
	return good;
}

static void
sweep(struct waiting *w)
{
	size_t i;

	if (publish_now_ms() < w->sweep_ms)
		return;
	for (i = w->next; i < w->count; i++)
		if (!w->all[i].ended)
			(void)ask(w, &w->all[i], 0);
	w->sweep_ms = publish_now_ms() + SWEEP_MS;
}

static void
await(struct waiting *w, struct awaited *a)
{
	int64_t block = left_ms(w, BLOCK_MS);

	while (!a->ended) {
		if (!ask(w, a, block > 0 ? block : 0) && block > 0) {
			rest(w, PAUSE_MS);
			(void)ask(w, a, 0);
		}
		if (block <= 0)
			return;
		sweep(w);
		block = left_ms(w, BLOCK_MS);
	}
}

static void
print(const struct waiting *w, const struct awaited *a)
{
	const char *text = a->ending.text;
	char *shown = NULL;

	if (w->p->opt->ids)
		printf("%s %s", a->id, mq_end_name(a->ending.state));
	if (text != NULL && w->terminal)
		text = shown = mq_visible(text, strlen(text));
	if (text != NULL)
		printf("%s%s", w->p->opt->ids ? " " : "", text);
	if (text != NULL || w->p->opt->ids)
		putchar('\n');
	fflush(stdout);
	free(shown);
}

static int
judge(const struct waiting *w, const struct awaited *a)
{
	const struct mq_ending *e = &a->ending;

	print(w, a);
	if (e->state == MQ_END_DONE)
		return MQ_EXIT_OK;
	if (!w->p->opt->quiet)
		mq_say("%s: %s: %s%s%s", queue_of(w, a), a->id,
		    mq_end_name(e->state), e->text != NULL ? ": " : "",
		    e->text != NULL ? e->text : "");
	return MQ_EXIT_NO;
}

static void
add_all(struct waiting *w)
{
	struct publisher *p = w->p;
	size_t i;

	w->count = p->awaited.len / MQ_ID_LEN;
	w->all = mq_xcalloc(w->count + 1, sizeof(*w->all));
	for (i = 0; i < w->count; i++)
		memcpy(
		    w->all[i].id, p->awaited.data + i * MQ_ID_LEN, MQ_ID_LEN);
}

int
publish_await(struct publisher *p)
{
	struct waiting w = {.p = p, .until_ms = -1};
	size_t late = 0;
	int status = MQ_EXIT_OK, one;
	struct awaited *a;

	add_all(&w);
	w.terminal = isatty(STDOUT_FILENO);
	w.sweep_ms = publish_now_ms() + SWEEP_MS;
	if (p->opt->wait_ms >= 0)
		w.until_ms = publish_now_ms() + p->opt->wait_ms;
	for (; w.next < w.count; w.next++) {
		a = &w.all[w.next];
		await(&w, a);
		one = a->ended ? judge(&w, a) : MQ_EXIT_AGAIN;
		late += !a->ended;
		status = one > status ? one : status;
		mq_ending_free(&a->ending);
		free(a->queue);
	}
	if (late > 0 && !p->opt->quiet)
		mq_say("%s: %zu of %zu message%s not ended in time",
		    p->opt->queue, late, w.count, w.count == 1 ? "" : "s");
	free(w.all);
	return status;
}
