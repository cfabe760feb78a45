/* The engine's modules, and its turns: in each the engine sends acks, gives messages
 * back, claims, starts, and ends. */
#include "engine.h"

#include "shared/options.h"

/* A command that a signal ends does so within this time. */
#define ENDING_S 1.0

/* --- a turn ----------------------------------------------------------------- */

/* Acks wait for others while there is more to do.  If a message may crash this
 * consumer, no ack waits, so that no finished message is counted as crashed. */
static void
flush_acks(struct engine *e)
{
	enum executor_acks acks = e->executor.table->acks;
	bool runs_none = e->executor.running == 0;
	bool careful = policy_is_careful(&e->policy, false);
	bool at_rest = e->inbox.held == 0 &&
	    (acks == ACKS_AT_ONCE || runs_none) &&
	    (acks != ACKS_FOR_OTHERS || e->outbox.holding);

	outbox_flush(&e->outbox,
	    e->outbox.in_line[LINE_ACKS] > 0 && (careful || at_rest));
	/* The same is true of other settlements. */
	if (careful)
		mq_loop_flush(e->session.self.redis);
}

static void
give_back_unstarted(struct engine *e)
{
	bool now = e->policy.stop == STOP_NOW;

	/* A claim under way brings newer messages, which must go back first.
	 * The messages of killed commands go back together, in order, but do
	 * not wait for a command that does not end. */
	if (e->inbox.claiming ||
	    (now && e->executor.busy > 0 &&
		mq_clock_steady_s() - e->policy.signalled < ENDING_S) ||
	    !session_is_up(&e->session) || !session_holds_lease(&e->session))
		return;
	executor_take_back(&e->executor, -1, now);
	engine_give_back(e, -1, false);
}

static void
check_end(struct engine *e)
{
	if (!engine_has_nothing(e))
		return;
	/* A join under way may still register our name, which only we remove. */
	if (e->session.state == SESSION_OPENING && e->session.lease.sent > 0 &&
	    !e->policy.killed)
		return;
	if (e->policy.stop >= STOP_SOON ||
	    policy_limit_reached(&e->policy, 0)) {
		/* Stream workers end before the connection leaves. */
		if (e->executor.busy > 0) {
			policy_stop(&e->policy, STOP_SOON, 0, 0);
			return;
		}
		e->ending = true;
		service_stop(e->service);
		if (session_is_up(&e->session)) {
			inbox_pass(&e->inbox);
			counters_send(&e->outbox);
			errands_resign(&e->errands);
		}
		session_leave(&e->session);
	} else if (e->opt->drain && session_is_up(&e->session) &&
	    (inbox_drained(&e->inbox) || !policy_may_start(&e->policy) ||
		(e->executor.resting > 0 &&
		    e->executor.resting >= e->executor.limit))) {
		errands_drain(&e->errands);
	}
}

static void
take_turn(struct engine *e)
{
	bool at_once = e->executor.table->acks == ACKS_AT_ONCE;
	bool stuck, claiming;

	flush_acks(e);
	if (e->policy.stop != STOP_NOT && session_is_up(&e->session))
		inbox_pass(&e->inbox);
	if (e->policy.stop >= STOP_SOON)
		give_back_unstarted(e);
	outbox_send_back(&e->outbox);
	/* The server works on the claim while we start messages. */
	if (e->executor.table->flows) {
		inbox_claim(&e->inbox, e->outbox.copying);
		mq_loop_flush(e->session.self.redis);
	}
	/* A killed consumer repeats what the server has not heard of.  So with a run for
	 * each message, acks leave before the next ones start, and none starts while
	 * nothing can be settled. */
	if (at_once)
		mq_loop_flush(e->session.self.redis);
	stuck = session_is_up(&e->session) ? outbox_refused(&e->outbox) :
					     e->outbox.settling > 0;
	if (!at_once || !stuck)
		e->executor.table->start(&e->executor);
	claiming = e->inbox.claiming;
	inbox_claim(&e->inbox, e->outbox.copying);
	/* Acks that wait go with a claim: the server wakes up once for both. */
	if (!claiming && e->inbox.claiming && e->outbox.in_line[LINE_ACKS] > 0)
		outbox_flush(&e->outbox, true);
	check_end(e);
	/* In this turn of the loop: the next one begins with a wait. */
	mq_loop_flush(e->session.self.redis);
}

static void
on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct engine *e = w->data;

	(void)loop;
	(void)events;
	while (e->marked && !e->ending) {
		e->marked = false;
		take_turn(e);
	}
}

/* --- the bar of --drain ------------------------------------------------------- */

/* Done, rejected, rate and time left, in one line on a terminal that goes away before
 * anything else is written, and at the end. */

#define BAR_FIRST_S 0.5
#define BAR_AGAIN_S 0.25
#define PIECE	    48

/* Adds a piece of the text, unless the line would be too long. */
static void __attribute__((format(printf, 2, 3)))
add_piece(char text[static PROGRESS_LINE], const char *fmt, ...)
{
	char piece[PIECE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	if (strlen(text) + strlen(piece) < (size_t)progress_columns())
		strlcat(text, piece, PROGRESS_LINE);
}

static void
on_bar(struct ev_loop *loop, ev_timer *w, int events)
{
	struct engine *e = w->data;
	pid_t front = tcgetpgrp(STDERR_FILENO);
	const struct mq_counts n = counters_totals(&e->outbox);
	char text[PROGRESS_LINE] = "", line[PROGRESS_LINE], time[PROGRESS_TIME];
	long long ended = n.done + n.failed;
	double part = -1,
	       rate =
		   (double)ended / (mq_clock_s(CLOCK_MONOTONIC) - e->bar_began);

	(void)loop;
	(void)events;
	/* Not over the prompt of a shell that runs us in the background. */
	if (front != -1 && front != getpgrp())
		return;
	if (e->bar_total > 0) {
		part = ended < e->bar_total ?
		    (double)ended / (double)e->bar_total :
		    1;
		add_piece(text, "%.0f%% ", part * 100);
	}
	add_piece(text, "%lld done", n.done);
	add_piece(text, ", %lld rejected", n.failed);
	if (rate >= 1)
		add_piece(text, ", %.*f/s", rate >= 10 ? 0 : 1, rate);
	else
		add_piece(text, ", %.1f/min", rate * 60);
	if (rate > 0 && ended < e->bar_total) {
		/* Not "0s left" before the end. */
		progress_time(
		    time, (double)(e->bar_total - ended) / rate + 0.9);
		add_piece(text, ", %s left", time);
	}
	add_piece(text, " ");
	progress_line(line, text, part);
	target_show(&e->process.errors, line);
}

/* --- beginning and end ------------------------------------------------------ */

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

static void
init_runs(struct engine *e)
{
	const char *host = e->process.host;

	e->duplicates = (struct duplicates){.session = &e->session,
	    .host = host,
	    .runs = TAILQ_HEAD_INITIALIZER(e->duplicates.runs),
	    .remotes = TAILQ_HEAD_INITIALIZER(e->duplicates.remotes)};
	e->executor = (struct executor){.loop = e->loop,
	    .opt = e->opt,
	    .inbox = &e->inbox,
	    .policy = &e->policy,
	    .outbox = &e->outbox,
	    .children = &e->children,
	    .process = &e->process,
	    .duplicates = &e->duplicates,
	    .session = &e->session,
	    .table = e->opt->command == NULL ? &executor_print :
		e->opt->stream		     ? &executor_stream :
		e->opt->batch > 0	     ? &executor_batch :
					       &executor_fork};
	executor_init(&e->executor);
	e->outbox = (struct outbox){.loop = e->loop,
	    .opt = e->opt,
	    .server = &e->session.self,
	    .ids = &e->ids,
	    .inbox = &e->inbox,
	    .session = &e->session,
	    .host = host,
	    .many = e->executor.table->acks != ACKS_AT_ONCE};
	outbox_init(&e->outbox);
}

static void
init_engine(struct engine *e, struct mq_worker_setup *setup)
{
	const struct options *opt = e->opt;

	ev_set_allocator(reallocate);
	ev_set_syserr_cb(no_event_loop);
	/* The default loop would reap our children.  A signalfd costs less than
	 * a handler for each SIGCHLD. */
	e->loop = ev_loop_new(EVFLAG_SIGNALFD);
	if (e->loop == NULL)
		no_event_loop("no event loop");
	mq_children_init(&e->children, e->loop);
	e->process =
	    (struct process){.loop = e->loop, .opt = opt, .setup = setup};
	process_init(&e->process);
	e->policy = (struct policy){.loop = e->loop, .opt = opt};
	policy_init(&e->policy, &setup->reset);
	e->session = (struct session){.loop = e->loop,
	    .opt = opt,
	    .server = e->server,
	    .children = &e->children,
	    .ids = &e->ids};
	e->inbox = (struct inbox){.loop = e->loop,
	    .opt = opt,
	    .server = &e->session.self,
	    .ids = &e->ids,
	    .session = &e->session,
	    .policy = &e->policy};
	inbox_init(&e->inbox);
	init_runs(e);
	e->errands = (struct errands){.opt = opt, .session = &e->session};
	e->bar_began = mq_clock_s(CLOCK_MONOTONIC);
	e->bar_total = -1;
	ev_timer_init(&e->bar, on_bar, BAR_FIRST_S, BAR_AGAIN_S);
	e->bar.data = e;
	/* Messages that are printed on a terminal show the progress themselves. */
	if (opt->drain && !opt->quiet && progress_can_draw(STDERR_FILENO) &&
	    (opt->command != NULL || !isatty(STDOUT_FILENO)))
		ev_timer_start(e->loop, &e->bar);
	engine_listen(e);
	ev_prepare_init(&e->turn, on_turn);
	e->turn.data = e;
	ev_prepare_start(e->loop, &e->turn);
}

int
engine_run(const struct options *opt, struct mq_server *server,
    struct mq_worker_setup *setup, struct service *service, bool make)
{
	struct engine e = {.opt = opt, .server = server, .service = service};
	struct mq_counts n;

	init_engine(&e, setup);
	service_start(service, e.loop);
	session_init(&e.session, make);
	/* No descriptor may be left for the connection. */
	if (!e.ending)
		ev_run(e.loop, 0);
	ev_timer_stop(e.loop, &e.bar);
	target_show(&e.process.errors, NULL);
	errands_end(&e.errands);
	n = counters_totals(&e.outbox);
	if (opt->verbose || n.lease_lost > 0)
		mq_say("%lld done, %lld rejected, %lld to be tried again, "
		       "%ld returned, %lld lease%s lost",
		    n.done, n.failed, n.retried, e.outbox.returned,
		    n.lease_lost, n.lease_lost == 1 ? "" : "s");
	duplicates_free(&e.duplicates);
	session_free(&e.session);
	inbox_free(&e.inbox);
	outbox_free(&e.outbox);
	executor_free(&e.executor);
	process_end(&e.process);
	return policy_exit(&e.policy, e.failed);
}
