#include "ask.h"

#include <sys/statvfs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
mq_info_take(struct mq_info *i, const char *text)
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
	(void)info_field(
	    text, "maxmemory_policy", i->policy, sizeof(i->policy));
	i->pid = number(text, "process_id");
	i->uptime_s = number(text, "uptime_in_seconds");
	i->memory = number(text, "used_memory");
	i->maxmemory = number(text, "maxmemory");
	i->aof = (int)number(text, "aof_enabled");
	i->aof_bytes = i->aof == 1 ? number(text, "aof_current_size") : -1;
	i->aof_later = field_is(text, "aof_base_size", "0") &&
	    (field_is(text, "aof_rewrite_in_progress", "1") ||
		field_is(text, "aof_rewrite_scheduled", "1"));
	i->save_failed = has_failed(text, "rdb_last_bgsave_status");
	i->aof_failed = has_failed(text, "aof_last_write_status") ||
	    has_failed(text, "aof_last_bgrewrite_status");
	i->is_replica = field_is(text, "role", "slave");
	i->had_replica = field_is(text, "repl_backlog_active", "1");
	/* Replicas are "slaveN:ip=ADDRESS,port=PORT,state=STATE,...". */
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
	struct mq_info one;

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

	mq_info_take(i, "");
	while (mq_redis_visit(r, n))
		n++;
	rv = mq_ask_each(r, (size_t)n, ask_node, take_node, &p);
	(void)mq_redis_visit(r, n);
	return rv;
}

static const char *const questions[] = {
    "INFO", "CONFIG GET dir", "CONFIG GET save", "CONFIG GET appendfsync"};

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
	struct mq_info *info = arg;
	const char *value;

	if (i == 0 && reply->type == REDIS_REPLY_STRING)
		mq_info_take(info, reply->str);
	if (!mq_reply_is(reply, "") || reply->elements != 2)
		return 0;
	value = reply->element[1]->str;
	if (i == 1)
		snprintf(info->dir, sizeof(info->dir), "%s", value);
	else if (i == 2)
		info->snapshots = *value != '\0';
	else
		snprintf(info->fsync, sizeof(info->fsync), "%s", value);
	return 0;
}

int
mq_info_ask(struct mq_redis *r, struct mq_info *info)
{
	const struct mq_server *server = r->server;
	struct statvfs fs;
	int rv;

	mq_info_take(info, "");
	rv = mq_ask_each(r, sizeof(questions) / sizeof(questions[0]),
	    ask_question, take_answer, info);
	if (server->url.kind == MQ_URL_PRIVATE &&
	    statvfs(server->socket, &fs) == 0) {
		info->disk_free =
		    (long long)fs.f_bavail * (long long)fs.f_frsize;
		info->disk_bytes =
		    (long long)fs.f_blocks * (long long)fs.f_frsize;
	}
	return rv;
}
