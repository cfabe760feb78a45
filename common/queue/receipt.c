/* Settling what was handed out, by its receipt. */
#include "lease.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"
#include "receipt-session.h"

/* --- receipts ------------------------------------------------------------------ */

static void
free_receipt(struct mq_receipt *receipt)
{
	free(receipt->connection);
	free(receipt->number);
	mq_buf_free(&receipt->element);
	*receipt = (struct mq_receipt){0};
}

/* Takes a receipt apart; false: it has not the form of one. */
static bool
parse_receipt(const char *word, struct mq_receipt *out)
{
	const char *dot = strrchr(word, '.');

	if (dot == NULL || dot == word || dot[1] == '\0' ||
	    dot[1 + strspn(dot + 1, "0123456789")] != '\0')
		return false;
	out->connection = mq_xstrndup(word, (size_t)(dot - word));
	out->number = mq_xstrdup(dot + 1);
	return true;
}

bool
mq_receipt_valid(const char *word)
{
	struct mq_receipt receipt = {0};
	bool good =
	    parse_receipt(word, &receipt) || mq_id_safe(word, strlen(word));

	free_receipt(&receipt);
	return good;
}

/* No connection in *out: nobody holds the message. */
static int
find_receipt(
    struct receipt_session *s, const char *word, struct mq_receipt *out)
{
	const struct mq_lease_queue *q = &s->queue;
	struct mq_command c = mq_redis_command(q->redis);
	redisReply *reply;

	if (!parse_receipt(word, out))
		return q->layout->receipt_by_id == NULL ?
		    0 :
		    q->layout->receipt_by_id(q->redis, q->name, word, out);
	q->layout->receipt(&c, out->connection, q->name, out->number);
	reply = mq_call(s->queue.redis, &c, -1);
	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_STRING)
		mq_buf_add(&out->element, reply->str, reply->len);
	else
		free_receipt(out);
	freeReplyObject(reply);
	return 0;
}

/* --- their use ----------------------------------------------------------------- */

/* The attempt, and why it failed. */
static void
record_failure(
    struct receipt_session *s, struct mq_leased *m, const struct mq_ending *end)
{
	const struct mq_failure f = {.at_ms = end->finished_ms,
	    .attempt = end->attempts,
	    .status = -1,
	    .host = end->host,
	    .text = end->text};
	const char *id = mq_message_id(&m->envelope);
	char new[MQ_ID_LEN + 1];

	mq_id_make(&s->ids, (uint64_t)mq_clock_unix_us(), new);
	mq_message_record(
	    &m->envelope, id != NULL ? id : new, end->attempts, end->text);
	mq_history_add(&m->envelope, &f);
}

static int
end_message(struct receipt_session *s, struct mq_leased *m, bool ack,
    const char *text, const char *number)
{
	const struct mq_counts n = {.done = ack, .failed = !ack};
	char host[256] = "";
	struct mq_ending end = {.state = ack ? MQ_END_DONE : MQ_END_REJECTED,
	    .text = ack || text != NULL ? text : "rejected by receipt",
	    .status = -1,
	    .attempts =
		1 + mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0),
	    .host = host,
	    .finished_ms = mq_clock_unix_us() / 1000};
	int settled;

	gethostname(host, sizeof(host) - 1);
	if (!ack)
		record_failure(s, m, &end);
	settled = ack ? receipt_session_ack(s, m, number, &end) :
			receipt_session_reject(s, m, true, number, &end);
	if (settled == 1)
		receipt_session_count(s, &n);
	return settled;
}

static int
settle_receipt(struct receipt_session *s, const struct mq_receipt *receipt,
    enum mq_receipt_act act, const char *text)
{
	const struct mq_buf *element = &receipt->element;
	struct mq_leased m;
	bool good =
	    receipt_session_unpack(s, &m, element->data, element->len) == NULL;
	int settled = 0;

	if (act == MQ_RECEIPT_RETURN)
		settled = receipt_session_return(s, &m, receipt->number);
	else if (good)
		/* A message is not handed out unless it is good. */
		settled = end_message(
		    s, &m, act == MQ_RECEIPT_ACK, text, receipt->number);
	mq_envelope_free(&m.envelope);
	if (settled == 1 && receipt_session_vacate(s) == -1)
		return -1;
	return settled;
}

int
mq_receipt_use(const struct mq_lease_queue *queue, const char *word,
    enum mq_receipt_act act, const char *text, int64_t lease_ms)
{
	struct mq_receipt receipt = {0};
	struct receipt_session s;
	int rv;

	receipt_session_open(&s, queue);
	rv = find_receipt(&s, word, &receipt);
	if (rv == 0 && receipt.connection != NULL) {
		s.session.connection = receipt.connection;
		rv = act == MQ_RECEIPT_EXTEND ?
		    receipt_session_renew(&s, lease_ms, INT_MAX) :
		    settle_receipt(&s, &receipt, act, text);
	}
	free_receipt(&receipt);
	return rv;
}
