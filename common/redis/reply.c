/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "connection.h"

#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "parts.h"

/* Replaces a server's words about a command that it lacks, since they may hold a script, or
 * a payload.  In a script, servers do not name the command. */
static void
name_lack(char *words)
{
	static const char unknown[] = "ERR unknown command ";
	size_t size = strlen(words) + 1;
	char name[32];

	if (strstr(words, "command called from ") != NULL &&
	    strstr(words, "script") != NULL &&
	    strcasestr(words, "unknown ") != NULL)
		snprintf(words, size, MQ_REDIS_LACKS_SOME);
	else if (strncasecmp(words, unknown, sizeof(unknown) - 1) == 0 &&
	    sscanf(words + sizeof(unknown), "%31[A-Za-z.]", name) == 1)
		snprintf(words, size, MQ_REDIS_LACKS "%s", name);
	/* A Valkey without Lua has EVAL all the same. */
	else if (strstr(words, "Could not find scripting engine") != NULL)
		snprintf(words, size, MQ_REDIS_LACKS "EVAL");
}

/* Before Redis 7: "ERR Error running script (call to f_SHA): @user_script:1: @user_script: 1:
 * -OOM ...".  Since then: "OOM ... script: SHA, on @user_script:1.". */
static void
strip_error(char *error)
{
	static const char call[] = "ERR Error running script (call to f_";
	static const char line[] = "@user_script:", script[] = " script: ";
	const size_t before = sizeof(script) - 1 + 40;
	const char *words = error, *colon, *on;
	size_t n;

	if (strncmp(words, call, sizeof(call) - 1) == 0 &&
	    (colon = strstr(words, "): ")) != NULL)
		words = colon + 3;
	while (strncmp(words, line, sizeof(line) - 1) == 0 &&
	    (colon = strstr(words + sizeof(line) - 1, ": ")) != NULL)
		words = colon + 2;
	words += *words == '-';
	if (strncmp(words, "user_script:", 12) == 0 ||
	    strncmp(words, "ERR user_script:", 16) == 0)
		return;
	n = strlen(words);
	on = strstr(words, ", on @user_script:");
	if (on != NULL && (size_t)(on - words) > before &&
	    strncmp(on - before, script, sizeof(script) - 1) == 0)
		n = (size_t)(on - words) - before;
	while (n > 0 && strchr("\r\n ", words[n - 1]) != NULL)
		n--;
	memmove(error, words, n);
	error[n] = '\0';
	name_lack(error);
}

static void
strip_reply(redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR)
		return;
	strip_error(reply->str);
	reply->len = strlen(reply->str);
}

void
mq_reply_strip_script(redisReply *reply)
{
	size_t i;

	strip_reply(reply);
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		strip_reply(reply->element[i]);
}

bool
mq_reply_noscript(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

bool
mq_reply_busy(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR && mq_error_busy(reply->str);
}

bool
mq_reply_missing(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, MQ_MISSING, strlen(MQ_MISSING)) == 0;
}

bool
mq_reply_is(const redisReply *reply, const char *form)
{
	size_t i, n = strcspn(form, " ");
	const char *rest = form[n] == ' ' ? form + n + 1 : "$";
	size_t each = strlen(rest);
	char kind;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < n ||
	    (reply->elements - n) % each != 0)
		return false;
	for (i = 0; i < reply->elements; i++) {
		kind = i < n ? form[i] : rest[(i - n) % each];
		if (kind != '*' &&
		    reply->element[i]->type !=
			(kind == '#' ? REDIS_REPLY_INTEGER :
				       REDIS_REPLY_STRING))
			return false;
	}
	return true;
}

/* --- greeting ------------------------------------------------------------ */

bool
mq_redis_greeting(
    const struct mq_server *server, int step, struct mq_command *c)
{
	const struct mq_url *u = &server->url;

	if (u->password != NULL && step-- == 0) {
		mq_command_plain(c, "AUTH");
		if (u->user != NULL)
			mq_command_str(c, u->user);
		mq_command_str(c, u->password);
		return true;
	}
	if (u->db != 0 && step-- == 0) {
		mq_command_plain(c, "SELECT");
		mq_command_int(c, u->db);
		return true;
	}
	return false;
}

const char *
mq_reply_value(const redisReply *pairs, const char *name)
{
	size_t i;

	for (i = 0; pairs->type == REDIS_REPLY_ARRAY && i + 1 < pairs->elements;
	     i += 2)
		if (pairs->element[i]->type == REDIS_REPLY_STRING &&
		    pairs->element[i + 1]->type == REDIS_REPLY_STRING &&
		    strcmp(pairs->element[i]->str, name) == 0)
			return pairs->element[i + 1]->str;
	return "";
}

const char *
mq_reply_unfit(const redisReply *reply, const struct mq_server *server)
{
	/* Without a password, the server ends the connection on a long command, in
	 * silence: NOAUTH must count now. */
	if (reply->type == REDIS_REPLY_ERROR)
		return strncmp(reply->str, "NOAUTH", 6) == 0 ?
		    "NOAUTH Authentication required." :
		    mq_error_last(reply->str);
	if (!server->node &&
	    strcmp(mq_reply_value(reply, "mode"), "cluster") == 0)
		return server->url.tls ?
		    MQ_REDIS_CLUSTER "s-cluster://HOST:PORT" :
		    MQ_REDIS_CLUSTER "-cluster://HOST:PORT";
	if (server->url.kind == MQ_URL_SENTINEL &&
	    strcmp(mq_reply_value(reply, "role"), "replica") == 0)
		return MQ_REDIS_REPLICA;
	return NULL;
}

static bool
is_readonly(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strstr(reply->str, "READONLY") != NULL;
}

const char *
mq_reply_last(const redisReply *reply, const struct mq_server *server)
{
	bool known = server->url.kind == MQ_URL_SENTINEL;
	bool demoted = known && is_readonly(reply);
	size_t i;

	/* A transaction has its errors inside. */
	for (i = 0;
	     known && reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		demoted |= is_readonly(reply->element[i]);
	if (demoted)
		return MQ_REDIS_REPLICA;
	return reply->type == REDIS_REPLY_ERROR ? mq_error_last(reply->str) :
						  NULL;
}
