#include "links.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

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

static int
by_queue(const void *a, const void *b)
{
	const struct mq_consumed *x = a, *y = b;

	return strcmp(x->queue, y->queue);
}

static void
list_connection(struct mq_links *l, struct mq_connection_stats *c)
{
	struct mq_consumed *queue;
	int i;

	if (c->count == 0)
		return;
	qsort(c->consumed, (size_t)c->count, sizeof(*c->consumed), by_queue);
	for (i = 0; i < c->count; i++) {
		queue = &c->consumed[i];
		l->list[l->n++] = (struct mq_link){
		    c, queue, mq_rows_find(l->out, queue->queue)};
	}
}

void
mq_links_list(struct mq_links *l)
{
	int i;

	l->list = mq_xcalloc(l->n + 1, sizeof(*l->list));
	l->n = 0;
	for (i = 0; i < l->out->connection_count; i++)
		list_connection(l, &l->out->connections[i]);
}

void
mq_links_end(struct mq_links *l)
{
	free(l->list);
	if (l->named || !l->wanted)
		mq_rows_forget(l->out, l->wanted);
}
