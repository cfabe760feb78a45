/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The keys of RSMQ (npm rsmq 0.12, and its ports) and the keys of these tools, which other
 * programs do not need; mq-rsmq(7) explains each.  In a namespace N, which is rsmq unless a
 * queue's name has another, queue Q has N:Q and N:Q:Q, and of these tools N:Q:X and more that
 * begin so.  Rejected messages of Q are the messages of the queue Q-rejected.
 */
#include "rsmq.h"

#include <ctype.h>

#include "message/json.h"

/* Other programs accept names of up to 160 bytes, with -rejected, too. */
#define QUEUE_NAME_MAX 160

#define REJECTED (sizeof(RSMQ_REJECTED) - 1)

/* The length of the namespace in a name; 0: none. */
static size_t
namespace_len(const char *queue)
{
	const char *colon = strrchr(queue, ':');

	return colon != NULL ? (size_t)(colon - queue) : 0;
}

static struct mq_part
part_of(const char *s)
{
	return (struct mq_part){s, strlen(s)};
}

const char *
rsmq_bare(const char *queue)
{
	size_t n = namespace_len(queue);

	return n > 0 ? queue + n + 1 : queue;
}

/* Adds NAMESPACE, if own :QUEUE, then before, the word, and the connection. */
static void
add_key(struct mq_command *c, const char *queue, bool own, const char *before,
    struct mq_part word, const char *connection)
{
	size_t ns = namespace_len(queue);
	const struct mq_part parts[] = {
	    ns > 0 ? (struct mq_part){queue, ns} : part_of(RSMQ_NAMESPACE),
	    part_of(own ? ":" : ""), part_of(own ? rsmq_bare(queue) : ""),
	    part_of(before), word, part_of(connection)};

	mq_command_key(c, parts, 6);
}

void
rsmq_keys(struct mq_command *c, const char *connection, const char *queue,
    const char *words)
{
	static const struct {
		const char *word, *key;
		bool own, connection;
	} rows[] = {{"held", ":Xheld:", true, true},
	    {"lease", "::connection:", false, true},
	    {"runs", "::running:", false, true},
	    {"names", ":QUEUES", false, false},
	    {"all-cleaning", "::cleaning", false, false},
	    {"all-paused", "::paused", false, false},
	    {"connections", "::connections", false, false}};
	const size_t count = sizeof(rows) / sizeof(rows[0]);
	size_t n, i;

	do {
		n = strcspn(words, " ");
		for (i = 0; i < count; i++)
			if (strlen(rows[i].word) == n &&
			    memcmp(words, rows[i].word, n) == 0)
				break;
		if (i < count)
			add_key(c, queue, rows[i].own, "", part_of(rows[i].key),
			    rows[i].connection ? connection : "");
		else
			add_key(c, queue, true,
			    isalpha((unsigned char)*words) ? ":X" : "",
			    (struct mq_part){words, n}, "");
		words += n;
	} while (*words++ != '\0');
}

void
rsmq_start(struct mq_command *c, const struct mq_script *script,
    const char *connection, const char *queue)
{
	mq_command_script(c, script);
	rsmq_keys(c, connection, queue, mq_command_keys(c));
}

void
rsmq_ask(struct mq_command *c, const char *words, const char *connection,
    const char *queue)
{
	size_t n = strcspn(words, " ");
	char key[16];

	mq_command_script(c, NULL);
	mq_command_arg(c, words, n);
	words += n + 1;
	n = strcspn(words, " ");
	strlcpy(key, words, MIN(n + 1, sizeof(key)));
	rsmq_keys(c, connection, queue, key);
	if (words[n] != '\0')
		mq_command_words(c, words + n + 1);
}

/* The names that RSMQ refuses, and QUEUES, whose messages would be in the key of the names. */
const char *
rsmq_queue_error(const char *queue)
{
	const char *name = rsmq_bare(queue);
	size_t n = strlen(name), max = QUEUE_NAME_MAX;
	const char *letters = "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (*name == '\0')
		return "a name must not be empty";
	if (n <= REJECTED || strcmp(name + n - REJECTED, RSMQ_REJECTED) != 0)
		max -= REJECTED;
	if (n > max)
		return "a name has at most 151 bytes (with -rejected, 160)";
	if (name[strspn(name, letters)] != '\0')
		return "a name in RSMQ has only letters, digits, _ and -";
	if (strcmp(name, "QUEUES") == 0)
		return "RSMQ reserves this name";
	return NULL;
}

/* Rights of each tool to keys and channels; see rights.h. */
const struct mq_right rsmq_rights[] = {
    {"~%n:QUEUES", "PCJVLKRDTG"},
    {"~%n:%q", "PCJVLKRDG"},
    {"~%n:%q:Q", "PCJVLKRDZTG"},
    {"~%n:%q:X*", "PCJVLKRDZTG"},
    {"~%n:%q-rejected", "CJVLKRDG"},
    {"~%n:%q-rejected:Q", "CJVLKRD"},
    {"~%n:%q-rejected:X*", "CJVLKRD"},
    {"~%n::paused", "CJLF"},
    {"~%n::connections", "CJVLKRD"},
    {"~%n::connection:*", "CJVLKRD"},
    {"~%n::running:*", "CLKX"},
    {"resetchannels", "CEX"},
    {"&%n:rt:%q", "E"},
    /* CLIENT TRACKING publishes here; a consumer may be the same user. */
    {"&__redis__:invalidate", "CE"},
    /* Consumers wake each other; see queue/lua/lib/role.lua. */
    {"&mq::wake::*", "CEX"},
    {0},
};

static void
add_own(struct mq_command *c, const char *queue, const char *words)
{
	rsmq_keys(c, "", queue, words);
}

const struct mq_extra_keys rsmq_extra_keys = {.key = add_own,
    .publisher = "publisher:",
    .exists = ":Q",
    .claimable = " ",
    .watched = " :Xpaused",
    .other = rsmq_keys};

/* --- questions of several places ------------------------------------------- */

char *
rsmq_name(const struct mq_redis *r, const char *bare)
{
	const char *ns = r->server->url.ns;

	if (ns == NULL || strcmp(ns, RSMQ_NAMESPACE) == 0)
		return mq_xstrdup(bare);
	return mq_xasprintf("%s:%s", ns, bare);
}

redisReply *
rsmq_connections(struct mq_redis *r, const char *queue)
{
	struct mq_command c = {0};

	rsmq_ask(&c, "ZRANGE connections 0 -1", "", queue);
	return mq_call(r, &c, MQ_STRINGS);
}

int
rsmq_add_listed(struct mq_redis *r, struct mq_names *names)
{
	const char *ns = r->server->url.ns;
	char *key = mq_xasprintf("%s:QUEUES", ns != NULL ? ns : RSMQ_NAMESPACE);
	redisReply *all = mq_call_members(r, key);
	const redisReply *e;
	char *name;
	size_t i;

	free(key);
	if (all == NULL)
		return -1;
	for (i = 0; i < all->elements; i++) {
		e = all->element[i];
		if (strlen(e->str) != e->len || strchr(e->str, ':') != NULL ||
		    rsmq_queue_error(e->str) != NULL)
			continue;
		name = rsmq_name(r, e->str);
		mq_names_add(names, name, NULL);
		free(name);
	}
	freeReplyObject(all);
	return 0;
}

/* Other programs may have written any number. */
int64_t
rsmq_ms(const redisReply *score)
{
	double ms = strtod(score->str, NULL);

	return score->len == 0 ? 0 :
	    ms >= 9e15	       ? INT64_C(9000000000000000) :
	    ms >= 1	       ? (int64_t)ms :
				 1;
}

/* --- headers ------------------------------------------------------------------- */

void
rsmq_extra(struct mq_envelope *e, struct mq_buf *extra)
{
	struct mq_buf text = {0};

	mq_buf_clear(extra);
	if (!json_is_object(e->headers))
		return;
	json_object_del(e->headers, MQ_HEADER_ID);
	json_object_del(e->headers, MQ_HEADER_NAME);
	json_object_del(e->headers, MQ_HEADER_ATTEMPT);
	if (json_object_size(e->headers) == 0)
		return;
	mq_json_dump(e->headers, &text);
	/* Without the braces. */
	mq_buf_add(extra, text.data + 1, text.len - 2);
	mq_buf_free(&text);
}
