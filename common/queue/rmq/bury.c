/*
 * The rmq layout: taking dead connections apart, many at a time.
 *
 * A crash, or an error, anywhere in here leaves a connection listed as long as
 * it has a queue, and a queue as long as it has a message there.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "keys.h"
#include "plot.h"
#include "scripts.h"

/* So many connections, or queues of them, are dealt with at a time; fewer when
 * headers, which may be long, are on their way. */
#define MANY 500
#define FEW  16
_Static_assert(2 * MANY <= MQ_PIPE_MAX, "two commands about each fit");

/* Dead connections and what they had. */
struct graveyard {
	struct rmq_grave *graves;
	struct rmq_plot *plots;
	size_t graves_n, plots_n, plots_cap;
	redisReply **replies; /* two for each grave: info, queues */
};

static void
add_plot(struct rmq_round *w, struct graveyard *y, struct rmq_grave *g,
    const char *queue)
{
	if (y->plots_n == y->plots_cap) {
		y->plots_cap = y->plots_cap == 0 ? MANY : y->plots_cap * 2;
		y->plots =
		    mq_xreallocarray(y->plots, y->plots_cap, sizeof(*y->plots));
	}
	y->plots[y->plots_n++] =
	    (struct rmq_plot){.grave = g, .queue = queue, .left = LONG_MAX};
	if (w->how->all && w->how->dry_run)
		mq_names_add(&w->known, queue, NULL);
}

static void
add_plots(struct rmq_round *w, struct graveyard *y, struct rmq_grave *g,
    const redisReply *queues)
{
	const redisReply *queue;
	size_t i;

	for (i = 0; i < queues->elements; i++) {
		queue = queues->element[i];
		/* No key can be made of a name with a NUL in it here. */
		if (queue->type == REDIS_REPLY_STRING &&
		    strlen(queue->str) == queue->len)
			add_plot(w, y, g, queue->str);
		else
			g->failed = true;
	}
}

static bool
read_info(struct rmq_round *w, struct rmq_grave *g, const redisReply *info)
{
	const redisReply *slots, *host, *attempts;
	long limit = 0;

	if (info->elements != 3)
		return rmq_round_nonsense(w);
	slots = info->element[0];
	host = info->element[1];
	attempts = info->element[2];
	if (slots->type == REDIS_REPLY_STRING)
		g->slots = strtol(slots->str, NULL, 10);
	/* The second half of LONG_MAX is for sums. */
	if (g->slots < 0 || g->slots > INT_MAX)
		g->slots = 0;
	if (host->type == REDIS_REPLY_STRING)
		g->host = host->str;
	if (attempts->type == REDIS_REPLY_STRING)
		limit = strtol(attempts->str, NULL, 10);
	g->attempts =
	    limit > 0 && limit <= MQ_ATTEMPTS_MAX ? (int)limit : w->how->limit;
	/* Messages of a lapsed connection may have run, but none crashed. */
	if (mq_names_have(&w->lapsed, g->connection))
		g->slots = 0;
	g->ours = slots->type == REDIS_REPLY_STRING || g->host != NULL;
	return true;
}

static void
ask_about(struct mq_pipe *pipe, const char *connection)
{
	struct mq_command *c = mq_pipe_next(pipe);

	mq_command_plain(c, "HMGET");
	rmq_key_connection(c, connection, "info");
	mq_command_str(c, "slots");
	mq_command_str(c, "host");
	mq_command_str(c, "attempts");
	c = mq_pipe_next(pipe);
	mq_command_plain(c, "SMEMBERS");
	rmq_key_connection(c, connection, "queues");
}

/* Whether the i-th name is of another connection than the one before. */
static bool
is_another(const struct mq_name *dead, size_t i)
{
	return i == 0 || strcmp(dead[i].name, dead[i - 1].name) != 0;
}

/* One grave for each name, and what the server knows of it. */
static int
dig(struct rmq_round *w, struct graveyard *y, const struct mq_name *dead,
    size_t n)
{
	size_t i;
	int rv;

	y->graves = mq_xcalloc(n, sizeof(*y->graves));
	for (i = 0; i < n; i++)
		if (is_another(dead, i)) {
			y->graves[y->graves_n++].connection = dead[i].name;
			ask_about(&w->pipe, dead[i].name);
		}
	y->replies = mq_xcalloc(2 * y->graves_n, sizeof(redisReply *));
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < w->pipe.n; i++) {
		y->replies[i] = w->pipe.replies[i];
		w->pipe.replies[i] = NULL;
	}
	mq_pipe_clear(&w->pipe);
	return rv;
}

static void
lay_out(struct rmq_round *w, struct graveyard *y, const struct mq_name *dead,
    size_t n)
{
	struct rmq_grave *g = NULL;
	redisReply **replies = NULL;
	size_t i, next = 0;

	for (i = 0; i < n; i++) {
		if (is_another(dead, i)) {
			g = &y->graves[next];
			replies = &y->replies[2 * next++];
			g->failed =
			    !rmq_round_good(w, replies[0], REDIS_REPLY_ARRAY) ||
			    !rmq_round_good(w, replies[1], REDIS_REPLY_ARRAY) ||
			    !read_info(w, g, replies[0]);
		}
		if (g->failed)
			continue;
		if (dead[i].queue != NULL && w->how->dry_run)
			add_plot(w, y, g, dead[i].queue);
		else if (is_another(dead, i))
			add_plots(w, y, g, replies[1]);
	}
}

/* One more step for those of n plots that need it; *more: whether any did. */
static int
step(struct rmq_round *w, struct rmq_plot *plots, size_t n, bool show,
    bool *more)
{
	struct rmq_plot *asked[MANY];
	size_t i, m = 0;
	int rv;

	for (i = 0; i < n; i++)
		if (plots[i].left > (show ? 0 : rmq_plot_kept(&plots[i]))) {
			rmq_plot_step(
			    w, &plots[i], show, mq_pipe_next(&w->pipe));
			asked[m++] = &plots[i];
		}
	*more = m > 0;
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < m && rv == 0; i++) {
		rmq_plot_reply(w, asked[i], w->pipe.replies[i]);
		w->pipe.replies[i] = NULL;
	}
	mq_pipe_clear(&w->pipe);
	return rv;
}

static int
steps(struct rmq_round *w, struct graveyard *y, size_t size, bool show)
{
	size_t i, n;
	bool more;

	for (i = 0; i < y->plots_n; i += n) {
		n = y->plots_n - i;
		if (n > size)
			n = size;
		do {
			if (step(w, y->plots + i, n, show, &more) == -1)
				return -1;
		} while (more);
	}
	return 0;
}

static void
unlist(struct mq_pipe *pipe, const char *connection)
{
	struct mq_command *c = mq_pipe_next(pipe);

	mq_command_script(c, &rmq_script_unlist, 5);
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, connection, "queues");
	rmq_key_connection(c, connection, "heartbeat");
	rmq_key_connection(c, connection, "info");
	rmq_key_connection(c, connection, "running");
	mq_command_str(c, connection);
}

/* Those that had no queue, or whose last one another cleaner took. */
static int
close_graves(struct rmq_round *w, const struct graveyard *y)
{
	size_t i;
	int rv;

	for (i = 0; i < y->graves_n; i++)
		if (y->graves[i].failed || y->graves[i].closed)
			continue;
		else if (w->how->dry_run)
			w->out->connections++;
		else
			unlist(&w->pipe, y->graves[i].connection);
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < w->pipe.n && rv == 0; i++)
		if (rmq_round_good(w, w->pipe.replies[i], REDIS_REPLY_INTEGER))
			w->out->connections += w->pipe.replies[i]->integer;
	mq_pipe_clear(&w->pipe);
	return rv;
}

static void
free_graveyard(struct graveyard *y)
{
	size_t i;

	for (i = 0; i < y->plots_n; i++)
		rmq_plot_free(&y->plots[i]);
	for (i = 0; i < 2 * y->graves_n; i++)
		if (y->replies[i] != NULL)
			freeReplyObject(y->replies[i]);
	free(y->plots);
	free(y->graves);
	free(y->replies);
}

static int
bury_some(struct rmq_round *w, const struct mq_name *dead, size_t n)
{
	struct graveyard y = {0};
	int rv = dig(w, &y, dead, n);

	if (rv == 0) {
		lay_out(w, &y, dead, n);
		rv = steps(w, &y, MANY, false);
	}
	if (rv == 0)
		rv = steps(w, &y, FEW, true);
	if (rv == 0)
		rv = close_graves(w, &y);
	free_graveyard(&y);
	return rv;
}

int
rmq_bury(struct rmq_round *w, const struct mq_name *dead, size_t total)
{
	size_t i, n;

	for (i = 0; i < total; i += n) {
		/* One alone first: that makes the scripts known. */
		n = i == 0 ? 1 : total - i < MANY ? total - i : MANY;
		/* All queues that one is named with together. */
		while (i + n < total && !is_another(dead, i + n))
			n++;
		if (bury_some(w, dead + i, n) == -1)
			return -1;
	}
	return 0;
}
