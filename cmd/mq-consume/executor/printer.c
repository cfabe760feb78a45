#include "executor.h"

#include <stdlib.h>

#include "base/visible.h"

size_t
printer_unwritten(const struct printer *p)
{
	return p->out.len - p->start;
}

void
printer_add(struct printer *p, struct message *m)
{
	TAILQ_INSERT_TAIL(&p->printed, m, line);
	p->running++;
}

void
printer_remove(struct printer *p, struct message *m)
{
	TAILQ_REMOVE(&p->printed, m, line);
	p->running--;
}

void
printer_return(struct printer *p, struct message *m)
{
	printer_remove(p, m);
	policy_unstarted(p->policy);
	p->events->returned(p->arg, m);
}

/* While output waits for the pipe, the next write tells what has arrived. */
void
printer_watch(struct printer *p)
{
	out_pipe_watch(
	    &p->pipe, !p->lost && p->running > 0 && !ev_is_active(&p->room));
}

void
printer_ack_arrived(struct printer *p)
{
	struct message *m;

	p->events->judging(p->arg);
	while ((m = TAILQ_FIRST(&p->printed)) != NULL &&
	    m->end <= out_pipe_arrived(&p->pipe)) {
		p->arrived++;
		printer_remove(p, m);
		p->events->done(p->arg, m);
	}
}

void
printer_cut(struct printer *p, bool all)
{
	size_t written = out_pipe_written(&p->pipe), rest = 0;
	const struct message *m;

	TAILQ_FOREACH(m, &p->printed, line)
		if (!all && m->start < written && m->end > written)
			rest = m->end - written;
	p->out.len = p->start + rest;
	if (rest == 0)
		ev_io_stop(p->loop, &p->room);
}

void
printer_return_unwritten(struct printer *p, bool all)
{
	struct message *m;

	while ((m = TAILQ_LAST(&p->printed, messages)) != NULL &&
	    (all || m->start >= out_pipe_written(&p->pipe)))
		printer_return(p, m);
	printer_watch(p);
}

void
printer_move_rest(struct printer *p, struct message *m, struct mq_buf *to)
{
	const char *out = p->out.data + p->start;
	size_t written = out_pipe_written(&p->pipe);
	size_t from = m->start > written ? m->start : written;
	size_t shift = from - written - to->len;

	mq_buf_add(to, out + (from - written), m->end - from);
	m->start -= shift;
	m->end -= shift;
}

void
printer_frame(struct printer *p, const struct message *m)
{
	struct mq_buf one = {0};

	if (!p->terminal) {
		message_frame(m, p->opt->framing, &p->out);
		return;
	}
	message_frame(m, p->opt->framing, &one);
	mq_add_visible(&p->out, one.data, one.len);
	mq_buf_free(&one);
}

void
printer_free(struct printer *p)
{
	mq_buf_free(&p->out);
}
