#include "connection.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#ifdef MQ_TLS
#include <openssl/crypto.h>
#endif

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* A server that is busy, or loads its data, is asked again this often, and so long. */
#define BUSY_PAUSE_MS	 50
#define BUSY_PATIENCE_MS 60000

/* How much goes to the library in one piece; bounds its copy of a command. */
#define PIECE 65536

#if HIREDIS_MAJOR >= 1
static void *
reallocate(void *p, size_t n)
{
	return mq_xreallocarray(p, n, 1);
}
#endif

#ifdef MQ_TLS
static void *
tls_reallocate(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	if (n > 0)
		return mq_xreallocarray(p, n, 1);
	free(p);
	return NULL;
}

static void *
tls_allocate(size_t n, const char *file, int line)
{
	return tls_reallocate(NULL, n, file, line);
}
#endif

void
mq_redis_memory(void)
{
#if HIREDIS_MAJOR >= 1
	hiredisAllocFuncs all = {
	    mq_xmalloc, mq_xcalloc, reallocate, mq_xstrdup, free};

	hiredisSetAllocators(&all);
#endif
#ifdef MQ_TLS
	/* free(3) is what it frees with, unless told otherwise. */
	CRYPTO_set_mem_functions(tls_allocate, tls_reallocate, NULL);
#endif
}

int
mq_redis_room(struct mq_redis *r, size_t bytes)
{
	r->status =
	    mq_server_room(r->server, bytes, r->error, sizeof(r->error));
	return r->status == 0 ? 0 : -1;
}

/* Others end connections early, too.  What begins as TLS does, and then makes no sense, is
 * answered by whoever speaks it. */
static bool
speaks_tls(const struct mq_server *s)
{
	static const unsigned char hello[] = {22, 3, 1, 0, 4, 1, 0, 0, 0};
	const struct timeval soon = {.tv_sec = 1};
	unsigned char first = 0;
	redisContext *c = NULL;

	if (s->socket[0] == '\0')
		c = redisConnectWithTimeout(s->address, s->port, soon);
	if (c != NULL && c->err == 0 && redisSetTimeout(c, soon) == REDIS_OK &&
	    send(c->fd, hello, sizeof(hello), MSG_NOSIGNAL) != -1)
		(void)recv(c->fd, &first, 1, 0);
	if (c != NULL)
		redisFree(c);
	/* A handshake, or an alert. */
	return first == 22 || first == 21;
}

/* Of descriptors hiredis says "other" for TCP: so it does of getaddrinfo(3), which cannot
 * fail otherwise for an address. */
bool
mq_redis_lacks(const redisContext *c)
{
	return c == NULL || c->err == REDIS_ERR_OOM ||
	    ((c->err == REDIS_ERR_IO || c->err == REDIS_ERR_OTHER) &&
		(errno == EMFILE || errno == ENFILE || errno == ENOMEM));
}

int
mq_redis_set_lost(struct mq_redis *r)
{
	redisContext *c = r->context;
	bool broken = c != NULL && c->err == REDIS_ERR_IO;
	bool late = broken && errno == EAGAIN;
	bool lacks = mq_redis_lacks(c);
	/* The server has ended the connection before it has said anything. */
	bool early = !r->heard && c != NULL &&
	    (c->err == REDIS_ERR_EOF ||
		(broken && (errno == ECONNRESET || errno == EPIPE)));
	char why[MQ_TLS_WHY];
	int status;

	if (r->unfit[0] != '\0')
		return mq_redis_fail(
		    r, mq_error_status(r->unfit), "%s", r->unfit);
	if (c == NULL)
		return mq_redis_fail(r, MQ_EXIT_AGAIN, "out of memory");
	if (c->err == REDIS_ERR_OOM && errno == EMSGSIZE)
		return mq_redis_fail(
		    r, MQ_EXIT_UNAVAILABLE, "unexpected reply");
	/* TLS that has not begun, or has ended, may have more to say. */
	status = late ? 0 : mq_tls_failure(r->tls, early, why);
	if (status != 0)
		return mq_redis_fail(r, status, "%s", why);
	if (!late && !lacks && mq_last_words(c, r->unfit))
		return mq_redis_set_lost(r);
	return mq_redis_fail(r, lacks ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE,
	    "%s%s", late ? "no answer for too long" : c->errstr,
	    early && r->tls == NULL && speaks_tls(r->server) ?
		"; a server with TLS takes rediss://" :
		"");
}

/* --- waiting ------------------------------------------------------------------- */

static void
time_out(redisContext *c)
{
	/* A late answer must not be taken for the next one. */
	c->err = REDIS_ERR_OTHER;
	errno = ETIMEDOUT;
	strlcpy(c->errstr, "no answer for too long", sizeof(c->errstr));
}

static int64_t
greeting_left_ms(const struct mq_redis *r)
{
	double left = r->greet_until - mq_clock_steady_s();

	return left > 0 ? (int64_t)(left * 1000) + 1 : 0;
}

/* Until the socket takes more, or can be read from; a signal may end that early. */
static bool
await_socket(const struct mq_redis *r, short events, int64_t ms)
{
	struct pollfd pfd = {.fd = r->context->fd, .events = events};

	return poll(&pfd, 1, (int)ms) != 0;
}

int
mq_redis_flush(struct mq_redis *r)
{
	int done = 0;

	if (r->route != NULL)
		return r->route->flush(r);
	r->unsent = 0;
	do {
		if (redisBufferWrite(r->context, &done) != REDIS_OK) {
			/* hiredis_ssl takes a signal for the end of the connection. */
			if (r->tls == NULL || errno != EINTR)
				return mq_redis_set_lost(r);
			r->context->err = 0;
		}
		if (!done && r->greet_until != 0 &&
		    !await_socket(r, POLLOUT, greeting_left_ms(r))) {
			time_out(r->context);
			return mq_redis_set_lost(r);
		}
	} while (!done);
	return 0;
}

/* Collects bytes in the library, and hands them on whenever it has a good
 * piece of them.  The greeting is over before there are many. */
int
mq_redis_append_bytes(struct mq_redis *r, const char *p, size_t n)
{
	size_t piece;

	for (; n > 0; p += piece, n -= piece) {
		if (r->unsent >= PIECE &&
		    (mq_redis_flush(r) == -1 || mq_redis_check(r) == -1))
			return -1;
		piece = n < PIECE ? n : PIECE;
		if (redisAppendFormattedCommand(r->context, p, piece) !=
		    REDIS_OK)
			return mq_redis_set_lost(r);
		r->unsent += piece;
	}
	return 0;
}

int
mq_redis_append(struct mq_redis *r, struct mq_command *c)
{
	size_t n;
	const char *p;

	if (r->route != NULL)
		return r->route->append(r, c);
	p = mq_command_wire(c, &n);
	return mq_redis_append_bytes(r, p, n);
}

int
mq_redis_send(struct mq_redis *r, struct mq_command *c)
{
	return mq_redis_append(r, c) == -1 ? -1 : mq_redis_flush(r);
}

void
mq_redis_greeted(struct mq_redis *r)
{
	const struct timeval patience = {.tv_sec = MQ_REDIS_PATIENCE_MS / 1000};
	redisContext *c = r->context;

	/* As dial.c has left them. */
	c->reader->fn = c->reader->privdata;
	c->reader->privdata = NULL;
	fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) & ~O_NONBLOCK);
	c->flags |= REDIS_BLOCK;
	redisSetTimeout(c, patience);
	r->greet_until = 0;
}

/* Reads until there is a whole reply, with the caller's function if there is one. */
static int
read_reply(struct mq_redis *r, void **reply)
{
	redisContext *c = r->context;
	int64_t ms;
	int rv;

	if (r->unsent > 0 && mq_redis_flush(r) == -1)
		return REDIS_ERR;
	while ((rv = redisGetReplyFromReader(c, reply)) == REDIS_OK &&
	    *reply == NULL) {
		ms = r->greet_until != 0 ? greeting_left_ms(r) : r->patience_ms;
		if (!(r->wait != NULL ? r->wait(r->wait_arg, c->fd, ms) :
					await_socket(r, POLLIN, ms)))
			time_out(c);
		if (c->err != 0 || redisBufferRead(c) != REDIS_OK)
			return REDIS_ERR;
	}
	return rv;
}

/* No command that is under way gets an answer.  Why: NULL if nothing is wrong. */
static void
set_unfit(struct mq_redis *r, const char *why)
{
	if (why == NULL)
		return;
	strlcpy(r->unfit, why, sizeof(r->unfit));
	r->context->err = REDIS_ERR_OTHER;
}

int
mq_redis_check(struct mq_redis *r)
{
	void *reply = NULL;

	if (!r->asked)
		return 0;
	if (read_reply(r, &reply) == REDIS_OK) {
		r->asked = false;
		r->heard = true;
		mq_redis_greeted(r);
		set_unfit(r, mq_reply_unfit(reply, r->server));
		freeReplyObject(reply);
	}
	return mq_redis_lost(r) ? mq_redis_set_lost(r) : 0;
}

void
mq_redis_wait_with(
    struct mq_redis *r, bool (*wait)(void *arg, int fd, int64_t ms), void *arg)
{
	r->wait = wait;
	r->wait_arg = arg;
	r->patience_ms = MQ_REDIS_PATIENCE_MS;
}

static redisReply *
next_reply(struct mq_redis *r, bool waits)
{
	void *reply = NULL;

	if (r->route != NULL)
		return r->route->reply(r);
	if (mq_redis_check(r) == -1)
		return NULL;
	if ((waits || r->greet_until != 0 ?
		    read_reply(r, &reply) :
		    redisGetReply(r->context, &reply)) != REDIS_OK) {
		mq_redis_set_lost(r);
		return NULL;
	}
	r->heard = true;
	mq_reply_strip_script(reply);
	/* A sign of life, after which the next answer may take as long. */
	if (r->greet_until != 0 && mq_reply_busy(reply))
		r->greet_until = mq_clock_steady_s() + MQ_GREET_S;
	set_unfit(r, mq_reply_last(reply, r->server));
	if (r->unfit[0] == '\0')
		return reply;
	freeReplyObject(reply);
	mq_redis_set_lost(r);
	return NULL;
}

redisReply *
mq_redis_reply(struct mq_redis *r)
{
	return next_reply(r, r->wait != NULL);
}

redisReply *
mq_redis_answer(struct mq_redis *r, struct mq_command *c)
{
	int64_t until = mq_clock_steady_ms() + BUSY_PATIENCE_MS;
	struct mq_command eval;
	redisReply *reply;

	for (;;) {
		reply = mq_redis_send(r, c) == 0 ? next_reply(r, false) : NULL;
		if (reply == NULL)
			return NULL;
		if (c->script != NULL && mq_reply_noscript(reply)) {
			eval = mq_command_eval(c);
			mq_command_free(c);
			*c = eval;
		} else if (mq_reply_busy(reply) &&
		    mq_clock_steady_ms() < until) {
			(void)poll(NULL, 0, BUSY_PAUSE_MS);
		} else {
			return reply;
		}
		freeReplyObject(reply);
	}
}

void
mq_redis_close(struct mq_redis *r)
{
	if (r->route != NULL)
		r->route->close(r);
	redisFree(r->context);
	r->tls = NULL;
	r->context = NULL;
}

bool
mq_redis_lost(const struct mq_redis *r)
{
	return r->lost ||
	    (r->route == NULL && (r->context == NULL || r->context->err != 0));
}

bool
mq_redis_visit(struct mq_redis *r, int i)
{
	return r->route != NULL ? r->route->visit(r, i) : i == 0;
}

struct mq_command
mq_redis_command(const struct mq_redis *r)
{
	return (struct mq_command){
	    .cluster = r->server->url.kind == MQ_URL_CLUSTER};
}
