#include "connection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "parts.h"

/* --- errors ---------------------------------------------------------------------- */

#define CROWDED	 "ERR max number of clients"
#define NO_FILES "Too many open files" /* strerror(EMFILE), and ENFILE */

/* An error raised inside a script has the command's own somewhere in it. */
static int
status_in_script(const char *error)
{
	if (strstr(error, "WRONGTYPE") != NULL)
		return MQ_EXIT_WRONGTYPE;
	if (strstr(error, "OOM command not allowed") != NULL)
		return MQ_EXIT_AGAIN;
	if (strstr(error, "ACL failure in script") != NULL ||
	    strstr(error, "can't run this command") != NULL ||
	    strstr(error, "can't access at least one of the keys") != NULL)
		return MQ_EXIT_NOPERM;
	return MQ_EXIT_UNAVAILABLE;
}

int
mq_error_status(const char *error)
{
	static const struct {
		const char *prefix;
		int status;
	} table[] = {
	    {"ERR DB index is out of range", MQ_EXIT_CONFIG},
	    {"ERR SELECT is not allowed in cluster mode", MQ_EXIT_CONFIG},
	    {"ERR This instance has cluster support disabled", MQ_EXIT_CONFIG},
	    {"NOAUTH", MQ_EXIT_NOPERM},
	    {"NOPERM", MQ_EXIT_NOPERM},
	    {"WRONGPASS", MQ_EXIT_NOPERM},
	    {"ERR AUTH", MQ_EXIT_NOPERM},
	    {"ERR invalid password", MQ_EXIT_NOPERM},
	    {MQ_REDIS_PROTECTED, MQ_EXIT_NOPERM},
	    {"ERR Protocol error: unauthenticated", MQ_EXIT_NOPERM},
	    {"ERR Protocol error", MQ_EXIT_DATA},
	    {CROWDED, MQ_EXIT_AGAIN},
	    {NO_FILES, MQ_EXIT_AGAIN},
	    {"WRONGTYPE", MQ_EXIT_WRONGTYPE},
	    {"OOM", MQ_EXIT_AGAIN},
	    {"BUSY", MQ_EXIT_AGAIN},
	    {"LOADING", MQ_EXIT_AGAIN},
	    {"MISCONF", MQ_EXIT_AGAIN},
	    {"READONLY", MQ_EXIT_AGAIN},
	    {"TRYAGAIN", MQ_EXIT_AGAIN},
	    {"MASTERDOWN", MQ_EXIT_AGAIN},
	    {"NOREPLICAS", MQ_EXIT_AGAIN},
	    {"attachments are gone", MQ_EXIT_AGAIN}, /* ours */
	    {"CLUSTERDOWN", MQ_EXIT_AGAIN},
	    {"CROSSSLOT", MQ_EXIT_CONFIG},
	    {"MOVED", MQ_EXIT_CONFIG},
	    {MQ_REDIS_CLUSTER, MQ_EXIT_CONFIG},
	    {MQ_REDIS_LACKS, MQ_EXIT_CONFIG},
	    {MQ_REDIS_REPLICA, MQ_EXIT_AGAIN},
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strncmp(error, table[i].prefix, strlen(table[i].prefix)) ==
		    0)
			return table[i].status;
	return status_in_script(error);
}

/* Without the words before the cause of a transaction that failed as a whole; what a
 * server says that has become a replica is MQ_REDIS_REPLICA. */
static const char *
cause_of(const char *error)
{
	static const char aborted[] =
	    "EXECABORT Transaction discarded because of: ";

	/* The server's words name commands, and its history. */
	if (strncmp(error, "UNBLOCKED ", 10) == 0 ||
	    (strncmp(error, "ERR WAIT", 8) == 0 &&
		strstr(error, "replica instances") != NULL))
		return MQ_REDIS_REPLICA;
	return strncmp(error, aborted, sizeof(aborted) - 1) == 0 ?
	    error + sizeof(aborted) - 1 :
	    error;
}

bool
mq_error_crowded(const char *error)
{
	return strncmp(error, CROWDED, strlen(CROWDED)) == 0 ||
	    strncmp(error, NO_FILES, strlen(NO_FILES)) == 0;
}

bool
mq_error_nonsense(const char *error)
{
	/* As hiredis says it, and we. */
	return strncmp(error, "Protocol error", 14) == 0 ||
	    strstr(error, "unexpected reply") != NULL ||
	    strcmp(error, MQ_REPLY_ENDLESS) == 0;
}

bool
mq_error_ended(const char *error)
{
	return strstr(error, "Server closed the connection") != NULL ||
	    strstr(error, strerror(ECONNRESET)) != NULL;
}

static const char *
last_words(const char *error)
{
	if (strncmp(error, "DENIED ", 7) == 0)
		return MQ_REDIS_PROTECTED;
	return mq_error_crowded(error) ||
		strncmp(error, "ERR Protocol error", 18) == 0 ?
	    error :
	    NULL;
}

bool
mq_error_busy(const char *error)
{
	const char *why = cause_of(error);

	return strncmp(why, "BUSY ", 5) == 0 ||
	    strncmp(why, "LOADING ", 8) == 0;
}

bool
mq_error_barred(int status, const char *error)
{
	return status == MQ_EXIT_NOPERM ||
	    strstr(error, MQ_REDIS_LACKS) != NULL;
}

const char *
mq_error_hint(const char *error)
{
	/* --print-acl cannot know whether a server has rules for databases. */
	if (strncmp(error, "NOPERM No permissions to access database", 40) == 0)
		return "; its user needs the rule db=N";
	if (strcmp(error, MQ_REDIS_LACKS_SOME) == 0)
		return "; mq-stats --server names it";
	return mq_error_status(error) == MQ_EXIT_NOPERM &&
		(strncmp(error, "NOPERM", 6) == 0 ||
		    status_in_script(error) == MQ_EXIT_NOPERM) ?
	    "; --print-acl prints the rights needed" :
	    "";
}

int
mq_redis_fail(struct mq_redis *r, int status, const char *fmt, ...)
{
	size_t n = (size_t)snprintf(
	    r->error, sizeof(r->error), "%s: ", r->server->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error + n, sizeof(r->error) - n, fmt, ap);
	va_end(ap);
	r->status = status;
	return -1;
}

bool
mq_redis_refused(struct mq_redis *r, const redisReply *reply)
{
	const char *why;

	if (reply->type != REDIS_REPLY_ERROR)
		return false;
	why = cause_of(reply->str);
	mq_redis_fail(r, mq_error_status(why), "%s", why);
	strlcat(r->error, mq_error_hint(why), sizeof(r->error));
	return true;
}

/* --- replies --------------------------------------------------------------------- */

/* In place of a server's own words about a command that it does not have, which may hold
 * a script, or a payload.  It cannot name one that a script calls. */
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
	/* Valkey can be built without Lua, and has the command then. */
	else if (strstr(words, "Could not find scripting engine") != NULL)
		snprintf(words, size, MQ_REDIS_LACKS "EVAL");
}

/* Before Redis 7 servers write "ERR Error running script (call to f_SHA):
 * @user_script:1: @user_script: 1: -OOM ...", later ones "OOM ... script: SHA, on
 * @user_script:1.". */
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
	/* Without a password the server ends the connection at a longer command, and says
	 * nothing more. */
	if (reply->type == REDIS_REPLY_ERROR)
		return strncmp(reply->str, "NOAUTH", 6) == 0 ?
		    "NOAUTH Authentication required." :
		    last_words(reply->str);
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
	return reply->type == REDIS_REPLY_ERROR ? last_words(reply->str) : NULL;
}
