#include "layout.h"

#include "scripts.h"

/* A queue may be paused because it has filled the memory. */
void
mq_side_pause(const struct mq_side *side, struct mq_command *c,
    const char *queue, int64_t ms)
{
	mq_command_script(c, &mq_script_write_when_full);
	side->paused(c, queue);
	mq_command_words(c, "SET 1");
	if (ms < 0)
		return;
	mq_command_str(c, "PX");
	mq_command_int(c, ms);
}

void
mq_side_resume(
    const struct mq_side *side, struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "DEL");
	side->paused(c, queue);
}

void
mq_side_pause_at_least(const struct mq_side *side, struct mq_command *c,
    const char *queue, int64_t ms)
{
	mq_command_script(c, &mq_script_pause);
	side->paused(c, queue);
	mq_command_int(c, ms);
}

void
mq_side_count(const struct mq_side *side, struct mq_command *c,
    const char *queue, const struct mq_counts *n)
{
	mq_command_script(c, &mq_script_count);
	side->counters(c, queue);
	if (side->exists != NULL)
		side->exists(c, queue);
	mq_counts_add(c, n);
}

void
mq_side_count_published(const struct mq_side *side, struct mq_command *c,
    const char *queue, long long n)
{
	mq_command_plain(c, "HINCRBY");
	side->counters(c, queue);
	mq_command_str(c, "published");
	mq_command_int(c, n);
}

void
mq_side_pass(const struct mq_side *side, const struct mq_session *s,
    const char *queue, struct mq_command *c)
{
	mq_command_script(c, &mq_script_pass);
	side->waits(c, queue);
	mq_command_str(c, s->wake);
}

void
mq_side_marks(const struct mq_side *side, struct mq_command *c,
    const char *verb, const char *queue, const char *publisher)
{
	mq_command_plain(c, verb);
	side->marks(c, queue, publisher);
}

void
mq_side_tell_running(const struct mq_side *side, const struct mq_session *s,
    const char *text, size_t n, struct mq_command *c)
{
	mq_command_plain(c, n == 0 ? "DEL" : "SET");
	side->running(c, s->connection, s->queues[0]);
	if (n == 0)
		return;
	mq_command_arg(c, text, n);
	mq_command_str(c, "EX");
	mq_command_int(c, MQ_SIDE_RUNNING_S);
}

void
mq_side_compete(const struct mq_side *side, const struct mq_session *s,
    int queue, int64_t ms, struct mq_command *c)
{
	mq_command_script(c, &mq_script_compete);
	c->optional = queue == -1;
	side->cleaning(c, s->queues[queue == -1 ? 0 : queue], queue == -1);
	if (!c->cluster)
		side->heartbeat(c, s->connection, s->queues[0]);
	mq_command_int(c, ms);
	mq_command_str(c, s->connection);
	if (s->former != NULL)
		mq_command_str(c, s->former);
}

void
mq_side_resign(const struct mq_side *side, const struct mq_session *s,
    struct mq_command *c)
{
	mq_command_plain(c, "DEL");
	c->optional = true;
	side->cleaning(c, s->queues[0], true);
}
