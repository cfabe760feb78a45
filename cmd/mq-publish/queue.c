/*
 * What is done to the queue itself: it is made when there is none, its
 * attributes are changed, its clock goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "publish.h"
#include "shared/options.h"

/* As node has them. */
#define SECONDS_MAX 9999999
#define MAXSIZE_MIN 1024
#define MAXSIZE_MAX 65536

static void
set_seconds(const char *option, const char *arg, long *s)
{
	int64_t ms = mq_option_duration(option, arg);

	if (ms % 1000 != 0 || ms / 1000 > SECONDS_MAX)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not whole seconds, %d of them at most", option,
		    arg, SECONDS_MAX);
	*s = (long)(ms / 1000);
}

static void
set_maxsize(const char *option, const char *arg, long *n)
{
	*n = strcmp(arg, "-1") == 0 ?
	    -1 :
	    mq_option_number(option, arg, MAXSIZE_MIN, MAXSIZE_MAX);
}

void
publish_option_vt(struct options *o, const char *arg)
{
	set_seconds("--vt", arg, &o->attributes.vt_s);
}

void
publish_option_maxsize(struct options *o, const char *arg)
{
	set_maxsize("--maxsize", arg, &o->attributes.maxsize);
}

static void
set_one(struct mq_attributes *a, const char *arg)
{
	if (strncmp(arg, "vt=", 3) == 0)
		set_seconds("--set vt", arg + 3, &a->vt_s);
	else if (strncmp(arg, "delay=", 6) == 0)
		set_seconds("--set delay", arg + 6, &a->delay_s);
	else if (strncmp(arg, "maxsize=", 8) == 0)
		set_maxsize("--set maxsize", arg + 8, &a->maxsize);
	else
		mq_die(MQ_EXIT_USAGE,
		    "--set: %s: neither vt=, delay= nor maxsize=", arg);
}

void
publish_option_set(struct options *o, const char *arg)
{
	char *copy = mq_xstrdup(arg), *rest = copy, *one;

	o->set = true;
	while ((one = strsep(&rest, ",")) != NULL)
		set_one(&o->attributes, one);
	free(copy);
}

static void
read_clock(struct publisher *p, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		p->clock_us =
		    strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
		    strtoll(reply->element[1]->str, NULL, 10) -
		    mq_clock_steady_us();
}

static void
next_reply(struct publisher *p, redisReply **reply)
{
	*reply = mq_redis_reply(&p->redis);
	if (*reply == NULL)
		mq_die(p->redis.status, "%s", p->redis.error);
}

static void __attribute__((noreturn)) refused(struct publisher *p)
{
	mq_say("%s: %s", p->opt->queue, p->redis.error);
	publish_report(p, 0);
	exit(p->redis.status);
}

/* Scripts are not permitted; plain messages need none. */
static bool
without_scripts(const struct publisher *p)
{
	return p->redis.context->err == 0 &&
	    (strcasestr(p->redis.error, "'eval") != NULL ||
		strcasestr(p->redis.error, "`eval") != NULL);
}

/* Before anything is written.  An error may go away when the probe is repeated. */
static void
check_probe(struct publisher *p, struct mq_command *probe, bool special,
    redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		freeReplyObject(reply);
		reply = mq_redis_call(&p->redis, probe);
	}
	if (reply != NULL)
		freeReplyObject(reply);
	else if (special || !without_scripts(p))
		refused(p);
}

/* One round: who we are, what time it is, and whether the queue can be used. */
static void
ask(struct publisher *p)
{
	const struct options *o = p->opt;
	bool special =
	    o->special || o->tick >= 0 || o->when.kind != MQ_WHEN_NOW;
	struct mq_command name = {0}, time = {0}, probe = {0};
	redisReply *reply;

	publish_name(p, &name);
	mq_command_plain(&time, "TIME");
	p->layout->probe(&probe, NULL, o->queue, special);
	if (mq_redis_append(&p->redis, &name) == -1 ||
	    mq_redis_append(&p->redis, &time) == -1 ||
	    mq_redis_send(&p->redis, &probe) == -1)
		mq_die(p->redis.status, "%s", p->redis.error);
	next_reply(p, &reply);
	p->named = reply->type != REDIS_REPLY_ERROR;
	freeReplyObject(reply);
	next_reply(p, &reply);
	read_clock(p, reply);
	freeReplyObject(reply);
	next_reply(p, &reply);
	check_probe(p, &probe, special, reply);
	mq_command_free(&name);
	mq_command_free(&time);
	mq_command_free(&probe);
}

static void __attribute__((noreturn)) no_queue(struct publisher *p)
{
	mq_option_unknown(&p->redis, p->layout, p->opt->queue);
	exit(MQ_EXIT_NO);
}

void
publish_open(struct publisher *p)
{
	const struct options *o = p->opt;
	struct mq_command c = {0};
	redisReply *reply;
	bool yes;

	mq_id_random(&p->idgen, p->id, MQ_ID_LEN);
	p->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	ask(p);
	if (o->existing)
		p->layout->known(&c, o->queue);
	else
		p->layout->open(&c, o->queue, &o->attributes);
	reply = mq_redis_call(&p->redis, &c);
	if (reply == NULL)
		refused(p);
	yes = reply->integer != 0;
	freeReplyObject(reply);
	mq_command_free(&c);
	if (o->existing && !yes)
		no_queue(p);
	if (!o->existing && yes)
		mq_option_made(o->shared, &p->redis, o->queue);
}

/* What it says, an integer. */
static long long
call(struct publisher *p, struct mq_command *c)
{
	redisReply *reply = mq_redis_call(&p->redis, c);
	long long n;

	if (reply == NULL)
		mq_die(p->redis.status, "%s", p->redis.error);
	n = reply->integer;
	freeReplyObject(reply);
	mq_command_free(c);
	return n;
}

void
publish_tick(struct publisher *p)
{
	struct mq_command c = {0};
	long long now;

	p->layout->tick(&c, p->opt->queue, p->opt->tick);
	now = call(p, &c);
	if (now > p->opt->tick)
		mq_die(MQ_EXIT_NO, "%s: --tick %jd: it is at %lld already",
		    p->opt->queue, (intmax_t)p->opt->tick, now);
}

void
publish_set(struct publisher *p)
{
	struct mq_command c = {0};

	p->layout->set_attributes(&c, p->opt->queue, &p->opt->attributes);
	if (call(p, &c) == 0)
		no_queue(p);
}
