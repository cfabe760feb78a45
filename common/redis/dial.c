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
/* More elements than any answer to a question has. */
#define ELEMENTS_MAX 65536

/* What an attempt waits for. */
enum step { NOTHING, TCP, TLS, ANSWER };

/* A connection to one address. */
struct attempt {
	enum step step;
	struct mq_dial *of;
	struct mq_redis redis;
	char address[MQ_ADDRESS_SIZE];
	int greetings; /* replies that come before the answer */
	bool written;
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
	struct attempt *winner;
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

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* To free what a reply of a billion elements needs would take seconds.  mq_redis_set_lost()
 * looks at errno. */
static void *
create_array(const redisReadTask *task, array_size n)
{
	const redisReplyObjectFunctions *usual = task->privdata;

	if (n <= ELEMENTS_MAX)
		return usual->createArray(task, n);
	errno = EMSGSIZE;
	return NULL;
}

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
	note_error(d, &r, NOTHING);
}

/* Status 0: its connection has the error. */
static void
fail_attempt(struct attempt *a, int status, const char *why)
{
	if (status != 0)
		mq_redis_fail(&a->redis, status, "%s", why);
	note_error(a->of, &a->redis, a->step);
	mq_redis_close(&a->redis);
	a->step = NOTHING;
}

/* Address NULL: the socket. */
static void
begin_attempt(struct race *race, struct mq_dial *d, const char *address)
{
	static redisReplyObjectFunctions bounded;
	struct attempt *a = race->all;
	redisContext *c;

	while (a->step != NOTHING)
		a++;
	*a = (struct attempt){.step = TCP,
	    .of = d,
	    .redis = {.server = d->server,
		.home = -1,
		.greet_until = race->answered_by}};
	if (address != NULL)
		strlcpy(a->address, address, sizeof(a->address));
	c = address == NULL ? redisConnectUnixNonBlock(d->server->socket) :
			      redisConnectNonBlock(address, d->port);
	a->redis.context = c;
	if (mq_redis_lost(&a->redis)) {
		mq_redis_set_lost(&a->redis);
		fail_attempt(a, 0, NULL);
		return;
	}
	fcntl(c->fd, F_SETFD, FD_CLOEXEC);
	/* Until mq_redis_greeted(). */
	bounded = *c->reader->fn;
	bounded.createArray = create_array;
	c->reader->privdata = c->reader->fn;
	c->reader->fn = &bounded;
}

static void
take_connection(struct attempt *a)
{
	struct mq_server *server = a->of->server;

	a->of->redis = a->redis;
	a->step = NOTHING;
	if (a->of->host == NULL)
		return;
	strlcpy(server->host, a->of->host, sizeof(server->host));
	strlcpy(server->address, a->address, sizeof(server->address));
	server->port = a->of->port;
}

/* Goes on with TCP, then with TLS if the URL has that, then with the question. */
static void
go_on(struct race *race, struct attempt *a)
{
	redisContext *c = a->redis.context;
	const struct mq_url *u = &a->redis.server->url;
	struct mq_command greeting = {0};
	char why[MQ_TLS_WHY];
	int error = 0, status = 0;
	socklen_t n = sizeof(error);

	if (a->step == TCP) {
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
			error = errno;
		if (error != 0) {
			fail_attempt(a, MQ_EXIT_UNAVAILABLE, strerror(error));
			return;
		}
		if (a->of->host != NULL)
			redisEnableKeepAlive(c);
	}
	if (u->tls)
		status = mq_tls_start(&a->redis.tls, c, u, a->of->host, why);
	if (status == -1) {
		a->step = TLS;
	} else if (status != 0) {
		fail_attempt(a, status, why);
	} else if (race->question == NULL) {
		take_connection(a);
		race->winner = a;
	} else {
		for (; mq_redis_greeting(
			 a->redis.server, a->greetings, &greeting);
		     a->greetings++)
			(void)mq_redis_append(&a->redis, &greeting);
		mq_command_free(&greeting);
		(void)mq_redis_append(&a->redis, race->question);
		a->step = ANSWER;
	}
}

/* Writes what is left of the question, and takes the replies that are there. */
static void
exchange(struct race *race, struct attempt *a, short events)
{
	redisContext *c = a->redis.context;
	int done = a->written;
	void *reply = NULL;
	bool lost = (!done && redisBufferWrite(c, &done) != REDIS_OK) ||
	    (events & ~POLLOUT && redisBufferRead(c) != REDIS_OK);

	a->written = done;
	while (!lost && a->step == ANSWER) {
		lost = redisGetReplyFromReader(c, &reply) != REDIS_OK;
		if (!lost && reply == NULL)
			return;
		if (!lost)
			mq_reply_strip_script(reply);
		if (!lost && a->greetings-- > 0) {
			if (mq_redis_refused(&a->redis, reply))
				fail_attempt(a, 0, NULL);
			freeReplyObject(reply);
		} else if (!lost) {
			/* The connection is one that waits from now on. */
			mq_redis_greeted(&a->redis);
			take_connection(a);
			if (race->take(race->arg, a->of, reply) == 0)
				race->winner = a;
			else
				mq_redis_close(&a->of->redis);
		}
	}
	if (lost) {
		mq_redis_set_lost(&a->redis);
		fail_attempt(a, 0, NULL);
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
		idle &= race->all[i].step == NOTHING;
		answers |= race->all[i].step == ANSWER;
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
	struct pollfd pfd = {0};
	size_t i, n = 0, all;
	bool looks;

	if (now < race->next)
		until = MIN(race->next, race->answered_by);
	for (a = race->all; a < race->all + MOST; a++) {
		if (a->step == NOTHING)
			continue;
		pfd.fd = a->redis.context->fd;
		pfd.events = POLLIN;
		if (a->step == TCP ||
		    (a->step == TLS && mq_tls_wants_room(a->redis.tls)))
			pfd.events = POLLOUT;
		else if (a->step == ANSWER && !a->written)
			pfd.events |= POLLOUT;
		waiting[n] = a;
		race->pfds[n++] = pfd;
	}
	all = n;
	looks = now >= race->next || n == 0;
	for (i = 0; i < race->n; i++)
		if (looks && race->dials[i].pid != 0)
			race->pfds[all++] = (struct pollfd){
			    .fd = race->dials[i].fd, .events = POLLIN};
	if (poll(race->pfds, all, (int)((until - now) * 1000) + 1) <= 0)
		return;
	for (i = 0; i < n && race->winner == NULL; i++) {
		a = waiting[i];
		if (race->pfds[i].revents == 0)
			continue;
		if (a->step == ANSWER)
			exchange(race, a, race->pfds[i].revents);
		else
			go_on(race, a);
	}
}

/* All but the winner: what did not come in time, and what there was no time to try. */
static void
end_race(struct race *race)
{
	static const char *const late[] = {[TCP] = "Connection timed out",
	    [TLS] = "TLS: no answer to the handshake; a server without TLS "
		    "takes redis://",
	    [ANSWER] = "no answer for too long"};
	struct attempt *a;
	struct mq_dial *d;
	size_t i;

	for (a = race->all; a < race->all + MOST; a++) {
		if (a->step == NOTHING)
			continue;
		if (race->winner != NULL)
			mq_redis_close(&a->redis);
		else
			fail_attempt(a, MQ_EXIT_UNAVAILABLE, late[a->step]);
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
	return race.winner != NULL ? (int)(race.winner->of - dials) : -1;
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
