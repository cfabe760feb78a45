/* Commands, or calls of scripts, in the form in which they go over the wire, and what
 * their replies mean.  Arguments are bytes. */
#ifndef MQ_COMMAND_H
#define MQ_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "base/buf.h"

/* A Lua script, which the server carries out as one atomic step.  Those of a layout are
 * in its lua/NAME.lua, made into C at build time, with scripts.h. */
struct mq_script {
	const char *sha; /* 40 hex digits: the SHA-1 of text */
	const char *text;
};

struct mq_command {
	const struct mq_script *script; /* NULL: a plain command */
	int keys;     /* how many args are keys, before all others */
	int args;     /* arguments so far */
	bool tracked; /* see loop.h; over that only */
	/* Set by the caller: others go on without it; see mq_reply_missing(). */
	bool optional;
	/* Set by the caller of mq_redis_append(): a script that the server does not know, or
	 * a command that a busy server refuses, goes again by itself. */
	bool repeats;
	/* Set by the caller, over connection.h only, from MULTI to EXEC: on a cluster, it is
	 * not sent again by itself. */
	bool transaction;
	bool cluster; /* keys have the names of a cluster; stays for the next */
	int slot;     /* on a cluster, of its first key; -1: it has none */
	struct mq_buf wire; /* a gap for the head, then the args */
};

/* Start a command over; the buffer's memory is kept.  A zeroed struct will do.  A
 * blank stands between the words of a plain one: "CLIENT ID". */
void mq_command_plain(struct mq_command *, const char *words);
void mq_command_script(struct mq_command *, const struct mq_script *);

void mq_command_arg(struct mq_command *, const void *, size_t n);
/* Adds one argument made of n parts, which may be empty; returns its bytes. */
struct mq_part {
	const void *p;
	size_t n;
};
size_t mq_command_parts(struct mq_command *, const struct mq_part *, int n);

/* The same for a key.  Those of a script stand before its other arguments, one of which
 * may be the name of a key, too. */
void mq_command_key(struct mq_command *, const struct mq_part *, int n);

void mq_command_str(struct mq_command *, const char *);
/* Adds each word of a text, in which single blanks stand between them. */
void mq_command_words(struct mq_command *, const char *words);
void mq_command_fmt(struct mq_command *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mq_command_int(struct mq_command *, long long);

/* The whole command as bytes, *n of them; valid until the command changes.  A script is
 * called by its hash. */
const char *mq_command_wire(struct mq_command *, size_t *n);

/* The same call with the script's text instead of its hash, for a server that does not
 * know the hash; to be freed. */
struct mq_command mq_command_eval(const struct mq_command *);

/* Adds the last n arguments of another command, which are behind the first `from` bytes
 * of its wire. */
void mq_command_tail(
    struct mq_command *, const struct mq_command *of, size_t from, int n);

void mq_command_free(struct mq_command *);

/* --- slot ---------------------------------------------------------------- */

#define MQ_SLOTS 16384

/* The slot of a key, by which the nodes of a Redis Cluster share all keys: CRC16 (XMODEM)
 * of its n bytes, or of what is between its first { and the next }, if that is not
 * empty. */
int mq_slot_of(const char *key, size_t n);

/* --- reply --------------------------------------------------------------- */

/* Whether the server does not know a script. */
bool mq_reply_noscript(const redisReply *);

/* Whether the server runs a long script, or loads its data.  The command was not
 * carried out, and can be sent again. */
bool mq_reply_busy(const redisReply *);

/*
 * Whether it is an error of ours, "node HOST:PORT: why": the node of a cluster that has
 * the key is away.  An optional command gets it, and the connection goes on; another
 * one costs the connection, unless that is of a reader (see mq_partial_begin()).  The
 * node may have carried out the command.
 */
#define MQ_MISSING "node "
bool mq_reply_missing(const redisReply *);

/* Leaves of errors of a script, alone or in a transaction, what the command in it got; an
 * error of the script itself keeps its line.  A command that the server does not have is
 * named as MQ_REDIS_LACKS. */
void mq_reply_strip_script(redisReply *);

/* Whether it is an array whose first elements are as form says: '$' a string, '#' an integer,
 * '*' anything; any number follow, as often as form says behind a blank, or strings. */
bool mq_reply_is(const redisReply *, const char *form);

#endif
