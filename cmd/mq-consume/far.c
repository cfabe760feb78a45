/*
 * Connections to other servers, for duplicates: one for each URL, as long as
 * it is in use and for a while after.
 */
#include <sys/queue.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consume.h"

#define FARS_MAX 16
/* After so long without a sign of life, a server that owes us an answer is
 * given up; and a connection that nobody has needed is closed. */
#define SILENCE 5.0
/* A server that was not there is not tried again for so long. */
#define RETRY 1.0

struct far {
	TAILQ_ENTRY(far) link;
	struct consumer *c;
	char *url; /* as it was asked for */
	int users;
	enum { FAR_PREPARING, FAR_OPEN, FAR_DOWN } state;
	char why[256]; /* DOWN */
	bool hopeless; /* it is no URL that we can use */
	double since;  /* DOWN: it is; else somebody has begun to use it */
	struct mq_server server;
	struct mq_async async;
	struct finder finder;
	ev_timer tick;
};

static void
down(struct far *f, const char *why)
{
	strlcpy(f->why, why, sizeof(f->why));
	f->state = FAR_DOWN;
	f->since = mq_clock_steady_s();
	mq_helper_kill(&f->finder.helper);
}

static void
on_down(void *arg, const char *why)
{
	struct far *f = arg;

	down(f, why);
	dup_go_on(f->c);
}

static void
connect_far(struct far *f)
{
	const char *why;

	f->async =
	    (struct mq_async){.loop = f->c->loop, .down = on_down, .arg = f};
	if (mq_async_open(&f->async, &f->server, &why) == -1)
		down(f, why);
	else
		f->state = FAR_OPEN;
}

static void
on_found(void *arg, const char *why)
{
	struct far *f = arg;

	if (why != NULL)
		down(f, why);
	else
		connect_far(f);
	dup_go_on(f->c);
}

static void
start(struct far *f)
{
	f->since = mq_clock_steady_s();
	f->state = FAR_PREPARING;
	if (find_at_once(&f->server))
		connect_far(f);
	else if (find_start(&f->finder, &f->c->children, &f->server, on_found,
		     f) == -1)
		down(f, strerror(errno));
}

/* --- its life ----------------------------------------------------------------- */

static void
far_free(struct far *f)
{
	TAILQ_REMOVE(&f->c->fars, f, link);
	ev_timer_stop(f->c->loop, &f->tick);
	mq_async_close(&f->async);
	mq_server_free(&f->server);
	explicit_bzero(f->url, strlen(f->url));
	free(f->url);
	free(f);
}

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct far *f = w->data;
	bool moves = mq_async_moves(&f->async);

	(void)loop;
	(void)events;
	if (mq_clock_steady_s() - f->since < SILENCE)
		return;
	if (f->users > 0 && !moves && f->state != FAR_DOWN) {
		down(f, "no answer");
		mq_async_close(&f->async);
		dup_go_on(f->c);
	} else if (f->users == 0 && !mq_helper_runs(&f->finder.helper)) {
		far_free(f);
	}
}

static struct far *
far_new(struct consumer *c, const char *url)
{
	struct far *f = mq_xcalloc(1, sizeof(*f));

	f->c = c;
	f->url = mq_xstrdup(url);
	ev_timer_init(&f->tick, on_tick, SILENCE, SILENCE);
	f->tick.data = f;
	ev_timer_start(c->loop, &f->tick);
	TAILQ_INSERT_HEAD(&c->fars, f, link);
	if (mq_server_at(&f->server, url, f->why, sizeof(f->why)) != 0) {
		f->hopeless = true;
		f->state = FAR_DOWN;
		f->since = mq_clock_steady_s();
	} else {
		start(f);
	}
	return f;
}

/* Nobody needs this one now; NULL: all are needed. */
static struct far *
spare(struct consumer *c)
{
	struct far *f;

	TAILQ_FOREACH(f, &c->fars, link)
		if (f->users == 0 && !mq_helper_runs(&f->finder.helper))
			return f;
	return NULL;
}

struct far *
far_get(struct consumer *c, const char *url)
{
	struct far *f, *old;
	int n = 0;

	TAILQ_FOREACH(f, &c->fars, link) {
		if (strcmp(f->url, url) == 0)
			break;
		n++;
	}
	if (f == NULL && n >= FARS_MAX) {
		old = spare(c);
		if (old == NULL)
			return NULL;
		far_free(old);
	}
	if (f == NULL)
		f = far_new(c, url);
	else if (f->state != FAR_DOWN)
		f->since = mq_clock_steady_s();
	else if (mq_clock_steady_s() - f->since >= RETRY && !f->hopeless &&
	    !mq_helper_runs(&f->finder.helper))
		start(f);
	f->users++;
	return f;
}

void
far_put(struct far *f)
{
	f->users--;
	f->since = mq_clock_steady_s();
}

bool
far_ready(const struct far *f)
{
	return f->state == FAR_OPEN;
}

const char *
far_error(const struct far *f)
{
	return f->state == FAR_DOWN ? f->why : NULL;
}

struct mq_async *
far_or_main(struct consumer *c, struct far *f)
{
	return f != NULL ? &f->async : &c->main;
}

void
far_end(struct consumer *c)
{
	struct far *f, *more;

	TAILQ_FOREACH_SAFE(f, &c->fars, link, more) {
		mq_helper_kill(&f->finder.helper);
		far_free(f);
	}
}
