/*
 * One Redis command, or one call of a script, in the form in which it goes
 * over the wire.  Arguments are bytes.
 */
#ifndef MQ_COMMAND_H
#define MQ_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * A Lua script, which the server carries out as one atomic step.  Those of a
 * layout are kept in its lua/NAME.lua, made into C at build time, and listed in
 * its scripts.h; the comment at the head of each says what it does, and what a
 * crash before and after it leaves.
 */
struct mq_script {
	const char *sha; /* 40 hex digits: the SHA-1 of text */
	const char *text;
};

struct mq_command {
	const struct mq_script *script; /* NULL: a plain command */
	int keys;     /* how many args are keys, before all others */
	int args;     /* arguments so far */
	bool tracked; /* see pair.h; over async.h only */
	/* Set by the caller: others go on without it; see reply.h. */
	bool optional;
	/* Set by the caller, over connection.h only, from MULTI to EXEC: on a cluster, it is
	 * not sent again by itself. */
	bool transaction;
	bool cluster; /* stays when the command starts over: keys lie on a
		       * cluster, and have the names that they have there */
	int slot;     /* on a cluster, of its first key; -1: it has none */
	struct mq_buf wire; /* a gap for the head, then the args */
};

/* Start a command over; the buffer's memory is kept.  A zeroed struct will do.  A
 * blank stands between the words of a plain one: "CLIENT ID". */
void mq_command_plain(struct mq_command *, const char *words);
void mq_command_script(struct mq_command *, const struct mq_script *);

void mq_command_arg(struct mq_command *, const void *, size_t n);
/* Adds one argument made of n parts; parts may be empty. */
struct mq_part {
	const void *p;
	size_t n;
};
void mq_command_parts(struct mq_command *, const struct mq_part *, int n);

/* The same for a key.  Those of a script stand before its other arguments, one of which
 * may be the name of a key, too. */
void mq_command_key(struct mq_command *, const struct mq_part *, int n);

void mq_command_str(struct mq_command *, const char *);
/* Adds each word of a text, in which single blanks stand between them. */
void mq_command_words(struct mq_command *, const char *words);
void mq_command_fmt(struct mq_command *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mq_command_int(struct mq_command *, long long);

/*
 * The whole command as bytes, *n of them; valid until the command changes.
 * A script is called by its hash.
 */
const char *mq_command_wire(struct mq_command *, size_t *n);

/* The same call with the script's text instead of its hash, for a server that does not
 * know the hash; to be freed. */
struct mq_command mq_command_eval(const struct mq_command *);

/* Adds the last n arguments of another command, which are all behind the first
 * `from` bytes of its wire. */
void mq_command_tail(
    struct mq_command *, const struct mq_command *of, size_t from, int n);

void mq_command_free(struct mq_command *);

#endif
