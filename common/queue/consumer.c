#include "consumer.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "redis/reply.h"
#include "side.h"

/* Takes the memory of the command. */
static void
send_own(struct mq_consumer *k, struct mq_command *cmd, mq_async_take *take,
    mq_callback *fn, void *arg)
{
	mq_async_ask(
	    k->async, cmd, take, &(struct mq_asker){fn, arg, k->layout});
}

static void
take_answer(const struct mq_asker *asker, redisReply *reply)
{
	mq_answer_fn *fn = (mq_answer_fn *)asker->fn;
	struct mq_answer a;

	fn(asker->arg, mq_answer_to(reply, -1, &a));
}

static void
take_number(const struct mq_asker *asker, redisReply *reply)
{
	mq_number_fn *fn = (mq_number_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, REDIS_REPLY_INTEGER, &buf);

	fn(asker->arg, a, mq_answer_good(a) ? reply->integer : 0);
}

/* --- its lease ---------------------------------------------------------------- */

void
mq_consumer_free(struct mq_consumer *k)
{
	while (k->lapsed_count > 0)
		mq_command_free(&k->lapsed[--k->lapsed_count]);
	free(k->lapsed);
	k->lapsed = NULL;
}

static void
take_lease(const struct mq_asker *asker, redisReply *reply)
{
	const struct mq_layout *layout = asker->of;
	mq_number_fn *fn = (mq_number_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);

	fn(asker->arg, a, mq_answer_good(a) ? layout->lease(reply) : 0);
}

void
mq_consumer_join(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	k->layout->join(&k->session, 0, &cmd);
	send_own(k, &cmd, take_lease, (mq_callback *)fn, arg);
}

static void
send_lapsed(struct mq_consumer *k)
{
	int i;

	for (i = 0; i < k->lapsed_count; i++)
		mq_async_send(k->async, &k->lapsed[i], NULL, NULL);
	k->lapsed_count = 0;
}

int
mq_consumer_enter(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = {0};
	int step;

	send_lapsed(k);
	for (step = 1; k->layout->join(&k->session, step, &cmd); step++)
		send_own(k, &cmd, take_answer, (mq_callback *)fn, arg);
	mq_command_free(&cmd);
	return step - 1;
}

void
mq_consumer_renew(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};
	int step;

	for (step = 0; k->layout->renew(&k->session, step, &cmd); step++)
		if (step == 0)
			send_own(k, &cmd, take_lease, (mq_callback *)fn, arg);
		else
			mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_free(&cmd);
}

void
mq_consumer_lapsed(struct mq_consumer *k, int queue, const char *element,
    size_t len, long attempts)
{
	struct mq_command *cmd;

	if (k->layout->lapsed == NULL)
		return;
	k->lapsed = mq_xreallocarray(
	    k->lapsed, (size_t)k->lapsed_count + 1, sizeof(*k->lapsed));
	cmd = &k->lapsed[k->lapsed_count++];
	*cmd = (struct mq_command){0};
	k->layout->lapsed(&k->session, queue, element, len, attempts, cmd);
}

/* --- its messages ------------------------------------------------------------- */

static void
take_looked(const struct mq_asker *asker, redisReply *reply)
{
	mq_looked_fn *fn = (mq_looked_fn *)asker->fn;
	struct mq_answer buf;
	bool good =
	    mq_answer_good(mq_answer_to(reply, REDIS_REPLY_ARRAY, &buf));
	int i, n = good ? (int)reply->elements : 0;
	long long *waiting = mq_xcalloc((size_t)n + 1, sizeof(*waiting));

	for (i = 0; i < n; i++)
		waiting[i] = reply->element[i]->integer;
	fn(asker->arg, good ? waiting : NULL, n);
	free(waiting);
}

void
mq_consumer_look(struct mq_consumer *k, const int *queues, int n, bool check,
    mq_looked_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	k->layout->look(&k->session, queues, n, check, &cmd);
	send_own(k, &cmd, take_looked, (mq_callback *)fn, arg);
}

void
mq_consumer_pass(struct mq_consumer *k, int queue)
{
	struct mq_command cmd = {0};

	mq_side_pass(
	    k->layout->side, &k->session, k->session.queues[queue], &cmd);
	mq_async_send(k->async, &cmd, NULL, NULL);
}

void
mq_consumer_held_count(
    struct mq_consumer *k, int queue, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	k->layout->held_count(&k->session, queue, &cmd);
	send_own(k, &cmd, take_number, (mq_callback *)fn, arg);
}

bool
mq_consumer_exists(struct mq_consumer *k, int queue, const char *element,
    size_t len, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	if (k->layout->exists == NULL)
		return false;
	k->layout->exists(&k->session, queue, element, len, &cmd);
	send_own(k, &cmd, take_number, (mq_callback *)fn, arg);
	return true;
}

void
mq_consumer_give_back(struct mq_consumer *k, int queue,
    const struct mq_newest *newest, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	k->layout->give_back(&k->session, queue, newest, &cmd);
	send_own(k, &cmd, take_number, (mq_callback *)fn, arg);
}

/* --- what else it says -------------------------------------------------------- */

void
mq_consumer_pause(struct mq_consumer *k, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	mq_side_pause_at_least(k->layout->side, &cmd, queue, ms);
	send_own(k, &cmd, take_answer, (mq_callback *)fn, arg);
}

void
mq_consumer_count(struct mq_consumer *k, const char *queue,
    const struct mq_counts *counts, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	mq_side_count(k->layout->side, &cmd, queue, counts);
	send_own(k, &cmd, take_answer, (mq_callback *)fn, arg);
}

void
mq_consumer_tell_running(struct mq_consumer *k, const struct mq_buf *text,
    mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	mq_side_tell_running(
	    k->layout->side, &k->session, text->data, text->len, &cmd);
	send_own(k, &cmd, take_answer, (mq_callback *)fn, arg);
}

void
mq_consumer_compete(
    struct mq_consumer *k, int queue, int64_t ms, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	mq_side_compete(k->layout->side, &k->session, queue, ms, &cmd);
	send_own(k, &cmd, take_number, (mq_callback *)fn, arg);
}

void
mq_consumer_resign(struct mq_consumer *k)
{
	struct mq_command cmd = {0};

	mq_side_resign(k->layout->side, &k->session, &cmd);
	mq_async_send(k->async, &cmd, NULL, NULL);
}

/* --- duplicates, at any server ------------------------------------------------- */

void
mq_ask_known(struct mq_async *async, const struct mq_layout *layout,
    const char *queue, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	layout->known(&cmd, queue);
	mq_async_ask(async, &cmd, take_number,
	    &(struct mq_asker){(mq_callback *)fn, arg, NULL});
}

static void
take_published(const struct mq_asker *asker, redisReply *reply)
{
	mq_published_fn *fn = (mq_published_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);

	fn(asker->arg, a,
	    mq_answer_good(a) ? mq_layout_published(reply, 0) :
				MQ_PUBLISHED_NONSENSE);
}

void
mq_ask_publish(struct mq_async *async, const struct mq_layout *layout,
    const char *queue, const struct mq_publishing *how,
    const char id[MQ_ID_LEN + 1], const struct mq_envelope *message,
    mq_published_fn *fn, void *arg)
{
	struct mq_command cmd = {0};
	struct mq_buf header = {0};

	if (message->headers != NULL)
		mq_envelope_write_header(message, &header);
	layout->publish(&cmd, queue, how);
	layout->publish_add(
	    &cmd, how, id, &header, message->payload, message->payload_len);
	mq_buf_free(&header);
	mq_async_ask(async, &cmd, take_published,
	    &(struct mq_asker){(mq_callback *)fn, arg, NULL});
}
