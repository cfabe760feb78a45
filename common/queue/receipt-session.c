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

/* 1, 0 or -1, as renewing; step: of which it is. */
static int
take_renewal(const struct receipt_session *s, struct mq_command *c, int step)
{
	redisReply *reply = mq_call(s->queue.redis, c, -1);
	int held;

	if (reply == NULL)
		return -1;
	held = step > 0 ||
	    s->queue.layout->lease(
		reply, mq_redis_command(s->queue.redis).cluster) > 0;
	freeReplyObject(reply);
	return held;
}

int
receipt_session_renew(const struct receipt_session *s, int64_t ms, int steps)
{
	const struct mq_layout *layout = s->queue.layout;
	struct mq_session session = s->session;
	struct mq_command c = mq_redis_command(s->queue.redis);
	bool on_cluster = c.cluster && layout->renew_queue != NULL;
	int step, held = 1;

	session.lease_ms = ms;
	for (step = 0;
	     held == 1 && step < steps && layout->renew(&session, step, &c);
	     step++)
		held = take_renewal(s, &c, step);
	for (step = 0; on_cluster && held == 1 &&
	     layout->renew_queue(&session, 0, step, &c);
	     step++)
		held = take_renewal(s, &c, step);
	mq_command_free(&c);
	return held;
}

/* On a cluster, what lies on other nodes than the queue. */
static int
leave_rest(const struct receipt_session *s)
{
	struct mq_command c = mq_redis_command(s->queue.redis);
	int step, rv = 0;

	for (step = s->session.queue_count;
	     rv == 0 && s->queue.layout->leave(&s->session, step, &c); step++)
		rv = mq_call_done(s->queue.redis, &c);
	mq_command_free(&c);
	return rv;
}

int
receipt_session_vacate(const struct receipt_session *s)
{
	struct mq_command c = mq_redis_command(s->queue.redis);
	bool on_cluster = c.cluster && s->queue.layout->renew_queue != NULL;
	redisReply *reply;
	long long left;

	s->queue.layout->vacate(&s->session, &c);
	reply = mq_call(s->queue.redis, &c, -1);
	if (reply == NULL)
		return -1;
	left = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
	freeReplyObject(reply);
	return on_cluster && left == 1 ? leave_rest(s) : 0;
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
