/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The keys of the layout of adjust/rmq v5 (Go), and keys of these tools, which Go programs do
 * not need; mq-layout(7) explains each.  On a cluster, [Q] is {Q}, so that all keys of a queue
 * are in one slot, and rmq::queue::{Q}::none never exists: a script that names it is refused
 * whole while its slot moves to another node.
 */
#include "rmq.h"

/* As a macro, since the compiler knows the lengths of literals: stats of many queues spend
 * much of their time here. */
#define PART(s)                                                                \
	{                                                                      \
		(s), strlen(s)                                                 \
	}

/* Adds the key of a connection, a queue, or both (one may be NULL) that ends with n bytes. */
static void
add_key(struct mq_command *c, const char *connection, const char *queue,
    bool braces, const char *end, size_t n)
{
	const struct mq_part parts[] = {
	    PART(connection != NULL ? "rmq::connection::" : "rmq"),
	    PART(connection != NULL ? connection : ""),
	    PART(queue == NULL ? "" :
		    braces     ? "::queue::{" :
				 "::queue::["),
	    PART(queue != NULL ? queue : ""),
	    PART(queue == NULL ? "::" :
		    braces     ? "}::" :
				 "]::"),
	    {end, n}};

	mq_command_key(c, parts, 6);
}

void
rmq_key_queue(struct mq_command *c, const char *queue, const char *words)
{
	size_t n;

	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		add_key(c, NULL, queue, c->cluster, words, n);
	}
}

/* An empty tag {} chooses no slot. */
bool
rmq_is_scattered(const struct mq_command *c, const char *queue)
{
	return c->cluster && (*queue == '\0' || *queue == '}');
}

/* This key never exists. */
#define NOWHERE "Q:none"

void
rmq_keys(struct mq_command *c, const char *connection, const char *queue,
    const char *words)
{
	static const struct {
		const char *word, *key;
		const char *on_cluster; /* NULL: as key */
	} rows[] = {{"known", "A:" RMQ_QUEUES, NOWHERE},
	    {"listed", "A:" RMQ_CONNECTIONS, NOWHERE},
	    {"queues", "C:queues", NOWHERE}, {"running", "C:running", NOWHERE},
	    {"lease", "C:heartbeat", "B:lease"}, {"info", "C:info", "B:info"},
	    {"unacked", "B:unacked", NULL}, {"consumers", "B:consumers", NULL},
	    {"other-ready", "O:ready", NOWHERE},
	    {"other-rejected", "O:rejected", NOWHERE},
	    {"other-unacked", "O:unacked", NOWHERE},
	    {"other-consumers", "O:consumers", NOWHERE},
	    {"runs", "C:running", NULL}, {"names", "A:" RMQ_QUEUES, NULL},
	    {"all-cleaning", "A:rmq::cleaning", NULL},
	    {"all-paused", "A:rmq::paused", NULL}};
	const char *key;
	size_t n, len, i;
	char of;

	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = len = strcspn(words, " ");
		key = words;
		for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (*words == *rows[i].word &&
			    strncmp(words, rows[i].word, n) == 0 &&
			    rows[i].word[n] == '\0') {
				key = c->cluster && rows[i].on_cluster != NULL ?
				    rows[i].on_cluster :
				    rows[i].key;
				len = strlen(key);
			}
		of = 'Q';
		if (key[1] == ':') {
			of = *key;
			key += 2;
			len -= 2;
		}
		if (of == 'A')
			mq_command_key(c, &(struct mq_part){key, len}, 1);
		else
			add_key(c, of == 'Q' ? NULL : connection,
			    of == 'C' ? NULL : queue, c->cluster != (of == 'O'),
			    key, len);
	}
}

void
rmq_start(struct mq_command *c, const struct mq_script *script,
    const char *connection, const char *queue)
{
	mq_command_script(c, script);
	rmq_keys(c, connection, queue, mq_command_keys(c));
}

/* Names are not escaped in keys, so ambiguous ones are refused. */
const char *
rmq_queue_error(const char *queue)
{
	const unsigned char *p;

	if (*queue == '\0')
		return "a name must not be empty";
	if (strlen(queue) > RMQ_NAME_MAX)
		return "a name has at most 512 bytes";
	if (strpbrk(queue, "[]{}") != NULL || strstr(queue, "::") != NULL)
		return "a name must not contain [ ] { } or ::";
	for (p = (const unsigned char *)queue; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			return "a name must not contain control characters";
	return NULL;
}

/* Rights of each tool to keys and channels; see rights.h. */
const struct mq_right rmq_rights[] = {
    {"~rmq::queues", "PCJVLKRDZTG"},
    {"~rmq::queue::%b::*", "PCJVLKRDZTG"},
    /* Attachments. */
    {"~mq::attach::*", "ACKDB"},
    {"~rmq::paused", "CJLF"},
    {"~rmq::connections", "CJVLKRD"},
    {"~rmq::holders", "CJVLK"},
    {"~rmq::connection::*::heartbeat", "CJVLKRD"},
    {"~rmq::connection::*::queues", "CJVLKRD"},
    {"~rmq::connection::*::queue::%b::*", "CJVLKRD"},
    /* Keys in the other form: only whether they exist. */
    {"~rmq::connection::*::queue::%o::*", "CLKRD"},
    {"~rmq::queue::%o::*", "QL"},
    {"~rmq::connection::*::info", "CJVLKQX"},
    {"~rmq::connection::*::running", "CLKX"},
    /* CLIENT TRACKING publishes here. */
    {"resetchannels", "CX"},
    {"&__redis__:invalidate", "C"},
    /* Consumers wake each other; see queue/lua/lib/role.lua. */
    {"&mq::wake::*", "CX"},
    {0},
};

const struct mq_extra_keys rmq_extra_keys = {.key = rmq_key_queue,
    .claimable = "ready priority delayed",
    .watched = "ready priority delayed clock paused",
    .publisher = "publisher::",
    .other = rmq_keys};

/* Keys that are tracked have one name in brackets. */
bool
rmq_key_of(const char *key, size_t len, const char **queue, size_t *n)
{
	const char *end = memrchr(key, ']', len), *start = NULL;

	if (end == NULL)
		end = memrchr(key, '}', len);
	if (end != NULL)
		start =
		    memrchr(key, *end == ']' ? '[' : '{', (size_t)(end - key));
	if (start == NULL)
		return false;
	*queue = start + 1;
	*n = (size_t)(end - *queue);
	return true;
}
