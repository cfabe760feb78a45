#include "attach.h"

#include "redis/ask.h"

#include <string.h>

#define NAME_LEN 255

const char *
mq_attach_name_error(const char *name)
{
	if (*name == '\0')
		return "a name must not be empty";
	if (strlen(name) > NAME_LEN)
		return "a name has at most 255 bytes";
	if (*name == '.')
		return "a name must not begin with a dot";
	if (strchr(name, '/') != NULL)
		return "a name must not contain a slash";
	return NULL;
}

int
mq_attach_refer(struct mq_redis *r, const struct mq_attachments *how,
    const char *set, const char *id)
{
	struct mq_command c = mq_redis_command(r);
	long long there;

	how->refer(&c, set, id, false);
	return mq_call_number(r, &c, &there);
}
