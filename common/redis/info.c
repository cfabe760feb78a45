#include "ask.h"

#include <sys/statvfs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* The value of a field, to the end of its line; or NULL. */
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

/* Copies one of several values in a line: "NAME=VALUE,..."; "" when there is none. */
static void
copy_part(char *to, size_t size, const char *line, const char *name)
{
	const char *at = strstr(line, name);

	to[0] = '\0';
	if (at != NULL && at < line + strcspn(line, "\r\n")) {
		at += strlen(name);
		snprintf(to, size, "%.*s", (int)strcspn(at, ",\r\n"), at);
	}
}

/* Copies the value of a field of such a text; false: there is none. */
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

void
mq_info_take(struct mq_info *i, const char *text)
{
	char name[32], address[256], port[16], state[16];
	const char *line;
	size_t len;
	int n;

	(void)info_field(text, "run_id", i->run_id, sizeof(i->run_id));
	(void)info_field(
	    text, "maxmemory_policy", i->policy, sizeof(i->policy));
	i->is_replica = field_is(text, "role", "slave");
	i->had_replica = field_is(text, "repl_backlog_active", "1");
	i->aof = field_is(text, "aof_enabled", "1");
	i->aof_later = field_is(text, "aof_base_size", "0") &&
	    (field_is(text, "aof_rewrite_in_progress", "1") ||
		field_is(text, "aof_rewrite_scheduled", "1"));
	i->replicas = 0;
	i->online[0] = '\0';
	for (n = 0;; n++) {
		snprintf(name, sizeof(name), "slave%d", n);
		line = find_field(text, name);
		if (line == NULL)
			return;
		copy_part(state, sizeof(state), line, "state=");
		if (strcmp(state, "online") != 0)
			continue;
		copy_part(address, sizeof(address), line, "ip=");
		copy_part(port, sizeof(port), line, "port=");
		len = strlen(i->online);
		snprintf(i->online + len, sizeof(i->online) - len, "%s %s\n",
		    address, port);
		i->replicas++;
	}
}

bool
mq_info_evicts(const struct mq_info *i)
{
	return i->policy[0] != '\0' && strcmp(i->policy, "noeviction") != 0;
}

struct policies {
	struct mq_redis *r;
	struct mq_info *worst;
};

static void
ask_node(void *arg, size_t i, struct mq_command *c)
{
	const struct policies *p = arg;

	(void)mq_redis_visit(p->r, (int)i);
	mq_command_plain(c, "INFO memory");
	c->optional = true;
}

static int
take_node(void *arg, size_t i, redisReply *reply)
{
	const struct policies *p = arg;
	struct mq_info one = {.replicas = 0};

	(void)i;
	if (reply->type != REDIS_REPLY_STRING)
		return 0;
	mq_info_take(&one, reply->str);
	if (p->worst->policy[0] == '\0' || mq_info_evicts(&one))
		*p->worst = one;
	return 0;
}

int
mq_info_ask_policy(struct mq_redis *r, struct mq_info *i)
{
	struct policies p = {r, i};
	int rv, n = 0;

	*i = (struct mq_info){.replicas = 0};
	while (mq_redis_visit(r, n))
		n++;
	rv = mq_ask_each(r, (size_t)n, ask_node, take_node, &p);
	(void)mq_redis_visit(r, n);
	return rv;
}

/* --- report --------------------------------------------------------------- */

static const char *const questions[] = {
    "INFO", "CONFIG GET dir", "CONFIG GET save", "CONFIG GET appendfsync"};

static long long
number(const char *text, const char *name)
{
	const char *at = find_field(text, name);

	return at != NULL ? strtoll(at, NULL, 10) : -1;
}

static bool
has_failed(const char *text, const char *name)
{
	return find_field(text, name) != NULL && !field_is(text, name, "ok");
}

static void
take_info(struct mq_report *r, const char *text)
{
	char version[64];

	if (info_field(text, "valkey_version", version, sizeof(version)))
		snprintf(r->version, sizeof(r->version), "valkey %s", version);
	else if (info_field(text, "redis_version", version, sizeof(version)))
		snprintf(r->version, sizeof(r->version), "redis %s", version);
	(void)info_field(
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
	if (!mq_reply_is(reply, "") || reply->elements != 2)
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
	struct statvfs fs;

	*r = (struct mq_report){.pid = -1,
	    .uptime_s = -1,
	    .memory = -1,
	    .maxmemory = -1,
	    .aof_bytes = -1,
	    .disk_free = -1,
	    .aof = -1,
	    .snapshots = -1};
	if (server->url.kind == MQ_URL_PRIVATE &&
	    statvfs(server->socket, &fs) == 0) {
		r->disk_free = (long long)fs.f_bavail * (long long)fs.f_frsize;
		r->disk_bytes = (long long)fs.f_blocks * (long long)fs.f_frsize;
	}
	return mq_ask_each(redis, sizeof(questions) / sizeof(questions[0]),
	    ask_question, take_answer, r);
}
