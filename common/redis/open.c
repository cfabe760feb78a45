#include <math.h>

#include "connection.h"
#include "parts.h"

int
mq_redis_open_until(struct mq_redis *r, struct mq_server *server, double until)
{
	if (server->url.kind == MQ_URL_CLUSTER)
		return mq_nodes_open(r, server, until);
	return mq_redis_connect(r, server, until);
}

int
mq_redis_open(struct mq_redis *r, struct mq_server *server)
{
	return mq_redis_open_until(r, server, INFINITY);
}

int
mq_redis_reach(struct mq_redis *r, struct mq_server *server)
{
	int rv;

	if (server->url.kind == MQ_URL_CLUSTER)
		rv = mq_nodes_open(r, server, INFINITY);
	else
		rv = mq_redis_begin(r, server, INFINITY);
	if (rv == 0)
		mq_redis_close(r);
	return rv;
}
