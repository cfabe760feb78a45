#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
mq_side_marks(const struct mq_side *side, struct mq_command *c,
    const char *queue, const char *publisher)
{
	char what[32 + MQ_ID_LEN];

	snprintf(what, sizeof(what), "%s%s", side->publisher, publisher);
	side->key(c, queue, what);
}

void
mq_mark_add(struct mq_command *c, const struct mq_mark *m)
{
	if (m->publisher == NULL) {
		mq_command_str(c, "");
		mq_command_str(c, "");
		return;
	}
	mq_command_int(c, m->place);
	mq_command_int(c, m->before);
}

/* As wide as any number, so that another one can take its place. */
#define BEHIND 20

void
mq_mark_add_behind(struct mq_command *c, const struct mq_mark *m)
{
	mq_mark_add(c, m);
	mq_command_fmt(c, "%*d", BEHIND, -1);
}

void
mq_mark_put_behind(struct mq_command *c, size_t n, long long behind)
{
	char text[BEHIND + 1];

	snprintf(text, sizeof(text), "%*lld", BEHIND, behind);
	memcpy(c->wire.data + n - strlen("\r\n") - BEHIND, text, BEHIND);
}

/* "BEFORE REPLY"; NULL when it is not. */
static const char *
take_apart(const redisReply *value, long long *before)
{
	char *end;

	if (value->type != REDIS_REPLY_STRING || value->str[0] < '0' ||
	    value->str[0] > '9')
		return NULL;
	*before = strtoll(value->str, &end, 10);
	return *end == ' ' ? end + 1 : NULL;
}

static size_t
pairs(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY ? reply->elements / 2 : 0;
}

const char *
mq_mark_find(const redisReply *reply, const struct mq_mark *m, size_t *n)
{
	const redisReply *value;
	const char *text;
	long long before;
	size_t i;

	/* No known mark can be that of another batch under way. */
	for (i = 0; i < pairs(reply); i++) {
		value = reply->element[2 * i + 1];
		text = take_apart(value, &before);
		if (text != NULL && before == m->before) {
			*n = value->len - (size_t)(text - value->str);
			return text;
		}
	}
	return NULL;
}

long long
mq_marks_last(const redisReply *reply)
{
	long long last = -1, before;
	size_t i;

	for (i = 0; i < pairs(reply); i++)
		if (take_apart(reply->element[2 * i + 1], &before) != NULL &&
		    before > last)
			last = before;
	return last;
}
