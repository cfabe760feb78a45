/*
 * The rmq layout: connections that no set lists are listed again.
 */
#include "keys.h"
#include "steps.h"
#include "unlisted.h"

static void
build_adopt(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	rmq_adopt(c, name->name, name->queue, w->how->dry_run);
}

/* Lists of live connections that have the queue are left out, which are most. */
struct unlisted {
	const struct rmq_cleaner *w;
	const struct mq_name *all;
	struct mq_names others;
};

static void
ask_listed(void *arg, size_t i, struct mq_command *c)
{
	const struct unlisted *u = arg;

	mq_command_plain(c, "SISMEMBER");
	rmq_key_connection(c, u->all[i].name, "queues");
	mq_command_str(c, u->all[i].queue);
}

static int
take_listed(void *arg, size_t i, redisReply *reply)
{
	struct unlisted *u = arg;

	if (!mq_names_have(&u->w->live, u->all[i].name) ||
	    (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0))
		mq_names_add(&u->others, u->all[i].name, u->all[i].queue);
	return 0;
}

int
rmq_adopt_some(struct rmq_cleaner *w, const struct mq_names *lists,
    struct mq_names *adopted)
{
	struct unlisted u = {.w = w, .all = lists->list};
	int rv = mq_ask_each(w->round.r, lists->n, ask_listed, take_listed, &u);

	if (rv == 0)
		rv = rmq_cleaner_select(w, &u.others, build_adopt, adopted);
	w->out->adopted += (long)adopted->n;
	if (rv == 0)
		rv = rmq_reclaim(w, adopted->list, adopted->n);
	mq_names_free(&u.others);
	return rv;
}

int
rmq_adopt_all(struct rmq_cleaner *w)
{
	struct mq_names lists = {0}, adopted = {0};
	int rv = rmq_unacked_lists(w->round.r, 0, &lists);

	if (rv == 0)
		rv = rmq_adopt_some(w, &lists, &adopted);
	mq_names_free(&lists);
	mq_names_free(&adopted);
	return rv;
}
