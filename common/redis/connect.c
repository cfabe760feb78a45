/* Opening a connection to one server that waits. */
#include <sys/param.h>

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- sentinels --------------------------------------------------------------- */

/* How long each of all sentinels is asked. */
#define SOON_S 0.5

/* Where the master is, and how. */
struct master {
	/* An address, or a name if the sentinels announce names. */
	char host[sizeof(((struct mq_server *)NULL)->host)];
	int port;
	bool down;    /* or about to be replaced */
	int replicas; /* -1: not known */
};

struct question {
	const char *words; /* before the name of the master */
	/* Takes a reply that is no error: 0, or -1 with the error. */
	int (*take)(void *answer, struct mq_redis *, const redisReply *);
	void *answer;
};

static int
take_answer(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct question *q = arg;
	struct mq_redis *r = &d->redis;
	int rv = -1;

	if (!mq_redis_refused(r, reply))
		rv = q->take(q->answer, r, reply);
	else if (r->only.link.unfit || r->status == MQ_EXIT_UNAVAILABLE)
		/* A server that answers, but not to this, is none. */
		r->status = MQ_EXIT_CONFIG;
	freeReplyObject(reply);
	return rv;
}

/* Asks the sentinels in the URL of r's server, side by side, until one answers, or
 * until then; or each, for half a second, and those that do not answer are left out.  r
 * need not be connected.  Returns 0, or -1 with the error. */
static int
ask_sentinels(struct mq_redis *r, struct question q, bool each, double until)
{
	struct mq_server *server = r->server;
	const struct mq_url *u = &server->url;
	size_t i, n = u->hosts_n, at_once = each ? 1 : n;
	struct mq_server *sentinels = mq_xcalloc(n, sizeof(*sentinels));
	struct mq_dial *dials = mq_xcalloc(n, sizeof(*dials));
	struct mq_command c = {0};
	const struct mq_redis *worst;
	int who = 0;

	mq_command_plain(&c, q.words);
	mq_command_str(&c, u->path);
	for (i = 0; i < n; i++) {
		mq_server_of_sentinel(&sentinels[i], server, i);
		/* Its answers are about this master. */
		sentinels[i].url.path = u->path;
		dials[i] = (struct mq_dial){.server = &sentinels[i],
		    .host = u->hosts[i].name,
		    .port = u->hosts[i].port};
	}
	for (i = 0; i < n; i += at_once) {
		if (each)
			until = mq_clock_steady_s() + SOON_S;
		who = mq_dial(&dials[i], at_once, &c, take_answer, &q, until);
		if (who != -1)
			mq_redis_close(&dials[i + (size_t)who].redis);
	}
	if (who == -1 && !each) {
		worst = mq_dial_error(dials, n);
		mq_redis_fail(r, worst->status, "%s%s",
		    worst->status == MQ_EXIT_UNAVAILABLE ?
			"no sentinel answers: " :
			"sentinel ",
		    worst->error);
	} else if (!each) {
		server->sentinel = (size_t)who;
		strlcpy(server->sentinel_address, sentinels[who].address,
		    sizeof(server->sentinel_address));
	}
	mq_command_free(&c);
	free(sentinels);
	free(dials);
	return each || who != -1 ? 0 : -1;
}

static int
take_master(void *answer, struct mq_redis *r, const redisReply *reply)
{
	struct master *master = answer;
	const char *why;

	if (reply->type == REDIS_REPLY_NIL)
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "no master has the name %s", r->server->url.path);
	if (!mq_reply_is(reply, "") || reply->elements != 2 ||
	    strlcpy(master->host, reply->element[0]->str,
		sizeof(master->host)) >= sizeof(master->host))
		return mq_nonsense(r);
	master->port = (int)strtonum(reply->element[1]->str, 1, 65535, &why);
	return why == NULL ? 0 : mq_nonsense(r);
}

static const char where[] = "SENTINEL get-master-addr-by-name";

/* Needs +sentinel|master. */
static int
take_state(void *answer, struct mq_redis *r, const redisReply *reply)
{
	struct master *master = answer;
	const char *flags = mq_reply_value(reply, "flags");
	const char *replicas = mq_reply_value(reply, "num-slaves");

	(void)r;
	master->down =
	    strstr(flags, "_down") != NULL || strstr(flags, "failover") != NULL;
	if (*replicas != '\0')
		master->replicas = atoi(replicas);
	return 0;
}

/* Whether a replica that sentinels know by this address is online.  Where a replica
 * announces a name, sentinels may still know the address. */
static bool
is_online(const struct mq_info *i, const char *address, const char *port)
{
	char at[256], its[16];
	const char *line, *end;

	for (line = i->online; (end = strchr(line, '\n')) != NULL;
	     line = end + 1)
		if (sscanf(line, "%255s %15s", at, its) == 2 &&
		    strcmp(its, port) == 0 &&
		    (strcmp(at, address) == 0 || !mq_address_is(at)))
			return true;
	return false;
}

/* The master comes last: if it has changed meanwhile, that shows. */
static int
take_heirs(void *answer, struct mq_redis *r, const redisReply *reply)
{
	struct mq_heirs *h = answer;
	struct master master = {.port = 0};
	struct mq_command c = {0};
	const redisReply *one;
	redisReply *place;
	const char *flags;
	bool silent;
	size_t i;
	int rv;

	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++) {
		one = reply->element[i];
		flags = mq_reply_value(one, "flags");
		/* A replica that does not answer for long is not made the master, but
		 * may be busy as it has just been chosen.  One whose connection has just
		 * ended may be the master already: it drops its clients then. */
		silent = strstr(flags, "s_down") != NULL &&
		    strstr(flags, "promoted") == NULL;
		if (!is_online(h->info, mq_reply_value(one, "ip"),
			mq_reply_value(one, "port"))) {
			h->missing += !silent;
			h->silent += silent;
		} else if (!silent) {
			h->connected++;
		}
	}
	mq_command_plain(&c, where);
	mq_command_str(&c, r->server->url.path);
	place = mq_call(r, &c, -1);
	if (place == NULL)
		return -1;
	rv = take_master(&master, r, place);
	freeReplyObject(place);
	h->moved |= rv == 0 &&
	    (master.port != h->server->port ||
		strcmp(master.host, h->server->host) != 0);
	return rv;
}

int
mq_redis_ask_heirs(struct mq_redis *r, struct mq_heirs *heirs, bool each)
{
	return ask_sentinels(r,
	    (struct question){"SENTINEL replicas", take_heirs, heirs}, each,
	    INFINITY);
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
	if (r->wait != NULL)
		(void)r->wait(r->wait_arg, -1, PAUSE_MS);
	else
		(void)poll(NULL, 0, PAUSE_MS);
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
	const struct mq_url *u = &server->url;
	struct mq_dial d = {.server = server}; /* at first, to its socket */
	struct master master = {.port = 0};
	struct question q = {where, take_master, &master};
	int rv;

	*r = (struct mq_redis){.server = server, .home = -1};
	if (u->kind == MQ_URL_PRIVATE &&
	    (r->status = mq_private_ensure(server)) != 0) {
		strlcpy(r->error, server->error, sizeof(r->error));
		return -1;
	}
	if (u->kind == MQ_URL_SENTINEL) {
		server->sentinel_address[0] = '\0';
		if (ask_sentinels(r, q, false, until) == -1)
			return -1;
		d.host = master.host;
		d.port = master.port;
	} else if (server->socket[0] == '\0') {
		d.host = u->hosts->name;
		d.port = u->hosts->port;
	}
	rv = mq_dial(&d, 1, NULL, NULL, NULL, until);
	*r = d.redis;
	if (rv == -1 && u->kind == MQ_URL_SENTINEL)
		mq_redis_fail(r, r->status, "master %s:%d%s", master.host,
		    master.port, d.redis.error + strlen(server->name));
	return rv;
}

static int
open_once(struct mq_redis *r, struct mq_server *server, double until)
{
	int rv = mq_redis_begin(r, server, until);

	if (rv == 0)
		rv = server->url.kind == MQ_URL_SENTINEL ?
		    mq_redis_check(r) :
		    mq_redis_await_ready(r);
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
	struct master master = {.replicas = -1};
	struct question q = {"SENTINEL master", take_state, &master};

	if (strcmp(r->only.link.why, MQ_REDIS_REPLICA) == 0)
		f->due = true;
	else if (r->only.link.unfit || r->status != MQ_EXIT_UNAVAILABLE ||
	    r->server->sentinel_address[0] == '\0')
		return false;
	if (!f->due) {
		if (ask_sentinels(&other, q, false, f->until) == -1 &&
		    other.status == MQ_EXIT_UNAVAILABLE)
			return false;
		f->due = master.down;
		if (!f->failed && master.replicas == 0)
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
			(void)mq_failover_again(&f, r);
			return -1;
		}
		strlcpy(why, r->error, sizeof(why));
		if (!awaits_master(r, &f))
			return -1;
	}
	return 0;
}
