/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: rejected messages that the setting keep-rejected does not keep.
 *
 * Their attachments are left to rmq_attach_sweep(), like those of messages that a Go program
 * purges.
 */
#include "queue/settings.h"
#include "rmq.h"

/* The reply of lua/trim.lua. */
enum { TRIMMED, PASSED, MORE };

/* Drops the messages of a queue, while the setting stays as it is.  Invalid values are ignored, as
 * mq-set cannot have stored them. */
static int
trim_queue(struct rmq_cleaner *w, const char *queue, const char *setting)
{
	struct mq_command c = mq_redis_command(w->round.r);
	long long passed = 0;
	int64_t ms, most;
	redisReply *reply;
	long dropped = 0;
	bool more = mq_keep_rejected_parse(setting, &ms, &most);
	int rv = 0;

	while (rv == 0 && more) {
		rmq_start(&c, &rmq_script_trim, NULL, queue);
		MQ_COMMAND_ARGV(&c, rmq_trim_argv, .setting = mq_str(setting),
		    .ms = mq_bound(ms), .most = mq_bound(most),
		    .passed = mq_int(passed),
		    .dry = mq_bound(w->how->dry_run ? dropped : -1));
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
		more = reply != NULL &&
		    (mq_reply_is(reply, "###") || mq_round_nonsense(&w->round));
		if (more) {
			dropped += (long)reply->element[TRIMMED]->integer;
			passed = reply->element[PASSED]->integer;
			more = reply->element[MORE]->integer != 0;
		}
		freeReplyObject(reply);
	}
	w->out->dropped += dropped;
	return rv;
}

static int
obey_setting(struct rmq_cleaner *w, const char *queue)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;
	int rv;

	rmq_ask(&c, "HGET Q:settings " MQ_KEEP_REJECTED, queue, NULL);
	rv = mq_round_call(&w->round, &c, -1, &reply);
	if (rv == 0 && reply != NULL && reply->type == REDIS_REPLY_STRING)
		rv = trim_queue(w, queue, reply->str);
	freeReplyObject(reply);
	return rv;
}

int
rmq_trim(struct rmq_cleaner *w)
{
	const struct mq_names *queues =
	    w->how->all ? &w->ruled : w->how->trimmed;
	long long *has = NULL;
	size_t i;
	int rv = 0;

	if (queues == NULL || queues->n == 0)
		return 0;
	/* SCAN may return a key twice. */
	mq_names_sort(&w->ruled);
	rv = rmq_cleaner_ask(
	    w, queues, "HEXISTS Q:settings " MQ_KEEP_REJECTED, &has);
	for (i = 0; i < queues->n && rv == 0; i++)
		if (has[i] == 1)
			rv = obey_setting(w, queues->list[i].name);
	free(has);
	return rv;
}
