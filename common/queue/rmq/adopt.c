/*
 * The rmq layout: connections that nobody lists are listed again, and those of
 * them that are dead are cleaned.
 */
#include "clean.h"
#include "keys.h"
#include "unlisted.h"

int
rmq_ask_each(struct rmq_round *w, const struct mq_names *names,
    void (*build)(
	const struct rmq_round *, const struct mq_name *, struct mq_command *),
    struct mq_names *yes)
{
	const struct mq_name *name = names->list;
	size_t i, left, n;
	int rv = 0;

	for (left = names->n; left > 0 && rv == 0; left -= n, name += n) {
		n = left < MQ_PIPE_MAX ? left : MQ_PIPE_MAX;
		for (i = 0; i < n; i++)
			build(w, &name[i], mq_pipe_next(&w->pipe));
		rv = mq_pipe_run(w->r, &w->pipe);
		for (i = 0; i < n && rv == 0; i++)
			if (rmq_round_good(
				w, w->pipe.replies[i], REDIS_REPLY_INTEGER) &&
			    w->pipe.replies[i]->integer > 0)
				mq_names_add(yes, name[i].name, name[i].queue);
		mq_pipe_clear(&w->pipe);
	}
	mq_names_sort(yes);
	return rv;
}

static void
build_adopt(
    const struct rmq_round *w, const struct mq_name *name, struct mq_command *c)
{
	rmq_adopt(c, name->name, name->queue, w->how->dry_run);
}

/* Adds those of n names that may not be listed: few, as a rule. */
static int
ask_listed(struct rmq_round *w, const struct mq_name *names, size_t n,
    struct mq_names *others)
{
	struct mq_command *c;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(&w->pipe);
		mq_command_plain(c, "SISMEMBER");
		rmq_key_connection(c, names[i].name, "queues");
		mq_command_str(c, names[i].queue);
	}
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < n && rv == 0; i++)
		if (!mq_names_have(&w->live, names[i].name) ||
		    (w->pipe.replies[i]->type == REDIS_REPLY_INTEGER &&
			w->pipe.replies[i]->integer == 0))
			mq_names_add(others, names[i].name, names[i].queue);
	mq_pipe_clear(&w->pipe);
	return rv;
}

static int
find_unlisted(
    struct rmq_round *w, const struct mq_names *all, struct mq_names *others)
{
	size_t i, n;
	int rv = 0;

	for (i = 0; i < all->n && rv == 0; i += n) {
		n = all->n - i < MQ_PIPE_MAX ? all->n - i : MQ_PIPE_MAX;
		rv = ask_listed(w, all->list + i, n, others);
	}
	return rv;
}

int
rmq_adopt_some(
    struct rmq_round *w, const struct mq_names *lists, struct mq_names *adopted)
{
	struct mq_names others = {0};
	int rv = find_unlisted(w, lists, &others);

	if (rv == 0)
		rv = rmq_ask_each(w, &others, build_adopt, adopted);
	w->out->adopted += (long)adopted->n;
	if (rv == 0)
		rv = rmq_bury(w, adopted->list, adopted->n);
	mq_names_free(&others);
	return rv;
}

int
rmq_adopt_all(struct rmq_round *w)
{
	struct mq_names lists = {0}, adopted = {0};
	int rv = rmq_unacked_lists(w->r, 0, &lists);

	if (rv == 0)
		rv = rmq_adopt_some(w, &lists, &adopted);
	mq_names_free(&lists);
	mq_names_free(&adopted);
	return rv;
}
