#include "parts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "mq-consume/message.h"
#include "queue/consumer.h"

struct copy {
	char id[MQ_ID_LEN + 1];
	struct mq_publishing how;
	struct mq_envelope envelope;
};

/* --- the copy ----------------------------------------------------------------- */

/* Whether the layout can carry the copy; its own layout always can. */
static bool
is_carried(const struct mq_envelope *copy, const struct mq_layout *from,
    const struct mq_layout *to, struct mq_buf *why)
{
	if (to == from)
		return true;
	if (!mq_layout_obeys(to, copy, why))
		return false;
	if (mq_layout_reads(to, copy->payload, copy->payload_len))
		return true;
	mq_buf_addstr(why, "not UTF-8, as node takes it");
	return false;
}

/* Makes the copy of a message for a queue of that layout; the envelope is to be freed
 * in any case.  False: the layout cannot carry the copy; the reason is appended to
 * why. */
static bool
make_copy(struct copy *copy, const struct copy_origin *from,
    const struct message *m, const struct mq_dup *what,
    const struct mq_layout *to, struct mq_buf *why)
{
	struct mq_buf origin = {0};
	struct mq_duplicate as = {.id = copy->id,
	    .web = what->web,
	    .stamped = mq_envelope_signed(m->element, m->len)};
	int64_t now_us = mq_clock_unix_us();

	/* The special publishing registers the queue and counts the copy. */
	copy->how = (struct mq_publishing){
	    .when.said = true, .special = true, .limits = MQ_UNLIMITED};
	if (what->due_s > 0) {
		copy->how.when.kind = MQ_WHEN_IN;
		copy->how.when.ms = what->due_s * 1000;
		as.due_ms = now_us / 1000 + copy->how.when.ms;
	}
	mq_buf_printf(
	    &origin, "http://%s/q/%s/%s", from->host, m->queue_name, m->id);
	as.origin = mq_buf_str(&origin);
	mq_message_duplicate(&m->envelope, &as, &copy->envelope);
	mq_buf_free(&origin);
	return is_carried(&copy->envelope, from->layout, to, why);
}

/* --- a request ---------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
fail_request(struct request *q, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_buf_printf(&q->answer, "fail %s", text);
	free(text);
}

static void
fail_to_connect(struct request *q, const char *why)
{
	const char *name = q->what.web != NULL ? q->what.queue : q->what.shown;

	fail_request(q, "couldn't connect to queue - %s%s%s", name,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

struct request *
request_new(const struct request_context *context, const struct message *m,
    const char *wrong, const char *text, void (*moved)(void *arg), void *arg)
{
	struct request *q = mq_xcalloc(1, sizeof(*q));

	q->context = context;
	q->moved = moved;
	q->arg = arg;
	q->m = m;
	if (wrong == NULL && text == NULL)
		wrong = "line too long";
	if (wrong == NULL && mq_dup_parse(text, &q->what, &wrong) == 0)
		wrong = NULL;
	if (wrong != NULL)
		fail_request(q, "dup failed - %s", wrong);
	if (q->what.shown == NULL)
		q->what.shown = mq_xstrdup("");
	return q;
}

void
request_free(struct request *q)
{
	q->moved = NULL;
	if (q->in_flight)
		return;
	if (q->remote != NULL)
		remote_put(q->remote);
	mq_dup_free(&q->what);
	mq_buf_free(&q->answer);
	free(q);
}

/* --- two commands ------------------------------------------------------------- */

/* False: the request is freed. */
static bool
take_reply(struct request *q)
{
	q->in_flight = false;
	if (q->moved == NULL) {
		request_free(q);
		return false;
	}
	return true;
}

static struct mq_async *
request_async(const struct request *q)
{
	return q->remote != NULL ? remote_async(q->remote) : q->context->async;
}

static const char *
describe_refusal(enum mq_published how)
{
	return how == MQ_PUBLISHED_TOO_LONG ?
	    "the message is longer than the maxsize of that queue" :
	    "the last tick of the message is over";
}

static void
on_published(void *arg, const struct mq_answer *answer, enum mq_published how)
{
	struct request *q = arg;

	if (!take_reply(q))
		return;
	if (answer == NULL)
		fail_request(q,
		    "dup failed - the connection was lost; the duplicate may "
		    "exist");
	else if (answer->error != NULL)
		fail_request(q, "dup failed - %s", answer->error);
	else if (how != MQ_PUBLISHED)
		fail_request(q, "dup failed - %s", describe_refusal(how));
	else if (q->context->urls)
		mq_buf_printf(&q->answer, "ok http://%s/q/%s/%s",
		    q->context->origin.host, q->what.queue, q->id);
	else
		mq_buf_printf(&q->answer, "ok %s", q->id);
	q->moved(q->arg);
}

/* False: the layout cannot carry the copy. */
static bool
publish_copy(struct request *q)
{
	struct copy copy = {0};
	struct mq_buf why = {0};
	bool can;

	memcpy(copy.id, q->id, sizeof(copy.id));
	can = make_copy(
	    &copy, &q->context->origin, q->m, &q->what, q->layout, &why);
	if (can) {
		q->step = REQUEST_SENT;
		q->in_flight = true;
		mq_ask_publish(request_async(q), q->layout, q->what.queue,
		    &copy.how, copy.id, &copy.envelope, on_published, q);
	} else {
		fail_request(q, "dup failed - %s", mq_buf_str(&why));
	}
	mq_envelope_free(&copy.envelope);
	mq_buf_free(&why);
	return can;
}

/* --- attachments ---------------------------------------------------------------- */

static void
on_attached(void *arg, const struct mq_answer *answer, long long there)
{
	struct request *q = arg;

	if (!take_reply(q))
		return;
	if (answer == NULL)
		fail_request(q, "dup failed - the connection was lost");
	else if (answer->error != NULL)
		fail_request(q, "dup failed - %s", answer->error);
	else if (there == 0)
		fail_request(q, "dup failed - its attachments are gone");
	else if (q->m->lost)
		fail_request(
		    q, "dup failed - the lease of the message was lost");
	else if (publish_copy(q))
		return;
	q->moved(q->arg);
}

/* If the message has files, the copy refers to them before anybody can see it.  What
 * comes to nothing then is found by mq-clean.  False: the request has failed. */
static bool
begin_copy(struct request *q)
{
	const char *set = NULL;

	if (q->m->envelope.headers != NULL)
		set = mq_envelope_get(&q->m->envelope, MQ_HEADER_ATTACH);
	mq_id_make(q->context->origin.ids, (uint64_t)mq_clock_unix_us(), q->id);
	if (set == NULL)
		return publish_copy(q);
	if (q->remote != NULL || q->layout != q->context->origin.layout) {
		fail_request(q,
		    "dup failed - attachments are copied only within one "
		    "server and layout");
		return false;
	}
	q->in_flight = true;
	mq_ask_attach(request_async(q), q->layout, set, q->id, on_attached, q);
	return true;
}

static void
on_exists(void *arg, const struct mq_answer *answer, long long exists)
{
	struct request *q = arg;

	if (!take_reply(q))
		return;
	q->step = REQUEST_WAITING;
	/* The connection is lost.  The request goes on with the event of that,
	 * unless the event has come before. */
	if (answer == NULL &&
	    (q->remote == NULL || remote_error(q->remote) == NULL))
		return;
	/* A name that nobody can be asked for counts as known. */
	if (answer != NULL && answer->error != NULL && !answer->missing)
		fail_request(q, "dup failed - %s", answer->error);
	else if (answer != NULL && exists == 0 && !answer->missing)
		fail_to_connect(q, NULL);
	else if (answer != NULL && q->m->lost)
		fail_request(
		    q, "dup failed - the lease of the message was lost");
	else if (answer != NULL && begin_copy(q))
		return;
	q->moved(q->arg);
}

/* --- destination -------------------------------------------------------------- */

/* Finds the layout and the full name of the queue.  If the URL of another server
 * does not name layout and namespace, ours are used.  False: the queue cannot
 * exist; *why is an explanation or NULL. */
static bool
resolve_queue(struct request *q, const char **why)
{
	const struct request_context *here = q->context;
	const struct mq_layout *layout = here->origin.layout;
	const char *ns = q->what.ns, *wrong;
	char *name;

	*why = NULL;
	if (q->layout != NULL)
		return true;
	if (q->what.layout != NULL)
		layout = mq_layout_find(q->what.layout);
	else if (ns == NULL)
		ns = here->ns;
	if (layout == NULL)
		*why = "its layout is neither rmq nor rsmq";
	else if (ns != NULL && layout->ns == NULL)
		*why = "its layout has no namespaces";
	if (*why != NULL)
		return false;
	name = mq_layout_queue(layout, ns, q->what.queue, &wrong);
	if (name == NULL)
		return false;
	free(q->what.queue);
	q->what.queue = name;
	q->layout = layout;
	return true;
}

/* False: the server cannot be reached, and *why says so. */
static bool
find_remote(struct request *q, const char **why)
{
	if (q->what.remote == NULL)
		return true;
	if (q->remote == NULL)
		q->remote = remote_get(q->context->remotes, q->what.remote);
	*why = q->remote == NULL ? "too many other servers at once" :
				   remote_error(q->remote);
	return *why == NULL;
}

const char *
request_advance(struct request *q)
{
	const struct request_context *here = q->context;
	const char *why;

	if (q->answer.len > 0)
		return mq_buf_str(&q->answer);
	if (q->step != REQUEST_WAITING || q->in_flight)
		return NULL;
	if (!resolve_queue(q, &why) || !find_remote(q, &why)) {
		fail_to_connect(q, why);
		return mq_buf_str(&q->answer);
	}
	if (q->remote != NULL ? !remote_ready(q->remote) :
				!here->is_up(here->arg))
		return NULL;
	q->step = REQUEST_ASKED;
	q->in_flight = true;
	mq_ask_known(request_async(q), q->layout, q->what.queue, on_exists, q);
	return NULL;
}

void
request_give_up(struct request *q)
{
	/* An answer that waits for its turn is as good. */
	if (q->answer.len > 0)
		return;
	if (q->step == REQUEST_SENT)
		fail_request(
		    q, "dup failed - no answer; the duplicate may exist");
	else
		fail_to_connect(q, q->what.remote != NULL ? "no answer" : NULL);
}
