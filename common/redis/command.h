/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Commands and calls of scripts as they are sent, and the meaning of replies.  Arguments
 * are bytes. */
#ifndef MQ_COMMAND_H
#define MQ_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "base/buf.h"

/* A Lua script, which the server carries out as one atomic step.  Each is a file
 * lua/NAME.lua, whose head says what it takes; queue/embed.sh makes C of it, and of that
 * head a struct of its arguments, at build time. */
#define MQ_KEY_OWNERS 4
struct mq_script {
	const char *sha; /* 40 hex digits: the SHA-1 of text */
	const char *text;
	/* The words of its keys, for each queue or connection that has some of them; the
	 * caller adds further ones. */
	const char *keys[MQ_KEY_OWNERS];
	int fewest_keys, most_keys;
	int fewest_args, most_args; /* besides a list behind them */
	bool has_list;
};

struct mq_command {
	const struct mq_script *script; /* NULL: a plain command */
	int keys;			/* keys among args, before all others */
	int args;			/* arguments so far */
	bool tracked; /* changes of its keys are reported; see loop.h */
	/* Set by the caller: may have no reply; see mq_reply_missing(). */
	bool optional;
	/* Set by the caller of mq_redis_append(): sent again if the server does not know
	 * the script, or is busy. */
	bool repeats;
	/* Set by the caller from MULTI to EXEC, over connection.h only: on a cluster, not
	 * sent again. */
	bool transaction;
	int owner;    /* number of the owner of the script's next keys */
	bool cluster; /* keys have the names of a cluster; stays for the next */
	int slot;     /* on a cluster, of the first key; -1: there is no key */
	struct mq_buf wire; /* a gap for the head, then the args */
};

/* Begin a new command in a zeroed or used struct, whose memory is kept.  A plain command may
 * have several words with single blanks between them, "CLIENT ID". */
void mq_command_plain(struct mq_command *, const char *words);
void mq_command_script(struct mq_command *, const struct mq_script *);

void mq_command_arg(struct mq_command *, const void *, size_t n);
/* Adds one argument made of n parts, which may be empty; returns its length in bytes. */
struct mq_part {
	const void *p;
	size_t n;
};
size_t mq_command_parts(struct mq_command *, const struct mq_part *, int n);

/* Adds a key made of n parts.  A script's keys stand before its other arguments, some of
 * which may be names of keys, too. */
void mq_command_key(struct mq_command *, const struct mq_part *, int n);
/* The words of the keys of the next owner, of those that the head of the command's script
 * has. */
const char *mq_command_keys(struct mq_command *);

/* An argument of a script that its head names.  The bytes may hold NUL, and are copied when
 * they are added. */
struct mq_arg {
	enum mq_arg_kind {
		MQ_ARG_NONE, /* there is none */
		MQ_ARG_BYTES,
		MQ_ARG_INT,
		MQ_ARG_REAL
	} kind;
	union {
		struct mq_part bytes;
		long long number;
		double real; /* goes with six decimal places */
	} as;
};
#define MQ_NO_ARG ((struct mq_arg){.kind = MQ_ARG_NONE})
struct mq_arg mq_bytes(const void *, size_t n);
struct mq_arg mq_str(const char *);
struct mq_arg mq_int(long long);
struct mq_arg mq_real(double);

/* Adds the arguments that the head of the command's script names, from a struct of its
 * own, as struct rmq_claim_argv, of that size.  A script that gets fewer keys or arguments
 * than its head says, or more, is a mistake in the program, which ends. */
void mq_command_argv(struct mq_command *, const void *argv, size_t size);
#define MQ_COMMAND_ARGV(c, type, ...)                                          \
	mq_command_argv(                                                       \
	    (c), &(const struct type){__VA_ARGS__}, sizeof(struct type))

void mq_command_str(struct mq_command *, const char *);
/* Adds each word of a text with single blanks between words. */
void mq_command_words(struct mq_command *, const char *words);
void mq_command_fmt(struct mq_command *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mq_command_int(struct mq_command *, long long);

/* The *n bytes to send; valid until the command changes.  A script is called by its
 * hash. */
const char *mq_command_wire(struct mq_command *, size_t *n);

/* A call with the script's text, for a server that does not know its hash; the caller
 * frees. */
struct mq_command mq_command_eval(const struct mq_command *);

/* Adds the last n arguments of another command, which begin at byte `from` of its wire. */
void mq_command_tail(
    struct mq_command *, const struct mq_command *of, size_t from, int n);

void mq_command_free(struct mq_command *);

/* --- slot ---------------------------------------------------------------- */

#define MQ_SLOTS 16384

/* The slot of a key of n bytes in a Redis Cluster: CRC16 (XMODEM) of the bytes between its
 * first { and the next }, or of all bytes if there are none between. */
int mq_slot_of(const char *key, size_t n);

/* --- reply --------------------------------------------------------------- */

/* Whether the server does not know a script. */
bool mq_reply_noscript(const redisReply *);

/* Whether the server runs a long script, or loads its data.  The command was not
 * carried out, and can be sent again. */
bool mq_reply_busy(const redisReply *);

/*
 * Whether the reply is "node HOST:PORT: why", an error made by common/redis: the node of a
 * cluster that has the key is away, and may have carried out the command or not.  Optional
 * commands, and those of a reader (see mq_partial_begin()), get this error; for others the
 * connection is lost.
 */
#define MQ_MISSING "node "
bool mq_reply_missing(const redisReply *);

/* Reduces a script's error, alone or in a transaction, to that of the command in the script;
 * an error of the script itself keeps its line.  A command that the server lacks is named
 * as MQ_REDIS_LACKS. */
void mq_reply_strip_script(redisReply *);

/* Whether the reply is an array of the form: '$' a string, '#' an integer, '*' anything.
 * Behind the elements of form, those after its blank repeat any number of times; without a
 * blank, any number of strings follow. */
bool mq_reply_is(const redisReply *, const char *form);

#endif
