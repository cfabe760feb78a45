#include "listed.h"

#include <string.h>

void
rmq_ask_listed(struct mq_command *c, const char *set)
{
	mq_command_plain(c, "SMEMBERS");
	mq_command_str(c, set);
}

redisReply *
rmq_listed(struct mq_redis *r, const char *set)
{
	struct mq_command c = {0};

	rmq_ask_listed(&c, set);
	return mq_call_strings(r, &c);
}

void
rmq_add_names(struct mq_names *names, const redisReply *all)
{
	size_t i;

	for (i = 0; i < all->elements; i++)
		if (strlen(all->element[i]->str) == all->element[i]->len)
			mq_names_add(names, all->element[i]->str, NULL);
}
