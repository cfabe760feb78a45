/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* From the URL of a server to a connection: searches for addresses, attempts side by side,
 * sentinels, and a failover that is waited for. */
#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

#define SOON_S 0.5 /* between two attempts, and for each of all sentinels */
#define MOST   16  /* attempts in MQ_GREET_S, and searches: never reached */

/* A connection to one address. */
struct attempt {
	TAILQ_ENTRY(attempt) link;
	struct mq_dial *of;
	struct mq_redis redis;
};

struct race {
	struct mq_dial *dials;
	size_t n, turn;
	struct mq_command *question;
	mq_dial_fn *take;
	void *arg;
	double next; /* time of the next attempt, in steady seconds as below */
	double connected_by, answered_by;
	TAILQ_HEAD(attempts, attempt) attempts;
	struct mq_dial *winner;
};

/* --- addresses of a host --------------------------------------------------------- */

/* getaddrinfo(3) can take minutes, and cannot be broken off: a thread calls it, with memory
 * of its own, and writes to a pipe.  After a timeout the pipe is closed, and the thread ends
 * when getaddrinfo(3) returns. */
struct search {
	int fd;
	char host[];
};

/* An address, or at the end the reason why there is none. */
struct piece {
	bool found;
	char text[128];
};

static bool
write_piece(const struct search *s, const struct piece *piece)
{
	return write(s->fd, piece, sizeof(*piece)) != -1;
}

/* Writes the addresses of one family as soon as they are known: the other family may not be
 * needed. */
static void *
find_addresses(void *arg)
{
	struct search *s = arg;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *one;
	struct piece piece = {.found = true}, failure = {.found = false};
	int family, n = 0, error;

	strlcpy(failure.text, gai_strerror(EAI_NONAME), sizeof(failure.text));
	for (family = 0; family < 2; family++) {
		hints.ai_family = family == 0 ? AF_INET : AF_INET6;
		error = getaddrinfo(s->host, NULL, &hints, &list);
		if (error != 0) {
			strlcpy(failure.text,
			    error == EAI_SYSTEM ? strerror(errno) :
						  gai_strerror(error),
			    sizeof(failure.text));
			continue;
		}
		for (one = list; one != NULL; one = one->ai_next)
			n += getnameinfo(one->ai_addr, one->ai_addrlen,
				 piece.text, MQ_ADDRESS_SIZE, NULL, 0,
				 NI_NUMERICHOST) == 0 &&
			    write_piece(s, &piece);
		freeaddrinfo(list);
	}
	if (n == 0)
		(void)write_piece(s, &failure);
	close(s->fd);
	free(s);
	return NULL;
}

/* Notes that there are no more addresses, with the reason if there was none at all. */
static void
end_search(struct mq_dial *d, int status, const char *why)
{
	if (d->found == 0)
		(void)mq_redis_fail(&d->redis, status, "%s", why);
	if (d->fd != -1)
		close(d->fd);
	d->fd = -1;
	d->over = true;
}

static bool
begin_search(struct mq_dial *d)
{
	size_t n = strlen(d->host) + 1;
	struct search *s;
	sigset_t all, old;
	pthread_t thread;
	int fds[2], error;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == -1) {
		end_search(d, MQ_EXIT_AGAIN, strerror(errno));
		return false;
	}
	s = mq_xmalloc(sizeof(*s) + n);
	memcpy(s->host, d->host, n);
	s->fd = fds[1];
	d->fd = fds[0];
	/* Signals must interrupt the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, find_addresses, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error == 0) {
		pthread_detach(thread);
		return true;
	}
	close(fds[1]);
	free(s);
	end_search(d, MQ_EXIT_AGAIN, strerror(error));
	return false;
}

/* The next address that needs no search; NULL: there is none.  RFC 6761 defines
 * "localhost". */
static const char *
known_address(const struct mq_dial *d)
{
	static const char *const local[] = {"127.0.0.1", "::1", NULL};

	if (d->host == NULL)
		return d->found == 0 ? d->server->socket : NULL;
	if (strcasecmp(d->host, "localhost") == 0)
		return local[d->found];
	return d->found == 0 && mq_address_is(d->host) ? d->host : NULL;
}

/* --- one attempt ----------------------------------------------------------------- */

/* Keeps the worst error; of equals, that of the attempt that got farthest. */
static void
fail_attempt(struct race *race, struct attempt *a, enum mq_link_state step)
{
	struct mq_dial *d = a->of;
	const struct mq_redis *r = &a->redis;

	(void)mq_redis_set_lost(&a->redis, &a->redis.only);
	mq_redis_close(&a->redis);
	if (race->winner == NULL &&
	    (r->status > d->redis.status ||
		(r->status == d->redis.status && step >= d->failed_at))) {
		d->failed_at = step;
		d->redis.status = r->status;
		strlcpy(d->redis.error, r->error, sizeof(d->redis.error));
	}
	TAILQ_REMOVE(&race->attempts, a, link);
	free(a);
}

static void
begin_attempt(struct race *race, struct mq_dial *d, const char *address)
{
	struct attempt *a = mq_xcalloc(1, sizeof(*a));
	struct mq_link *l = &a->redis.only.link;

	a->of = d;
	a->redis = (struct mq_redis){.server = d->server,
	    .home = -1,
	    .patience_ms = MQ_REDIS_PATIENCE_MS,
	    .greet_until = race->answered_by};
	TAILQ_INSERT_TAIL(&race->attempts, a, link);
	mq_link_open(
	    l, d->server, d->host, address, d->port, race->question == NULL);
	if (l->state == MQ_LINK_LOST)
		fail_attempt(race, a, MQ_LINK_TCP);
}

/* The attempt wins, if take() accepts its reply; reply NULL: there is no question. */
static void
finish_race(struct race *race, struct attempt *a, redisReply *reply)
{
	struct mq_dial *d = a->of;
	struct mq_server *server = d->server;

	d->redis = a->redis;
	TAILQ_REMOVE(&race->attempts, a, link);
	free(a);
	if (d->host != NULL) {
		strlcpy(server->host, d->host, sizeof(server->host));
		strlcpy(server->address, d->redis.only.link.context->tcp.host,
		    sizeof(server->address));
		server->port = d->port;
	}
	if (reply == NULL || race->take(race->arg, d, reply) == 0)
		race->winner = d;
	else
		mq_redis_close(&d->redis);
}

static void
go_on(struct race *race, struct attempt *a, short revents)
{
	struct mq_link *l = &a->redis.only.link;
	enum mq_link_state before = l->state;
	struct mq_request *q;
	redisReply *reply = NULL;

	mq_link_move(l, revents);
	if (race->question != NULL) {
		if (before != MQ_LINK_OPEN && l->state == MQ_LINK_OPEN)
			mq_link_send(l, mq_request_copy(race->question));
		if ((reply = mq_link_next(l, &q)) != NULL)
			mq_request_free(q);
	}
	if (l->state == MQ_LINK_LOST)
		fail_attempt(race, a, before);
	else if (reply != NULL ||
	    (race->question == NULL && l->state > MQ_LINK_TLS))
		finish_race(race, a, reply);
}

/* --- race ------------------------------------------------------------------------- */

/* Tries one address of this server, or begins to search for some.  False: no address is
 * there yet, or any more. */
static bool
try_server(struct race *race, struct mq_dial *d)
{
	const char *address = known_address(d);
	struct piece piece = {.found = false};

	if (address == NULL && d->found == 0 && d->fd == -1)
		return begin_search(d);
	if (d->fd != -1 && read(d->fd, &piece, sizeof(piece)) == -1)
		return false;
	if (piece.found)
		address = piece.text;
	if (address == NULL) {
		end_search(d, MQ_EXIT_UNAVAILABLE, piece.text);
		return false;
	}
	d->found++;
	begin_attempt(race, d, address);
	return true;
}

/* Begins the next attempt, if its time has come or no other attempt is under way; servers
 * take turns.  False: time is over, or nothing is left to try or to wait for. */
static bool
try_in_time(struct race *race, double now)
{
	bool idle = TAILQ_EMPTY(&race->attempts), soon = now < race->next;
	bool late = now >= race->connected_by;
	bool answers = false, searches = false;
	const struct attempt *a;
	struct mq_dial *d;
	size_t i;

	TAILQ_FOREACH(a, &race->attempts, link)
		answers |= a->redis.only.link.state > MQ_LINK_TLS;
	if (now >= race->answered_by || (late && !answers))
		return false;
	for (i = 0; i < race->n; i++)
		searches |= race->dials[i].fd != -1;
	for (i = 0; i < race->n && !late && (idle || !soon); i++) {
		d = &race->dials[(race->turn + i) % race->n];
		/* The next search begins when the last one ends, or after SOON_S. */
		if (d->over ||
		    (soon && searches && d->found == 0 && d->fd == -1) ||
		    !try_server(race, d))
			continue;
		race->turn += i + 1;
		race->next = now + SOON_S;
		return true;
	}
	return !idle || searches;
}

/* Waits for attempts, and for searches if a new attempt may begin: poll(2) takes no more
 * elements than descriptors are allowed. */
static void
wait_and_go_on(struct race *race, double now)
{
	bool soon = now < race->next, late = now >= race->connected_by;
	double until = MIN(race->answered_by,
	    soon     ? race->next :
		late ? race->answered_by :
		       race->connected_by);
	int ms = (int)((until - now) * 1000) + 1;
	struct pollfd pfds[2 * MOST], *p = pfds;
	struct attempt *a, *more;
	size_t i;
	bool looks;

	TAILQ_FOREACH(a, &race->attempts, link)
		*p++ = (struct pollfd){.fd = a->redis.only.link.context->fd,
		    .events = mq_link_wants(&a->redis.only.link)};
	looks = p == pfds || (!soon && !late);
	for (i = 0; i < race->n; i++)
		if (looks && race->dials[i].fd != -1)
			*p++ = (struct pollfd){
			    .fd = race->dials[i].fd, .events = POLLIN};
	if (p == pfds || poll(pfds, (nfds_t)(p - pfds), ms) <= 0)
		return;
	p = pfds;
	TAILQ_FOREACH_SAFE(a, &race->attempts, link, more)
		if ((p++)->revents != 0 && race->winner == NULL)
			go_on(race, a, p[-1].revents);
}

/* The error of an attempt that timed out in this state. */
static const char *
late_words(enum mq_link_state step)
{
	if (step == MQ_LINK_TCP)
		return "Connection timed out";
	if (step == MQ_LINK_TLS)
		return "TLS: no answer to the handshake; a server without TLS "
		       "takes redis://";
	return MQ_REDIS_LATE;
}

/* Ends all attempts but the winner's, and searches; servers without an error get one. */
static void
end_race(struct race *race)
{
	enum mq_link_state step;
	struct attempt *a;
	struct mq_dial *d;

	while ((a = TAILQ_FIRST(&race->attempts)) != NULL) {
		step = a->redis.only.link.state;
		mq_link_lose(
		    &a->redis.only.link, MQ_EXIT_UNAVAILABLE, late_words(step));
		fail_attempt(race, a, step);
	}
	for (d = race->dials; d < race->dials + race->n; d++) {
		if (race->winner == NULL && d->redis.status == 0)
			(void)mq_redis_fail(&d->redis, MQ_EXIT_UNAVAILABLE,
			    "%s",
			    d->fd != -1 ?
				"its name could not be resolved in time" :
				"Connection timed out");
		if (d->fd != -1)
			close(d->fd);
	}
}

int
mq_dial(struct mq_dial *dials, size_t n, struct mq_command *question,
    mq_dial_fn *take, void *arg, double until)
{
	double now = mq_clock_steady_s();
	struct race race = {.dials = dials,
	    .n = n,
	    .question = question,
	    .take = take,
	    .arg = arg,
	    .attempts = TAILQ_HEAD_INITIALIZER(race.attempts),
	    .connected_by = MIN(now + MQ_CONNECT_S, until),
	    .answered_by = MIN(now + MQ_GREET_S, until)};
	struct mq_server *s;
	size_t i;

	for (i = 0; i < n; i++) {
		s = dials[i].redis.server = dials[i].server;
		dials[i].redis.home = dials[i].fd = -1;
		if (dials[i].host == NULL && s->socket[0] == '\0') {
			dials[i].host = s->url.hosts->name;
			dials[i].port = s->url.hosts->port;
		}
	}
	while (race.winner == NULL && try_in_time(&race, now)) {
		wait_and_go_on(&race, now);
		now = mq_clock_steady_s();
	}
	end_race(&race);
	return race.winner != NULL ? (int)(race.winner - dials) : -1;
}

const struct mq_redis *
mq_dial_error(const struct mq_dial *dials, size_t n)
{
	const struct mq_redis *worst = &dials[0].redis;
	size_t i;

	for (i = 1; i < n; i++)
		if (dials[i].redis.status > worst->status)
			worst = &dials[i].redis;
	return worst;
}

/* --- sentinels --------------------------------------------------------------- */

/* The master, as a sentinel describes it. */
struct master {
	/* An address, or a name if the sentinels announce names. */
	char host[sizeof(((struct mq_server *)NULL)->host)];
	int port;
	bool down;    /* or a failover is under way */
	int replicas; /* -1: not known */
};

struct question {
	const char *words; /* before the name of the master */
	/* Parses a reply that is no error: 0, or -1 with the error. */
	int (*take)(void *answer, struct mq_redis *, const redisReply *);
	void *answer;
};

static int
receive_reply(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct question *q = arg;
	struct mq_redis *r = &d->redis;
	int rv = -1;

	if (!mq_redis_refused(r, reply))
		rv = q->take(q->answer, r, reply);
	else if (r->only.link.unfit || r->status == MQ_EXIT_UNAVAILABLE)
		/* A server that refuses this question is no sentinel. */
		r->status = MQ_EXIT_CONFIG;
	freeReplyObject(reply);
	return rv;
}

/* Asks the sentinels in the URL of r's server, side by side, until one answers, at most until
 * that time (steady seconds); with each, asks every sentinel for SOON_S, and skips silent
 * ones.  r need not be connected.  Returns 0, or -1 with the error. */
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
		mq_server_behind(&sentinels[i], server, &u->hosts[i], true);
		/* parse_master() names the master in its error. */
		sentinels[i].url.path = u->path;
		dials[i].server = &sentinels[i];
	}
	for (i = 0; i < n; i += at_once) {
		if (each)
			until = mq_clock_steady_s() + SOON_S;
		who = mq_dial(&dials[i], at_once, &c, receive_reply, &q, until);
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
parse_master(void *answer, struct mq_redis *r, const redisReply *reply)
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

/* The user of the sentinels needs the right +sentinel|master. */
static int
parse_state(void *answer, struct mq_redis *r, const redisReply *reply)
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

/* Whether a replica at this address, by the sentinels, is online by the server, which may
 * know it by a name: then the port decides. */
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

/* Asks for the master after the replicas, so that a failover between them shows. */
static int
parse_candidates(void *answer, struct mq_redis *r, const redisReply *reply)
{
	struct mq_candidates *h = answer;
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
		/* A replica that is down for long is not made the master; but one that was
		 * just promoted may be busy, or have dropped its clients. */
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
	rv = parse_master(&master, r, place);
	freeReplyObject(place);
	h->new_master |= rv == 0 &&
	    (master.port != h->server->port ||
		strcmp(master.host, h->server->host) != 0);
	return rv;
}

int
mq_redis_ask_candidates(
    struct mq_redis *r, struct mq_candidates *candidates, bool each)
{
	return ask_sentinels(r,
	    (struct question){
		"SENTINEL replicas", parse_candidates, candidates},
	    each, INFINITY);
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

bool
mq_failover_again(struct mq_failover *f, struct mq_redis *r)
{
	f->failed = true;
	if (mq_clock_steady_s() >= f->until) {
		r->status = f->due ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE;
		return false;
	}
	mq_redis_pause(r, PAUSE_MS);
	return true;
}

/* --- any server -------------------------------------------------------------- */

int
mq_redis_begin(struct mq_redis *r, struct mq_server *server, double until)
{
	const struct mq_url *u = &server->url;
	struct mq_dial d = {.server = server};
	struct master master = {.port = 0};
	struct question q = {where, parse_master, &master};
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

/* Whether sentinels may soon name another master, since theirs did not answer, or is a
 * replica.  r has the error. */
static bool
awaits_master(struct mq_redis *r, struct mq_failover *f)
{
	struct mq_redis other = {.server = r->server};
	struct master master = {.replicas = -1};
	struct question q = {"SENTINEL master", parse_state, &master};

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
		/* The last try may have had too little time: the error before counts. */
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
