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

int
rsmq_add_listed(struct mq_redis *r, struct mq_names *names)
{
	const char *ns = r->server->url.ns;
	char *key = mq_xasprintf("%s:QUEUES", ns != NULL ? ns : RSMQ_NAMESPACE);
	redisReply *all = mq_call_members(r, key);
	const redisReply *e;
	size_t i;

	free(key);
	if (all == NULL)
		return -1;
	for (i = 0; i < all->elements; i++) {
		e = all->element[i];
		if (e->type == REDIS_REPLY_STRING && strlen(e->str) == e->len &&
		    strchr(e->str, ':') == NULL &&
		    rsmq_queue_error(e->str) == NULL)
			mq_names_add(names, e->str, NULL);
	}
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
	redisReply *reply = mq_call(r, c, -1);

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

int
rsmq_count_hidden(struct mq_redis *r, const char *queue, struct rsmq_hidden *h)
{
	size_t i, n = h->spared != NULL ? h->spared->elements : 0;
	struct mq_command c = {0};
	redisReply *reply, **e;

	do {
		mq_command_script(&c, &rsmq_script_hidden);
		rsmq_queue_keys(&c, queue);
		for (i = 0; i < n; i++)
			rsmq_key_held(&c, h->spared->element[i]->str, queue);
		mq_command_arg(&c, h->score.data, h->score.len);
		mq_command_arg(&c, h->id.data, h->id.len);
		mq_command_int(&c, RSMQ_LOOKS);
		reply = rsmq_call(r, &c, "##$#$$#");
		if (reply == NULL)
			return -1;
		e = reply->element;
		h->waits += e[0]->integer;
		h->held += e[1]->integer;
		if (h->next_ms == 0)
			h->next_ms = rsmq_ms(e[2]);
		h->left = e[3]->integer;
		mq_buf_set(&h->score, e[4]->str, e[4]->len);
		mq_buf_set(&h->id, e[5]->str, e[5]->len);
		h->ready = e[6]->integer;
		freeReplyObject(reply);
	} while (h->left > 0);
	return 0;
}

void
rsmq_hidden_free(struct rsmq_hidden *h)
{
	mq_buf_free(&h->score);
	mq_buf_free(&h->id);
}

/* --- headers ------------------------------------------------------------------- */

void
rsmq_extra(struct mq_envelope *e, struct mq_buf *extra)
{
	struct mq_buf text = {0};

	mq_buf_clear(extra);
	if (!json_is_object(e->headers))
		return;
	mq_envelope_remove(e, MQ_HEADER_ID);
	mq_envelope_remove(e, MQ_HEADER_NAME);
	mq_envelope_remove(e, MQ_HEADER_ATTEMPT);
	if (json_object_size(e->headers) == 0)
		return;
	mq_json_dump(e->headers, &text);
	/* Without the braces. */
	mq_buf_add(extra, text.data + 1, text.len - 2);
	mq_buf_free(&text);
}
