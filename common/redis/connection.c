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

int
mq_redis_set_lost(struct mq_redis *r)
{
	const struct mq_link *l = &r->link;

	return mq_redis_fail(r, l->status, "%s%s", l->why,
	    l->early && l->tls == NULL && speaks_tls(r->server) ?
		"; a server with TLS takes rediss://" :
		"");
}

/* --- waiting ------------------------------------------------------------------- */

static int64_t
greeting_left_ms(const struct mq_redis *r)
{
	double left = r->greet_until - mq_clock_steady_s();

	return left > 0 ? (int64_t)(left * 1000) + 1 : 0;
}

/* Waits until the socket is ready and goes on, or gives the link up.  Only replies are
 * waited for with the caller's function. */
static void
wait_for_link(struct mq_redis *r, bool reads)
{
	struct mq_link *l = &r->link;
	struct pollfd pfd = {.fd = l->context->fd, .events = mq_link_wants(l)};
	int64_t ms =
	    l->state == MQ_LINK_OPEN ? r->patience_ms : greeting_left_ms(r);

	if (reads && r->wait != NULL && pfd.events == POLLIN) {
		if (r->wait(r->wait_arg, pfd.fd, ms))
			pfd.revents = POLLIN;
	} else if (poll(&pfd, 1, (int)ms) == -1) {
		/* A signal. */
		return;
	}
	if (pfd.revents == 0)
		mq_link_lose(l, MQ_EXIT_UNAVAILABLE, "no answer for too long");
	else
		mq_link_move(l, pfd.revents);
}

static bool
is_lost(const struct mq_link *l)
{
	return l->state == MQ_LINK_LOST || l->state == MQ_LINK_CLOSED;
}

int
mq_redis_flush(struct mq_redis *r)
{
	struct mq_link *l = &r->link;

	if (r->route != NULL)
		return r->route->flush(r);
	if (mq_link_unwritten(l))
		mq_link_move(l, POLLOUT);
	while (mq_link_unwritten(l))
		wait_for_link(r, false);
	return is_lost(l) ? mq_redis_set_lost(r) : 0;
}

/* The greeting is over before there are many. */
int
mq_redis_append_bytes(struct mq_redis *r, const char *p, size_t n)
{
	size_t piece;

	mq_link_expect(&r->link);
	while (n > 0) {
		if (is_lost(&r->link))
			return mq_redis_set_lost(r);
		piece = mq_link_put(&r->link, p, n);
		p += piece;
		n -= piece;
		if (n > 0 &&
		    (mq_redis_flush(r) == -1 || mq_redis_check(r) == -1))
			return -1;
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

int
mq_redis_await_ready(struct mq_redis *r)
{
	struct mq_link *l = &r->link;

	while (l->state < MQ_LINK_HELLO && !is_lost(l))
		wait_for_link(r, true);
	return is_lost(l) ? mq_redis_set_lost(r) : 0;
}

int
mq_redis_check(struct mq_redis *r)
{
	struct mq_link *l = &r->link;

	if (l->state != MQ_LINK_OPEN && mq_link_unwritten(l))
		mq_link_move(l, POLLOUT);
	while (l->state != MQ_LINK_OPEN && !is_lost(l))
		wait_for_link(r, true);
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

/* A reply has its time, and as much more as its bytes take at this rate at the least, per
 * millisecond, whatever trickles. */
#define RATE_MIN 4

redisReply *
mq_redis_reply(struct mq_redis *r)
{
	struct mq_link *l = &r->link;
	size_t from = l->bytes;
	int64_t until = 0, now;
	redisReply *reply;

	if (r->route != NULL)
		return r->route->reply(r);
	if (mq_redis_flush(r) == -1 || mq_redis_check(r) == -1)
		return NULL;
	while ((reply = mq_link_next(l)) == NULL && !is_lost(l)) {
		now = mq_clock_steady_ms();
		if (until == 0)
			until = now + r->patience_ms;
		if (now < until + (int64_t)((l->bytes - from) / RATE_MIN))
			wait_for_link(r, true);
		else
			mq_link_lose(
			    l, MQ_EXIT_UNAVAILABLE, "no answer for too long");
	}
	if (reply == NULL)
		(void)mq_redis_set_lost(r);
	return reply;
}

bool
mq_redis_patient(struct mq_redis *r)
{
	int64_t now = mq_clock_steady_ms();

	if (r->busy_until == 0)
		r->busy_until = now + BUSY_PATIENCE_MS;
	return now < r->busy_until;
}

redisReply *
mq_redis_answer(struct mq_redis *r, struct mq_command *c)
{
	struct mq_command eval;
	redisReply *reply;

	for (;;) {
		reply = mq_redis_send(r, c) == 0 ? mq_redis_reply(r) : NULL;
		if (reply == NULL)
			return NULL;
		if (c->script != NULL && mq_reply_noscript(reply)) {
			eval = mq_command_eval(c);
			mq_command_free(c);
			*c = eval;
		} else if (mq_reply_busy(reply) && mq_redis_patient(r)) {
			(void)poll(NULL, 0, BUSY_PAUSE_MS);
		} else {
			if (!mq_reply_busy(reply))
				r->busy_until = 0;
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
	mq_link_close(&r->link);
}

bool
mq_redis_lost(const struct mq_redis *r)
{
	return r->lost || (r->route == NULL && is_lost(&r->link));
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
