/*
 * mq-consume: run a command for each message of one or more queues, or print
 * the payloads.  engine.h describes the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "engine.h"
#include "redis/connection.h"
#include "rules.h"
#include "shared/options.h"

/* Checks names, which needs the layout. */
static void
take_queues(struct options *o, struct mq_shared *shared,
    const struct mq_server *server, char *operands[])
{
	const char *why = shared->layout->queue_error(o->tag);

	/* A connection's name stands in keys, like a queue's name. */
	if (why != NULL)
		mq_die(MQ_EXIT_USAGE, "--tag: %s: %s", o->tag, why);
	operands_check(o, server->url.ns);
	mq_option_queues(shared, server, operands, o->queue_count);
	o->queues = (const char *const *)operands;
	if (o->given.push != NULL)
		o->given.push = mq_option_queue(shared, server, o->given.push);
	if (o->given.notify != NULL) {
		mq_option_needs(shared, "--notify", MQ_HAS_RESULTS);
		o->given.notify =
		    mq_option_queue(shared, server, o->given.notify);
	}
	if (o->given.keep_ms > 0)
		mq_option_needs(shared, "--keep", MQ_HAS_RESULTS);
	operands_differ(o);
}

/* The first connection blocks, and its errors are final.  Returns whether missing
 * queues are to be made. */
static bool
try_server(const struct options *o, struct mq_server *server)
{
	struct mq_redis r;
	bool make;

	if (mq_redis_open(&r, server) == -1)
		mq_die(r.status, "%s", r.error);
	make = operands_look(o, &r);
	mq_redis_close(&r);
	return make;
}

static void
free_options(struct options *o)
{
	rules_free(o);
	free(o->words);
	free(o->typed);
	free((void *)(uintptr_t)o->log_dir);
	free((void *)(uintptr_t)o->work_dir);
}

int
main(int argc, char *argv[])
{
	struct options options = {.framing = MQ_FRAME_WHOLE,
	    .given = MQ_SETTINGS_NONE,
	    .prefetch = -1,
	    .batch_wait_ms = -1,
	    .idle_ms = -1,
	    .grace_ms = 25000,
	    .tag = "mq-consume"};
	struct mq_shared shared = {0};
	struct mq_worker_setup setup = {0};
	struct mq_server server = {0};
	struct service service;
	char **queues;
	int status;
	bool make;

	mq_option_begin();
	if (mq_worker_prepare(&setup) == -1)
		mq_die(MQ_EXIT_AGAIN, "descriptors: %s", strerror(errno));
	service_take(&service);
	queues = options_parse(&options, &shared, argc, argv);
	mq_option_prints(options.command == NULL);
	options.layout = mq_option_server(&shared, &server);
	take_queues(&options, &shared, &server, queues);
	rules_init(&options);
	make = try_server(&options, &server);
	server.waits = true;
	status = engine_run(&options, &server, &setup, &service, make);
	service_end(&service);
	mq_server_free(&server);
	free_options(&options);
	mq_option_free(&shared);
	return status;
}
