/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-consume: run a command for each message of one or more queues, or print the payloads.
 * engine/engine.h describes the modules. */
#include <process/process.h>

#include "engine/engine.h"
#include "redis/server.h"
#include "service.h"
#include "shared/options.h"

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
	int status;
	bool make;

	mq_option_begin();
	if (mq_worker_prepare(&setup) == -1)
		mq_die(MQ_EXIT_AGAIN, "descriptors: %s", strerror(errno));
	service_init(&service);
	make = options_take(&options, &shared, &server, argc, argv);
	status = engine_run(&options, &server, &setup, &service, make);
	mq_server_free(&server);
	rules_free(&options);
	free(options.words);
	free(options.typed);
	free((void *)(uintptr_t)options.log_dir);
	free((void *)(uintptr_t)options.work_dir);
	mq_option_free(&shared);
	return status;
}
