/*
 * A Lua script, which the server carries out as one atomic step.  Those of a
 * layout are kept in its lua/NAME.lua, made into C at build time, and listed in
 * its scripts.h; the comment at the head of each says what it does, and what a
 * crash before and after it leaves.
 */
#ifndef MQ_SCRIPT_H
#define MQ_SCRIPT_H

struct mq_script {
	const char *sha; /* 40 hex digits: the SHA-1 of text */
	const char *text;
};

#endif
