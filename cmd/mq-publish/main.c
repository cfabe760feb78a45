/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-publish: put messages into a queue.  With --http, options.c turns a request into options
 * and a stdin.  message.c makes messages of the records on stdin, and transport.c sends them
 * in batches, again if a connection breaks, and counts the verdicts.  Calls go in this
 * direction only.
 */
#include <fcntl.h>

#include "publish.h"

static int
publish(struct transport *t)
{
	struct options *o = t->opt;
	const struct mq_server *server = t->redis.server;
	const char *batch;
	int status, waited;
	struct mq_info r;

	publish_messages(t);
	batch_settle(t);
	batch = mq_envelope_get(&o->headers, MQ_HEADER_BATCH);
	if (batch != NULL && t->away && t->spooled == 0)
		mq_die(MQ_EXIT_UNAVAILABLE,
		    "--batch %s: not begun: there is no message, and the server "
		    "is away",
		    batch);
	if (batch != NULL && t->count[MQ_PUBLISHED] == 0 && !t->away)
		mq_option_must(&t->redis,
		    mq_queue_begin_batch(
			&t->redis, o->shared.layout, o->queue, batch));
	status = outcome_finish(t);
	if (o->wait) {
		waited = wait_for_endings(t);
		status = waited > status ? waited : status;
	}
	/* Without the right to INFO, aof is unknown, and there is no note. */
	if (o->notes && !t->away && server->url.kind != MQ_URL_CLUSTER &&
	    mq_info_ask(&t->redis, &r) == 0 && r.aof == 0)
		mq_say("%s: what this server loses is lost; mq-stats --server "
		       "says how to keep it",
		    server->name);
	return status;
}

int
main(int argc, char *argv[])
{
	struct options options, *o = &options;
	struct mq_server server;
	struct transport t = {.opt = o};
	int status = MQ_EXIT_OK;
	long long now;

	mq_option_begin();
	options_parse(o, argc, argv);
	if (o->http)
		options_serve(o);
	mq_option_prints(o->ids || o->wait);
	if (o->count == 0 && !o->flush && o->tick < 0 &&
	    (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		mq_die(MQ_EXIT_IO,
		    "standard input: not open for reading; nothing was done");
	(void)mq_option_server(&o->shared, &server);
	/* Messages that are on disk, or may go there, do not wait for another master. */
	if (o->flush || o->spool_max > 0)
		server.failover_s = 1;
	if (o->flush) {
		status = flush_spool(o, &server);
		mq_server_free(&server);
		options_free(o);
		return status;
	}
	options_use_layout(o, &server);
	if (o->spool_max > 0)
		spool_prepare(&t, &server);
	if (o->spool_max > 0 && flush_first(o, &server))
		transport_begin_away(&t);
	else
		transport_begin(&t, &server);
	if (o->tick < 0)
		status = publish(&t);
	else if (mq_queue_tick(
		     &t.redis, o->shared.layout, o->queue, o->tick, &now) == -1)
		mq_die(t.redis.status, "%s", t.redis.error);
	else if (now > o->tick)
		mq_die(MQ_EXIT_NO,
		    "%s: --tick %ld: the queue is at tick %lld already",
		    o->queue, o->tick, now);
	transport_free(&t);
	mq_server_free(&server);
	options_free(o);
	mq_close_stdout();
	return status;
}
