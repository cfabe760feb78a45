#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "engine-parts.h"

static void
on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct engine *e = w->data;

	(void)loop;
	(void)events;
	while (e->marked && !e->ending) {
		e->marked = false;
		engine_take_turn(e);
	}
}

/* Without this, libev aborts if there is no memory. */
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

static struct ev_loop *
make_loop(void)
{
	struct ev_loop *loop;

	ev_set_allocator(reallocate);
	ev_set_syserr_cb(no_event_loop);
	/* The default loop would reap our children.  A signalfd costs less than
	 * a handler for each SIGCHLD. */
	loop = ev_loop_new(EVFLAG_SIGNALFD);
	if (loop == NULL)
		mq_die(MQ_EXIT_AGAIN, "no event loop: %s", strerror(errno));
	return loop;
}

static void
init_outbox(struct engine *e)
{
	struct mq_consumer *server = session_server(&e->session);
	const char *host = process_host(&e->process);

	e->results = (struct result_rules){
	    .opt = e->opt, .host = host[0] != '\0' ? host : NULL};
	e->verdicts = (struct verdict_rules){.opt = e->opt,
	    .results = &e->results,
	    .host = host,
	    .ticks = e->opt->layout->has & MQ_HAS_TICKS};
	counters_init(&e->counters, e->opt, server, e->server->name);
	e->outbox = (struct outbox){.loop = e->loop,
	    .opt = e->opt,
	    .server = server,
	    .ids = &e->ids,
	    .inbox = &e->inbox,
	    .counters = &e->counters,
	    .results = &e->results,
	    .session = &e->session,
	    .many = e->executor.table->acks != ACKS_AT_ONCE};
	outbox_init(&e->outbox);
}

static void
init_duplicates(struct engine *e)
{
	e->duplicates = (struct duplicates){.loop = e->loop,
	    .opt = e->opt,
	    .server = e->server,
	    .session = &e->session,
	    .children = &e->children,
	    .ids = &e->ids,
	    .host = process_host(&e->process)};
	duplicates_init(&e->duplicates);
}

static void
init_executor(struct engine *e)
{
	e->executor = (struct executor){.loop = e->loop,
	    .opt = e->opt,
	    .inbox = &e->inbox,
	    .policy = &e->policy,
	    .outbox = &e->outbox,
	    .children = &e->children,
	    .process = &e->process,
	    .duplicates = &e->duplicates,
	    .attachments = &e->attachments,
	    .session = &e->session,
	    .results = &e->results};
	executor_init(&e->executor);
}

static void
init_helpers(struct engine *e)
{
	e->errands = (struct errands){.children = &e->children,
	    .server = e->server,
	    .opt = e->opt,
	    .consumer = session_server(&e->session)};
	bar_init(e);
}

static void
init_engine(struct engine *e, struct mq_worker_setup *setup, bool make)
{
	const struct options *opt = e->opt;

	e->loop = make_loop();
	mq_children_init(&e->children, e->loop);
	process_init(&e->process, setup, e->loop, opt);
	joblog_init(
	    &e->joblog, opt->joblog, process_host(&e->process), opt->command);
	policy_init(
	    &e->policy, e->loop, opt, &setup->reset, &engine_policy_events, e);
	e->session = (struct session){.loop = e->loop,
	    .opt = opt,
	    .server = e->server,
	    .children = &e->children,
	    .ids = &e->ids};
	session_init(&e->session, make);
	e->inbox = (struct inbox){.loop = e->loop,
	    .opt = opt,
	    .server = session_server(&e->session),
	    .ids = &e->ids,
	    .session = &e->session,
	    .policy = &e->policy};
	inbox_init(&e->inbox);
	init_duplicates(e);
	init_executor(e);
	init_outbox(e);
	init_helpers(e);
	engine_listen(e);
	ev_prepare_init(&e->turn, on_turn);
	e->turn.data = e;
	ev_prepare_start(e->loop, &e->turn);
}

static void
free_engine(struct engine *e)
{
	duplicates_free(&e->duplicates);
	session_free(&e->session);
	inbox_free(&e->inbox);
	outbox_free(&e->outbox);
	counters_free(&e->counters);
	executor_free(&e->executor);
	joblog_end(&e->joblog);
	process_end(&e->process);
}

int
engine_run(const struct options *opt, struct mq_server *server,
    struct mq_worker_setup *setup, struct service *service, bool make)
{
	struct engine e = {.opt = opt,
	    .server = server,
	    .service = service,
	    .attachments = {server, opt->layout}};

	init_engine(&e, setup, make);
	service_start(service, e.loop);
	session_start(&e.session);
	ev_run(e.loop, 0);
	bar_end(&e);
	errands_end(&e.errands);
	counters_say(&e.counters);
	free_engine(&e);
	return policy_exit(&e.policy);
}
