/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "connection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "parts.h"

#define CROWDED	 "ERR max number of clients"
#define NO_FILES "Too many open files" /* strerror(EMFILE), and ENFILE */

/* The text of an error raised inside a script contains that of the command. */
static int
status_in_script(const char *error)
{
	if (strstr(error, "WRONGTYPE") != NULL)
		return MQ_EXIT_WRONGTYPE;
	if (strstr(error, "OOM command not allowed") != NULL ||
	    strstr(error, "-READONLY ") != NULL ||
	    strstr(error, "-MISCONF ") != NULL)
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
	    {"attachments are gone", MQ_EXIT_AGAIN}, /* our scripts' */
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

/* The error without the prefix of a transaction that failed as a whole; MQ_REDIS_REPLICA for
 * the words of a server that has become a replica, which name commands and its history. */
static const char *
cause_of(const char *error)
{
	static const char aborted[] =
	    "EXECABORT Transaction discarded because of: ";

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
	/* As hiredis says it, and as ask.c says that a reply makes no sense. */
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

const char *
mq_error_last(const char *error)
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
	/* --print-acl does not know whether a server has rules for databases. */
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
