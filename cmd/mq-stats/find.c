/*
 * The state of a message can change while the search goes from place to place, so
 * nothing is said to be nowhere before a second look.
 */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/headers.h"

#define LOOKS 2

/* Keeps a message beyond its slice. */
static void
keep_message(struct found *f, const struct mq_item *item)
{
	mq_buf_set(&f->element, item->element, item->len);
	f->queue = mq_xstrdup(f->place.queue);
	f->state = f->place.state;
	f->connection =
	    item->connection != NULL ? mq_xstrdup(item->connection) : NULL;
	f->item = (struct mq_item){.element = f->element.data,
	    .len = f->element.len,
	    .in_line = item->in_line,
	    .tick = item->tick,
	    .due_ms = item->due_ms,
	    .connection = f->connection};
	f->exists = true;
}

/* The needle may stand in the payload of another message, or in its headers
 * as something else. */
static bool
is_message(const struct mq_item *item, const char *id)
{
	struct mq_envelope e;
	const char *why, *has;
	bool rv;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		return false;
	has = mq_message_name(&e);
	rv = has != NULL && strcmp(has, id) == 0;
	mq_envelope_free(&e);
	return rv;
}

static bool
look_at_slice(void *arg, const struct mq_item *item, int count)
{
	struct found *f = arg;

	for (; count > 0 && !f->exists; count--, item++)
		if (is_message(item, f->id))
			keep_message(f, item);
	return !f->exists;
}

/* Once the message is found, there is nothing to do. */
static void
look_at_place(struct collector *c, struct found *f, const char *queue,
    enum mq_state state, const char *connection)
{
	f->place = (struct mq_place){queue, state, connection, false};
	if (!f->exists)
		collect_messages(c, &f->place, 0, f->id, look_at_slice, f);
}

/* Only the connections that hold anything of the queue: to ask each of a
 * thousand about each of a thousand queues would take long.  The rest of its
 * messages is held by nobody that is known. */
static void
look_at_unacked(
    struct collector *c, const struct mq_queue_stats *q, struct found *f)
{
	const struct mq_connection_stats *con = f->model->stats.connections;
	const struct mq_connection_stats *end =
	    con + f->model->stats.connection_count;
	long long rest = q->unacked;
	int i;

	for (; con < end; con++)
		for (i = 0; i < con->count; i++)
			if (con->consumed[i].unacked > 0 &&
			    strcmp(con->consumed[i].queue, q->name) == 0) {
				look_at_place(
				    c, f, q->name, MQ_UNACKED, con->name);
				rest -= con->consumed[i].unacked;
			}
	if (rest > 0)
		look_at_place(c, f, q->name, MQ_UNACKED, NULL);
}

/* The way that most messages go. */
static void
look_at_queue(
    struct collector *c, const struct mq_queue_stats *q, struct found *f)
{
	if (q->delayed > 0)
		look_at_place(c, f, q->name, MQ_DELAYED, NULL);
	if (q->ready > 0)
		look_at_place(c, f, q->name, MQ_READY, NULL);
	look_at_unacked(c, q, f);
	if (q->rejected > 0)
		look_at_place(c, f, q->name, MQ_REJECTED, NULL);
}

static bool
look_everywhere(struct collector *c, struct found *f)
{
	const struct mq_queue_stats *q, *end;
	bool known = true;

	collect_stats(c, MQ_STATS_CONNECTIONS, f->model);
	q = f->model->stats.queues;
	end = q + f->model->stats.count;
	for (; q < end && !f->exists; q++) {
		known &= q->known;
		if (q->known)
			look_at_queue(c, q, f);
	}
	return f->exists || known;
}

/* A message that came without an id runs under one that only its consumer
 * knows. */
static void
find_run(struct found *f)
{
	const struct mq_runs *runs = &f->model->runs;
	/* The news of a run may be a second old. */
	bool may_run = !f->exists || f->state == MQ_UNACKED;
	int i;

	for (i = 0; may_run && i < runs->count && f->run == NULL; i++)
		if (strcmp(runs->runs[i].id, f->id) == 0)
			f->run = &runs->runs[i];
	if (f->exists || f->run == NULL)
		return;
	f->exists = true;
	f->state = MQ_UNACKED;
	f->queue = mq_xstrdup(f->run->queue);
	f->connection = mq_xstrdup(f->run->connection);
}

bool
find_message(
    struct collector *c, const char *id, struct model *m, struct found *f)
{
	bool known = true;
	int i;

	*f = (struct found){.id = id, .model = m};
	for (i = 0; i < LOOKS && known && !f->exists; i++)
		known = look_everywhere(c, f);
	if (!known)
		collect_elsewhere(c, f->model);
	collect_runs(c, f->model);
	find_run(f);
	if (!f->exists && known)
		f->ended_in = collect_ending(c, f->model, id, &f->ending);
	return known;
}

void
found_free(struct found *f)
{
	free(f->queue);
	free(f->connection);
	mq_buf_free(&f->element);
	mq_ending_free(&f->ending);
}
