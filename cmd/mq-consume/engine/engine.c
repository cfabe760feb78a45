/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The beginning and end of all modules. */
#include "parts.h"

/* By default, libev aborts if there is no memory. */
static void *
reallocate(void *p, long n)
{
	if (n > 0)
		return mq_xreallocarray(p, (size_t)n, 1);
	free(p);
	return NULL;
}

/* libev also aborts without descriptors for signals. */
static void
no_event_loop(const char *what)
{
	mq_die(MQ_EXIT_AGAIN, "%s: %s", what, strerror(errno));
}

static void
make_loop(struct engine *e)
{
	ev_set_allocator(reallocate);
	ev_set_syserr_cb(no_event_loop);
	/* The default loop would reap our children.  A signalfd costs less than
	 * a handler for each SIGCHLD. */
	e->loop = ev_loop_new(EVFLAG_SIGNALFD);
	if (e->loop == NULL)
		no_event_loop("no event loop");
	mq_children_init(&e->children, e->loop);
}

static void
on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop;
	(void)events;
	turn_all(w->data);
}

static void
make_modules(struct engine *e, struct mq_worker_setup *setup)
{
	const struct options *opt = e->opt;

	e->facts = facts_new();
	e->hand = hand_new(opt);
	e->process = (struct process){
	    .loop = e->loop, .opt = opt, .setup = setup, .facts = e->facts};
	process_init(&e->process);
	e->policy = policy_new(e->loop, opt, e->hand, e->facts, &setup->reset);
	e->session = session_new(
	    e->loop, opt, e->hand, e->facts, e->server, &e->children, &e->ids);
	e->consumer = session_consumer(e->session);
	if (opt->output_keep > 0)
		e->process.kept = kept_new(opt, e->consumer, e->process.host);
	e->inbox = inbox_new(e->loop, opt, e->hand, e->facts, e->consumer);
	e->duplicates = duplicates_new(e->loop, opt, e->facts, e->consumer,
	    e->server, &e->children, &e->ids, e->process.host);
	e->executor = executor_new(e->loop, opt, e->hand, e->facts,
	    &e->children, &e->process, e->duplicates, e->server);
	e->outbox =
	    outbox_new(e->loop, opt, e->hand, e->facts, e->consumer, e->server,
		&e->ids, executor_way(e->executor)->acks != ACKS_AT_ONCE);
	e->jobs = jobs_new(opt, e->facts, e->consumer, e->server, &e->children);
	e->room = mq_xcalloc((size_t)opt->queue_count, sizeof(*e->room));
	bar_begin(e);
	ev_prepare_init(&e->turn, on_prepare);
	e->turn.data = e;
	ev_prepare_start(e->loop, &e->turn);
}

static void
free_modules(struct engine *e)
{
	duplicates_free(e->duplicates);
	session_free(e->session);
	jobs_free(e->jobs);
	inbox_free(e->inbox);
	outbox_free(e->outbox);
	executor_free(e->executor);
	process_end(&e->process);
	if (e->process.kept != NULL)
		kept_free(e->process.kept);
	facts_free(e->facts);
	hand_free(e->hand);
	free(e->room);
}

int
engine_run(const struct options *opt, struct mq_server *server,
    struct mq_worker_setup *setup, struct service *service, bool make)
{
	struct engine e = {.opt = opt, .server = server, .service = service};
	struct mq_counts n;
	long returned;

	make_loop(&e);
	make_modules(&e, setup);
	service_start(service, e.loop);
	session_begin(e.session, make, executor_capacity(e.executor));
	ev_run(e.loop, 0);
	bar_end(&e);
	jobs_end(e.jobs);
	n = counters_totals(e.outbox, &returned);
	if (opt->verbose || n.lease_lost > 0)
		mq_say("%lld done, %lld rejected, %lld to be tried again, "
		       "%ld returned, %lld lease%s lost",
		    n.done, n.failed, n.retried, returned, n.lease_lost,
		    n.lease_lost == 1 ? "" : "s");
	free_modules(&e);
	return policy_exit(e.policy, e.failed);
}
