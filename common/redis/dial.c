#include "parts.h"

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"

/* When the next one is tried. */
#define SOON_S 0.5
/* How many are tried at a time; time is over before there are more. */
#define MOST 16

/* A connection to one address. */
struct attempt {
	struct mq_dial *of;	 /* NULL: nothing is tried */
	enum mq_link_state step; /* how far it has come */
	struct mq_redis redis;
	char address[MQ_ADDRESS_SIZE];
	bool asked;
};

struct race {
	struct mq_dial *dials;
	size_t n, turn;
	struct mq_command *question;
	mq_dial_fn *take;
	void *arg;
	double next; /* when the next one is tried */
	double connected_by, answered_by;
	struct attempt all[MOST];
	struct mq_dial *winner;
	struct pollfd *pfds; /* of the attempts, and of the searches */
};

/* --- addresses of a host --------------------------------------------------------- */

/* Asking the system for them can take minutes and cannot be broken off, so a child
 * asks, and is killed if that takes too long. */

/* The child writes these: an address each, or in the end why there is none. */
struct piece {
	bool found;
	char text[sizeof(((struct mq_dial *)NULL)->why)];
};

/* Returns how many addresses of this family there are. */
static int
find_addresses(const char *host, int family, int fd, struct piece *failure)
{
	const struct addrinfo hints = {
	    .ai_family = family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *one;
	struct piece piece = {.found = true};
	int n = 0, error;

	error = getaddrinfo(host, NULL, &hints, &list);
	if (error != 0) {
		strlcpy(failure->text,
		    error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error),
		    sizeof(failure->text));
		return 0;
	}
	for (one = list; one != NULL; one = one->ai_next) {
		if (getnameinfo(one->ai_addr, one->ai_addrlen, piece.text,
			MQ_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) != 0)
			continue;
		if (write(fd, &piece, sizeof(piece)) != (ssize_t)sizeof(piece))
			_exit(1);
		n++;
	}
	freeaddrinfo(list);
	return n;
}

/* Begins to look for the addresses of a host. */
static void
begin_search(struct mq_dial *d)
{
	struct piece failure = {.found = false};
	pid_t parent = getpid();
	int fds[2], n;

	/* "localhost" means this machine everywhere, and needs no child (RFC 6761). */
	if (strcasecmp(d->host, "localhost") == 0) {
		d->known[0] = "127.0.0.1";
		d->known[1] = "::1";
	} else if (mq_address_is(d->host)) {
		d->known[0] = d->host;
	}
	if (d->known[0] != NULL)
		return;
	strlcpy(
	    d->why, "the search for its address ended early", sizeof(d->why));
	if (pipe2(fds, O_CLOEXEC) == -1) {
		strlcpy(d->why, strerror(errno), sizeof(d->why));
		return;
	}
	d->pid = fork();
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		/* Each as soon as it is known: a second one may not be needed. */
		strlcpy(failure.text, gai_strerror(EAI_NONAME),
		    sizeof(failure.text));
		n = find_addresses(d->host, AF_INET, fds[1], &failure);
		n += find_addresses(d->host, AF_INET6, fds[1], &failure);
		_exit(n == 0 && write(fds[1], &failure, sizeof(failure)) == -1);
	}
	if (d->pid == -1) {
		strlcpy(d->why, strerror(errno), sizeof(d->why));
		d->pid = 0;
		close(fds[0]);
	}
	close(fds[1]);
	d->fd = fds[0];
}

/* --- one attempt ----------------------------------------------------------------- */

/* Of its addresses, the greatest error counts, or that of who came farthest. */
static void
note_error(struct mq_dial *d, const struct mq_redis *r, int step)
{
	if (r->status < d->redis.status ||
	    (r->status == d->redis.status && step < d->failed_at))
		return;
	d->failed_at = step;
	d->redis.status = r->status;
	strlcpy(d->redis.error, r->error, sizeof(d->redis.error));
}

/* The same before it was tried. */
static void
note_untried(struct mq_dial *d, int status, const char *why)
{
	struct mq_redis r = {.server = d->server};

	mq_redis_fail(&r, status, "%s", why);
	note_error(d, &r, MQ_LINK_CLOSED);
}

/* The link says why. */
static void
fail_attempt(struct attempt *a)
{
	(void)mq_redis_set_lost(&a->redis);
	note_error(a->of, &a->redis, (int)a->step);
	mq_redis_close(&a->redis);
	a->of = NULL;
}

/* Address NULL: the socket. */
static void
begin_attempt(struct race *race, struct mq_dial *d, const char *address)
{
	struct attempt *a = race->all;
	struct mq_link *l;

	while (a->of != NULL)
		a++;
	*a = (struct attempt){.of = d,
	    .step = MQ_LINK_TCP,
	    .redis = {.server = d->server,
		.home = -1,
		.patience_ms = MQ_REDIS_PATIENCE_MS,
		.greet_until = race->answered_by}};
	if (address != NULL)
		strlcpy(a->address, address, sizeof(a->address));
	l = &a->redis.link;
	mq_link_open(l, d->server, address == NULL ? NULL : d->host, address,
	    d->port, race->question == NULL);
	if (l->state == MQ_LINK_LOST)
		fail_attempt(a);
}

static void
take_connection(struct attempt *a)
{
	struct mq_server *server = a->of->server;
	const char *host = a->of->host;

	a->of->redis = a->redis;
	if (host == NULL)
		return;
	strlcpy(server->host, host, sizeof(server->host));
	strlcpy(server->address, a->address, sizeof(server->address));
	server->port = a->of->port;
}

/* Goes on with the connection, then with the question. */
static void
go_on(struct race *race, struct attempt *a, short revents)
{
	struct mq_link *l = &a->redis.link;
	struct mq_dial *d = a->of;
	redisReply *reply = NULL;

	mq_link_move(l, revents);
	if (race->question != NULL && !a->asked && l->state == MQ_LINK_OPEN) {
		a->asked = true;
		(void)mq_redis_append(&a->redis, race->question);
	}
	if (a->asked)
		reply = mq_link_next(l);
	if (l->state == MQ_LINK_LOST) {
		freeReplyObject(reply);
		fail_attempt(a);
		return;
	}
	a->step = l->state;
	if (reply != NULL ||
	    (race->question == NULL && a->step > MQ_LINK_TLS)) {
		take_connection(a);
		a->of = NULL;
		if (reply == NULL || race->take(race->arg, d, reply) == 0)
			race->winner = d;
		else
			mq_redis_close(&d->redis);
	}
}

/* --- all of them ------------------------------------------------------------------ */

static void
end_search(struct mq_dial *d)
{
	if (d->found == 0)
		note_untried(d,
		    d->pid == 0 ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE, d->why);
	if (d->pid != 0) {
		close(d->fd);
		kill(d->pid, SIGKILL);
		while (waitpid(d->pid, NULL, 0) == -1 && errno == EINTR)
			;
		d->pid = 0;
	}
	d->over = true;
}

/* Tries one address of this server, or begins to look for some; those of IPv4 come first.
 * False: none is there, or none any more. */
static bool
try_server(struct race *race, struct mq_dial *d)
{
	struct pollfd pfd = {.events = POLLIN};
	const char *address = NULL;
	bool begins = !d->begun;
	struct piece piece;

	d->begun = true;
	if (d->host == NULL) {
		d->over = true;
		begin_attempt(race, d, NULL);
		return true;
	}
	if (begins)
		begin_search(d);
	pfd.fd = d->fd;
	if (d->pid != 0 && poll(&pfd, 1, 0) != 1)
		return begins;
	if (d->pid == 0) {
		address = d->known[d->found];
	} else if (read(d->fd, &piece, sizeof(piece)) ==
	    (ssize_t)sizeof(piece)) {
		if (piece.found)
			address = piece.text;
		else
			strlcpy(d->why, piece.text, sizeof(d->why));
	}
	d->found += address != NULL;
	if (address != NULL && strlen(address) < MQ_ADDRESS_SIZE) {
		begin_attempt(race, d, address);
		return true;
	}
	end_search(d);
	return false;
}

/* Each server has its turn.  While nothing is tried, nothing is waited for but a search.
 * False: all is over.  Whoever has not got through by then is late, and later those
 * without an answer. */
static bool
try_in_time(struct race *race, double now)
{
	bool idle = true, answers = false, comes = false, searches = false;
	bool soon = now < race->next, late = now >= race->connected_by;
	struct mq_dial *d;
	size_t i;

	for (i = 0; i < MOST; i++) {
		idle &= race->all[i].of == NULL;
		answers |=
		    race->all[i].of != NULL && race->all[i].step > MQ_LINK_TLS;
	}
	for (i = 0; i < race->n; i++) {
		comes |= !race->dials[i].over;
		searches |= race->dials[i].pid != 0;
	}
	if (now >= race->answered_by || (late && !answers) || (idle && !comes))
		return false;
	if (late || (soon && !idle))
		return true;
	for (i = 0; i < race->n; i++) {
		d = &race->dials[(race->turn + i) % race->n];
		if (!d->over && (d->begun || !soon || !searches) &&
		    try_server(race, d)) {
			race->turn += i + 1;
			race->next = now + SOON_S;
			break;
		}
	}
	return true;
}

/* poll(2) takes no more elements than there may be descriptors. */
static void
wait_and_go_on(struct race *race, double now)
{
	double until =
	    now < race->connected_by ? race->connected_by : race->answered_by;
	struct attempt *a, *waiting[MOST];
	const struct mq_link *l;
	size_t i, n = 0, all;
	bool looks;

	if (now < race->next)
		until = MIN(race->next, race->answered_by);
	for (a = race->all; a < race->all + MOST; a++) {
		if (a->of == NULL)
			continue;
		l = &a->redis.link;
		waiting[n] = a;
		race->pfds[n++] = (struct pollfd){
		    .fd = l->context->fd, .events = mq_link_wants(l)};
	}
	all = n;
	looks = now >= race->next || n == 0;
	for (i = 0; i < race->n; i++)
		if (looks && race->dials[i].pid != 0)
			race->pfds[all++] = (struct pollfd){
			    .fd = race->dials[i].fd, .events = POLLIN};
	if (poll(race->pfds, all, (int)((until - now) * 1000) + 1) <= 0)
		return;
	for (i = 0; i < n && race->winner == NULL; i++)
		if (race->pfds[i].revents != 0)
			go_on(race, waiting[i], race->pfds[i].revents);
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
	struct attempt *a;
	struct mq_dial *d;
	size_t i;

	for (a = race->all; a < race->all + MOST; a++) {
		if (a->of == NULL)
			continue;
		mq_link_lose(
		    &a->redis.link, MQ_EXIT_UNAVAILABLE, late_words(a->step));
		if (race->winner != NULL)
			mq_redis_close(&a->redis);
		else
			fail_attempt(a);
	}
	for (i = 0; i < race->n; i++) {
		d = &race->dials[i];
		if (d->pid != 0) {
			strlcpy(d->why,
			    "its name could not be resolved in time",
			    sizeof(d->why));
			end_search(d);
		}
		if (race->winner == NULL && d->redis.status == 0)
			note_untried(
			    d, MQ_EXIT_UNAVAILABLE, "Connection timed out");
	}
	free(race->pfds);
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
	    .pfds = mq_xcalloc(MOST + n, sizeof(*race.pfds)),
	    .connected_by = MIN(now + MQ_CONNECT_S, until),
	    .answered_by = MIN(now + MQ_GREET_S, until)};

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
