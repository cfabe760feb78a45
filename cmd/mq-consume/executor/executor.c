#include "executor.h"

const struct executor_table *
executor_for(const struct options *opt)
{
	if (opt->command == NULL)
		return opt->at_most_once ? &executor_print_once :
					   &executor_print;
	if (opt->stream)
		return &executor_stream;
	return opt->batch > 0 ? &executor_batch : &executor_fork;
}

int
executor_batch_size(const struct options *opt)
{
	return opt->batch > 0 ? opt->batch : 1;
}

long
executor_room(const struct executor *e, int queue)
{
	return e->table->room(e->work, queue);
}

bool
executor_wants_few(const struct executor *e, int queue)
{
	return e->table->wants_few != NULL &&
	    e->table->wants_few(e->work, queue);
}

void
executor_start(const struct executor *e)
{
	e->table->start(e->work);
}

void
executor_resize(const struct executor *e)
{
	if (e->table->resize != NULL)
		e->table->resize(e->work);
}

void
executor_take_back(const struct executor *e, int queue)
{
	if (e->table->take_back != NULL)
		e->table->take_back(e->work, queue);
}

void
executor_take_back_all(const struct executor *e, bool now)
{
	if (e->table->take_back_all != NULL)
		e->table->take_back_all(e->work, now);
}

bool
executor_take_away(const struct executor *e, struct message *m)
{
	return e->table->take_away != NULL && e->table->take_away(e->work, m);
}

void
executor_acked(const struct executor *e, const struct message *m)
{
	if (e->table->acked != NULL)
		e->table->acked(e->work, m);
}

bool
executor_owes(const struct executor *e)
{
	return e->table->owes != NULL && e->table->owes(e->work);
}

int
executor_running(const struct executor *e)
{
	return e->table->running(e->work);
}

int
executor_busy(const struct executor *e)
{
	return e->table->busy != NULL ? e->table->busy(e->work) : 0;
}

bool
executor_rests(const struct executor *e)
{
	return e->table->rests != NULL && e->table->rests(e->work);
}

void
executor_describe(const struct executor *e, struct mq_buf *out)
{
	if (e->table->describe != NULL)
		e->table->describe(e->work, out);
}

void
executor_kill(const struct executor *e, int sig)
{
	if (e->table->kill != NULL)
		e->table->kill(e->work, sig);
}

void
executor_tick(const struct executor *e)
{
	e->table->tick(e->work);
}

void
executor_stop(const struct executor *e)
{
	if (e->table->stop != NULL)
		e->table->stop(e->work);
}
