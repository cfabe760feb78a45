/* Taking messages, and printing them with their receipts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "lease.h"
#include "message/frame.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/calls.h"
#include "shared/options.h"

/* An empty queue is looked at again after this time. */
#define LOOK_MS 200

/* Whether the queue exists.  Ends the program if it cannot be used. */
static bool
look_at_queue(const struct options *o, const struct mq_lease_queue *q)
{
	struct mq_idgen ids = {0};
	char connection[MQ_LEASE_NAME], random[7];
	const struct mq_session session = {
	    .connection = connection, .queues = &q->name, .queue_count = 1};
	struct mq_known known = {0};
	bool there;

	mq_id_random(&ids, random, 6);
	snprintf(connection, sizeof(connection), "%s-%s", o->tag, random);
	if (mq_known_ask(q->redis, q->layout, &session, &known) == -1)
		mq_die(q->redis->status, "%s", q->redis->error);
	there = known.there[0];
	free(known.there);
	if (!there && !o->quiet && (known.status == 0 || o->existing))
		mq_option_unknown(q->redis, q->layout, q->name);
	if (!there && o->existing)
		exit(mq_queue_unlisted(q->redis, q->layout, q->name) != NULL ?
			MQ_EXIT_UNAVAILABLE :
			MQ_EXIT_NO);
	if (known.status != 0)
		mq_die(known.status, "%s", known.error);
	return there;
}

static int64_t
now_ms(void)
{
	return (int64_t)(mq_clock_steady_s() * 1000);
}

/* Reports those that were rejected.  Returns how many there are to be printed. */
static int
sort_messages(const struct mq_lease_queue *q, const struct mq_leased *m, int n)
{
	int good = 0;

	for (; n > 0; n--, m++) {
		if (m->receipt != NULL)
			good++;
		else
			mq_say("%s: %s%srejected: %s", q->name, m->id,
			    m->id[0] != '\0' ? ": " : "", m->why);
	}
	return good;
}

/* Until there is a message, or the time is over: as mq_lease_take(). */
static int
take_messages(const struct options *o, const struct mq_lease_queue *q,
    struct mq_lease *lease, const struct mq_leased **messages)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = now_ms() + o->idle_ms;
	int n;

	for (;;) {
		n = mq_lease_take(lease, messages);
		if (n == -1)
			mq_die(q->redis->status, "%s", q->redis->error);
		if (n > 0 && sort_messages(q, *messages, n) > 0)
			return n;
		/* The rejected ones were in the way of others. */
		if (n > 0)
			continue;
		if (now_ms() >= until)
			return n;
		nanosleep(&pause, NULL);
	}
}

static void
frame_message(const struct mq_lease_queue *q, const struct mq_leased *m,
    struct mq_buf *out)
{
	struct mq_frame_meta meta = {.id = m->id[0] != '\0' ? m->id : NULL,
	    .queue = q->name,
	    .attempt =
		1 + mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0)};

	meta.more = json_pack("{s:o}", "receipt", mq_json_text(m->receipt));
	mq_json_must(meta.more != NULL);
	mq_frame_write(out, MQ_FRAME_JSONL, &m->envelope, &meta);
	json_decref(meta.more);
}

static bool
print_messages(const struct mq_lease_queue *q, const struct mq_leased *m, int n)
{
	struct mq_buf out = {0};
	bool good;

	for (; n > 0; n--, m++)
		if (m->receipt != NULL)
			frame_message(q, m, &out);
	good = fwrite(out.data, 1, out.len, stdout) == out.len &&
	    fflush(stdout) == 0;
	mq_buf_free(&out);
	return good;
}

int
lease_messages(const struct options *o, const struct mq_lease_queue *q)
{
	struct mq_lease_terms terms = {.tag = o->tag,
	    .attempts = o->attempts,
	    .max = o->limit,
	    .ms = o->for_ms};
	const struct mq_leased *messages;
	struct mq_lease *lease;
	int n, rv = 0, status = MQ_EXIT_OK;

	terms.make = look_at_queue(o, q);
	lease = mq_lease_new(q, &terms);
	n = take_messages(o, q, lease, &messages);
	if (n <= 0) {
		if (n == MQ_CLAIM_LOST)
			mq_say("%s: the lease was over before a message could "
			       "be taken; use a longer --for",
			    q->name);
		rv = mq_lease_end(lease);
		status = n == 0 ? MQ_EXIT_NO : MQ_EXIT_AGAIN;
	} else if (!print_messages(q, messages, n)) {
		mq_say("standard output: %s; the messages are returned",
		    strerror(errno));
		rv = mq_lease_undo(lease);
		status = MQ_EXIT_IO;
	}
	if (rv == -1)
		mq_die(q->redis->status, "%s", q->redis->error);
	mq_lease_free(lease);
	return status;
}
