/*
 * --durable: a message that was accepted is safe when it is on the disk of the
 * server, if that keeps a file that can be relied upon, and on all replicas
 * that it had when we connected.  Where there is neither, nothing is published.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "publish.h"
#include "redis/info.h"

/* How long the disk may take, and the replicas once more. */
#define SAFE_S 30
/* While the server writes its first append-only file, we look this often. */
#define LOOK_MS 100

/* A command none of whose words is empty. */
static void
build(struct mq_command *c, const char *line)
{
	char words[64], *rest = words, *word;

	snprintf(words, sizeof(words), "%s", line);
	mq_command_plain(c, strsep(&rest, " "));
	while ((word = strsep(&rest, " ")) != NULL)
		mq_command_str(c, word);
}

/* It goes with the next flush. */
static int
add(struct publisher *p, const char *line)
{
	struct mq_command c = {0};
	int rv;

	build(&c, line);
	rv = mq_redis_append(&p->redis, &c);
	mq_command_free(&c);
	return rv;
}

/* The next reply; NULL when there is none, or it is an error. */
static redisReply *
take(struct publisher *p)
{
	redisReply *reply = publish_answer(p, PATIENCE_MS);

	if (reply == NULL || !mq_redis_refused(&p->redis, reply))
		return reply;
	freeReplyObject(reply);
	return NULL;
}

/* What take_info() waits for. */
static int
add_questions(struct publisher *p)
{
	return add(p, "INFO") == -1 ? -1 : add(p, "CONFIG GET *appendfsync*");
}

/*
 * Returns 0, or -1 when INFO is refused or the connection lost.  That CONFIG is
 * refused is usual at places that rent servers out; *why is the error then, for
 * the caller to free.
 */
static int
take_info(struct publisher *p, struct mq_info *info, char **why)
{
	redisReply *text = take(p), *config;

	*info = (struct mq_info){.replicas = 0};
	*why = NULL;
	if (text == NULL)
		return -1;
	if (text->type == REDIS_REPLY_STRING)
		mq_info_take(info, text->str);
	freeReplyObject(text);
	config = publish_answer(p, PATIENCE_MS);
	if (config == NULL)
		return -1;
	mq_info_take_config(info, config);
	if (config->type == REDIS_REPLY_ERROR)
		*why = mq_xstrdup(config->str);
	freeReplyObject(config);
	return 0;
}

/* Whether the server knows this command, and we may use it. */
static bool
knows(struct publisher *p, const char *line)
{
	struct mq_command c = {0};
	redisReply *reply;

	build(&c, line);
	reply = mq_redis_call(&p->redis, &c);
	mq_command_free(&c);
	if (mq_redis_lost(&p->redis))
		mq_die(p->redis.status, "%s", p->redis.error);
	if (reply == NULL)
		return false;
	freeReplyObject(reply);
	return true;
}

/* The server can promise nothing; says what to change. */
static void __attribute__((noreturn))
refuse(struct publisher *p, const struct mq_info *info, const char *why)
{
	const char *name = p->redis.server->name;

	if (mq_info_evicts(info))
		mq_die(MQ_EXIT_CONFIG,
		    "%s: cannot be durable: maxmemory-policy is %s, so the "
		    "server may drop what it has accepted: set it to noeviction",
		    name, info->policy);
	if (!info->aof)
		mq_die(MQ_EXIT_CONFIG,
		    "%s: cannot be durable: it has no append-only file and no "
		    "replica: set appendonly to yes and appendfsync to always, "
		    "or connect a replica",
		    name);
	if (why != NULL)
		mq_die(MQ_EXIT_CONFIG,
		    "%s: cannot be durable: it has no replica, and what its "
		    "appendfsync is nobody may know: %s",
		    name, why);
	if (info->lax && strcmp(info->fsync, "always") == 0)
		mq_die(MQ_EXIT_CONFIG,
		    "%s: cannot be durable: no-appendfsync-on-rewrite is yes: "
		    "set it to no, or connect a replica",
		    name);
	mq_die(MQ_EXIT_CONFIG,
	    "%s: cannot be durable: appendfsync is %s: set it to always, or "
	    "connect a replica%s",
	    name, info->fsync,
	    strcmp(info->fsync, "everysec") == 0 ?
		", or let WAITAOF be used (Redis 7.2)" :
		"");
}

static void __attribute__((noreturn)) no_answer(struct publisher *p)
{
	if (mq_redis_lost(&p->redis))
		mq_die(p->redis.status, "%s", p->redis.error);
	mq_die(
	    p->redis.status == MQ_EXIT_NOPERM ? MQ_EXIT_NOPERM : MQ_EXIT_CONFIG,
	    "%s; --durable needs +info", p->redis.error);
}

/*
 * An append-only file that is only just being written does not count before
 * that is done; but for WAITAOF, which then waits.
 */
static void
look(struct publisher *p, struct mq_info *info, char **why)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int i;

	for (i = 0; i <= SAFE_S * 1000 / LOOK_MS; i++) {
		if (add_questions(p) == -1 || mq_redis_flush(&p->redis) == -1 ||
		    take_info(p, info, why) == -1)
			no_answer(p);
		if (info->is_replica)
			mq_die(MQ_EXIT_AGAIN, "%s: it is a replica",
			    p->redis.server->name);
		if (!info->aof_later || p->durable.waitaof)
			return;
		free(*why);
		(void)publish_wait(p, -1, &pause);
	}
	mq_die(MQ_EXIT_AGAIN,
	    "%s: not durable yet: it still writes its first append-only file",
	    p->redis.server->name);
}

static bool
is_on_disk(const struct publisher *p, const struct mq_info *info)
{
	/* WAITAOF would wait for ever. */
	if (p->durable.waitaof)
		return strcmp(info->fsync, "no") != 0;
	return info->aof && strcmp(info->fsync, "always") == 0 && !info->lax;
}

static void
set_where(struct durable *d)
{
	char replicas[24] = "";

	if (d->replicas > 0)
		snprintf(replicas, sizeof(replicas), "%d replica%s",
		    d->replicas, d->replicas == 1 ? "" : "s");
	snprintf(d->where, sizeof(d->where), " on %s%s%s",
	    d->disk ? "disk" : "", d->disk && d->replicas > 0 ? " and " : "",
	    replicas);
}

void
publish_durable_open(struct publisher *p)
{
	struct durable *d = &p->durable;
	struct mq_info info;
	bool wait;
	char *why;

	wait = knows(p, "WAIT 0 1");
	d->waitaof = knows(p, "WAITAOF 1 0 1");
	look(p, &info, &why);
	d->disk = is_on_disk(p, &info);
	d->waitaof &= d->disk;
	d->replicas = info.replicas;
	set_where(d);
	strlcpy(d->run_id, info.run_id, sizeof(d->run_id));
	if ((!d->disk && d->replicas == 0) || mq_info_evicts(&info))
		refuse(p, &info, why);
	free(why);
	if (d->replicas > 0 && !wait)
		mq_die(MQ_EXIT_CONFIG,
		    "%s: cannot be durable: it has replicas, and does not let "
		    "WAIT be used",
		    p->redis.server->name);
}

/*
 * WAIT and WAITAOF are about the last write of their own connection.  If that
 * may be older than what we answer for, since the last one was a duplicate or
 * the connection is new, another write goes first.
 */
static int
add_waits(struct publisher *p)
{
	struct durable *d = &p->durable;
	struct mq_command write = {0};
	char line[64];
	int rv = 0;

	if (!d->ours) {
		p->layout->count_published(&write, p->opt->queue, 0);
		rv = mq_redis_append(&p->redis, &write);
		mq_command_free(&write);
	}
	if (d->waitaof && rv == 0) {
		snprintf(line, sizeof(line), "WAITAOF 1 0 %d000", SAFE_S);
		rv = add(p, line);
	}
	if (d->replicas > 0 && rv == 0) {
		snprintf(
		    line, sizeof(line), "WAIT %d %d000", d->replicas, SAFE_S);
		rv = add(p, line);
	}
	if (rv == 0)
		rv = add_questions(p);
	return rv == 0 ? mq_redis_flush(&p->redis) : -1;
}

/* An integer, or the first one of several; -1: there is none. */
static long long
take_number(struct publisher *p)
{
	redisReply *reply = take(p), *one = reply;
	long long n = -1;

	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
		one = reply->element[0];
	if (one->type == REDIS_REPLY_INTEGER)
		n = one->integer;
	freeReplyObject(reply);
	return n;
}

/* Why they are not known to be safe, although the server answers. */
static bool __attribute__((format(printf, 2, 3)))
not_yet(struct publisher *p, const char *fmt, ...)
{
	struct mq_redis *r = &p->redis;
	char why[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(r->error, sizeof(r->error), "%s: not durable yet: %s",
	    r->server->name, why);
	return false;
}

/* A server that is another one now, or is set up in another way, may have
 * forgotten what it did not have on its disk. */
static bool
is_the_same(struct publisher *p)
{
	struct durable *d = &p->durable;
	struct mq_info info;
	char *why;

	if (take_info(p, &info, &why) == -1)
		return false;
	free(why);
	if (info.is_replica)
		return not_yet(p, "it has become a replica");
	if (d->disk && !is_on_disk(p, &info))
		return not_yet(p, "its appendfsync was changed");
	/* Else each message was safe when it was accepted. */
	if ((d->waitaof || d->replicas > 0) &&
	    strcmp(info.run_id, d->run_id) != 0)
		return not_yet(p, "it is not the same as before");
	return true;
}

static bool
waits_end_well(struct publisher *p)
{
	struct durable *d = &p->durable;
	long long n;

	if (!d->ours && take_number(p) == -1)
		return false;
	if (d->waitaof) {
		n = take_number(p);
		if (n == 0)
			return not_yet(
			    p, "not on disk after %d seconds", SAFE_S);
		if (n == -1)
			return false;
	}
	if (d->replicas > 0) {
		n = take_number(p);
		if (n == -1)
			return false;
		if (n < d->replicas)
			return not_yet(p, "only on %lld of %d replica%s", n,
			    d->replicas, d->replicas == 1 ? "" : "s");
	}
	return is_the_same(p);
}

bool
publish_durable(struct publisher *p)
{
	struct durable *d = &p->durable;

	if (!d->unsure)
		return true;
	if (add_waits(p) == -1 || !waits_end_well(p)) {
		p->redis.status = MQ_EXIT_AGAIN;
		return false;
	}
	d->safe = p->accepted;
	d->unsure = false;
	if (d->held.len > 0)
		(void)fwrite(d->held.data, 1, d->held.len, stdout);
	mq_buf_clear(&d->held);
	return true;
}
