#include "receipt-session.h"

#include <string.h>

#include "message/headers.h"
#include "side.h"

void
receipt_session_open(
    struct receipt_session *s, const struct mq_lease_queue *queue)
{
	*s = (struct receipt_session){
	    .queue = *queue, .session = {.queue_count = 1}};
	s->session.queues = &s->queue.name;
}

int
receipt_session_renew(const struct receipt_session *s, int64_t ms, int steps)
{
	const struct mq_layout *layout = s->queue.layout;
	struct mq_session session = s->session;
	struct mq_command c = mq_redis_command(s->queue.redis);
	redisReply *reply;
	int step, held = 1;

	session.lease_ms = ms;
	for (step = 0;
	     held && step < steps && layout->renew(&session, step, &c);
	     step++) {
		reply = mq_call(s->queue.redis, &c, -1);
		if (reply == NULL)
			return -1;
		held = step > 0 || layout->lease(reply, c.cluster) > 0;
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	return held;
}

int
receipt_session_vacate(const struct receipt_session *s)
{
	struct mq_command c = mq_redis_command(s->queue.redis);

	s->queue.layout->vacate(&s->session, &c);
	return mq_call_done(s->queue.redis, &c);
}

/* A user without the right to count can settle nevertheless. */
void
receipt_session_count(
    const struct receipt_session *s, const struct mq_counts *n)
{
	struct mq_command c = mq_redis_command(s->queue.redis);

	mq_side_count(s->queue.layout->side, &c, s->queue.name, n);
	(void)mq_call_done(s->queue.redis, &c);
}

const char *
receipt_session_unpack(const struct receipt_session *s, struct mq_leased *m,
    const char *element, size_t len)
{
	const char *id, *why = NULL;

	*m = (struct mq_leased){.element = element, .len = len};
	if (mq_envelope_parse(element, len, &m->envelope, &why) == -1)
		m->envelope = (struct mq_envelope){0};
	id = s->queue.layout->has & MQ_HAS_IDS ? mq_message_name(&m->envelope) :
						 mq_message_id(&m->envelope);
	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	return why;
}

static int
send_settlement(struct receipt_session *s, struct mq_settlement *how)
{
	struct mq_command c = mq_redis_command(s->queue.redis);
	redisReply *reply;
	int settled;

	mq_id_make(&s->ids, 0, how->unique);
	s->queue.layout->settle(&s->session, 0, how, &c);
	reply = mq_call(s->queue.redis, &c, -1);
	if (reply == NULL)
		return -1;
	settled = mq_layout_settled(reply) == MQ_SETTLED;
	freeReplyObject(reply);
	return settled;
}

/* 1; 0: the session does not hold the message any more.  end: the result for
 * those who wait for it; NULL: the message has not ended. */
static int
settle_message(struct receipt_session *s, const struct mq_leased *m,
    struct mq_settlement *how, struct mq_ending *end)
{
	int64_t asked = mq_result_wanted(&m->envelope) ? MQ_RESULT_KEEP_MS : 0;
	int64_t own = s->queue.keep_ms;
	struct mq_result result = {
	    .id = m->id, .keep_ms = own > asked ? own : asked};
	struct mq_buf text = {0};
	int settled;

	how->element = m->element;
	how->len = m->len;
	how->holds = mq_message_holds(&m->envelope);
	if (end != NULL && result.keep_ms > 0 && m->id[0] != '\0') {
		strlcpy(end->id, m->id, sizeof(end->id));
		mq_ending_write(end, &text);
		result.text = text.data;
		result.len = text.len;
		how->result = &result;
	}
	settled = send_settlement(s, how);
	how->result = NULL;
	mq_buf_free(&text);
	return settled;
}

int
receipt_session_ack(struct receipt_session *s, const struct mq_leased *m,
    const char *number, struct mq_ending *end)
{
	struct mq_settlement how = {
	    .outcome = MQ_OUTCOME_ACK, .receipt = number};

	return settle_message(s, m, &how, end);
}

int
receipt_session_reject(struct receipt_session *s, const struct mq_leased *m,
    bool changed, const char *number, struct mq_ending *end)
{
	struct mq_settlement how = {
	    .outcome = MQ_OUTCOME_REJECT, .receipt = number};
	struct mq_buf header = {0};
	int settled;

	if (changed) {
		mq_envelope_write_header(&m->envelope, &header);
		how.header = header.data;
		how.header_len = header.len;
		how.payload_at = (size_t)(m->envelope.payload - m->element);
	}
	settled = settle_message(s, m, &how, end);
	mq_buf_free(&header);
	return settled;
}

int
receipt_session_return(
    struct receipt_session *s, const struct mq_leased *m, const char *number)
{
	struct mq_settlement how = {
	    .outcome = MQ_OUTCOME_FRONT, .receipt = number};

	return settle_message(s, m, &how, NULL);
}
