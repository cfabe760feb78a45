#include "keys.h"

#include <string.h>

/* The part of a name that says its namespace; 0: it says none. */
static size_t
namespace_len(const char *queue)
{
	const char *colon = strrchr(queue, ':');

	return colon != NULL ? (size_t)(colon - queue) : 0;
}

static struct mq_part
part(const char *s)
{
	return (struct mq_part){s, strlen(s)};
}

/* NAMESPACE, as the queue's name says it, or by default. */
static struct mq_part
namespace_of(const char *queue)
{
	size_t n = namespace_len(queue);

	return n > 0 ? (struct mq_part){queue, n} : part(RSMQ_NAMESPACE);
}

const char *
rsmq_bare(const char *queue)
{
	size_t n = namespace_len(queue);

	return n > 0 ? queue + n + 1 : queue;
}

void
rsmq_key(struct mq_command *c, const char *queue, const char *what)
{
	const struct mq_part parts[] = {
	    namespace_of(queue), part(":"), part(rsmq_bare(queue)), part(what)};

	mq_command_parts(c, parts, 4);
}

void
rsmq_key_common(struct mq_command *c, const char *queue, const char *what)
{
	const struct mq_part parts[] = {namespace_of(queue), part(what)};

	mq_command_parts(c, parts, 2);
}

void
rsmq_key_home(struct mq_command *c, const char *queue)
{
	rsmq_key(c, queue, "");
	rsmq_key(c, queue, ":Q");
	rsmq_key(c, queue, ":X");
	rsmq_key(c, queue, ":Xd");
}

void
rsmq_key_held(struct mq_command *c, const char *connection, const char *queue)
{
	const struct mq_part parts[] = {namespace_of(queue), part(":"),
	    part(rsmq_bare(queue)), part(":Xheld:"), part(connection)};

	mq_command_parts(c, parts, 5);
}

void
rsmq_key_marks(struct mq_command *c, const char *queue, const char *publisher)
{
	const struct mq_part parts[] = {namespace_of(queue), part(":"),
	    part(rsmq_bare(queue)), part(":Xpublisher:"), part(publisher)};

	mq_command_parts(c, parts, 5);
}

void
rsmq_key_lease(struct mq_command *c, const char *connection, const char *queue)
{
	const struct mq_part parts[] = {
	    namespace_of(queue), part("::connection:"), part(connection)};

	mq_command_parts(c, parts, 3);
}

void
rsmq_key_running(
    struct mq_command *c, const char *connection, const char *queue)
{
	const struct mq_part parts[] = {
	    namespace_of(queue), part("::running:"), part(connection)};

	mq_command_parts(c, parts, 3);
}

void
rsmq_channel(struct mq_command *c, const char *queue)
{
	const struct mq_part parts[] = {
	    namespace_of(queue), part(":rt:"), part(rsmq_bare(queue))};

	mq_command_parts(c, parts, 3);
}
