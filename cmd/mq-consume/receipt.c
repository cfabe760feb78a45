/*
 * --ack, --reject, --extend, --return: what was handed out under a lease is
 * settled by its receipt, which names the message and the lease.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "message/headers.h"
#include "receipt.h"

/* As many as there can be slots. */
#define HANDED_MAX 1000

/* Or an id, where that is good, too. */
static bool
is_receipt(const char *word)
{
	struct mq_receipt parts = {0};
	bool good =
	    mq_receipt_parse(word, &parts) || mq_id_safe(word, strlen(word));

	mq_receipt_free(&parts);
	return good;
}

void
receipt_check(const struct options *o)
{
	bool out = o->lease_ms > 0;

	if (o->text != NULL && o->receipt != RECEIPT_ACK &&
	    o->receipt != RECEIPT_REJECT)
		mq_die(MQ_EXIT_USAGE, "--text is for --ack and --reject");
	if (o->receipt == RECEIPT_NONE && !out)
		return;
	if (o->command != NULL || o->queue_count != 1 || o->drain)
		mq_die(MQ_EXIT_USAGE,
		    "a lease is for one QUEUE, without COMMAND and --drain");
	if (o->receipt != RECEIPT_NONE && out)
		mq_die(MQ_EXIT_USAGE,
		    "--lease hands messages out; it goes with no receipt");
	if (out && o->framing != MQ_FRAME_JSONL)
		mq_die(MQ_EXIT_USAGE,
		    "--lease needs --jsonl, which tells the receipts");
	if (out && o->limit > HANDED_MAX)
		mq_die(MQ_EXIT_USAGE, "--lease: at most %d messages at once",
		    HANDED_MAX);
	if (o->receipt != RECEIPT_NONE && !is_receipt(o->receipt_id))
		mq_die(MQ_EXIT_USAGE, "%s: not a receipt", o->receipt_id);
}

/* The attempt, and why it failed. */
static void
record(struct desk *d, struct handed *m, const struct mq_ending *end)
{
	const struct mq_failure f = {.at_ms = end->finished_ms,
	    .attempt = end->attempts,
	    .status = -1,
	    .host = end->host,
	    .text = end->text};
	const char *id = mq_message_id(&m->envelope);
	char new[MQ_ID_LEN + 1];

	mq_id_make(&d->ids, (uint64_t)mq_clock_unix_us(), new);
	mq_message_record(
	    &m->envelope, id != NULL ? id : new, end->attempts, end->text);
	mq_history_add(&m->envelope, &f);
	m->changed = true;
}

static bool
settle_receipt(struct desk *d, struct handed *m)
{
	bool ack = d->opt->receipt == RECEIPT_ACK;
	const struct mq_counts n = {.done = ack, .failed = !ack};
	char host[256] = "";
	struct mq_ending end = {.state = ack ? MQ_END_DONE : MQ_END_REJECTED,
	    .text = d->opt->text,
	    .status = -1,
	    .attempts =
		1 + mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0),
	    .host = host,
	    .finished_ms = mq_clock_unix_us() / 1000};

	gethostname(host, sizeof(host) - 1);
	if (!ack) {
		if (end.text == NULL)
			end.text = "rejected by receipt";
		record(d, m, &end);
	}
	if (!desk_settle(d, m, ack ? MQ_OUTCOME_ACK : MQ_OUTCOME_REJECT, &end))
		return false;
	desk_count(d, &n);
	desk_vacate(d);
	return true;
}

static bool
give_back(struct desk *d, struct handed *m)
{
	if (!desk_settle(d, m, MQ_OUTCOME_FRONT, NULL))
		return false;
	desk_vacate(d);
	return true;
}

/* False when the lease was over: what has begun to go back cannot be held. */
static bool
extend(struct desk *d)
{
	struct mq_command c = {0};
	redisReply *reply;
	bool held = true;
	int step;

	for (step = 0; held && d->layout->renew(&d->session, step, &c);
	     step++) {
		reply = desk_call(d, &c);
		held = step > 0 || d->layout->lease(reply) > 0;
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	return held;
}

static bool
carry_out(struct desk *d, const struct mq_receipt *receipt)
{
	struct handed m;
	const char *bad;
	bool done;

	d->session.connection = receipt->connection;
	if (d->opt->receipt == RECEIPT_EXTEND)
		return extend(d);
	desk_take(d, &m, receipt->element.data, receipt->element.len, &bad);
	m.receipt = receipt->number;
	if (d->opt->receipt == RECEIPT_RETURN)
		done = give_back(d, &m);
	else
		/* It has been handed out, so it was good then. */
		done = bad == NULL && settle_receipt(d, &m);
	mq_envelope_free(&m.envelope);
	return done;
}

static const char *
why_not(const struct options *o)
{
	if (strchr(o->receipt_id, '.') != NULL)
		return "its lease is over, or it is settled already";
	if (o->layout->has & MQ_HAS_IDS)
		return "no such message, or it is handed out by receipt";
	return "not a receipt";
}

int
receipt(const struct options *o, struct mq_server *server)
{
	struct mq_receipt found = {0};
	struct desk d;
	bool done;

	desk_open(&d, o, server);
	if (d.layout->receipt(&d.redis, o->queues[0], o->receipt_id, &found) ==
	    -1)
		mq_die(d.redis.status, "%s", d.redis.error);
	done = found.connection != NULL && carry_out(&d, &found);
	if (!done && !o->quiet)
		mq_say("%s: %s: %s", o->queues[0], o->receipt_id, why_not(o));
	mq_receipt_free(&found);
	desk_close(&d);
	return done ? MQ_EXIT_OK : MQ_EXIT_NO;
}
