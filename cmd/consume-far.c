/*
 * Connections to other servers, for duplicates: one for each URL, as long as
 * it is in use and for a while after.  What would wait, the search for the
 * address of a host or the start of a private server, is done by a child.
 */
#include <sys/queue.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "consume.h"
#include "exit.h"
#include "xalloc.h"

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
	struct aside aside;
	ev_timer tick;
};

static void
down(struct far *f, const char *why)
{
	strlcpy(f->why, why, sizeof(f->why));
	f->state = FAR_DOWN;
	f->since = mq_clock_steady_s();
	if (f->aside.pid != 0)
		kill(f->aside.pid, SIGKILL);
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

/* --- finding out where it is ------------------------------------------------ */

static bool
is_known(const struct mq_server *s)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (s->url.kind == MQ_URL_PRIVATE)
		return false;
	return s->socket[0] != '\0' ||
	    inet_pton(AF_INET, s->url.host, address) == 1 ||
	    inet_pton(AF_INET6, s->url.host, address) == 1;
}

/* In the child.  IPv4 first, as the library has it for our own server. */
static void
find_address(const struct mq_server *s, struct aside_result *result)
{
	struct addrinfo hints = {
	    .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int error;

	error = getaddrinfo(s->url.host, NULL, &hints, &found);
	if (error != 0) {
		hints.ai_family = AF_INET6;
		error = getaddrinfo(s->url.host, NULL, &hints, &found);
	}
	if (error == 0)
		error = getnameinfo(found->ai_addr, found->ai_addrlen,
		    result->where, sizeof(result->where), NULL, 0,
		    NI_NUMERICHOST);
	if (error == 0)
		return;
	result->status = MQ_EXIT_UNAVAILABLE;
	strlcpy(result->error, gai_strerror(error), sizeof(result->error));
}

static void
do_find(struct aside *a, struct aside_result *result)
{
	struct far *f = a->arg;

	if (f->server.url.kind != MQ_URL_PRIVATE) {
		find_address(&f->server, result);
		return;
	}
	result->status =
	    mq_server_wake(&f->server, result->error, sizeof(result->error));
	strlcpy(result->where, f->server.socket, sizeof(result->where));
}

static void
found(struct aside *a, const struct aside_result *result)
{
	struct far *f = a->arg;

	if (f->state != FAR_PREPARING)
		return;
	if (result->status != 0) {
		down(f,
		    result->error[0] != '\0' ? result->error :
					       "no address was found");
	} else if (f->server.url.kind == MQ_URL_PRIVATE) {
		strlcpy(
		    f->server.socket, result->where, sizeof(f->server.socket));
		connect_far(f);
	} else {
		free(f->server.url.host);
		f->server.url.host = mq_xstrdup(result->where);
		connect_far(f);
	}
	dup_go_on(f->c);
}

static void
start(struct far *f)
{
	f->since = mq_clock_steady_s();
	f->state = FAR_PREPARING;
	if (is_known(&f->server))
		connect_far(f);
	else
		aside_start(f->c, &f->aside, do_find, found);
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
	} else if (f->users == 0 && f->aside.pid == 0) {
		far_free(f);
	}
}

static struct far *
far_new(struct consumer *c, const char *url)
{
	struct far *f = mq_xcalloc(1, sizeof(*f));

	f->c = c;
	f->url = mq_xstrdup(url);
	f->aside.arg = f;
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
		if (f->users == 0 && f->aside.pid == 0)
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
	    f->aside.pid == 0)
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
		aside_kill(&f->aside);
		far_free(f);
	}
}
