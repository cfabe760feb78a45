/*
 * Opening a connection to one server that waits.
 */
#include <sys/param.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* Host NULL: its socket. */
static int
connect_host(struct mq_redis *r, const char *host, int port, double until)
{
	struct mq_dial d = {.server = r->server, .host = host, .port = port};
	int rv = mq_dial(&d, 1, NULL, NULL, NULL, until);

	*r = d.redis;
	r->server = d.server;
	r->home = -1;
	return rv;
}

/* --- sentinels --------------------------------------------------------------- */

/* How long each of all sentinels is asked. */
#define SOON_S 0.5

struct question {
	const struct mq_sentinel_question *of;
	const char *name;
	void *answer;
};

static int
take_answer(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct question *q = arg;
	struct mq_redis *r = &d->redis;
	int rv = -1;

	if (!mq_redis_refused(r, reply))
		rv = q->of->take(r, q->name, reply, q->answer);
	else if (r->status == MQ_EXIT_UNAVAILABLE)
		/* A server that answers, but not to this, is none. */
		r->status = MQ_EXIT_CONFIG;
	freeReplyObject(reply);
	return rv;
}

/* Returns the number of the one that has answered, which is closed; or -1. */
static int
ask_some(
    struct mq_dial *dials, size_t n, const struct question *q, double until)
{
	struct mq_command c = {0};
	int i;

	mq_command_plain(&c, q->of->words);
	mq_command_str(&c, q->name);
	i = mq_dial(dials, n, &c, take_answer, (void *)(uintptr_t)q, until);
	mq_command_free(&c);
	if (i != -1)
		mq_redis_close(&dials[i].redis);
	return i;
}

/* Each with its server, in an array to be freed. */
static struct mq_dial *
make_dials(struct mq_redis *r, struct mq_server **sentinels)
{
	const struct mq_url *u = &r->server->url;
	struct mq_dial *dials = mq_xcalloc(u->hosts_n, sizeof(*dials));
	size_t i;

	*sentinels = mq_xcalloc(u->hosts_n, sizeof(**sentinels));
	for (i = 0; i < u->hosts_n; i++) {
		mq_sentinel_server(&(*sentinels)[i], r->server, i);
		dials[i] = (struct mq_dial){.server = &(*sentinels)[i],
		    .host = u->hosts[i].name,
		    .port = u->hosts[i].port};
	}
	return dials;
}

int
mq_redis_ask_sentinels(struct mq_redis *r, double until,
    const struct mq_sentinel_question *of, void *answer)
{
	const struct question q = {of, r->server->url.path, answer};
	size_t n = r->server->url.hosts_n;
	struct mq_server *sentinels;
	struct mq_dial *dials = make_dials(r, &sentinels);
	const struct mq_redis *worst;
	int i = ask_some(dials, n, &q, until);

	if (i == -1) {
		worst = mq_dial_error(dials, n);
		mq_redis_fail(r, worst->status, "%s%s",
		    worst->status == MQ_EXIT_UNAVAILABLE ?
			"no sentinel answers: " :
			"sentinel ",
		    worst->error);
	} else {
		r->server->sentinel = (size_t)i;
		strlcpy(r->server->sentinel_address, sentinels[i].address,
		    sizeof(r->server->sentinel_address));
	}
	free(sentinels);
	free(dials);
	return i == -1 ? -1 : 0;
}

void
mq_redis_ask_each_sentinel(
    struct mq_redis *r, const struct mq_sentinel_question *of, void *answer)
{
	const struct question q = {of, r->server->url.path, answer};
	struct mq_server *sentinels;
	struct mq_dial *dials = make_dials(r, &sentinels);
	size_t i;

	for (i = 0; i < r->server->url.hosts_n; i++)
		(void)ask_some(&dials[i], 1, &q, mq_clock_steady_s() + SOON_S);
	free(sentinels);
	free(dials);
}

/* --- failover ---------------------------------------------------------------- */

#define FAILOVER_S 30
#define PAUSE_MS   100

void
mq_failover_begin(struct mq_failover *f, const struct mq_server *server)
{
	int s = server->failover_s;

	if (f->until == 0)
		f->until = mq_clock_steady_s() + (s != 0 ? s : FAILOVER_S);
}

void
mq_failover_pause(const struct mq_redis *r)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

	if (r->wait != NULL)
		(void)r->wait(r->wait_arg, -1, PAUSE_MS);
	else
		nanosleep(&pause, NULL);
}

bool
mq_failover_again(struct mq_failover *f, struct mq_redis *r)
{
	f->failed = true;
	if (mq_clock_steady_s() < f->until) {
		mq_failover_pause(r);
		return true;
	}
	r->status = f->due ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE;
	return false;
}

/* --- any server -------------------------------------------------------------- */

int
mq_redis_begin(struct mq_redis *r, struct mq_server *server, double until)
{
	const struct mq_url_host *host = server->url.hosts;
	struct mq_master master = {.port = 0};
	char why[sizeof(r->error)];

	*r = (struct mq_redis){.server = server, .home = -1};
	if (server->url.kind == MQ_URL_PRIVATE)
		r->status =
		    mq_private_ensure(server, r->error, sizeof(r->error));
	if (r->status != 0)
		return -1;
	if (server->socket[0] != '\0')
		return connect_host(r, NULL, 0, until);
	if (server->url.kind != MQ_URL_SENTINEL)
		return connect_host(r, host->name, host->port, until);
	server->sentinel_address[0] = '\0';
	if (mq_redis_ask_sentinels(r, until, &mq_sentinel_master, &master) ==
	    -1)
		return -1;
	if (connect_host(r, master.host, master.port, until) == 0)
		return 0;
	strlcpy(why, r->error, sizeof(why));
	return mq_redis_fail(r, r->status, "master %s:%d%s", master.host,
	    master.port, why + strlen(server->name));
}

static int
open_once(struct mq_redis *r, struct mq_server *server, double until)
{
	struct mq_command c = {0};
	redisReply *reply;
	int step, rv = mq_redis_begin(r, server, until);

	if (rv == -1)
		return -1;
	for (step = 0; rv == 0 && mq_redis_greeting(server, step, &c); step++) {
		reply = mq_redis_call(r, &c);
		rv = reply == NULL ? -1 : 0;
		freeReplyObject(reply);
	}
	if (rv == 0) {
		mq_command_plain(&c, "HELLO");
		rv = mq_redis_append(r, &c);
		r->asked = true;
	}
	mq_command_free(&c);
	if (rv == 0 && server->url.kind == MQ_URL_SENTINEL)
		rv = mq_redis_check(r);
	if (rv == -1)
		mq_redis_close(r);
	return rv;
}

/* Whether the master that sentinels named, which did not answer, or is a replica, may
 * soon be another one.  r has the error. */
static bool
awaits_master(struct mq_redis *r, struct mq_failover *f)
{
	struct mq_redis other = {.server = r->server};
	struct mq_sentinel_state state = {.replicas = -1};

	if (r->unfit != NULL && strcmp(r->unfit, MQ_REDIS_REPLICA) == 0)
		f->due = true;
	else if (r->unfit != NULL || r->status != MQ_EXIT_UNAVAILABLE ||
	    r->server->sentinel_address[0] == '\0')
		return false;
	if (!f->due) {
		if (mq_redis_ask_sentinels(
			&other, f->until, &mq_sentinel_state, &state) == -1 &&
		    other.status == MQ_EXIT_UNAVAILABLE)
			return false;
		f->due = state.down;
		if (!f->failed && state.replicas == 0)
			return false;
	}
	return mq_failover_again(f, r);
}

int
mq_redis_connect(struct mq_redis *r, struct mq_server *server, double until)
{
	struct mq_failover f = {.until = 0};
	char why[sizeof(r->error)];

	if (server->url.kind != MQ_URL_SENTINEL)
		return open_once(r, server, until);
	mq_failover_begin(&f, server);
	f.until = MIN(f.until, until);
	while (open_once(r, server, f.until) == -1) {
		/* The last try may have had no time to fail by itself: the one
		 * before tells why. */
		if (f.failed && mq_clock_steady_s() >= f.until) {
			strlcpy(r->error, why, sizeof(r->error));
			r->status = f.due ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE;
			return -1;
		}
		strlcpy(why, r->error, sizeof(why));
		if (!awaits_master(r, &f))
			return -1;
	}
	return 0;
}
