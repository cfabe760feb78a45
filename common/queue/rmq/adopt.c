/*
 * The rmq layout: connections that no set lists are listed again.
 */
#include "queue/scripts.h"
#include "rmq.h"

static void
build_adopt(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	rmq_adopt(c, name->name, name->queue, w->how->dry_run);
}

static void
build_queue_of(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	if (w->how->dry_run) {
		mq_command_plain(c, "EXISTS");
		rmq_key_both(c, name->name, name->queue, "unacked");
		return;
	}
	mq_command_script(c, &mq_script_write_when_full);
	rmq_key_connection(c, name->name, "queues");
	mq_command_str(c, "SADD");
	mq_command_str(c, name->queue);
}

static void
build_listed(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	(void)w;
	mq_command_script(c, &mq_script_write_when_full);
	rmq_key_all(c, RMQ_CONNECTIONS);
	mq_command_str(c, "SADD");
	mq_command_str(c, name->name);
}

/* On a cluster each set is on a node of its own. */
static int
adopt_step_by_step(struct rmq_cleaner *w, const struct mq_names *others,
    struct mq_names *adopted)
{
	int rv = rmq_cleaner_select(w, others, build_queue_of, adopted);

	if (rv == 0 && !w->how->dry_run)
		rv = rmq_cleaner_select(w, others, build_listed, adopted);
	return rv;
}

static void
build_heartbeat(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	(void)w;
	mq_command_plain(c, "EXISTS");
	rmq_key_connection(c, name->name, "heartbeat");
}

/* Elsewhere each step looks for the heartbeat; on a cluster that of a Go program is not
 * beside its queue. */
static int
reclaim_adopted(struct rmq_cleaner *w, const struct mq_names *adopted)
{
	bool all = !mq_redis_command(w->round.r).cluster;
	struct mq_names live = {0}, dead = {0};
	const struct mq_name *name;
	size_t i;
	int rv = 0;

	if (!all)
		rv = rmq_cleaner_select(w, adopted, build_heartbeat, &live);
	for (i = 0; i < adopted->n; i++) {
		name = &adopted->list[i];
		if (all || !mq_names_have(&live, name->name))
			mq_names_add(&dead, name->name, name->queue);
	}
	mq_names_sort(&dead);
	if (rv == 0)
		rv = rmq_reclaim(w, dead.list, dead.n);
	mq_names_free(&live);
	mq_names_free(&dead);
	return rv;
}

/* Lists of live connections that have the queue are left out, which are most; on a
 * cluster those of all that are listed. */
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
	const char *connection = u->all[i].name;
	bool listed = mq_names_have(&u->w->live, connection);

	/* Elsewhere the script looks for that. */
	if (mq_redis_command(u->w->round.r).cluster)
		listed |= mq_names_have(&u->w->dead, connection);
	if (!listed ||
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

	if (rv == 0 && mq_redis_command(w->round.r).cluster)
		rv = adopt_step_by_step(w, &u.others, adopted);
	else if (rv == 0)
		rv = rmq_cleaner_select(w, &u.others, build_adopt, adopted);
	w->out->adopted += (long)adopted->n;
	if (rv == 0)
		rv = reclaim_adopted(w, adopted);
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
