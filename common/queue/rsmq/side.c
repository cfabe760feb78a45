/*
 * The rsmq layout: what we keep beside a queue.
 */
#include "layout.h"

#include "keys.h"
#include "queue/counts.h"
#include "queue/scripts.h"

void
rsmq_count(struct mq_command *c, const char *queue, const struct mq_counts *n)
{
	mq_command_script(c, &mq_script_count, 2);
	rsmq_key(c, queue, ":Xcounters");
	rsmq_key(c, queue, ":Q");
	mq_counts_add(c, n);
}

void
rsmq_count_published(struct mq_command *c, const char *queue, long long n)
{
	mq_command_plain(c, "HINCRBY");
	rsmq_key(c, queue, ":Xcounters");
	mq_command_str(c, "published");
	mq_command_int(c, n);
}

void
rsmq_pause(struct mq_command *c, const char *queue, int64_t ms)
{
	/* Maybe just because it has filled the memory. */
	mq_command_script(c, &mq_script_write_when_full, 1);
	rsmq_key(c, queue, ":Xpaused");
	mq_command_str(c, "SET");
	mq_command_str(c, "1");
	if (ms < 0)
		return;
	mq_command_str(c, "PX");
	mq_command_int(c, ms);
}

void
rsmq_resume(struct mq_command *c, const char *queue)
{
	mq_command_plain(c, "DEL");
	rsmq_key(c, queue, ":Xpaused");
}

void
rsmq_pause_at_least(struct mq_command *c, const char *queue, int64_t ms)
{
	mq_command_script(c, &mq_script_pause, 1);
	rsmq_key(c, queue, ":Xpaused");
	mq_command_int(c, ms);
}
