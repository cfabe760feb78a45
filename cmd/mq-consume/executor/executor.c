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

static void *
work_of(const struct executor *e)
{
	return e->table->runs ? (void *)e->slots : e->printer;
}

void
executor_init(const struct executor *e)
{
	e->table->init(work_of(e));
}

long
executor_room(const struct executor *e, int queue)
{
	return e->table->room(work_of(e), queue);
}

bool
executor_wants_few(const struct executor *e, int queue)
{
	return e->table->wants_few != NULL &&
	    e->table->wants_few(work_of(e), queue);
}

void
executor_start(const struct executor *e)
{
	e->table->start(work_of(e));
}

void
executor_tick(const struct executor *e)
{
	e->table->tick(work_of(e));
}

void
executor_resize(const struct executor *e)
{
	if (e->table->runs)
		slots_resize(e->slots);
}

void
executor_take_back(const struct executor *e, int queue)
{
	if (!e->table->runs)
		printer_take_back(e->printer, queue);
}

void
executor_take_back_all(const struct executor *e, bool now)
{
	if (!e->table->runs)
		printer_take_back_all(e->printer, now);
}

bool
executor_take_away(const struct executor *e, struct message *m)
{
	if (e->table->runs)
		slots_take_away(m);
	else
		printer_take_away(e->printer, m);
	return e->table->runs;
}

void
executor_acked(const struct executor *e, const struct message *m)
{
	if (!e->table->runs)
		printer_acked(e->printer, m);
}

bool
executor_owes(const struct executor *e)
{
	return !e->table->runs && printer_owes(e->printer);
}

int
executor_running(const struct executor *e)
{
	return e->table->runs ? e->slots->running : e->printer->running;
}

int
executor_busy(const struct executor *e)
{
	return e->table->runs ? e->slots->busy : 0;
}

bool
executor_rests(const struct executor *e)
{
	return e->table->runs && e->slots->resting >= e->slots->limit;
}

void
executor_describe(const struct executor *e, struct mq_buf *out)
{
	if (e->table->runs)
		slots_describe(e->slots, out);
}

void
executor_kill(const struct executor *e, int sig)
{
	if (e->table->runs)
		slots_kill(e->slots, sig);
}

void
executor_stop(const struct executor *e)
{
	if (e->table->stays)
		slots_stop(e->slots);
}
