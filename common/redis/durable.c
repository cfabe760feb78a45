/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* INFO and TIME of a server, and when the writes that it has accepted are safe. */
#include "ask.h"

#include <sys/statvfs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "parts.h"

/* --- info ---------------------------------------------------------------- */

/* The value of a field, which ends with its line; NULL: there is no such field. */
static const char *
find_field(const char *text, const char *name)
{
	size_t n = strlen(name);

	while (*text != '\0') {
		if (strncmp(text, name, n) == 0 && text[n] == ':')
			return text + n + 1;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return NULL;
}

/* Copies the value of a field; false: there is no such field. */
static bool
info_field(const char *text, const char *name, char *value, size_t size)
{
	const char *at = find_field(text, name);

	if (at != NULL)
		snprintf(value, size, "%.*s", (int)strcspn(at, "\r\n"), at);
	return at != NULL;
}

static bool
field_is(const char *text, const char *name, const char *value)
{
	char is[16];

	return info_field(text, name, is, sizeof(is)) && strcmp(is, value) == 0;
}

static long long
number(const char *text, const char *name)
{
	const char *at = find_field(text, name);

	return at != NULL ? strtoll(at, NULL, 10) : -1;
}

void
mq_info_parse(struct mq_info *i, const char *text)
{
	char version[64], name[32], address[256], port[16], state[16];
	const char *line;
	size_t len;
	int n;

	*i = (struct mq_info){.disk_free = -1, .snapshots = -1};
	if (info_field(text, "valkey_version", version, sizeof(version)))
		snprintf(i->version, sizeof(i->version), "valkey %s", version);
	else if (info_field(text, "redis_version", version, sizeof(version)))
		snprintf(i->version, sizeof(i->version), "redis %s", version);
	(void)info_field(text, "run_id", i->run_id, sizeof(i->run_id));
	i->evicts = info_field(text, "maxmemory_policy", i->policy,
			sizeof(i->policy)) &&
	    strcmp(i->policy, "noeviction") != 0;
	i->pid = number(text, "process_id");
	i->uptime_s = number(text, "uptime_in_seconds");
	i->memory = number(text, "used_memory");
	i->maxmemory = number(text, "maxmemory");
	i->aof = (int)number(text, "aof_enabled");
	i->aof_bytes = i->aof == 1 ? number(text, "aof_current_size") : -1;
	i->aof_later = field_is(text, "aof_base_size", "0") &&
	    (field_is(text, "aof_rewrite_in_progress", "1") ||
		field_is(text, "aof_rewrite_scheduled", "1"));
	i->save_failed = field_is(text, "rdb_last_bgsave_status", "err");
	i->aof_failed = field_is(text, "aof_last_write_status", "err") ||
	    field_is(text, "aof_last_bgrewrite_status", "err");
	i->is_replica = field_is(text, "role", "slave");
	i->had_replica = field_is(text, "repl_backlog_active", "1");
	/* "slaveN:ip=ADDRESS,port=PORT,state=STATE,..." */
	for (n = 0;; n++) {
		snprintf(name, sizeof(name), "slave%d", n);
		line = find_field(text, name);
		if (line == NULL)
			return;
		if (sscanf(line,
			"ip=%255[^,\r\n],port=%15[^,\r\n],state=%15[^,\r\n]",
			address, port, state) != 3 ||
		    strcmp(state, "online") != 0)
			continue;
		len = strlen(i->online);
		snprintf(i->online + len, sizeof(i->online) - len, "%s %s\n",
		    address, port);
		i->replicas++;
	}
}

static const char *const questions[] = {
    "INFO", "CONFIG GET *appendfsync*", "CONFIG GET dir", "CONFIG GET save"};
#define QUESTIONS  4
#define OF_DURABLE 2 /* the first questions, all that mq_durable_find() needs */

/* The command goes with the next flush, which fails if the connection is lost. */
static void
append_line(struct mq_redis *r, const char *line, bool repeats)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, line);
	c.repeats = repeats;
	(void)mq_redis_append(r, &c);
	mq_command_free(&c);
}

/* With repeats, a busy server is asked again, maybe after commands that follow. */
static int
send_questions(struct mq_redis *r, int n, bool repeats)
{
	int i;

	for (i = 0; i < n; i++)
		append_line(r, questions[i], repeats);
	return mq_redis_flush(r);
}

static void
store_config(struct mq_info *info, int i, const redisReply *reply)
{
	if (i == 1 && reply->type == REDIS_REPLY_ERROR) {
		strlcpy(info->unread, reply->str, sizeof(info->unread));
	} else if (i == 1) {
		strlcpy(info->fsync, mq_reply_value(reply, "appendfsync"),
		    sizeof(info->fsync));
		info->lax =
		    strcmp(mq_reply_value(reply, "no-appendfsync-on-rewrite"),
			"yes") == 0;
	} else if (i == 2) {
		strlcpy(
		    info->dir, mq_reply_value(reply, "dir"), sizeof(info->dir));
	} else if (mq_reply_is(reply, "") && reply->elements == 2) {
		info->snapshots = *reply->element[1]->str != '\0';
	}
}

/* Returns 0, or -1 when INFO is refused or the connection lost.  Refused CONFIG is no
 * failure: rented servers often refuse it. */
static int
receive_info(struct mq_redis *r, int n, struct mq_info *info)
{
	redisReply *reply;
	int i, rv = 0;

	mq_info_parse(info, "");
	for (i = 0; i < n; i++) {
		reply = mq_redis_reply(r);
		if (reply == NULL)
			return -1;
		if (i > 0)
			store_config(info, i, reply);
		else if (mq_redis_refused(r, reply))
			rv = -1;
		else if (reply->type == REDIS_REPLY_STRING)
			mq_info_parse(info, reply->str);
		freeReplyObject(reply);
	}
	return rv;
}

int
mq_info_ask(struct mq_redis *r, struct mq_info *info)
{
	const struct mq_server *server = r->server;
	struct statvfs fs;

	if ((send_questions(r, QUESTIONS, true) == -1 ||
		receive_info(r, QUESTIONS, info) == -1) &&
	    mq_redis_lost(r))
		return -1;
	if (server->url.kind == MQ_URL_PRIVATE &&
	    statvfs(server->socket, &fs) == 0) {
		info->disk_free =
		    (long long)fs.f_bavail * (long long)fs.f_frsize;
		info->disk_bytes =
		    (long long)fs.f_blocks * (long long)fs.f_frsize;
	}
	return 0;
}

int
mq_info_ask_policy(struct mq_redis *r, struct mq_info *worst)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_info one;
	redisReply *reply;
	int n;

	mq_info_parse(worst, "");
	for (n = 0; mq_redis_visit(r, n); n++) {
		mq_command_plain(&c, "INFO memory");
		c.optional = c.repeats = true;
		(void)mq_redis_append(r, &c);
	}
	mq_command_free(&c);
	for (; n > 0 && (reply = mq_redis_reply(r)) != NULL; n--) {
		mq_info_parse(
		    &one, reply->type == REDIS_REPLY_STRING ? reply->str : "");
		if (worst->policy[0] == '\0' || one.evicts)
			*worst = one;
		freeReplyObject(reply);
	}
	return n == 0 ? 0 : -1;
}

/* --- durable ------------------------------------------------------------- */

#define SAFE_S	30  /* longest wait for the disk, and for the replicas */
#define LOOK_MS 100 /* pause before a server that is not safe is asked again */
#define LOOKS	(SAFE_S * 1000 / LOOK_MS)
#define TRIES	3 /* waits for replicas, if their number changes meanwhile */

/* Whether the server has this command, and the user the right to it. */
static bool
knows(struct mq_redis *r, const char *line)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, line);
	return mq_call_done(r, &c) == 0;
}

/* The server can promise nothing; the error says what to change. */
static int
refuse(struct mq_redis *r, const struct mq_info *info)
{
	if (info->evicts)
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "cannot be durable: maxmemory-policy is %s, so the "
		    "server may drop what it has accepted: set it to noeviction",
		    info->policy);
	if (info->aof != 1)
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "cannot be durable: it has no append-only file and no "
		    "replica: set appendonly to yes and appendfsync to always, "
		    "or connect a replica");
	if (info->unread[0] != '\0')
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "cannot be durable: it has no replica, and its "
		    "appendfsync cannot be read: %s",
		    info->unread);
	if (info->lax && strcmp(info->fsync, "always") == 0)
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "cannot be durable: no-appendfsync-on-rewrite is yes: "
		    "set it to no, or connect a replica");
	return mq_redis_fail(r, MQ_EXIT_CONFIG,
	    "cannot be durable: appendfsync is %s: set it to always, or "
	    "connect a replica%s",
	    info->fsync,
	    strcmp(info->fsync, "everysec") == 0 ?
		", or allow WAITAOF (Redis 7.2)" :
		"");
}

/* Sentinels and clusters: only a new connection finds the new master, where the marks say
 * what was accepted. */
static int
fail_demoted(struct mq_redis *r, const char *why)
{
	r->lost = r->server->url.kind == MQ_URL_SENTINEL || r->cluster != NULL;
	return mq_redis_fail(r, MQ_EXIT_AGAIN, "%s", why);
}

#define fail_yet(r, ...)                                                       \
	mq_redis_fail(r, MQ_EXIT_AGAIN, "not durable yet: " __VA_ARGS__)

static int
ask_info(struct mq_redis *r, struct mq_info *info)
{
	if (send_questions(r, OF_DURABLE, true) == 0 &&
	    receive_info(r, OF_DURABLE, info) == 0)
		return info->is_replica ? fail_demoted(r, "it is a replica") :
					  0;
	if (mq_redis_lost(r))
		return -1;
	if (r->status != MQ_EXIT_NOPERM)
		r->status = MQ_EXIT_CONFIG;
	strlcat(r->error, "; --durable needs +info", sizeof(r->error));
	return -1;
}

static bool
is_on_disk(const struct mq_durable *d, const struct mq_info *info)
{
	/* With appendfsync no, WAITAOF would wait for ever. */
	if (d->waitaof)
		return strcmp(info->fsync, "no") != 0;
	return info->aof == 1 && strcmp(info->fsync, "always") == 0 &&
	    !info->lax;
}

/*
 * Sets *why to the reason why WAIT for the connected replicas would not make writes safe
 * yet; NULL: it would.  With sentinels, any replica that has answered one lately may become
 * the master.  If such a replica is not connected, it connects soon, or has died and the
 * sentinels are about to notice, or it is the next master already.
 */
static int
find_lack(struct mq_redis *r, const struct mq_durable *d, const char **why)
{
	const struct mq_info *info = &d->info;
	struct mq_candidates candidates = {.server = r->server, .info = info};

	*why = NULL;
	if (r->server->url.kind != MQ_URL_SENTINEL) {
		/* After a failover, the old master may soon be back as the replica that
		 * a server needs that cannot rely on its disk. */
		if (!is_on_disk(d, info) && info->replicas == 0 &&
		    info->had_replica && !info->evicts)
			*why = "its replica is not connected";
		return 0;
	}
	if (mq_redis_ask_candidates(r, &candidates, false) == -1)
		return -1;
	/* Another sentinel may hear a silent replica, and make it the master. */
	if (candidates.silent > 0 && candidates.missing == 0 &&
	    !candidates.new_master)
		(void)mq_redis_ask_candidates(r, &candidates, true);
	if (candidates.new_master)
		return fail_demoted(
		    r, "not durable yet: there is another master");
	if (candidates.missing > 0)
		*why =
		    "a replica that could become the master is not connected";
	else if (candidates.connected == 0)
		*why = "no replica that answers the sentinels is connected";
	return 0;
}

static int
await_promise(struct mq_redis *r, struct mq_durable *d)
{
	const char *why;
	int i;

	for (i = 0; i <= LOOKS; i++) {
		if (ask_info(r, &d->info) == -1)
			return -1;
		/* An incomplete append-only file would not be loaded.  WAITAOF waits for
		 * its end by itself. */
		if (d->info.aof_later && !d->waitaof)
			why = "it still writes its first append-only file";
		else if (find_lack(r, d, &why) == -1)
			return -1;
		if (why == NULL)
			return 0;
		(void)r->wait(r->wait_arg, -1, LOOK_MS);
	}
	return fail_yet(r, "%s", why);
}

int
mq_durable_find(struct mq_redis *r, struct mq_durable *d)
{
	const struct mq_info *info = &d->info;
	bool wait = knows(r, "WAIT 0 1");

	if (mq_redis_lost(r))
		return -1;
	*d = (struct mq_durable){.waitaof = knows(r, "WAITAOF 1 0 1")};
	if (mq_redis_lost(r) || await_promise(r, d) == -1)
		return -1;
	d->disk = is_on_disk(d, info);
	d->waitaof &= d->disk;
	if ((!d->disk && info->replicas == 0) || info->evicts)
		return refuse(r, info);
	if (info->replicas > 0 && !wait)
		return mq_redis_fail(r, MQ_EXIT_CONFIG,
		    "cannot be durable: it has replicas, but does not allow "
		    "WAIT");
	return 0;
}

/* The integer in the next reply, or the first of an array; -1: there is none. */
static long long
receive_number(struct mq_redis *r)
{
	redisReply *reply = mq_redis_reply(r), *one = reply;
	long long n = -1;

	if (reply == NULL)
		return -1;
	(void)mq_redis_refused(r, reply);
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
		one = reply->element[0];
	if (one->type == REDIS_REPLY_INTEGER)
		n = one->integer;
	freeReplyObject(reply);
	return n;
}

/* A server that was restarted, replaced, or set up differently may have lost writes that
 * were not on its disk.  Returns 0, -1, or 1: other replicas are connected. */
static int
check_same(struct mq_redis *r, const struct mq_durable *d)
{
	struct mq_info info;

	if (receive_info(r, OF_DURABLE, &info) == -1)
		return -1;
	if (info.is_replica)
		return fail_demoted(
		    r, "not durable yet: it has become a replica");
	if (d->disk && !is_on_disk(d, &info))
		return fail_yet(r, "its appendfsync was changed");
	/* Without WAITAOF and replicas, each write was safe when it was accepted. */
	if ((d->waitaof || d->info.replicas > 0) &&
	    strcmp(info.run_id, d->info.run_id) != 0)
		return r->cluster != NULL ?
		    fail_demoted(r, "not durable yet: its slot has moved") :
		    fail_yet(r, "it is not the same as before");
	return r->server->url.kind == MQ_URL_SENTINEL &&
	    strcmp(info.online, d->info.online) != 0;
}

/* Returns 0, -1, or 1: other replicas are connected. */
static int
wait_once(
    struct mq_redis *r, const struct mq_durable *d, struct mq_command *write)
{
	int replicas = d->info.replicas;
	char line[64];
	long long n;

	/* The write fails if the slot has moved. */
	if (write != NULL &&
	    (mq_redis_send(r, write) == -1 || receive_number(r) == -1))
		return -1;
	snprintf(line, sizeof(line), "WAITAOF 1 0 %d000", SAFE_S);
	if (d->waitaof)
		append_line(r, line, false);
	snprintf(line, sizeof(line), "WAIT %d %d000", replicas, SAFE_S);
	if (replicas > 0)
		append_line(r, line, false);
	if (send_questions(r, OF_DURABLE, false) == -1)
		return -1;
	if (d->waitaof && (n = receive_number(r)) <= 0)
		return n != 0 ?
		    -1 :
		    fail_yet(r, "not on disk after %d seconds", SAFE_S);
	if (replicas > 0 && (n = receive_number(r)) < replicas)
		return n < 0 ? -1 :
			       fail_yet(r, "only on %lld of %d replica%s", n,
				   replicas, replicas == 1 ? "" : "s");
	return check_same(r, d);
}

int
mq_durable_wait(
    struct mq_redis *r, const struct mq_durable *d, struct mq_command *write)
{
	struct mq_durable now = *d;
	int i, rv = 1;

	if (r->server->url.kind != MQ_URL_SENTINEL)
		return wait_once(r, d, write);
	for (i = 0; i < TRIES && rv == 1; i++) {
		/* A sentinel may have found other replicas by now. */
		if (await_promise(r, &now) == -1)
			return -1;
		strlcpy(
		    now.info.run_id, d->info.run_id, sizeof(now.info.run_id));
		rv = wait_once(r, &now, write);
	}
	return rv == 1 ? fail_yet(r, "its replicas keep changing") : rv;
}

int
mq_server_time(struct mq_redis *r, int64_t *ms)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *time;
	int rv;

	mq_command_plain(&c, "TIME");
	time = mq_call(r, &c, -1);
	if (time == NULL)
		return -1;
	rv = mq_reply_time(time, ms);
	freeReplyObject(time);
	return rv == 0 ? 0 : mq_nonsense(r);
}
