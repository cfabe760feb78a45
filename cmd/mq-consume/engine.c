/*
 * What everything leads to.  Callbacks only note what happened, and mark the
 * engine; once per turn of the loop, after all of them, it decides.
 */
#include "consume.h"
#include "executor.h"

static void
turn(struct consumer *c)
{
	if (c->stop >= STOP_SOON)
		stop_give_back(c);
	/* The server has its work while ours is begun. */
	if (c->executor->flows) {
		claim_more(c);
		mq_async_flush(&c->main);
	}
	c->executor->start(c);
	claim_more(c);
	stop_check(c);
}

static void
on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	while (c->marked && !c->leaving) {
		c->marked = false;
		turn(c);
	}
}

void
engine_mark(struct consumer *c)
{
	c->marked = true;
}

void
engine_tick(struct consumer *c)
{
	c->starved = false;
	c->executor->tick(c);
	engine_mark(c);
}

static const struct executor *
executor_for(const struct options *opt)
{
	if (opt->command == NULL)
		return opt->at_most_once ? &executor_print_once :
					   &executor_print;
	if (opt->stream)
		return &executor_stream;
	return opt->batch > 0 ? &executor_batch : &executor_fork;
}

void
engine_init(struct consumer *c)
{
	c->executor = executor_for(c->opt);
	c->batch_size = c->opt->batch > 0 ? c->opt->batch : 1;
	ev_prepare_init(&c->turn, on_turn);
	c->turn.data = c;
	ev_prepare_start(c->loop, &c->turn);
}
