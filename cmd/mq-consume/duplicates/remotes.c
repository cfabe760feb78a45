#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/session/session.h"

#define REMOTES_MAX 16
/* Seconds without a sign of life, after which a server that owes an answer is given
 * up, and an unused connection is closed. */
#define SILENCE 5.0
/* Seconds until an unreachable server is tried again. */
#define RETRY 1.0

struct remote {
	TAILQ_ENTRY(remote) link;
	struct remotes *of;
	char *url; /* as given to remote_get() */
	int users;
	enum { REMOTE_PREPARING, REMOTE_OPEN, REMOTE_DOWN } state;
	char why[256]; /* DOWN */
	bool unusable; /* no server can have this URL */
	double since;  /* steady time: of DOWN; else of the last use */
	struct mq_server server;
	struct mq_async async;
	struct finder finder;
	ev_timer tick;
};

static void
set_down(struct remote *r, const char *why)
{
	strlcpy(r->why, why, sizeof(r->why));
	r->state = REMOTE_DOWN;
	r->since = mq_clock_steady_s();
	mq_helper_kill(&r->finder.helper);
}

static void
on_down(void *arg, const char *why)
{
	struct remote *r = arg;

	set_down(r, why);
	r->of->changed(r->of->arg);
}

static void
on_refused(void *arg, const char *error)
{
	(void)arg;
	mq_say("%s", error);
}

static void
connect_remote(struct remote *r)
{
	const char *why;

	r->async = (struct mq_async){.loop = r->of->loop,
	    .down = on_down,
	    .refused = on_refused,
	    .arg = r};
	if (mq_async_open(&r->async, &r->server, &why) == -1)
		set_down(r, why);
	else
		r->state = REMOTE_OPEN;
}

static void
on_found(void *arg, const char *why)
{
	struct remote *r = arg;

	if (why != NULL)
		set_down(r, why);
	else
		connect_remote(r);
	r->of->changed(r->of->arg);
}

static void
start_remote(struct remote *r)
{
	r->since = mq_clock_steady_s();
	r->state = REMOTE_PREPARING;
	if (find_at_once(&r->server))
		connect_remote(r);
	else if (find_start(&r->finder, r->of->children, &r->server, on_found,
		     r) == -1)
		set_down(r, strerror(errno));
}

/* --- life --------------------------------------------------------------------- */

static void
remote_free(struct remote *r)
{
	TAILQ_REMOVE(&r->of->list, r, link);
	ev_timer_stop(r->of->loop, &r->tick);
	mq_async_close(&r->async);
	mq_server_free(&r->server);
	explicit_bzero(r->url, strlen(r->url));
	free(r->url);
	free(r);
}

static bool
is_spare(const struct remote *r)
{
	return r->users == 0 && !mq_helper_runs(&r->finder.helper);
}

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct remote *r = w->data;
	bool moves = mq_async_moves(&r->async, NULL);

	(void)loop;
	(void)events;
	if (mq_clock_steady_s() - r->since < SILENCE)
		return;
	if (r->users > 0 && !moves && r->state != REMOTE_DOWN) {
		/* Its users may need room for another one. */
		r->users++;
		set_down(r, "no answer");
		mq_async_close(&r->async);
		r->of->changed(r->of->arg);
		r->users--;
	} else if (is_spare(r)) {
		remote_free(r);
	}
}

static struct remote *
remote_new(struct remotes *of, const char *url)
{
	struct remote *r = mq_xcalloc(1, sizeof(*r));

	r->of = of;
	r->url = mq_xstrdup(url);
	ev_timer_init(&r->tick, on_tick, SILENCE, SILENCE);
	r->tick.data = r;
	ev_timer_start(of->loop, &r->tick);
	TAILQ_INSERT_HEAD(&of->list, r, link);
	if (mq_server_at(&r->server, url, of->own, r->why, sizeof(r->why)) ==
		0 &&
	    r->server.url.kind == MQ_URL_CLUSTER)
		strlcpy(r->why, "dup to a cluster is not supported",
		    sizeof(r->why));
	if (r->why[0] != '\0') {
		r->unusable = true;
		r->state = REMOTE_DOWN;
		r->since = mq_clock_steady_s();
	} else {
		if (r->server.note[0] != '\0' && !of->noted)
			mq_say("%s", r->server.note);
		of->noted |= r->server.note[0] != '\0';
		start_remote(r);
	}
	return r;
}

/* False: all remotes are in use. */
static bool
make_room(struct remotes *of)
{
	struct remote *r;
	int n = 0;

	TAILQ_FOREACH(r, &of->list, link)
		n++;
	if (n < REMOTES_MAX)
		return true;
	TAILQ_FOREACH(r, &of->list, link)
		if (is_spare(r))
			break;
	if (r != NULL)
		remote_free(r);
	return r != NULL;
}

struct remote *
remote_get(struct remotes *of, const char *url)
{
	struct remote *r;

	TAILQ_FOREACH(r, &of->list, link)
		if (strcmp(r->url, url) == 0)
			break;
	if (r == NULL && !make_room(of))
		return NULL;
	if (r == NULL)
		r = remote_new(of, url);
	else if (r->state != REMOTE_DOWN)
		r->since = mq_clock_steady_s();
	else if (mq_clock_steady_s() - r->since >= RETRY && !r->unusable &&
	    !mq_helper_runs(&r->finder.helper))
		start_remote(r);
	r->users++;
	return r;
}

void
remote_put(struct remote *r)
{
	r->users--;
	r->since = mq_clock_steady_s();
}

bool
remote_ready(const struct remote *r)
{
	return r->state == REMOTE_OPEN;
}

const char *
remote_error(const struct remote *r)
{
	return r->state == REMOTE_DOWN ? r->why : NULL;
}

struct mq_async *
remote_async(struct remote *r)
{
	return &r->async;
}

void
remotes_init(struct remotes *of, struct ev_loop *loop,
    const struct mq_server *own, struct mq_children *children,
    void (*changed)(void *arg), void *arg)
{
	*of = (struct remotes){.loop = loop,
	    .own = own,
	    .children = children,
	    .changed = changed,
	    .arg = arg};
	TAILQ_INIT(&of->list);
}

void
remotes_free(struct remotes *of)
{
	struct remote *r, *more;

	TAILQ_FOREACH_SAFE(r, &of->list, link, more) {
		mq_helper_kill(&r->finder.helper);
		remote_free(r);
	}
}
