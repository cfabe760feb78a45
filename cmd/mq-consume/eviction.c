/*
 * Whether the server drops what is in it.
 */
#include "base/say.h"
#include "consume.h"
#include "redis/policy.h"

static void
on_memory(void *arg, const struct mq_answer *answer, const struct mq_info *info)
{
	const struct consumer *c = arg;

	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		if (c->opt->verbose)
			mq_say("%s: INFO: %s", c->server.name, answer->error);
		return;
	}
	if (mq_info_evicts(info) && !c->opt->quiet)
		mq_say("%s: maxmemory-policy is %s: when its memory is full, "
		       "the server drops queues or leases; set it to "
		       "noeviction",
		    c->server.name, info->policy);
}

void
eviction_ask(struct consumer *c)
{
	if (!c->ever_joined)
		mq_policy_ask(&c->main, on_memory, c);
}
