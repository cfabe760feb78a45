#include "pair.h"

#include <string.h>

static void
on_down(void *arg, const char *why)
{
	struct mq_pair *p = arg;

	p->events->down(p->arg, why);
}

static void
on_refused(void *arg, const char *error)
{
	struct mq_pair *p = arg;

	p->events->refused(p->arg, error);
}

static void
on_untracked(void *arg, const char *error)
{
	struct mq_pair *p = arg;

	p->events->untracked(p->arg, "CLIENT CACHING", error);
}

static void
on_tracking_refused(void *arg, const char *what, const char *error)
{
	struct mq_pair *p = arg;

	p->events->untracked(p->arg, what, error);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct mq_pair *p = arg;

	p->events->changed(p->arg, key, n);
}

static void
on_called(void *arg, const char *text, size_t n)
{
	struct mq_pair *p = arg;

	p->events->called(p->arg, text, n);
}

static void
on_tracking_started(void *arg)
{
	struct mq_pair *p = arg;

	mq_fence(&p->fence);
}

static void
on_fenced(void *arg)
{
	struct mq_pair *p = arg;

	p->events->ready(p->arg);
}

void
mq_pair_init(struct mq_pair *p, struct ev_loop *loop,
    const struct mq_server *server, const char *channel, const char *name,
    struct mq_async *front, const struct mq_pair_events *events, void *arg)
{
	const struct mq_async init = {.loop = loop,
	    .down = on_down,
	    .refused = on_refused,
	    .untracked = on_untracked,
	    .arg = p,
	    .front = front};

	*p = (struct mq_pair){.server = server,
	    .events = events,
	    .arg = arg,
	    .main = init,
	    .wake = init};
	p->tracking = (struct mq_tracking){.reader = &p->main,
	    .listener = &p->wake,
	    .channel = channel,
	    .started = on_tracking_started,
	    .refused = on_tracking_refused,
	    .changed = on_changed,
	    .called = on_called,
	    .arg = p};
	p->fence =
	    (struct mq_fence){.async = &p->main, .then = on_fenced, .arg = p};
	strlcpy(p->fence.name, name, sizeof(p->fence.name));
}

int
mq_pair_open(struct mq_pair *p, const char **why)
{
	if (mq_async_open(&p->main, p->server, why) == -1 ||
	    mq_async_open(&p->wake, p->server, why) == -1)
		return -1;
	mq_tracking_start(&p->tracking);
	return 0;
}

void
mq_pair_close(struct mq_pair *p)
{
	mq_async_close(&p->main);
	mq_async_close(&p->wake);
}
