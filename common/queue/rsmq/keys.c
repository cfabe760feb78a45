/*
 * The layout of RSMQ (npm rsmq 0.12, and its ports).  Its keys, in a namespace
 * N, which is rsmq unless a queue's name says another:
 *
 *	N:QUEUES	set of queue names
 *	N:Q		sorted set: ids of messages; score: when it can be
 *			received, unix ms
 *	N:Q:Q		hash: the attributes of the queue, totals, and of each
 *			message the body, the receive count, the first receive
 *
 * and ours, which programs that use RSMQ do not know and do not need:
 *
 *	N:Q:X		hash: further headers of messages
 *	N:Q:Xagain	hash: of messages that wait for another run, the last
 *			receive
 *	N:Q:Xlater	sorted set: delayed messages with a priority; score:
 *			when they are due
 *	N:Q:Xheld:C	hash: what connection C holds, and its receive count
 *	N:Q:Xpaused	"1", maybe with a TTL
 *	N::paused	the same of all queues
 *	N:Q:Xrate	hash: a rate that consumers share
 *	N:Q:Xwatch	the consumer that hears of messages, and
 *	N:Q:Xidle	sorted set: those that it wakes; both lapse after 60 s;
 *			see lua/lib/role.lua
 *	N:Q:Xcounters	hash: what has been counted
 *	N:Q:Xminutes, Xhours	hashes: its past; see past.c; both lapse
 *	N:Q:Xstop	a request to end a run, with a TTL: see stats.h
 *	N:Q:Xsettings	hash: see settings.h
 *	N:Q:Xpublisher:ID	hash: what has become of its batches; see layout.h
 *	N::connections	sorted set of connection names
 *	N::connection:C	hash: host, pid, slots, lease, queues; it lives as
 *			long as the lease
 *	N::running:C	what runs there: see stats.h
 *
 * Rejected messages of Q are the messages of the queue Q-rejected.
 */
#include "rsmq.h"

#include <stdbool.h>
#include <string.h>

/* The longest that other programs take; the name of a queue of rejected ones has to fit, too. */
#define QUEUE_NAME_MAX 160

#define REJECTED (sizeof(RSMQ_REJECTED) - 1)

/* The part of a name that says its namespace; 0: it says none. */
static size_t
namespace_len(const char *queue)
{
	const char *colon = strrchr(queue, ':');

	return colon != NULL ? (size_t)(colon - queue) : 0;
}

static struct mq_part
part_of(const char *s)
{
	return (struct mq_part){s, strlen(s)};
}

static struct mq_part
namespace_of(const char *queue)
{
	size_t n = namespace_len(queue);

	return n > 0 ? (struct mq_part){queue, n} : part_of(RSMQ_NAMESPACE);
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
	struct mq_part parts[] = {
	    namespace_of(queue), part_of(":"), part_of(rsmq_bare(queue)), {0}};
	bool more;

	do {
		parts[3] = (struct mq_part){what, strcspn(what, " ")};
		more = what[parts[3].n] == ' ';
		mq_command_key(c, parts, 4);
		what += parts[3].n + 1;
	} while (more);
}

void
rsmq_key_common(struct mq_command *c, const char *queue, const char *what)
{
	const struct mq_part parts[] = {namespace_of(queue), part_of(what)};

	mq_command_key(c, parts, 2);
}

void
rsmq_queue_keys(struct mq_command *c, const char *queue)
{
	rsmq_key(c, queue, " :Q :X :Xagain");
}

void
rsmq_key_held(struct mq_command *c, const char *connection, const char *queue)
{
	const struct mq_part parts[] = {namespace_of(queue), part_of(":"),
	    part_of(rsmq_bare(queue)), part_of(":Xheld:"), part_of(connection)};

	mq_command_key(c, parts, 5);
}

void
rsmq_start_held(struct mq_command *c, const struct mq_script *script,
    const char *connection, const char *queue)
{
	mq_command_script(c, script);
	rsmq_queue_keys(c, queue);
	rsmq_key_held(c, connection, queue);
}

static void
add_named(struct mq_command *c, const char *queue, const char *what,
    const char *connection)
{
	const struct mq_part parts[] = {
	    namespace_of(queue), part_of(what), part_of(connection)};

	mq_command_key(c, parts, 3);
}

void
rsmq_key_lease(struct mq_command *c, const char *connection, const char *queue)
{
	add_named(c, queue, "::connection:", connection);
}

void
rsmq_key_running(
    struct mq_command *c, const char *connection, const char *queue)
{
	add_named(c, queue, "::running:", connection);
}

/* As RSMQ does; and QUEUES, whose messages would be put into the set of names. */
const char *
rsmq_queue_error(const char *queue)
{
	const char *name = rsmq_bare(queue);
	size_t n = strlen(name), max = QUEUE_NAME_MAX;
	const char *letters = "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (*name == '\0')
		return "a name must not be empty";
	if (n <= REJECTED || strcmp(name + n - REJECTED, RSMQ_REJECTED) != 0)
		max -= REJECTED;
	if (n > max)
		return "a name has at most 151 bytes (with -rejected, 160)";
	if (name[strspn(name, letters)] != '\0')
		return "a name in RSMQ has only letters, digits, _ and -";
	if (strcmp(name, "QUEUES") == 0)
		return "RSMQ reserves this name";
	return NULL;
}

const struct mq_side rsmq_side = {.key = rsmq_key,
    .cleaning = ":Xcleaning",
    .paused = ":Xpaused",
    .counters = ":Xcounters",
    .settings = ":Xsettings",
    .exists = ":Q",
    .waits = ":Xwatch :Xidle",
    .past = {":Xminutes", ":Xhours"},
    .stop = ":Xstop",
    .publisher = ":Xpublisher:",
    .all = rsmq_key_common,
    .names = ":QUEUES",
    .all_cleaning = "::cleaning",
    .all_paused = "::paused",
    .running = rsmq_key_running,
    .heartbeat = rsmq_key_lease};
