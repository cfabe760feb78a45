/*
 * --lease: messages are printed and stay unacked at a connection of their own,
 * whose lease is as long as it was asked for and is renewed by nobody.  When
 * it is over, any cleaner gives back what has not been settled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/json.h"
#include "receipt.h"

/* While there is nothing, it is looked for so often. */
#define LOOK_MS	    200
#define CLAIM_BYTES ((size_t)1024 * 1024)

/* Messages at hand; reply has the elements. */
struct handful {
	redisReply *reply;
	struct mq_claimed facts;
	struct handed *all;
	size_t count; /* those that are to be printed: receipts 1 to this */
};

static int64_t
now_ms(void)
{
	return (int64_t)(mq_clock_steady_s() * 1000);
}

/* Under a new name.  The steps behind the first wait for it to be there. */
static void
join(struct desk *d)
{
	struct mq_command c = {0};
	char random[7];
	int step;

	mq_id_random(&d->ids, random, 6);
	snprintf(
	    d->connection, sizeof(d->connection), "%s-%s", d->opt->tag, random);
	snprintf(d->consumer, sizeof(d->consumer), "%s", d->connection);
	for (step = 0; d->layout->join(&d->session, step, &c); step++)
		freeReplyObject(desk_call(d, &c));
	d->session.make = false;
	mq_command_free(&c);
}

/* The lease begins anew, for lease_ms or, 0, for the usual time.  False: it is
 * over. */
static bool
renew(struct desk *d, int64_t lease_ms)
{
	struct mq_session s = d->session;
	struct mq_command c = {0};
	redisReply *reply;
	bool held;

	s.lease_ms = lease_ms;
	d->layout->renew(&s, 0, &c);
	reply = desk_call(d, &c);
	held = d->layout->lease(reply) > 0;
	freeReplyObject(reply);
	mq_command_free(&c);
	return held;
}

/* How many were claimed; -1: the lease was over. */
static int
claim(struct desk *d, struct handful *h)
{
	struct mq_command c = {0};
	int n;

	d->layout->claim(&d->session, 0, d->session.slots, CLAIM_BYTES, &c);
	h->reply = desk_call(d, &c);
	mq_command_free(&c);
	n = d->layout->claimed(h->reply, &h->facts);
	if (n == MQ_CLAIM_BAD)
		mq_die(MQ_EXIT_WRONGTYPE, "%s: a reply that makes no sense",
		    d->redis.server->name);
	return n == MQ_CLAIM_LOST ? -1 : n;
}

static void
reject(struct desk *d, struct handed *m, const char *why, bool late)
{
	const struct mq_counts n = {.failed = !late, .expired = late};
	struct mq_ending end = {
	    .state = late ? MQ_END_EXPIRED : MQ_END_REJECTED,
	    .text = why,
	    .status = -1,
	    .finished_ms = mq_clock_unix_us() / 1000};

	mq_say("%s: %s%srejected: %s", d->opt->queues[0], m->id,
	    m->id[0] != '\0' ? ": " : "", why);
	if (late) {
		mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, why);
		m->changed = true;
	}
	(void)desk_settle(d, m, MQ_OUTCOME_REJECT, &end);
	desk_count(d, &n);
	mq_envelope_free(&m->envelope);
}

/* Keeps those that may run, in their order. */
static void
sort_out(struct desk *d, struct handful *h, size_t n)
{
	const redisReply *element;
	struct handed m;
	const char *bad;
	char why[64];
	size_t i;

	h->all = mq_xcalloc(n, sizeof(*h->all));
	for (i = 0; i < n; i++) {
		element = h->reply->element[h->facts.first + i];
		desk_take(d, &m, element->str, element->len, &bad);
		if (bad != NULL) {
			snprintf(why, sizeof(why), "bad header: %s", bad);
			reject(d, &m, why, false);
		} else if (mq_message_over(&m.envelope, h->facts.now_ms,
			       h->facts.tick, why, sizeof(why))) {
			reject(d, &m, why, true);
		} else {
			h->all[h->count++] = m;
		}
	}
}

/* Gives out the receipts, and begins the lease.  False: it was over. */
static bool
hand_out(struct desk *d, const struct handful *h)
{
	struct mq_part *elements = mq_xcalloc(h->count, sizeof(*elements));
	struct mq_command c = {0};
	redisReply *reply;
	bool good;
	size_t i;

	for (i = 0; i < h->count; i++)
		elements[i] =
		    (struct mq_part){h->all[i].element, h->all[i].len};
	d->layout->receipts(&d->session, elements, (int)h->count, &c);
	free(elements);
	reply = desk_call(d, &c);
	mq_command_free(&c);
	good = reply->type == REDIS_REPLY_INTEGER &&
	    reply->integer == (long long)h->count;
	freeReplyObject(reply);
	return good && renew(d, d->opt->lease_ms);
}

static void
put_down(struct handful *h)
{
	size_t i;

	for (i = 0; i < h->count; i++)
		mq_envelope_free(&h->all[i].envelope);
	free(h->all);
	if (h->reply != NULL)
		freeReplyObject(h->reply);
	*h = (struct handful){0};
}

/* Until there is something, or the time is over.  The messages are ours from
 * then on for as long as was asked for. */
static void
pick_up(struct desk *d, struct handful *h)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = now_ms() + d->opt->idle_ms;
	int n;

	join(d);
	for (;;) {
		n = claim(d, h);
		if (n > 0)
			sort_out(d, h, (size_t)n);
		if (h->count > 0 && !hand_out(d, h))
			mq_die(MQ_EXIT_AGAIN, "%s: lease lost", d->connection);
		if (h->count > 0)
			return;
		put_down(h);
		/* What was rejected just now was in the way of others. */
		if (n > 0)
			continue;
		if (now_ms() >= until)
			return;
		nanosleep(&pause, NULL);
		if (n == -1 || !renew(d, 0))
			join(d);
	}
}

static void
frame(
    const struct desk *d, const struct handful *h, size_t i, struct mq_buf *out)
{
	const struct handed *m = &h->all[i];
	struct mq_frame_meta meta = {.id = m->id[0] != '\0' ? m->id : NULL,
	    .queue = d->opt->queues[0],
	    .attempt =
		1 + mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0)};
	struct mq_buf receipt = {0};

	mq_buf_printf(&receipt, "%s.%zu", d->connection, i + 1);
	meta.more =
	    json_pack("{s:o}", "receipt", mq_json_text(mq_buf_str(&receipt)));
	mq_json_must(meta.more != NULL);
	mq_frame_write(out, MQ_FRAME_JSONL, &m->envelope, &meta);
	json_decref(meta.more);
	mq_buf_free(&receipt);
}

static bool
print(const struct desk *d, const struct handful *h)
{
	struct mq_buf out = {0};
	bool good;
	size_t i;

	for (i = 0; i < h->count; i++)
		frame(d, h, i, &out);
	good = fwrite(out.data, 1, out.len, stdout) == out.len &&
	    fflush(stdout) == 0;
	mq_buf_free(&out);
	return good;
}

/* Nobody has seen them. */
static void
give_back(struct desk *d, const struct handful *h)
{
	size_t i;

	for (i = h->count; i-- > 0;)
		(void)desk_settle(d, &h->all[i], MQ_OUTCOME_FRONT, NULL);
	desk_vacate(d);
}

int
handout(const struct options *o, struct mq_server *server)
{
	struct handful h = {0};
	struct desk d;
	int status = MQ_EXIT_OK;

	signal(SIGPIPE, SIG_IGN);
	desk_open(&d, o, server);
	d.session.make = operands_look(o, &d.redis);
	d.session.slots = o->limit > 0 ? (int)o->limit : 1;
	pick_up(&d, &h);
	if (h.count == 0) {
		desk_vacate(&d);
		status = MQ_EXIT_NO;
	} else if (!print(&d, &h)) {
		mq_say("standard output: %s; the messages go back",
		    strerror(errno));
		give_back(&d, &h);
		status = MQ_EXIT_IO;
	}
	put_down(&h);
	desk_close(&d);
	return status;
}
