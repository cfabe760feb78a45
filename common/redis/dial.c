#include "parts.h"

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"

/* Seconds until the next one is tried. */
#define SOON_S 0.5
/* Most attempts at a time, and most searches: time is over before there are more. */
#define MOST 16

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
	double next; /* when the next one is tried */
	double connected_by, answered_by;
	TAILQ_HEAD(, attempt) attempts;
	struct mq_dial *winner;
};

/* --- addresses of a host --------------------------------------------------------- */

/* Asking the system for addresses can take minutes, and cannot be broken off.  A thread
 * asks, with memory of its own, and writes to a pipe.  If that takes too long, the pipe is
 * closed, and the thread ends when the system has answered. */
struct search {
	int fd;
	char host[];
};

/* The thread writes an address each, or in the end why there is none. */
struct piece {
	bool found;
	char text[128];
};

static bool
write_piece(const struct search *s, const struct piece *piece)
{
	return write(s->fd, piece, sizeof(*piece)) != -1;
}

/* Each family as soon as it is known: the second one may not be needed. */
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

/* There are no more addresses; `why` counts if there was none at all. */
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
	/* Signals are for the thread that waits. */
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

/* The next address that needs no search; NULL: there is none.  "localhost" means this
 * machine everywhere (RFC 6761). */
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

/* Without a question there is no reply. */
static void
take_connection(struct race *race, struct attempt *a, redisReply *reply)
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

/* Goes on with the connection, then with the question. */
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
		take_connection(race, a, reply);
}

/* --- all of them ------------------------------------------------------------------ */

/* Tries one address of this server, or begins to look for some; those of IPv4 come first.
 * False: none is there, or none any more. */
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

/* Each server has its turn.  While nothing is tried, nothing is waited for but a search.
 * Servers that are not connected to in time are late, and later those without an answer.
 * False: all is over. */
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
		/* One search at a time begins, unless it takes its time. */
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

/* poll(2) takes no more elements than there may be descriptors. */
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

/* Why an attempt that has come so far counts as failed. */
static const char *
late_words(enum mq_link_state step)
{
	if (step == MQ_LINK_TCP)
		return "Connection timed out";
	if (step == MQ_LINK_TLS)
		return "TLS: no answer to the handshake; a server without TLS "
		       "takes redis://";
	return "no answer for too long";
}

/* All but the winner: what did not come in time, and what there was no time to try. */
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
		if (d->fd != -1)
			end_search(d, MQ_EXIT_UNAVAILABLE,
			    "its name could not be resolved in time");
		else if (race->winner == NULL && d->redis.status == 0)
			(void)mq_redis_fail(&d->redis, MQ_EXIT_UNAVAILABLE,
			    "Connection timed out");
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
	size_t i;

	for (i = 0; i < n; i++) {
		dials[i].redis.server = dials[i].server;
		dials[i].redis.home = dials[i].fd = -1;
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
