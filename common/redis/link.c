/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "link.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/sds.h>

#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* Most bytes in hiredis's buffer, which is moved as a whole after each write(2). */
#define ROOM ((size_t)128 * 1024)
/* Most elements of the first reply: more than any server sends. */
#define ELEMENTS_MAX 65536

/* --- the end --------------------------------------------------------------------- */

void
mq_link_lose(struct mq_link *l, int status, const char *why)
{
	l->status = status;
	strlcpy(l->why, why, sizeof(l->why));
	l->early = false;
	l->state = MQ_LINK_LOST;
}

/* Notes why hiredis has just failed; errno is that of the failure. */
static void
explain(struct mq_link *l)
{
	const redisContext *c = l->context;
	bool broken = c != NULL && c->err == REDIS_ERR_IO;
	/* hiredis reports a lack of descriptors as REDIS_ERR_OTHER, which is also
	 * getaddrinfo(3); but that cannot fail for an address. */
	bool lacks = c == NULL || c->err == REDIS_ERR_OOM ||
	    ((broken || c->err == REDIS_ERR_OTHER) &&
		(errno == EMFILE || errno == ENFILE || errno == ENOMEM));
	char why[MQ_TLS_WHY];

	l->early = !l->heard && c != NULL &&
	    (c->err == REDIS_ERR_EOF ||
		(broken && (errno == ECONNRESET || errno == EPIPE)));
	if (l->status != 0)
		return;
	if (c != NULL && c->err == REDIS_ERR_OOM && errno == EMSGSIZE) {
		l->status = MQ_EXIT_UNAVAILABLE;
		strlcpy(l->why, "unexpected reply", sizeof(l->why));
		return;
	}
	l->status = mq_tls_failure(l->tls, l->early, why);
	if (l->status == 0)
		l->status = lacks ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE;
	else
		c = NULL;
	strlcpy(l->why,
	    c == NULL && l->context == NULL	 ? "out of memory" :
		c == NULL			 ? why :
		lacks && c->err != REDIS_ERR_OOM ? strerror(errno) :
						   c->errstr,
	    sizeof(l->why));
}

/* Loses the link to a server that has said it is of no use. */
static void
give_up(struct mq_link *l, const char *why)
{
	l->unfit = true;
	mq_link_lose(l, mq_error_status(why), why);
}

static void
fail(struct mq_link *l)
{
	explain(l);
	l->state = MQ_LINK_LOST;
}

/* --- greeting -------------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* A hostile first reply could announce a billion elements, whose memory takes seconds to
 * free.  explain() recognises EMSGSIZE. */
static void *
create_array(const redisReadTask *task, array_size n)
{
	const redisReplyObjectFunctions *usual = task->privdata;

	if (n <= ELEMENTS_MAX)
		return usual->createArray(task, n);
	errno = EMSGSIZE;
	return NULL;
}

static redisReplyObjectFunctions bounded;

/* Bounds the elements of replies until unbound(). */
static void
bound(redisReader *reader)
{
	bounded = *reader->fn;
	bounded.createArray = create_array;
	reader->privdata = reader->fn;
	reader->fn = &bounded;
}

static void
unbound(redisReader *reader)
{
	if (reader->fn != &bounded)
		return;
	reader->fn = reader->privdata;
	reader->privdata = NULL;
}

static void
put(struct mq_link *l, struct mq_command *c)
{
	size_t n;
	const char *p = mq_command_wire(c, &n);

	if (redisAppendFormattedCommand(l->context, p, n) != REDIS_OK)
		fail(l);
}

static void
say_hello(struct mq_link *l)
{
	struct mq_command c = {0};

	l->state = l->says_hello ? MQ_LINK_HELLO : MQ_LINK_OPEN;
	if (!l->says_hello)
		return;
	mq_command_plain(&c, "HELLO");
	put(l, &c);
	mq_command_free(&c);
}

static void
begin_greeting(struct mq_link *l)
{
	struct mq_command c = {0};

	l->state = MQ_LINK_AUTH;
	for (; mq_redis_greeting(l->server, l->greetings, &c); l->greetings++)
		put(l, &c);
	mq_command_free(&c);
	if (l->greetings == 0)
		say_hello(l);
}

/* Gets the reply to AUTH, SELECT or HELLO. */
static void
receive_greeting(struct mq_link *l, const redisReply *reply)
{
	const char *why;

	l->heard = true;
	l->activity++;
	if (l->state == MQ_LINK_HELLO) {
		unbound(l->context->reader);
		why = mq_reply_unfit(reply, l->server);
		l->state = MQ_LINK_OPEN;
		if (why != NULL)
			give_up(l, why);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		give_up(l, reply->str);
	} else if (--l->greetings == 0) {
		say_hello(l);
	}
}

/* Goes on with TCP, then with TLS if the URL has that, then with the greeting. */
static void
go_on(struct mq_link *l)
{
	const struct mq_url *u = &l->server->url;
	redisContext *c = l->context;
	char why[MQ_TLS_WHY];
	int error = 0, status = 0;
	socklen_t n = sizeof(error);

	if (l->state == MQ_LINK_TCP) {
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
			error = errno;
		if (error != 0) {
			mq_link_lose(l, MQ_EXIT_UNAVAILABLE, strerror(error));
			return;
		}
		if (l->host != NULL)
			redisEnableKeepAlive(c);
	}
	if (u->tls)
		status = mq_tls_start(&l->tls, c, u, l->host, why);
	if (status > 0)
		mq_link_lose(l, status, why);
	else if (status == -1)
		l->state = MQ_LINK_TLS;
	else
		begin_greeting(l);
}

void
mq_link_open(struct mq_link *l, const struct mq_server *server,
    const char *host, const char *address, int port, bool hello)
{
	redisContext *c = host == NULL ?
	    redisConnectUnixNonBlock(server->socket) :
	    redisConnectNonBlock(address, port);

	*l = (struct mq_link){.state = MQ_LINK_TCP,
	    .server = server,
	    .context = c,
	    .host = host,
	    .says_hello = hello};
	if (c == NULL || c->err != 0) {
		fail(l);
		return;
	}
	/* hiredis sets no close-on-exec flag. */
	fcntl(c->fd, F_SETFD, FD_CLOEXEC);
	bound(c->reader);
}

void
mq_link_close(struct mq_link *l)
{
	if (l->context != NULL)
		redisFree(l->context);
	l->context = NULL;
	l->tls = NULL;
	l->state = MQ_LINK_CLOSED;
}

/* --- moving bytes ------------------------------------------------------------------ */

bool
mq_link_unwritten(const struct mq_link *l)
{
	return l->state != MQ_LINK_LOST && l->context != NULL &&
	    !l->send_failed && !l->eof && sdslen(l->context->obuf) > 0;
}

short
mq_link_wants(const struct mq_link *l)
{
	if (l->state == MQ_LINK_TCP)
		return POLLOUT;
	if (l->state == MQ_LINK_TLS)
		return mq_tls_wants_room(l->tls) ? POLLOUT : POLLIN;
	return mq_link_unwritten(l) ? POLLIN | POLLOUT : POLLIN;
}

/* After a failure the link stays, since the server's last words may be unread. */
static void
write_out(struct mq_link *l)
{
	size_t n = sdslen(l->context->obuf);
	int done;

	if (redisBufferWrite(l->context, &done) == REDIS_OK) {
		l->activity += sdslen(l->context->obuf) < n;
		return;
	}
	explain(l);
	l->context->err = 0;
	l->send_failed = true;
}

#define LINE_BYTES 65536 /* longest line of a server: real ones have hundreds */
#define SIGN	   4096	 /* bytes received that count as activity */

/* If the reply is incomplete, pos is at the beginning of a line, or behind its type. */
static bool
is_endless(const redisReader *reader)
{
	return reader->len - reader->pos > LINE_BYTES &&
	    memchr(reader->buf + reader->pos, '\r', LINE_BYTES) == NULL;
}

static void
read_in(struct mq_link *l)
{
	redisReader *reader = l->context->reader;
	size_t n = reader->len;
	void *reply = NULL;

	if (redisBufferRead(l->context) != REDIS_OK) {
		explain(l);
		l->eof = true;
	}
	/* hiredis may have dropped parsed bytes. */
	n = reader->len > n ? reader->len - n : 0;
	l->activity += l->bytes / SIGN != (l->bytes + n) / SIGN;
	l->bytes += n;
	if (is_endless(reader))
		mq_link_lose(l, MQ_EXIT_UNAVAILABLE, MQ_REPLY_ENDLESS);
	while (l->state == MQ_LINK_AUTH || l->state == MQ_LINK_HELLO) {
		if (redisGetReplyFromReader(l->context, &reply) != REDIS_OK) {
			fail(l);
		} else if (reply != NULL) {
			mq_reply_strip_script(reply);
			receive_greeting(l, reply);
			freeReplyObject(reply);
		} else if (l->eof) {
			l->state = MQ_LINK_LOST;
		} else {
			return;
		}
	}
}

static void feed(struct mq_link *);

void
mq_link_move(struct mq_link *l, short revents)
{
	if (l->state == MQ_LINK_TCP || l->state == MQ_LINK_TLS) {
		go_on(l);
		return;
	}
	if ((revents & POLLOUT) != 0 && mq_link_unwritten(l))
		write_out(l);
	if ((revents & ~POLLOUT) != 0 && l->context != NULL && !l->eof)
		read_in(l);
	if (l->backlog.first != NULL)
		feed(l);
}

/* --- requests --------------------------------------------------------------------- */

static void
pass_reply(const struct mq_asker *asker, redisReply *reply)
{
	if (asker->raw != NULL)
		asker->raw(asker->arg, reply);
}

struct mq_request *
mq_request_new(struct mq_command *c, mq_reply_fn *fn, void *arg)
{
	struct mq_request *q = mq_xcalloc(1, sizeof(*q));

	q->command = *c;
	q->optional = c->optional;
	q->slot = c->slot;
	q->take = pass_reply;
	q->asker.raw = fn;
	q->asker.arg = arg;
	*c = (struct mq_command){.cluster = c->cluster};
	return q;
}

struct mq_request *
mq_request_copy(const struct mq_command *c)
{
	struct mq_command copy = *c;

	copy.wire = (struct mq_buf){0};
	mq_buf_add(&copy.wire, c->wire.data, c->wire.len);
	return mq_request_new(&copy, NULL, NULL);
}

void
mq_request_forget(struct mq_request *q)
{
	if (q->borrowed)
		q->command.wire = (struct mq_buf){0};
	mq_command_free(&q->command);
}

void
mq_request_free(struct mq_request *q)
{
	freeReplyObject(q->reply);
	mq_request_forget(q);
	free(q);
}

/* --- commands and replies ------------------------------------------------------------ */

void
mq_requests_add(struct mq_requests *list, struct mq_request *q)
{
	q->next = NULL;
	if (list->first == NULL)
		list->first = q;
	else
		list->last->next = q;
	list->last = q;
}

struct mq_request *
mq_requests_take(struct mq_requests *list)
{
	struct mq_request *q = list->first;

	if (q != NULL)
		list->first = q->next;
	return q;
}

/* Gives hiredis as many of n bytes as there is room for, and returns their number. */
static size_t
put_bytes(struct mq_link *l, const char *p, size_t n)
{
	size_t there = sdslen(l->context->obuf);

	if (l->send_failed || l->eof)
		return n;
	if (l->state < MQ_LINK_HELLO || l->state == MQ_LINK_LOST ||
	    there >= ROOM)
		return 0;
	if (n > ROOM - there)
		n = ROOM - there;
	if (redisAppendFormattedCommand(l->context, p, n) != REDIS_OK)
		fail(l);
	return n;
}

static void
feed(struct mq_link *l)
{
	struct mq_request *q;
	const char *wire;
	size_t n;

	while (l->state != MQ_LINK_LOST && (q = l->backlog.first) != NULL) {
		wire = mq_command_wire(&q->command, &n);
		q->sent += put_bytes(l, wire + q->sent, n - q->sent);
		if (q->sent < n)
			return;
		mq_requests_add(&l->sent, mq_requests_take(&l->backlog));
		if (!q->kept)
			mq_request_forget(q);
	}
}

void
mq_link_send(struct mq_link *l, struct mq_request *q)
{
	q->sent = 0;
	mq_requests_add(&l->backlog, q);
	if (l->context != NULL)
		feed(l);
}

struct mq_request *
mq_link_orphan(struct mq_link *l)
{
	struct mq_request *q = mq_requests_take(&l->sent);

	return q != NULL ? q : mq_requests_take(&l->backlog);
}

static bool
is_message(const struct mq_link *l, const redisReply *reply)
{
	return l->listens && mq_reply_is(reply, "$$* *") &&
	    reply->elements == 3 &&
	    strcmp(reply->element[0]->str, "message") == 0;
}

/* The command of a reply: even one sent in part, which a server may refuse. */
static struct mq_request *
answered(struct mq_link *l)
{
	struct mq_request *q = mq_requests_take(&l->sent);

	return q == NULL && l->backlog.first != NULL &&
		l->backlog.first->sent > 0 ?
	    mq_requests_take(&l->backlog) :
	    q;
}

redisReply *
mq_link_next(struct mq_link *l, struct mq_request **q)
{
	const char *why;
	void *reply = NULL;

	*q = NULL;
	if (l->state != MQ_LINK_OPEN)
		return NULL;
	if (redisGetReplyFromReader(l->context, &reply) != REDIS_OK)
		fail(l);
	else if (reply == NULL && l->eof)
		l->state = MQ_LINK_LOST;
	if (reply == NULL)
		return NULL;
	unbound(l->context->reader);
	mq_reply_strip_script(reply);
	l->heard = true;
	l->activity++;
	why = mq_reply_last(reply, l->server);
	if (why == NULL && (is_message(l, reply) || (*q = answered(l)) != NULL))
		return reply;
	give_up(l, why != NULL ? why : "unexpected reply");
	freeReplyObject(reply);
	return NULL;
}
