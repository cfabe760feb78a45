/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "rights.h"

#include <string.h>

static const struct {
	const char *rule, *rmq, *rsmq;
} commands[] = {
    {"+blmove", "O", ""},
    {"+client|caching", "C", "C"},
    {"+client|id", "C", "C"},
    {"+client|kill", "PCB", "PCB"},
    {"+client|list", "PCB", "PCB"},
    {"+client|setname", "PCB", "PCB"},
    {"+client|tracking", "C", "C"},
    {"+command|info", "YS", "YS"},
    {"+config|get", "WY", "WY"},
    {"+dbsize", "L", ""},
    {"+del", "CJVKDUXr", "CJVKUX"},
    {"+eval", "PCJVLKRDZTF", "PCJVLKRDZTF"},
    {"+evalsha", "PCJVLKRDZTF", "PCJVLKRDZTF"},
    {"+exec", "PCB", ""},
    {"+exists", "CJVLKRDA", "CJVLKRD"},
    {"+expire", "CJVAK", "CK"},
    {"+get", "PCJVLKRD", "CLX"},
    {"+hdel", "CJVKRDTHA", "CJVKRDT"},
    /* Since Redis 7, HELLO needs no right. */
    {"+hello", "PCJVLKRDZTF", "PCJVLKRDZTF"},
    {"+hgetall", "PCJLKD", "PCJLK"},
    {"+hexists", "PCJVKR", "PCJVKRDZT"},
    {"+hget", "PCJVLKRD", "PCJVLKRD"},
    {"+hincrby", "PCJVKRDB", "PCJVKR"},
    {"+hlen", "PCJVKRDT", "PCJVLKRDT"},
    {"+hmget", "CJVLKRDTr", "PCJVLKRDT"},
    {"+hrandfield", "CHB", ""},
    {"+hscan", "CLK", "CK"},
    {"+hset", "PCJVKRDT", "PCJVKRT"},
    {"+hsetnx", "", "PCJVKRI"},
    {"+hstrlen", "", "R"},
    {"+hvals", "L", "L"},
    {"+lindex", "CLKRDO", ""},
    {"+llen", "PCJVLKRD", ""},
    {"+lmove", "CJKRD", ""},
    {"+lpos", "CJVRD", ""},
    {"+lpush", "PCJVKRD", ""},
    {"+lrange", "CJVLKRD", ""},
    {"+lrem", "CJVKRD", ""},
    {"+lset", "CJVKRD", ""},
    {"+ltrim", "CJVKRD", ""},
    {"+info", "CLW", "CLW"},
    {"+multi", "PCB", ""},
    {"+persist", "CJVKZATBXF", "CJVKZTXF"},
    {"+pexpire", "PCJVKRDB", "PCJVB"},
    {"+ping", "CJ", "CJ"},
    {"+psetex", "C", "C"},
    {"+publish", "CX", "CEX"},
    {"+pubsub|numsub", "C", "C"},
    {"+pttl", "CJVLKRD", "CJVLKRD"},
    {"+rpop", "CK", ""},
    {"+rpush", "CJVKRDr", ""},
    {"+sadd", "PCJVKRI", "PCJVKRI"},
    {"+scan", "CLK", "K"},
    {"+scard", "CJLKRD", ""},
    {"+set", "CJRZAHONXF", "CZXF"},
    {"+sismember", "PCJVLKRDZT", "CJK"},
    {"+smembers", "CLKRD", "LK"},
    {"+srem", "CJVKDAB", "KQ"},
    {"+sscan", "CLKRD", "CKL"},
    {"+subscribe", "C", "C"},
    {"+time", "PCJVLKRD", "PCJVLKRDI"},
    {"+type", "CK", "K"},
    {"+unlink", "CPDKB", "CPBQ"},
    {"+zadd", "PCJVKRD", "PCJVKR"},
    {"+zcard", "PCJVLKRD", "PCJVLKRD"},
    {"+zcount", "PCLKRDJ", "PCJVLKRD"},
    {"+zpopmin", "C", "C"},
    {"+zrange", "CLRDK", "CJVLKRD"},
    {"+zrangebyscore", "CJVLKRDH", "CJLKRD"},
    {"+zrank", "CJLKRD", "CJVLKRD"},
    {"+zrem", "CJVKRDr", "CJVKRD"},
    {"+zremrangebyrank", "CJK", ""},
    {"+zremrangebyscore", "C", "C"},
    {"+zrevrange", "CK", ""},
    {"+zrevrangebyscore", "CLKRD", ""},
    {"+zscore", "CLRD", "CJVLKRD"},
    {"+wait", "W", "W"},
    {"+xadd", "k", "k"},
    {"+xread", "o", "o"},
    {"+xrevrange", "o", "o"},
    /* Transfers from one node to another; see rmq.h. */
    {"+del", "RM", ""},
    {"+exists", "PZTM", ""},
    {"+hkeys", "CKRDM", "CJVLKRD"},
    {"+hlen", "LM", ""},
    {"+hrandfield", "KDM", ""},
    {"+persist", "RDM", ""},
    {"+rename", "CM", ""},
    {"+sadd", "DM", ""},
    {"+set", "KDM", ""},
    {"+wait", "CKRDM", ""},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Adds a name as a part of a pattern.  No rule can have a blank, so ? stands for one. */
static void
add_quoted(struct mq_buf *out, const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (strchr("*?[\\", p[i]) != NULL)
			mq_buf_add(out, "\\", 1);
		mq_buf_add(out, p[i] == ' ' ? "?" : &p[i], 1);
	}
}

/* As %q, %b or %o of a pattern; see rights.h.  NULL: any queue. */
static void
add_queue(struct mq_buf *out, const char *queue, char how, bool cluster)
{
	bool braces = (how == 'b') == cluster;

	if (how != 'q')
		mq_buf_addstr(out, braces ? "{" : "\\[");
	if (queue == NULL)
		mq_buf_addstr(out, "*");
	else
		add_quoted(out, queue, strlen(queue));
	if (how != 'q')
		mq_buf_addstr(out, braces ? "}" : "]");
}

static void
add_rule(struct mq_buf *out, const char *rule)
{
	const char *p = out->data, *end = out->data + out->len, *stop;
	size_t n = strlen(rule);

	for (; p < end; p = stop + 1) {
		stop = memchr(p, ' ', (size_t)(end - p));
		if (stop == NULL)
			stop = end;
		if ((size_t)(stop - p) == n && memcmp(p, rule, n) == 0)
			return;
	}
	if (out->len > 0)
		mq_buf_add(out, " ", 1);
	mq_buf_addstr(out, rule);
}

/* Whether letters of a row have any of these tools. */
static bool
is_for(const char *letter, unsigned tool)
{
	static const char letters[] = "PCLKRDZWEJMSATHONVFBYQUIGXkor";
	unsigned elsewhere =
	    tool & MQ_ON_CLUSTER ? MQ_OFF_CLUSTER : MQ_ON_CLUSTER;
	unsigned tools = 0;

	for (; *letter != '\0'; letter++)
		tools |= 1U << (strchr(letters, *letter) - letters);
	return (tools & tool & ~MQ_ON_CLUSTER) && !(tools & elsewhere);
}

static const char *
letters_of(const struct mq_layout *layout, size_t command)
{
	return layout == &mq_layout_rmq ? commands[command].rmq :
					  commands[command].rsmq;
}

void
mq_rights_add(struct mq_buf *out, const struct mq_layout *layout, unsigned tool,
    const char *queue, const char *ns)
{
	const struct mq_right *right;
	struct mq_buf rule = {0};
	const char *colon, *p;
	size_t n, i;

	if (ns == NULL)
		ns = layout->ns;
	n = ns == NULL ? 0 : strlen(ns);
	if (ns != NULL && queue != NULL &&
	    (colon = strrchr(queue, ':')) != NULL) {
		ns = queue;
		n = (size_t)(colon - queue);
		queue = colon + 1;
	}
	for (right = layout->rights; right->rule != NULL; right++) {
		if (!is_for(right->tools, tool))
			continue;
		rule.len = 0;
		for (p = right->rule; *p != '\0'; p++) {
			if (*p != '%')
				mq_buf_add(&rule, p, 1);
			else if (*++p == 'n')
				add_quoted(&rule, ns, n);
			else
				add_queue(
				    &rule, queue, *p, tool & MQ_ON_CLUSTER);
		}
		add_rule(out, mq_buf_str(&rule));
	}
	for (i = 0; i < COMMANDS; i++)
		if (is_for(letters_of(layout, i), tool))
			add_rule(out, commands[i].rule);
	mq_buf_free(&rule);
}

void
mq_rights_end(struct mq_buf *out, bool cluster, int db)
{
	if (db != 0)
		add_rule(out, "+select");
	if (!cluster)
		return;
	add_rule(out, "+asking");
	add_rule(out, "+cluster|slots");
	add_rule(out, "+cluster|nodes");
}

int
mq_rights_lacking(
    struct mq_redis *r, const struct mq_layout *layout, struct mq_buf *out)
{
	struct mq_command c = mq_redis_command(r);
	char name[COMMANDS][32];
	redisReply *reply;
	size_t i, n = 0;

	mq_command_plain(&c, "COMMAND INFO");
	for (i = 0; i < COMMANDS; i++) {
		if (*letters_of(layout, i) == '\0')
			continue;
		strlcpy(name[n], commands[i].rule + 1, sizeof(name[n]));
		name[n][strcspn(name[n], "|")] = '\0';
		mq_command_str(&c, name[n++]);
	}
	reply = mq_redis_answer(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	for (i = 0; i < reply->elements && i < n; i++)
		if (reply->element[i]->type == REDIS_REPLY_NIL)
			add_rule(out, name[i]);
	freeReplyObject(reply);
	return 0;
}
