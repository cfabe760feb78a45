/*
 * The rsmq layout: messages that no consumer has survived, or that are too late
 * to be run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"
#include "rsmq.h"

/* How many go in one step. */
#define MANY 50

/* Why it is rejected becomes one of its headers; *late: it was too late. */
static void
reject_header(struct rsmq_cleaner *w, redisReply *const *message,
    struct mq_buf *extra, bool *late)
{
	static const char start[] = "\xff\x00\xbe\xbeJ{";
	const redisReply *id = message[0], *more = message[2];
	struct mq_buf header = {0};
	struct mq_envelope e = {0};
	char reason[64];
	const char *why;

	mq_buf_add(&header, start, sizeof(start) - 1);
	mq_buf_add(&header, more->str, more->len);
	mq_buf_addstr(&header, "}\n");
	/* Bad headers are not kept: the message must stop all the same. */
	if (mq_envelope_parse(header.data, header.len, &e, &why) == -1)
		e = (struct mq_envelope){0};
	mq_envelope_set(&e, MQ_HEADER_ID, id->str);
	*late = mq_message_over(&e, w->now_ms, 0, reason, sizeof(reason));
	if (*late)
		mq_envelope_set(&e, MQ_HEADER_ERROR, reason);
	else
		mq_history_crash(&e, (long)message[1]->integer, true, NULL);
	mq_buf_clear(&header);
	mq_envelope_write_header(&e, &header);
	rsmq_extra(header.data, header.len, extra);
	mq_envelope_free(&e);
	mq_buf_free(&header);
}

/* Adds up the rejections; in a dry run, those that there would be. */
static void
add_counts(struct rsmq_cleaner *w, bool late, struct mq_counts *n)
{
	*(late ? &w->out->expired : &w->out->rejected) += 1;
	n->failed++;
	n->expired += late;
	n->crashed += !late;
	n->runs += !late;
}

/* A count that is missing is no reason to fail. */
static int
send_counts(
    struct rsmq_cleaner *w, const char *queue, const struct mq_counts *n)
{
	struct mq_command c = {0};

	if (n->failed == 0 || w->how->dry_run)
		return 0;
	mq_side_count(&rsmq_side, &c, queue, n);
	(void)mq_call_done(w->round.r, &c);
	return mq_redis_lost(w->round.r) ? -1 : 0;
}

static void
build_reject(struct rsmq_cleaner *w, const char *queue,
    redisReply *const *messages, size_t n, bool *late, struct mq_command *c)
{
	char *rejected = mq_xasprintf("%s" RSMQ_REJECTED, queue);
	struct mq_buf extra = {0};
	size_t i;

	mq_command_script(c, &rsmq_script_reject);
	rsmq_queue_keys(c, queue);
	rsmq_queue_keys(c, rejected);
	rsmq_key_common(c, queue, ":QUEUES");
	mq_command_str(c, rsmq_bare(rejected));
	for (i = 0; i < n; i++) {
		reject_header(w, messages + 3 * i, &extra, &late[i]);
		mq_command_arg(c, messages[3 * i]->str, messages[3 * i]->len);
		mq_command_int(c, messages[3 * i + 1]->integer);
		mq_command_arg(c, extra.data, extra.len);
	}
	mq_buf_free(&extra);
	free(rejected);
}

static int
reject_some(struct rsmq_cleaner *w, const char *queue,
    redisReply *const *messages, size_t n, struct mq_counts *sum)
{
	struct mq_command c = {0};
	redisReply *reply = NULL;
	bool late[MANY];
	size_t i;
	int rv = 0;

	build_reject(w, queue, messages, n, late, &c);
	if (w->how->dry_run)
		mq_command_free(&c);
	else
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
	if (!w->how->dry_run && (reply == NULL || reply->elements != n))
		n = 0;
	for (i = 0; i < n; i++)
		if (reply == NULL || reply->element[i]->integer == 1)
			add_counts(w, late[i], sum);
	freeReplyObject(reply);
	return rv;
}

int
rsmq_reject(struct rsmq_cleaner *w, const char *queue,
    redisReply *const *messages, size_t total)
{
	struct mq_counts sum = {0};
	size_t i, n;
	int rv = 0;

	for (i = 0; i < total && rv == 0; i += n) {
		n = total - i < MANY ? total - i : MANY;
		rv = reject_some(w, queue, messages + 3 * i, n, &sum);
	}
	return rv == 0 ? send_counts(w, queue, &sum) : rv;
}
