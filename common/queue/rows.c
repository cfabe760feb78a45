#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* The name is the first member of each. */
static int
by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

void
mq_rows_make(
    struct mq_stats *out, const char *const *names, size_t n, bool known)
{
	const char **name = mq_xcalloc(n + 1, sizeof(*name));
	size_t i;

	/* Names are far cheaper to sort than rows. */
	memcpy(name, names, n * sizeof(*name));
	qsort(name, n, sizeof(*name), by_name);
	out->queues = mq_xcalloc(n + 1, sizeof(*out->queues));
	out->count = (int)n;
	for (i = 0; i < n; i++)
		out->queues[i] =
		    (struct mq_queue_stats){.name = mq_xstrdup(name[i]),
			.known = known,
			.in_s = -1,
			.out_s = -1};
	free(name);
}

void
mq_rows_list(struct mq_stats *out, const redisReply *names)
{
	const char **name = mq_xcalloc(names->elements + 1, sizeof(*name));
	size_t i, n = 0;

	for (i = 0; i < names->elements; i++)
		if (strlen(names->element[i]->str) ==
		    (size_t)names->element[i]->len)
			name[n++] = names->element[i]->str;
	mq_rows_make(out, name, n, true);
	free(name);
}

struct mq_queue_stats *
mq_rows_find(const struct mq_stats *stats, const char *name)
{
	struct mq_queue_stats key = {.name = (char *)(uintptr_t)name};

	return bsearch(
	    &key, stats->queues, (size_t)stats->count, sizeof(key), by_name);
}

void
mq_rows_order(struct mq_stats *out, const char *const *names, int count)
{
	struct mq_queue_stats *rows = mq_xcalloc((size_t)count, sizeof(*rows));
	const struct mq_queue_stats *row;
	int i;

	for (i = 0; i < count; i++) {
		row = mq_rows_find(out, names[i]);
		if (row != NULL)
			rows[i] = *row;
		rows[i].name = mq_xstrdup(names[i]);
	}
	for (i = 0; i < count; i++)
		free(out->queues[i].name);
	free(out->queues);
	out->queues = rows;
}

/* --- connections ------------------------------------------------------------ */

void
mq_rows_connections(struct mq_stats *out, const redisReply *names,
    const struct mq_names *others)
{
	struct mq_names all = {0};
	const redisReply *name;
	size_t i;

	for (i = 0; i < names->elements; i++) {
		name = names->element[i];
		if (strlen(name->str) == (size_t)name->len)
			mq_names_add(&all, name->str, NULL);
	}
	for (i = 0; others != NULL && i < others->n; i++)
		mq_names_add(&all, others->list[i].name, NULL);
	mq_names_sort(&all);
	out->connections = mq_xcalloc(all.n + 1, sizeof(*out->connections));
	for (i = 0; i < all.n; i++)
		out->connections[out->connection_count++].name =
		    all.list[i].name;
	free(all.list);
}

/* --- what they consume ------------------------------------------------------- */

void
mq_links_add(struct mq_links *l, struct mq_connection_stats *c,
    const char *queue, long long consumers)
{
	if (mq_rows_find(l->out, queue) == NULL && (l->named || !l->wanted))
		return;
	c->consumed[c->count++] = (struct mq_consumed){
	    .queue = mq_xstrdup(queue), .consumers = consumers};
	l->n++;
}

void
mq_links_about(struct mq_connection_stats *c, const redisReply *host,
    const redisReply *pid)
{
	if (host->type == REDIS_REPLY_STRING && host->str[0] != '\0')
		c->host = mq_xstrdup(host->str);
	if (pid->type == REDIS_REPLY_STRING)
		c->pid = strtol(pid->str, NULL, 10);
	if (c->pid < 0)
		c->pid = 0;
}

void
mq_links_list(struct mq_links *l)
{
	struct mq_connection_stats *c = l->out->connections;
	struct mq_consumed *queue;
	struct mq_queue_stats *row;
	int i, n = l->out->connection_count;

	l->list = mq_xcalloc(l->n + 1, sizeof(*l->list));
	l->n = 0;
	for (; n > 0; n--, c++) {
		if (c->count > 0)
			qsort(c->consumed, (size_t)c->count,
			    sizeof(*c->consumed), by_name);
		for (i = 0; i < c->count; i++) {
			queue = &c->consumed[i];
			row = mq_rows_find(l->out, queue->queue);
			l->list[l->n++] = (struct mq_link){c, queue, row};
			if (row != NULL && c->ttl_ms > 0)
				row->connections++;
		}
	}
}

static void
free_connection(struct mq_connection_stats *c)
{
	int i;

	for (i = 0; i < c->count; i++) {
		free(c->consumed[i].queue);
		free(c->consumed[i].node);
	}
	free(c->consumed);
	free(c->name);
	free(c->node);
	free(c->host);
}

void
mq_links_end(struct mq_links *l)
{
	struct mq_connection_stats *c = l->out->connections;
	int i, n = l->out->connection_count;

	free(l->list);
	if (!l->named && l->wanted)
		return;
	l->out->connection_count = 0;
	for (i = 0; i < n; i++)
		if (l->wanted && c[i].count > 0)
			c[l->out->connection_count++] = c[i];
		else
			free_connection(&c[i]);
}

void
mq_stats_free(struct mq_stats *stats)
{
	int i, k;

	for (i = 0; i < stats->count; i++) {
		free(stats->queues[i].name);
		free(stats->queues[i].node);
		for (k = 0; k < MQ_PASTS; k++)
			free(stats->queues[i].past[k].notes);
	}
	free(stats->queues);
	for (i = 0; i < stats->connection_count; i++)
		free_connection(&stats->connections[i]);
	free(stats->connections);
	mq_names_free(&stats->cluster);
	*stats = (struct mq_stats){0};
}
