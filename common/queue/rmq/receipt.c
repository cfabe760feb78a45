/*
 * The rmq layout: messages that are handed out by receipt, under a lease that
 * nobody renews.
 */
#include "layout.h"

#include "keys.h"
#include "scripts.h"

void
rmq_receipts(const struct mq_session *s, const struct mq_part *elements, int n,
    struct mq_command *c)
{
	/* The list has them in the same order. */
	(void)elements;
	mq_command_script(c, &rmq_script_receipts, 2);
	rmq_key_both(c, s->connection, s->queues[0], "unacked");
	rmq_key_connection(c, s->connection, "info");
	mq_command_int(c, n);
}

void
rmq_receipt(struct mq_command *c, const char *connection, const char *queue,
    const char *number)
{
	mq_command_script(c, &rmq_script_receipt, 3);
	rmq_key_both(c, connection, queue, "unacked");
	rmq_key_connection(c, connection, "info");
	rmq_key_connection(c, connection, "heartbeat");
	mq_command_str(c, number);
}

void
rmq_vacate(const struct mq_session *s, struct mq_command *c)
{
	const char *queue = s->queues[0];

	mq_command_script(c, &rmq_script_leave, 6);
	rmq_key_both(c, s->connection, queue, "unacked");
	rmq_key_both(c, s->connection, queue, "consumers");
	rmq_key_connection(c, s->connection, "queues");
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, s->connection, "heartbeat");
	rmq_key_connection(c, s->connection, "info");
	mq_command_str(c, queue);
	mq_command_str(c, s->connection);
}
