#include "rsmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/queue.h"
#include "redis/ask.h"

char *
rsmq_name(const struct mq_redis *r, const char *bare)
{
	const char *ns = r->server->url.ns;

	if (ns == NULL || strcmp(ns, RSMQ_NAMESPACE) == 0)
		return mq_xstrdup(bare);
	return mq_xasprintf("%s:%s", ns, bare);
}

char *
rsmq_anywhere(const struct mq_redis *r)
{
	return rsmq_name(r, "");
}

redisReply *
rsmq_connections(struct mq_redis *r, const char *queue)
{
	struct mq_command c = {0};

	mq_command_plain(&c, "ZRANGE");
	rsmq_key_common(&c, queue, "::connections");
	mq_command_int(&c, 0);
	mq_command_int(&c, -1);
	return mq_call_strings(r, &c);
}

redisReply *
rsmq_listed(struct mq_redis *r)
{
	const char *ns = r->server->url.ns;
	char *key = mq_xasprintf("%s:QUEUES", ns != NULL ? ns : RSMQ_NAMESPACE);
	redisReply *all = mq_call_members(r, key);

	free(key);
	return all;
}

bool
rsmq_is_name(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING &&
	    strlen(reply->str) == reply->len &&
	    strchr(reply->str, ':') == NULL &&
	    rsmq_queue_error(reply->str) == NULL;
}

int
rsmq_add_listed(struct mq_redis *r, struct mq_names *names)
{
	redisReply *all = rsmq_listed(r);
	size_t i;

	for (i = 0; all != NULL && i < all->elements; i++)
		if (rsmq_is_name(all->element[i]))
			mq_names_add(names, all->element[i]->str, NULL);
	if (all == NULL)
		return -1;
	freeReplyObject(all);
	return 0;
}

bool
rsmq_is(const redisReply *reply, const char *form)
{
	size_t i, n = strlen(form);
	char kind;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < n)
		return false;
	for (i = 0; i < reply->elements; i++) {
		kind = i < n ? form[i] : '$';
		if (kind != '*' &&
		    reply->element[i]->type !=
			(kind == '#' ? REDIS_REPLY_INTEGER :
				       REDIS_REPLY_STRING))
			return false;
	}
	return true;
}

redisReply *
rsmq_call(struct mq_redis *r, struct mq_command *c, const char *form)
{
	redisReply *reply = mq_redis_call(r, c);

	if (reply == NULL || rsmq_is(reply, form))
		return reply;
	freeReplyObject(reply);
	(void)mq_nonsense(r);
	return NULL;
}

/* Anybody may have put anything there. */
int64_t
rsmq_ms(const redisReply *score)
{
	double ms = strtod(score->str, NULL);

	return score->len == 0 ? 0 :
	    ms >= 9e15	       ? INT64_C(9000000000000000) :
	    ms >= 1	       ? (int64_t)ms :
				 1;
}

static void
count_on(struct rsmq_hidden *h, redisReply *const *e)
{
	h->waits += e[0]->integer;
	h->held += e[1]->integer;
	if (h->next_ms == 0)
		h->next_ms = rsmq_ms(e[2]);
	h->left = e[3]->integer;
	mq_buf_set(&h->score, e[4]->str, e[4]->len);
	mq_buf_set(&h->id, e[5]->str, e[5]->len);
	h->ready = e[6]->integer;
}

static void
add_count(struct mq_command *c, const char *queue, const struct rsmq_hidden *h)
{
	size_t i, n = h->spared != NULL ? h->spared->elements : 0;

	mq_command_script(c, &rsmq_script_hidden);
	rsmq_queue_keys(c, queue);
	for (i = 0; i < n; i++)
		rsmq_key_held(c, h->spared->element[i]->str, queue);
	mq_command_arg(c, h->score.data, h->score.len);
	mq_command_arg(c, h->id.data, h->id.len);
	mq_command_int(c, RSMQ_LOOKS);
}

int
rsmq_count_hidden(struct mq_redis *r, const char *queue, struct rsmq_hidden *h)
{
	struct mq_command c = {0};
	redisReply *reply = NULL;

	do {
		add_count(&c, queue, h);
		reply = rsmq_call(r, &c, "##$#$$#");
		if (reply == NULL)
			break;
		count_on(h, reply->element);
		freeReplyObject(reply);
	} while (h->left > 0);
	mq_command_free(&c);
	return reply == NULL ? -1 : 0;
}

void
rsmq_ask_holding(
    struct mq_command *c, const char *connection, const char *queue)
{
	mq_command_script(c, &rsmq_script_holding);
	rsmq_queue_keys(c, queue);
	rsmq_key_held(c, connection, queue);
}

void
rsmq_hidden_free(struct rsmq_hidden *h)
{
	mq_buf_free(&h->score);
	mq_buf_free(&h->id);
}

/* --- headers ------------------------------------------------------------------- */

/* The members of an object. */
static void
add_members(const json_t *headers, struct mq_buf *out)
{
	struct mq_buf text = {0};

	mq_json_dump(headers, &text);
	/* Without the braces. */
	mq_buf_add(out, text.data + 1, text.len - 2);
	mq_buf_free(&text);
}

void
rsmq_extra(struct mq_envelope *e, struct mq_buf *extra)
{
	mq_buf_clear(extra);
	if (!json_is_object(e->headers))
		return;
	mq_envelope_remove(e, MQ_HEADER_ID);
	mq_envelope_remove(e, MQ_HEADER_NAME);
	mq_envelope_remove(e, MQ_HEADER_ATTEMPT);
	if (json_object_size(e->headers) > 0)
		add_members(e->headers, extra);
}
