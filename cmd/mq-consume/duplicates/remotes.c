#include "parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "mq-consume/message.h"
#include "mq-consume/session/session.h"
#include "queue/consumer.h"

/* --- remotes ------------------------------------------------------------- */

#define REMOTES_MAX 16
/* Seconds without a sign of life, after which a server that owes an answer is given
 * up, and an unused connection is closed. */
#define SILENCE 5.0
/* Seconds until an unreachable server is tried again. */
#define RETRY 1.0

struct remote {
	TAILQ_ENTRY(remote) link;
	struct remotes *of;
	char *url; /* as given to remote_get() */
	int users;
	enum { REMOTE_PREPARING, REMOTE_OPEN, REMOTE_DOWN } state;
	char why[256]; /* DOWN */
	bool unusable; /* no server can have this URL */
	double since;  /* steady time: of DOWN; else of the last use */
	struct mq_server server;
	struct mq_async async;
	struct finder finder;
	ev_timer tick;
};

static void
set_down(struct remote *r, const char *why)
{
	strlcpy(r->why, why, sizeof(r->why));
	r->state = REMOTE_DOWN;
	r->since = mq_clock_steady_s();
	mq_helper_kill(&r->finder.helper);
}

static void
on_down(void *arg, const char *why)
{
	struct remote *r = arg;

	set_down(r, why);
	r->of->changed(r->of->arg);
}

static void
on_refused(void *arg, const char *error)
{
	(void)arg;
	mq_say("%s", error);
}

static void
connect_remote(struct remote *r)
{
	const char *why;

	r->async = (struct mq_async){.loop = r->of->loop,
	    .down = on_down,
	    .refused = on_refused,
	    .arg = r};
	if (mq_async_open(&r->async, &r->server, &why) == -1)
		set_down(r, why);
	else
		r->state = REMOTE_OPEN;
}

static void
on_found(void *arg, const char *why)
{
	struct remote *r = arg;

	if (why != NULL)
		set_down(r, why);
	else
		connect_remote(r);
	r->of->changed(r->of->arg);
}

static void
start_remote(struct remote *r)
{
	r->since = mq_clock_steady_s();
	r->state = REMOTE_PREPARING;
	if (find_at_once(&r->server))
		connect_remote(r);
	else if (find_start(&r->finder, r->of->children, &r->server, on_found,
		     r) == -1)
		set_down(r, strerror(errno));
}

/* --- life --------------------------------------------------------------------- */

static void
remote_free(struct remote *r)
{
	TAILQ_REMOVE(&r->of->list, r, link);
	ev_timer_stop(r->of->loop, &r->tick);
	mq_async_close(&r->async);
	mq_server_free(&r->server);
	explicit_bzero(r->url, strlen(r->url));
	free(r->url);
	free(r);
}

static bool
is_spare(const struct remote *r)
{
	return r->users == 0 && !mq_helper_runs(&r->finder.helper);
}

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct remote *r = w->data;
	bool moves = mq_async_moves(&r->async, NULL);

	(void)loop;
	(void)events;
	if (mq_clock_steady_s() - r->since < SILENCE)
		return;
	if (r->users > 0 && !moves && r->state != REMOTE_DOWN) {
		/* Its users may need room for another one. */
		r->users++;
		set_down(r, "no answer");
		mq_async_close(&r->async);
		r->of->changed(r->of->arg);
		r->users--;
	} else if (is_spare(r)) {
		remote_free(r);
	}
}

static struct remote *
remote_new(struct remotes *of, const char *url)
{
	struct remote *r = mq_xcalloc(1, sizeof(*r));

	r->of = of;
	r->url = mq_xstrdup(url);
	ev_timer_init(&r->tick, on_tick, SILENCE, SILENCE);
	r->tick.data = r;
	ev_timer_start(of->loop, &r->tick);
	TAILQ_INSERT_HEAD(&of->list, r, link);
	if (mq_server_at(&r->server, url, of->own, r->why, sizeof(r->why)) ==
		0 &&
	    r->server.url.kind == MQ_URL_CLUSTER)
		strlcpy(r->why, "dup to a cluster is not supported",
		    sizeof(r->why));
	if (r->why[0] != '\0') {
		r->unusable = true;
		r->state = REMOTE_DOWN;
		r->since = mq_clock_steady_s();
	} else {
		if (r->server.note[0] != '\0' && !of->noted)
			mq_say("%s", r->server.note);
		of->noted |= r->server.note[0] != '\0';
		start_remote(r);
	}
	return r;
}

/* False: all remotes are in use. */
static bool
make_room(struct remotes *of)
{
	struct remote *r;
	int n = 0;

	TAILQ_FOREACH(r, &of->list, link)
		n++;
	if (n < REMOTES_MAX)
		return true;
	TAILQ_FOREACH(r, &of->list, link)
		if (is_spare(r))
			break;
	if (r != NULL)
		remote_free(r);
	return r != NULL;
}

/* The server of this URL, as of redis/server.h, until remote_put().  NULL: 16 others are
 * in use. */
static struct remote *
remote_get(struct remotes *of, const char *url)
{
	struct remote *r;

	TAILQ_FOREACH(r, &of->list, link)
		if (strcmp(r->url, url) == 0)
			break;
	if (r == NULL && !make_room(of))
		return NULL;
	if (r == NULL)
		r = remote_new(of, url);
	else if (r->state != REMOTE_DOWN)
		r->since = mq_clock_steady_s();
	else if (mq_clock_steady_s() - r->since >= RETRY && !r->unusable &&
	    !mq_helper_runs(&r->finder.helper))
		start_remote(r);
	r->users++;
	return r;
}

static void
remote_put(struct remote *r)
{
	r->users--;
	r->since = mq_clock_steady_s();
}

/* Whether commands can be sent. */
static bool
remote_ready(const struct remote *r)
{
	return r->state == REMOTE_OPEN;
}

/* Why the server cannot be reached; NULL: no error yet. */
static const char *
remote_error(const struct remote *r)
{
	return r->state == REMOTE_DOWN ? r->why : NULL;
}

static struct mq_async *
remote_async(struct remote *r)
{
	return &r->async;
}

void
remotes_init(struct remotes *of, struct ev_loop *loop,
    const struct mq_server *own, struct mq_children *children,
    void (*changed)(void *arg), void *arg)
{
	*of = (struct remotes){.loop = loop,
	    .own = own,
	    .children = children,
	    .changed = changed,
	    .arg = arg};
	TAILQ_INIT(&of->list);
}

void
remotes_free(struct remotes *of)
{
	struct remote *r, *more;

	TAILQ_FOREACH_SAFE(r, &of->list, link, more) {
		mq_helper_kill(&r->finder.helper);
		remote_free(r);
	}
}

/* --- request ------------------------------------------------------------- */

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
				!session_is_up(here->session))
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
