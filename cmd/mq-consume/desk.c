/* What handing out and settling by receipt have in common. */
#include <string.h>

#include "base/say.h"
#include "message/headers.h"
#include "receipt.h"

void
desk_open(struct desk *d, const struct options *o, struct mq_server *server)
{
	*d = (struct desk){.opt = o, .layout = o->layout};
	d->session = (struct mq_session){.connection = d->connection,
	    .consumer = d->consumer,
	    .queues = o->queues,
	    .queue_count = 1,
	    .attempts = o->attempts,
	    .lease_ms =
		o->receipt == RECEIPT_EXTEND ? o->extend_ms : o->lease_ms};
	if (mq_redis_open(&d->redis, server) == -1)
		mq_die(d->redis.status, "%s", d->redis.error);
}

void
desk_close(struct desk *d)
{
	mq_redis_close(&d->redis);
}

redisReply *
desk_call(struct desk *d, struct mq_command *c)
{
	redisReply *reply = mq_redis_call(&d->redis, c);

	if (reply == NULL)
		mq_die(d->redis.status, "%s", d->redis.error);
	return reply;
}

void
desk_take(struct desk *d, struct handed *m, const char *element, size_t len,
    const char **why)
{
	const char *id;

	*m = (struct handed){.element = element, .len = len};
	*why = NULL;
	if (mq_envelope_parse(element, len, &m->envelope, why) == -1)
		m->envelope = (struct mq_envelope){0};
	id = d->layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
					   mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
}

static bool
settle_as(struct desk *d, struct mq_settlement *how)
{
	struct mq_command c = {0};
	redisReply *reply;
	bool settled;

	mq_id_make(&d->ids, 0, how->unique);
	d->layout->settle(&d->session, 0, how, &c);
	reply = desk_call(d, &c);
	settled = d->layout->settled(reply) == MQ_SETTLED;
	freeReplyObject(reply);
	mq_command_free(&c);
	return settled;
}

bool
desk_settle(struct desk *d, const struct handed *m, enum mq_outcome outcome,
    struct mq_ending *end)
{
	int64_t asked = mq_result_wanted(&m->envelope) ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep = d->opt->keep_ms > asked ? d->opt->keep_ms : asked;
	struct mq_settlement how = {.outcome = outcome,
	    .element = m->element,
	    .len = m->len,
	    .receipt = m->receipt,
	    .holds = mq_message_holds(&m->envelope)};
	struct mq_buf header = {0}, text = {0};
	struct mq_result result = {.id = m->id, .keep_ms = keep};
	bool settled;

	if (m->changed) {
		mq_envelope_write_header(&m->envelope, &header);
		how.header = header.data;
		how.header_len = header.len;
		how.payload_at = (size_t)(m->envelope.payload - m->element);
	}
	if (end != NULL && keep > 0 && m->id[0] != '\0') {
		strlcpy(end->id, m->id, sizeof(end->id));
		mq_ending_write(end, &text);
		result.text = text.data;
		result.len = text.len;
		how.result = &result;
	}
	settled = settle_as(d, &how);
	mq_buf_free(&header);
	mq_buf_free(&text);
	return settled;
}

void
desk_count(struct desk *d, const struct mq_counts *n)
{
	struct mq_command c = {0};
	redisReply *reply;

	d->layout->count(&c, d->opt->queues[0], n);
	/* Who may not count may settle nevertheless. */
	reply = mq_redis_call(&d->redis, &c);
	if (reply != NULL)
		freeReplyObject(reply);
	mq_command_free(&c);
}

void
desk_vacate(struct desk *d)
{
	struct mq_command c = {0};

	d->layout->vacate(&d->session, &c);
	freeReplyObject(desk_call(d, &c));
	mq_command_free(&c);
}
