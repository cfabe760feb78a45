/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Waiting for replies with poll(2), in all tools but mq-consume. */
#include "connection.h"

#include <sys/param.h>
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

#define RETRY_MS 50 /* pause before mq_redis.later is sent again */

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
	/* NULL: OpenSSL frees with free(3). */
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

/* Whether a server answers the beginning of a TLS handshake with TLS: other servers, too,
 * end a connection without a reply. */
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
	return first == 22 || first == 21; /* handshake, or alert */
}

int
mq_redis_set_lost(struct mq_redis *r, const struct mq_node *node)
{
	const struct mq_link *l = &node->link;

	r->status = l->status;
	strlcpy(r->error, l->server->name, sizeof(r->error));
	strlcat(r->error, ": ", sizeof(r->error));
	strlcat(r->error, l->why, sizeof(r->error));
	if (l->early && l->tls == NULL && speaks_tls(l->server))
		strlcat(r->error, "; a server with TLS takes rediss://",
		    sizeof(r->error));
	return -1;
}

/* --- one link ------------------------------------------------------------------- */

static int64_t
greeting_left_ms(const struct mq_redis *r)
{
	double left = r->greet_until - mq_clock_steady_s();

	return left > 0 ? (int64_t)(left * 1000) + 1 : 0;
}

static bool
is_lost(const struct mq_link *l)
{
	return l->state == MQ_LINK_LOST || l->state == MQ_LINK_CLOSED;
}

/* Waits until the socket is ready, at most this long (ms), and moves the link, or loses it.
 * The caller's wait() waits for replies only. */
static void
wait_for_link(struct mq_redis *r, struct mq_link *l, bool reads, int64_t most)
{
	struct pollfd pfd = {.fd = l->context->fd, .events = mq_link_wants(l)};
	int64_t ms = l->state == MQ_LINK_OPEN ? most : greeting_left_ms(r);

	if (reads && r->wait != NULL && pfd.events == POLLIN) {
		if (r->wait(r->wait_arg, pfd.fd, ms))
			pfd.revents = POLLIN;
	} else if (poll(&pfd, 1, (int)ms) == -1) {
		/* A signal. */
		return;
	}
	if (pfd.revents == 0)
		mq_link_lose(l, MQ_EXIT_UNAVAILABLE, MQ_REDIS_LATE);
	else
		mq_link_move(l, pfd.revents);
}

/* Returns 0, or -1 with the error: the link is lost, and the connection with it. */
static int
check_link(struct mq_redis *r, struct mq_node *node)
{
	if (!is_lost(&node->link))
		return 0;
	if (r->cluster == NULL)
		return mq_redis_set_lost(r, node);
	if (!r->lost && node->missing == NULL && !r->driver->spares(r, node))
		r->lost = true;
	return r->lost ? -1 : 0;
}

/* Waits until the socket has all bytes of the link, or (backlog) hiredis has them. */
static int
write_link(struct mq_redis *r, struct mq_node *node, bool backlog)
{
	struct mq_link *l = &node->link;

	if (!backlog && mq_link_unwritten(l))
		mq_link_move(l, POLLOUT);
	while (!is_lost(l) &&
	    (l->backlog.first != NULL || (!backlog && mq_link_unwritten(l))))
		wait_for_link(r, l, false, r->patience_ms);
	return check_link(r, node);
}

int
mq_redis_await_ready(struct mq_redis *r)
{
	struct mq_link *l = &r->only.link;

	while (l->state < MQ_LINK_HELLO && !is_lost(l))
		wait_for_link(r, l, true, r->patience_ms);
	return check_link(r, &r->only);
}

int
mq_redis_check(struct mq_redis *r)
{
	struct mq_link *l = &r->only.link;

	if (r->cluster != NULL)
		return r->lost ? -1 : 0;
	if (l->state != MQ_LINK_OPEN && mq_link_unwritten(l))
		mq_link_move(l, POLLOUT);
	while (l->state != MQ_LINK_OPEN && !is_lost(l))
		wait_for_link(r, l, true, r->patience_ms);
	return check_link(r, &r->only);
}

/* --- commands ------------------------------------------------------------------- */

int
mq_redis_flush(struct mq_redis *r)
{
	struct mq_node *node;
	int i = 0, rv = r->lost ? -1 : 0;

	while (rv == 0 && (node = mq_route_next(r, &i)) != NULL)
		if (r->cluster == NULL || mq_link_unwritten(&node->link))
			rv = write_link(r, node, false);
	return rv;
}

/* Appends a request to mq_redis.order, and sends it.  HELLO goes out with the first command,
 * however late that comes: its time begins then. */
static int
hand_over(struct mq_redis *r, struct mq_request *q)
{
	if (r->only.link.state == MQ_LINK_HELLO && r->order.first == NULL)
		r->greet_until = MAX(r->greet_until,
		    mq_clock_steady_s() + MQ_GREET_S - MQ_CONNECT_S);
	q->take = NULL;
	if (q->slot == -1)
		q->slot = r->home;
	if (r->order.first == NULL)
		r->order.first = q;
	else
		r->order.last->in_order = q;
	r->order.last = q;
	mq_route_send(r, q);
	if (r->cluster != NULL && q->node != NULL)
		r->cluster->last = q->node->number;
	/* Waiting for hiredis's buffer bounds the memory for commands. */
	if (!q->answered && q->node != NULL)
		return write_link(r, q->node, true);
	return mq_redis_lost(r) ? -1 : 0;
}

/* Only a command that may be sent again is copied. */
int
mq_redis_append(struct mq_redis *r, struct mq_command *c)
{
	bool kept = c->repeats || (r->cluster != NULL && !c->transaction);
	struct mq_command copy = *c;
	struct mq_request *q =
	    kept ? mq_request_copy(c) : mq_request_new(&copy, NULL, NULL);
	int rv;

	q->kept = kept;
	q->loads = c->repeats;
	q->borrowed = !kept;
	rv = hand_over(r, q);
	if (!kept)
		mq_request_forget(q);
	return rv;
}

int
mq_redis_send(struct mq_redis *r, struct mq_command *c)
{
	return mq_redis_append(r, c) == -1 ? -1 : mq_redis_flush(r);
}

void
mq_redis_wait_with(
    struct mq_redis *r, bool (*wait)(void *arg, int fd, int64_t ms), void *arg)
{
	r->wait = wait;
	r->wait_arg = arg;
	r->patience_ms = MQ_REDIS_PATIENCE_MS;
}

/* --- replies -------------------------------------------------------------------- */

/* A reply may take patience_ms, and longer while its bytes come at this rate (per ms). */
#define RATE_MIN 4

static void
receive_replies(struct mq_redis *r, struct mq_node *node)
{
	struct mq_request *q;
	redisReply *reply;

	while ((reply = mq_link_next(&node->link, &q)) != NULL)
		mq_route_settle(r, node, q, reply);
}

void
mq_redis_pause(const struct mq_redis *r, int ms)
{
	if (r->wait != NULL)
		(void)r->wait(r->wait_arg, -1, ms);
	else
		(void)poll(NULL, 0, ms);
}

/* Waits for more of the reply from a node, which had received `from` bytes before, at most
 * until *until (steady ms; 0: set here). */
static void
wait_for_node(
    struct mq_redis *r, struct mq_node *node, size_t from, int64_t *until)
{
	struct mq_link *l = &node->link;
	int64_t now = mq_clock_steady_ms(), left;

	if (*until == 0)
		*until = now + r->patience_ms;
	left = *until + (int64_t)((l->bytes - from) / RATE_MIN) - now;
	if (left > 0)
		wait_for_link(r, l, true, left);
	else
		mq_link_lose(l, MQ_EXIT_UNAVAILABLE, MQ_REDIS_LATE);
}

/* False: the connection is lost. */
static bool
await_answer(struct mq_redis *r, struct mq_request *q)
{
	struct mq_node *node = NULL;
	int64_t until = 0;
	size_t from = 0;

	while (!q->answered && !r->lost) {
		/* A command that is sent again has all its time again. */
		if (q->node == NULL) {
			node = NULL;
			mq_redis_pause(r, RETRY_MS);
			mq_route_retry(r);
			if (mq_redis_flush(r) == -1)
				return false;
			continue;
		}
		if (node != q->node) {
			node = q->node;
			from = node->link.bytes;
			until = 0;
		}
		receive_replies(r, node);
		if (q->answered || q->node != node)
			continue;
		if (check_link(r, node) == -1)
			return false;
		if (!q->answered)
			wait_for_node(r, node, from, &until);
	}
	return q->answered;
}

redisReply *
mq_redis_reply(struct mq_redis *r)
{
	struct mq_request *q = r->order.first;
	redisReply *reply;

	if (q == NULL ||
	    (!q->answered && (mq_redis_flush(r) == -1 || !await_answer(r, q))))
		return NULL;
	r->order.first = q->in_order;
	/* After a reply, failovers may take their time anew, except those of a reader. */
	if (r->cluster != NULL &&
	    (!r->cluster->partial || !r->cluster->failover.failed))
		r->cluster->failover = (struct mq_failover){.until = 0};
	reply = q->reply;
	q->reply = NULL;
	mq_request_free(q);
	return reply;
}

redisReply *
mq_redis_answer(struct mq_redis *r, struct mq_command *c)
{
	struct mq_command copy = *c;
	struct mq_request *q = mq_request_new(&copy, NULL, NULL);

	q->borrowed = q->kept = q->loads = true;
	if (hand_over(r, q) == 0)
		return mq_redis_reply(r);
	mq_request_forget(q);
	return NULL;
}

/* --- the end ---------------------------------------------------------------------- */

void
mq_redis_close(struct mq_redis *r)
{
	struct mq_request *q;

	mq_route_close(r);
	while ((q = r->order.first) != NULL) {
		r->order.first = q->in_order;
		mq_request_free(q);
	}
	r->later = (struct mq_requests){0};
}

bool
mq_redis_lost(const struct mq_redis *r)
{
	return r->lost || (r->cluster == NULL && is_lost(&r->only.link));
}

struct mq_command
mq_redis_command(const struct mq_redis *r)
{
	return (struct mq_command){
	    .cluster = r->server->url.kind == MQ_URL_CLUSTER};
}
