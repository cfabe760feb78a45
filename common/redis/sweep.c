#include "round.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct walk {
	int node;
	char cursor[MQ_CURSOR_SIZE]; /* empty: at its end */
	redisReply *reply;
};

struct walks {
	struct mq_sweep *sweep;
	struct walk *list; /* those that are not at their end */
	size_t n;
};

static bool
is_good(struct mq_sweep *s, const redisReply *reply, int type)
{
	bool good = mq_round_good(s->round, reply, type);

	s->part |= !good;
	return good;
}

static void
ask_size(void *arg, size_t i, struct mq_command *c)
{
	const struct walks *all = arg;

	(void)mq_redis_visit(all->sweep->round->r, all->list[i].node);
	mq_command_plain(c, "DBSIZE");
}

static int
take_size(void *arg, size_t i, redisReply *reply)
{
	struct walks *all = arg;

	if (!is_good(all->sweep, reply, REDIS_REPLY_INTEGER) ||
	    reply->integer > all->sweep->most) {
		all->sweep->part = true;
		all->list[i].cursor[0] = '\0';
	}
	return 0;
}

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct walks *all = arg;

	(void)mq_redis_visit(all->sweep->round->r, all->list[i].node);
	mq_keys_ask(c, all->list[i].cursor, all->sweep->pattern);
	if (all->sweep->type != NULL) {
		mq_command_str(c, "TYPE");
		mq_command_str(c, all->sweep->type);
	}
}

static int
take_step(void *arg, size_t i, redisReply *reply)
{
	struct walks *all = arg;

	all->list[i].reply = reply;
	return MQ_KEEP;
}

/* What is done with the keys may need commands of its own. */
static int
use_step(struct mq_sweep *s, struct walk *walk)
{
	const redisReply *keys = NULL;
	int rv = 0;

	walk->cursor[0] = '\0';
	if (walk->reply != NULL && is_good(s, walk->reply, REDIS_REPLY_ARRAY)) {
		keys = mq_cursor_take(walk->cursor, walk->reply);
		if (keys != NULL)
			rv = s->take(s->arg, keys);
	}
	freeReplyObject(walk->reply);
	walk->reply = NULL;
	return rv;
}

static void
drop_ended(struct walks *all)
{
	size_t i, n = 0;

	for (i = 0; i < all->n; i++)
		if (all->list[i].cursor[0] != '\0')
			all->list[n++] = all->list[i];
	all->n = n;
}

static int
step_walks(struct walks *all)
{
	size_t i;
	int rv =
	    mq_ask_each(all->sweep->round->r, all->n, ask_step, take_step, all);

	for (i = 0; i < all->n; i++)
		if (rv == 0)
			rv = use_step(all->sweep, &all->list[i]);
		else
			freeReplyObject(all->list[i].reply);
	drop_ended(all);
	return rv;
}

int
mq_sweep_keys(struct mq_sweep *s)
{
	struct mq_redis *r = s->round->r;
	struct walks all = {.sweep = s};
	int node, rv = 0;

	for (node = 0; mq_redis_visit(r, node); node++) {
		all.list =
		    mq_xreallocarray(all.list, all.n + 1, sizeof(*all.list));
		all.list[all.n++] = (struct walk){.node = node, .cursor = "0"};
	}
	if (s->most > 0)
		rv = mq_ask_each(r, all.n, ask_size, take_size, &all);
	drop_ended(&all);
	while (rv == 0 && all.n > 0)
		rv = step_walks(&all);
	(void)mq_redis_visit(r, node);
	free(all.list);
	return rv;
}
