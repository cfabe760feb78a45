#include "links.h"

#include "cluster.h"

void
mq_links_init(struct mq_links *links, struct ev_loop *loop,
    const struct mq_server *server, const char *channel, const char *name,
    const struct mq_pair_events *events, void *arg)
{
	*links = (struct mq_links){.cluster = NULL};
	if (server->url.kind == MQ_URL_CLUSTER)
		links->cluster =
		    mq_cluster_new(loop, server, channel, name, events, arg);
	else
		mq_pair_init(&links->only, loop, server, channel, name, NULL,
		    events, arg);
}

struct mq_async *
mq_links_async(struct mq_links *links)
{
	return links->cluster != NULL ? mq_cluster_async(links->cluster) :
					&links->only.main;
}

int
mq_links_open(struct mq_links *links, const char **why)
{
	if (links->cluster == NULL)
		return mq_pair_open(&links->only, why);
	mq_cluster_open(links->cluster);
	return 0;
}

void
mq_links_close(struct mq_links *links)
{
	if (links->cluster != NULL)
		mq_cluster_close(links->cluster);
	else
		mq_pair_close(&links->only);
}

void
mq_links_free(struct mq_links *links)
{
	mq_links_close(links);
	if (links->cluster != NULL)
		mq_cluster_free(links->cluster);
}
