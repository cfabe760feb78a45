#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "info.h"
#include "private.h"

static const char *const questions[] = {
    "INFO", "CONFIG GET dir", "CONFIG GET save", "CONFIG GET appendfsync"};

static long long
number(const char *text, const char *name)
{
	char value[32];

	return mq_info_field(text, name, value, sizeof(value)) ?
	    strtoll(value, NULL, 10) :
	    -1;
}

static bool
has_failed(const char *text, const char *name)
{
	char value[16];

	return mq_info_field(text, name, value, sizeof(value)) &&
	    strcmp(value, "ok") != 0;
}

static void
take_info(struct mq_report *r, const char *text)
{
	char version[64];

	if (mq_info_field(text, "valkey_version", version, sizeof(version)))
		snprintf(r->version, sizeof(r->version), "valkey %s", version);
	else if (mq_info_field(text, "redis_version", version, sizeof(version)))
		snprintf(r->version, sizeof(r->version), "redis %s", version);
	(void)mq_info_field(
	    text, "maxmemory_policy", r->policy, sizeof(r->policy));
	r->pid = number(text, "process_id");
	r->uptime_s = number(text, "uptime_in_seconds");
	r->memory = number(text, "used_memory");
	r->maxmemory = number(text, "maxmemory");
	r->aof = (int)number(text, "aof_enabled");
	if (r->aof == 1)
		r->aof_bytes = number(text, "aof_current_size");
	r->save_failed = has_failed(text, "rdb_last_bgsave_status");
	r->aof_failed = has_failed(text, "aof_last_write_status") ||
	    has_failed(text, "aof_last_bgrewrite_status");
}

static void
ask_question(void *arg, size_t i, struct mq_command *c)
{
	(void)arg;
	mq_command_plain(c, questions[i]);
}

/* What is refused stays unknown. */
static int
take_answer(void *arg, size_t i, redisReply *reply)
{
	struct mq_report *r = arg;
	const char *value;

	if (i == 0) {
		if (reply->type == REDIS_REPLY_STRING)
			take_info(r, reply->str);
		return 0;
	}
	if (!mq_reply_strings(reply) || reply->elements != 2)
		return 0;
	value = reply->element[1]->str;
	if (i == 1)
		snprintf(r->dir, sizeof(r->dir), "%s", value);
	else if (i == 2)
		r->snapshots = *value != '\0';
	else
		snprintf(r->fsync, sizeof(r->fsync), "%s", value);
	return 0;
}

int
mq_report_ask(struct mq_redis *redis, struct mq_report *r)
{
	const struct mq_server *server = redis->server;

	*r = (struct mq_report){.pid = -1,
	    .uptime_s = -1,
	    .memory = -1,
	    .maxmemory = -1,
	    .aof_bytes = -1,
	    .disk_free = -1,
	    .aof = -1,
	    .snapshots = -1};
	if (server->url.kind == MQ_URL_PRIVATE)
		mq_private_disk(server->socket, &r->disk_free, &r->disk_bytes);
	return mq_ask_each(redis, sizeof(questions) / sizeof(questions[0]),
	    ask_question, take_answer, r);
}
