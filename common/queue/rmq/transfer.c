/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: messages that go from one queue of a cluster to another; for cleaners,
 * ending transfers, and dropping their marks.  See rmq.h.
 */
#include "rmq.h"

#include "base/exit.h"

/* Longest wait for a replica. */
#define CONFIRM_MS 5000
/* A call reads outgoing at most 1000 times, as new transfers may begin all the time. */
#define READS_MAX  1000
#define READ_BYTES (1 << 20)
/* A mark stays for 24 hours, since a program that was stopped may repeat a step late; if a
 * queue has MARK_MANY marks, for 10 minutes. */
#define MARK_MS	     (24 * INT64_C(3600000))
#define MARK_MANY_MS INT64_C(600000)
#define MARK_MANY    10000

bool
rmq_transfer_needed(
    const struct mq_command *c, const char *from, const char *to)
{
	return c->cluster && to != NULL && strcmp(from, to) != 0;
}

const char *
rmq_transfer_field(char field[RMQ_FIELD], const char *id, const char *to)
{
	snprintf(field, RMQ_FIELD, "%s000001 push %s", id, to);
	return field;
}

void
rmq_key_notice(struct mq_command *c, const char *queue, const char *to)
{
	bool away = rmq_transfer_needed(c, queue, to);

	rmq_key_queue(
	    c, away ? queue : to, away ? "outgoing none" : "ready counters");
}

/* Step 2.  parts: n fields and elements by turns. */
static void
add_arrive(struct mq_command *c, const char *source, const char *to,
    const struct mq_part *parts, int n)
{
	int i;

	rmq_start(c, &rmq_script_arrive, NULL, to);
	MQ_COMMAND_ARGV(c, rmq_arrive_argv, .source = mq_str(source));
	for (i = 0; i < n; i++)
		mq_command_arg(c, parts[i].p, parts[i].n);
}

int
rmq_transfer_check(struct mq_redis *r, const char *source, const char *to)
{
	struct mq_command c = mq_redis_command(r);

	add_arrive(&c, source, to, NULL, 0);
	if (mq_call_done(r, &c) == -1)
		return -1;
	rmq_open(&c, source, NULL, false);
	return mq_call_done(r, &c);
}

struct batch {
	struct mq_round *round;
	const char *source, *to;
	struct mq_part *parts;
	int n;
};

/* Carries out a step; *n: its integer, or -1 if it was refused. */
static int
call_step(const struct batch *b, struct mq_command *c, long long *n)
{
	redisReply *reply;
	int rv = mq_round_call(b->round, c, REDIS_REPLY_INTEGER, &reply);

	*n = reply != NULL ? reply->integer : -1;
	freeReplyObject(reply);
	return rv;
}

/* Step 3, on the connection of step 2; *n is 0 if no replica has confirmed that. */
static int
confirm(const struct batch *b, long long *n)
{
	struct mq_round *round = b->round;
	struct mq_command c = mq_redis_command(round->r);
	const struct mq_place_of_node *to;

	*n = 1;
	rmq_ask(&c, "WAIT @ 1", b->to, NULL);
	mq_command_int(&c, CONFIRM_MS);
	to = mq_node_of(round->r, &c);
	if (to == NULL || !to->replicated) {
		mq_command_free(&c);
		return 0;
	}
	if (call_step(b, &c, n) == -1)
		return -1;
	if (*n != 0)
		return 0;
	(void)mq_redis_fail(round->r, MQ_EXIT_AGAIN,
	    "%s: no replica of its node has confirmed its messages", b->to);
	if (round->status == 0) {
		round->status = round->r->status;
		strlcpy(round->error, round->r->error, sizeof(round->error));
	}
	return 0;
}

/* Steps 2 to 5; *ended: the messages have left outgoing. */
static int
finish_batch(const struct batch *b, bool *ended)
{
	struct mq_command c = mq_redis_command(b->round->r);
	redisReply *reply;
	long long n;
	int i;

	add_arrive(&c, b->source, b->to, b->parts, b->n);
	if (call_step(b, &c, &n) == -1 || (n >= 0 && confirm(b, &n) == -1))
		return -1;
	*ended = n > 0;
	if (!*ended)
		return 0;
	rmq_open(&c, b->to, NULL, false);
	reply = mq_redis_answer(b->round->r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	/* If the node of the names is lost, a cleaner lists the name later. */
	*ended = mq_reply_missing(reply) ||
	    mq_round_good(b->round, reply, REDIS_REPLY_INTEGER);
	freeReplyObject(reply);
	if (!*ended)
		return 0;
	rmq_ask(&c, "HDEL Q:outgoing", b->source, NULL);
	for (i = 0; i < b->n; i += 2)
		mq_command_arg(&c, b->parts[i].p, b->parts[i].n);
	if (call_step(b, &c, &n) == -1)
		return -1;
	*ended = n >= 0;
	return 0;
}

/* Finishes the transfers of a slice, all to one queue together.  *all becomes false if one has
 * not ended. */
static int
finish_slice(struct batch *b, const redisReply *read, long *ended, bool *all)
{
	redisReply *const *e = read->element;
	size_t i, k, n = read->elements / 2;
	/* The queue of each message; NULL: its turn is over, or its field malformed. */
	const char **to = mq_xcalloc(n + 1, sizeof(*to)), *p;
	bool good = false;
	int rv = 0;

	b->parts = mq_xcalloc(2 * n + 1, sizeof(*b->parts));
	/* A field is "ID FROM QUEUE". */
	for (i = 0; i < n; i++) {
		p = strchr(e[2 * i]->str, ' ');
		p = p != NULL ? strchr(p + 1, ' ') : NULL;
		if (p != NULL && strlen(e[2 * i]->str) == e[2 * i]->len &&
		    rmq_queue_error(p + 1) == NULL)
			to[i] = p + 1;
	}
	for (i = 0; i < n && rv == 0; i++) {
		if (to[i] == NULL)
			continue;
		b->n = 0;
		b->to = to[i];
		for (k = 2 * i; k < 2 * n; k += 2) {
			if (to[k / 2] == NULL || strcmp(to[k / 2], b->to) != 0)
				continue;
			to[k / 2] = NULL;
			b->parts[b->n++] =
			    (struct mq_part){e[k]->str, e[k]->len};
			b->parts[b->n++] =
			    (struct mq_part){e[k + 1]->str, e[k + 1]->len};
		}
		rv = finish_batch(b, &good);
		*ended += good ? b->n / 2 : 0;
		*all &= good;
	}
	free(b->parts);
	free(to);
	return rv;
}

int
rmq_transfer_finish(
    struct mq_round *round, const char *source, const char *to, long *ended)
{
	struct batch b = {.round = round, .source = source};
	struct mq_buf after = {0};
	struct mq_command c = mq_redis_command(round->r);
	redisReply *reply, *last;
	bool all = true;
	int reads, rv = 0;

	*ended = 0;
	for (reads = 0; rv == 0 && reads < READS_MAX; reads++) {
		rmq_start(&c, &rmq_script_outgoing, NULL, source);
		MQ_COMMAND_ARGV(&c, rmq_outgoing_argv,
		    .after = mq_bytes(after.data, after.len),
		    .to = mq_str(to != NULL ? to : ""),
		    .max = mq_int(RMQ_TRANSFER_COUNT),
		    .bytes = mq_int(READ_BYTES));
		rv = mq_round_call(round, &c, MQ_STRINGS, &reply);
		if (reply == NULL || reply->elements < 2) {
			freeReplyObject(reply);
			break;
		}
		rv = finish_slice(&b, reply, ended, &all);
		/* If messages stay, the next read begins behind them. */
		last = reply->element[(reply->elements / 2 - 1) * 2];
		if (!all)
			mq_buf_set(&after, last->str, last->len);
		freeReplyObject(reply);
	}
	mq_buf_free(&after);
	return rv;
}

int
rmq_transfer_complete(struct mq_redis *r, const char *source, const char *to)
{
	struct mq_round round = {.r = r};
	long ended;

	if (rmq_transfer_finish(&round, source, to, &ended) == -1)
		return -1;
	if (round.status == 0 && round.refused > 0) {
		round.status = MQ_EXIT_NOPERM;
		snprintf(round.error, sizeof(round.error), "%s: not permitted",
		    to != NULL ? to : "a queue of its pushes");
	}
	if (mq_round_end(&round) == 0)
		return 0;
	strlcat(r->error, "; mq-clean delivers what is on the way",
	    sizeof(r->error));
	return -1;
}

/* --- cleaning -------------------------------------------------------------------- */

/* The marks of a queue that are older than before_ms. */
struct marks {
	struct rmq_cleaner *w;
	const char *queue;
	int64_t before_ms;
};

/* Drops marks "MS SOURCE" of messages that have left the source's outgoing. */
static int
drop_marks(void *arg, redisReply *some)
{
	const struct marks *m = arg;
	struct mq_command c = mq_redis_command(m->w->round.r);
	redisReply **e = some->element;
	struct mq_names old = {0}; /* a source and a field */
	long long *n = NULL;
	long dropped = 0;
	char *source;
	size_t i;
	int none, rv;

	for (i = 0; i + 1 < some->elements; i += 2)
		if (strtoll(e[i + 1]->str, &source, 10) < m->before_ms &&
		    *source == ' ' && rmq_queue_error(source + 1) == NULL &&
		    strlen(e[i]->str) == e[i]->len)
			mq_names_add(&old, source + 1, e[i]->str);
	rv = rmq_cleaner_ask(m->w, &old, "HEXISTS Q:outgoing %q", &n);
	rmq_ask(&c, "HDEL Q:incoming", m->queue, NULL);
	none = c.args;
	for (i = 0; i < old.n; i++)
		if (n[i] == 0)
			mq_command_str(&c, old.list[i].queue);
	if (rv == 0 && c.args > none)
		rv = mq_round_add(&m->w->round, &c, &dropped);
	mq_command_free(&c);
	mq_names_free(&old);
	free(n);
	return rv;
}

int
rmq_underway(struct rmq_cleaner *w)
{
	const struct mq_command c = mq_redis_command(w->round.r);
	struct mq_names queues = {0};
	struct marks m = {.w = w};
	long long *n = NULL, *of;
	int64_t now_ms = 0;
	long ended;
	size_t i;
	int rv = rmq_cleaner_listed(w, RMQ_QUEUES, &queues, NULL);

	for (i = 0; i < queues.n && w->how->scattered != NULL; i++)
		if (rmq_is_scattered(&c, queues.list[i].name))
			mq_names_add(
			    w->how->scattered, queues.list[i].name, NULL);
	if (rv == 0)
		rv = mq_server_time(w->round.r, &now_ms);
	if (rv == 0)
		rv = rmq_cleaner_ask(
		    w, &queues, "HLEN Q:outgoing|HLEN Q:incoming", &n);
	for (i = 0; i < queues.n && rv == 0; i++) {
		of = n + 2 * i;
		ended = of[0] > 0 ? (long)of[0] : 0;
		m.queue = queues.list[i].name;
		m.before_ms =
		    now_ms - (of[1] > MARK_MANY ? MARK_MANY_MS : MARK_MS);
		if (of[0] > 0 && !w->how->dry_run)
			rv = rmq_transfer_finish(
			    &w->round, m.queue, NULL, &ended);
		w->out->transferred += ended;
		if (rv == 0 && of[1] > 0 && !w->how->dry_run)
			rv = rmq_cleaner_fields(
			    w, m.queue, "incoming", drop_marks, &m);
	}
	free(n);
	mq_names_free(&queues);
	return rv;
}
