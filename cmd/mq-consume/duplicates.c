/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "duplicates.h"

#include <process/process.h> /* not that of this folder */

#include "base/text.h"
#include "base/timer.h"
#include "find.h"
#include "queue/dup.h"
#include "redis/loop.h"

struct duplicates {
	struct ev_loop *loop;
	const struct options *opt;
	struct facts *facts;
	struct mq_consumer *consumer; /* asks our own server */
	struct mq_server *server;
	struct mq_children *children;
	struct mq_idgen *ids;
	const char *host;
	bool up; /* the connection to our own server */
	TAILQ_HEAD(requests_list, requests) runs;
	TAILQ_HEAD(remote_list, remote) remotes;
	bool noted; /* the note of a server has been said */
};

struct requests {
	TAILQ_ENTRY(requests) link;
	struct duplicates *shared;
	int number;				/* the slot's */
	struct mq_answers *answers;		/* the slot's */
	TAILQ_HEAD(request_list, request) list; /* unanswered, in order */
	int count;				/* requests in list */
	bool awaited; /* a message waits for the last answer */
	bool full;    /* the slot waits until there are fewer requests */
	struct mq_timer timer;
};

static void resume_requests(struct duplicates *);

/* --- other servers ------------------------------------------------------------ */

#define REMOTES_MAX 16
/* After this many seconds, a server that owes an answer and sends nothing is given up, and an unused
 * connection is closed. */
#define SILENCE 5.0
/* Seconds until an unreachable server is tried again. */
#define RETRY 1.0

/* Another server, by its URL; exists while requests use it and SILENCE seconds more. */
struct remote {
	TAILQ_ENTRY(remote) link;
	struct duplicates *of;
	char *url; /* as given to remote_get() */
	int users; /* requests */
	enum { REMOTE_DOWN, REMOTE_PREPARING, REMOTE_OPEN } state;
	char why[256]; /* the error, if down */
	double since;  /* steady time when it went down; else of the last use */
	struct mq_server server;
	struct mq_loop conn; /* zeroed: no connection */
	struct finder *finder;
	struct mq_timer tick;
};

static void
set_down(struct remote *r, const char *why)
{
	strlcpy(r->why, why, sizeof(r->why));
	r->state = REMOTE_DOWN;
	r->since = mq_clock_steady_s();
	finder_stop(r->finder);
}

static find_found on_found;

static void
close_remote(struct remote *r)
{
	if (r->conn.loop != NULL)
		mq_loop_free(&r->conn);
	r->conn = (struct mq_loop){.loop = NULL};
}

static void
connect_remote(struct remote *r)
{
	static const struct mq_loop_events events = {.down = on_found};
	const char *why;

	close_remote(r);
	mq_loop_init(&r->conn, r->of->loop, &r->server, NULL, NULL, &events, r);
	if (mq_loop_open(&r->conn, &why) == -1)
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
	resume_requests(r->of);
}

static void
start_remote(struct remote *r)
{
	struct duplicates *d = r->of;
	struct mq_server *server = &r->server;
	char *why = server->error;
	int found;

	r->since = mq_clock_steady_s();
	r->state = REMOTE_PREPARING;
	mq_server_free(server);
	if (mq_server_at(server, r->url, d->server) == 0 &&
	    server->url.kind == MQ_URL_CLUSTER)
		strlcpy(why, "dup to a cluster is not supported",
		    sizeof(server->error));
	if (why[0] == '\0' && server->note[0] != '\0' && !d->noted) {
		mq_say("%s", server->note);
		d->noted = true;
	}
	if (why[0] != '\0')
		set_down(r, why);
	else if ((found = finder_start(r->finder)) == 1)
		connect_remote(r);
	else if (found == -1)
		set_down(r, strerror(errno));
}

static void
remote_free(struct remote *r)
{
	TAILQ_REMOVE(&r->of->remotes, r, link);
	mq_timer_stop(&r->tick);
	finder_free(r->finder);
	close_remote(r);
	mq_server_free(&r->server);
	explicit_bzero(r->url, strlen(r->url));
	free(r->url);
	free(r);
}

static void
on_tick(void *arg)
{
	struct remote *r = arg;
	bool moves = mq_redis_active(&r->conn.redis, NULL);

	if (mq_clock_steady_s() - r->since < SILENCE)
		return;
	if (r->users > 0 && !moves && r->state != REMOTE_DOWN) {
		/* As a user, this function keeps resumed requests from freeing the server. */
		r->users++;
		set_down(r, "no answer");
		close_remote(r);
		resume_requests(r->of);
		r->users--;
	} else if (r->users == 0) {
		remote_free(r);
	}
}

/* The server of a URL, as of redis/url.h, with one user more.  NULL: REMOTES_MAX others are in
 * use. */
static struct remote *
remote_get(struct duplicates *d, const char *url)
{
	struct remote *r, *spare = NULL;
	int n = 0;

	TAILQ_FOREACH(r, &d->remotes, link) {
		if (strcmp(r->url, url) == 0)
			break;
		n++;
		if (spare == NULL && r->users == 0)
			spare = r;
	}
	if (r == NULL) {
		if (n >= REMOTES_MAX && spare == NULL)
			return NULL;
		if (n >= REMOTES_MAX)
			remote_free(spare);
		r = mq_xcalloc(1, sizeof(*r));
		r->of = d;
		r->url = mq_xstrdup(url);
		r->finder = finder_new(d->children, &r->server, on_found, r);
		r->since = -RETRY; /* the machine may have just booted */
		mq_timer_init(&r->tick, d->loop, on_tick, r);
		mq_timer_start(&r->tick, SILENCE, SILENCE);
		TAILQ_INSERT_HEAD(&d->remotes, r, link);
	}
	/* A new server counts as down for long. */
	if (r->state != REMOTE_DOWN)
		r->since = mq_clock_steady_s();
	else if (mq_clock_steady_s() - r->since >= RETRY)
		start_remote(r);
	r->users++;
	return r;
}

/* --- a request ---------------------------------------------------------------- */

/* Seconds that a request waits for its server, or that all requests of an ended run may take. */
#define PATIENCE 10.0
/* Unanswered requests of a run, from which on its verbs are not read. */
#define REQUESTS_MAX 64

/* The command under way for a request. */
enum step {
	STEP_NONE,   /* waits for its turn, or for the server */
	STEP_KNOWN,  /* asks whether the queue exists */
	STEP_ATTACH, /* keeps the attachments for the duplicate */
	STEP_PUBLISH
};

struct request {
	TAILQ_ENTRY(request) link;
	struct requests *of; /* NULL: to be freed at the answer */
	const struct message *m;
	struct mq_dup what;
	const struct mq_layout *layout; /* the queue's */
	char *wrong; /* the answer, if no server is to be asked; or NULL */
	struct remote *remote; /* NULL: our own server */
	enum step step;
	char id[MQ_ID_LEN + 1]; /* the duplicate's, once the queue is known */
};

/* If a command is under way, its answer will be ignored. */
static void
request_free(struct request *q)
{
	q->of = NULL;
	if (q->step != STEP_NONE)
		return;
	if (q->remote != NULL) {
		q->remote->users--;
		q->remote->since = mq_clock_steady_s();
	}
	mq_dup_free(&q->what);
	free(q->wrong);
	free(q);
}

/* Ends a request; frees the text.  A failure is also said if the message has its final verb, since
 * the run may no longer read answers. */
static void
answer_request(struct request *q, char *text)
{
	struct requests *r = q->of;
	const struct options *opt = r->shared->opt;
	bool failed = strncmp(text, "ok ", 3) != 0;

	mq_answers_say(r->answers, text);
	if (q->m != NULL &&
	    (opt->verbose || (failed && r->awaited && !opt->quiet)))
		message_say(q->m, "dup to %s: %s", q->what.shown, text);
	free(text);
	TAILQ_REMOVE(&r->list, q, link);
	r->count--;
	request_free(q);
	if (!r->awaited)
		mq_timer_stop(&r->timer);
}

static char *
dup_failed(const char *why)
{
	return mq_xasprintf("fail dup failed - %s", why);
}

static void
answer_failed(struct request *q, const char *why)
{
	answer_request(q, dup_failed(why));
}

/* why: may be NULL. */
static char *
not_connected(const struct request *q, const char *why)
{
	const char *name = q->what.web != NULL ? q->what.queue : q->what.shown;

	return mq_xasprintf("fail couldn't connect to queue - %s%s%s", name,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

/* --- steps of a request --------------------------------------------------------- */

/* Each function sends a command or answers the request.  After that, the request may be freed:
 * a connection can answer at once. */

static mq_answer_fn on_answer;

static struct mq_redis *
request_redis(const struct request *q)
{
	return q->remote != NULL ? &q->remote->conn.redis :
				   q->of->shared->consumer->redis;
}

static void
publish_copy(struct request *q)
{
	const struct duplicates *d = q->of->shared;
	const struct message *m = q->m;
	char *origin =
	    mq_xasprintf("http://%s/q/%s/%s", d->host, m->queue_name, m->id);
	struct mq_duplicate as = {.id = q->id,
	    .origin = origin,
	    .web = q->what.web,
	    .stamped = mq_envelope_signed(m->element, m->len)};
	/* Only a script registers the queue and counts the copy. */
	struct mq_publishing how = {
	    .when.said = true, .has_options = true, .limits = MQ_UNLIMITED};
	struct mq_envelope copy;
	struct mq_buf why = {0};
	bool ours = q->layout == d->opt->layout;

	if (q->what.due_s > 0) {
		how.when.kind = MQ_WHEN_IN;
		how.when.ms = q->what.due_s * 1000;
		as.due_ms = mq_clock_unix_us() / 1000 + how.when.ms;
	}
	mq_message_duplicate(&m->envelope, &as, &copy);
	/* The message's own layout can always carry the copy. */
	if (!ours && mq_layout_obeys(q->layout, &copy, &why) &&
	    q->layout->has & MQ_HAS_TEXT &&
	    !mq_utf8(copy.payload, copy.payload_len))
		mq_buf_addstr(&why, "not UTF-8, as node takes it");
	if (why.len == 0) {
		q->step = STEP_PUBLISH;
		mq_ask_publish(request_redis(q), q->layout, q->what.queue, &how,
		    q->id, &copy, on_answer, q);
	} else {
		answer_failed(q, mq_buf_str(&why));
	}
	mq_envelope_free(&copy);
	mq_buf_free(&why);
	free(origin);
}

/* The copy must refer to attachments before anybody can see it.  If it is not published then,
 * mq-clean finds the reference. */
static void
begin_copy(struct request *q)
{
	const struct duplicates *d = q->of->shared;
	const char *set = mq_envelope_get(&q->m->envelope, MQ_HEADER_ATTACH);

	mq_id_make(d->ids, (uint64_t)mq_clock_unix_us(), q->id);
	if (set == NULL) {
		publish_copy(q);
	} else if (q->remote != NULL || q->layout != d->opt->layout) {
		answer_failed(q,
		    "attachments are copied only within one server and layout");
	} else {
		q->step = STEP_ATTACH;
		mq_ask_attach(
		    request_redis(q), q->layout, set, q->id, on_answer, q);
	}
}

static void
receive_answer(struct request *q, enum step step, const struct mq_answer *a)
{
	long long n = a != NULL ? a->n : 0;
	/* If the node that knows is away, the queue counts as known. */
	bool missing = step == STEP_KNOWN && a != NULL && a->missing;
	const struct duplicates *d = q->of->shared;

	if (a == NULL)
		answer_failed(q,
		    step == STEP_PUBLISH ?
			"the connection was lost; the duplicate may exist" :
			"the connection was lost");
	else if (a->error != NULL && !missing)
		answer_failed(q, a->error);
	else if (step == STEP_PUBLISH && n == MQ_PUBLISHED_TOO_LONG)
		answer_failed(
		    q, "the message is longer than the maxsize of that queue");
	else if (step == STEP_PUBLISH && n != MQ_PUBLISHED)
		answer_failed(q, "the last tick of the message is over");
	else if (step == STEP_PUBLISH && d->opt->rq)
		answer_request(q,
		    mq_xasprintf(
			"ok http://%s/q/%s/%s", d->host, q->what.queue, q->id));
	else if (step == STEP_PUBLISH)
		answer_request(q, mq_xasprintf("ok %s", q->id));
	else if (n == 0 && step == STEP_ATTACH)
		answer_failed(q, "its attachments are gone");
	else if (n == 0 && !missing)
		answer_request(q, not_connected(q, NULL));
	else if (q->m->lost)
		answer_failed(q, "the lease of the message was lost");
	else if (step == STEP_KNOWN)
		begin_copy(q);
	else
		publish_copy(q);
}

/* If the server cannot be reached yet, the request waits. */
static void
request_begin(struct request *q)
{
	struct duplicates *d = q->of->shared;
	bool elsewhere = q->what.remote != NULL;

	if (q->wrong == NULL && elsewhere && q->remote == NULL)
		q->remote = remote_get(d, q->what.remote);
	if (q->wrong != NULL) {
		answer_request(q, mq_xstrdup(q->wrong));
	} else if (elsewhere && q->remote == NULL) {
		answer_request(
		    q, not_connected(q, "too many other servers at once"));
	} else if (elsewhere && q->remote->state == REMOTE_DOWN) {
		answer_request(q, not_connected(q, q->remote->why));
	} else if (elsewhere ? q->remote->state == REMOTE_OPEN : d->up) {
		q->step = STEP_KNOWN;
		mq_ask_known(
		    request_redis(q), q->layout, q->what.queue, on_answer, q);
	}
}

/* --- the requests of a run ---------------------------------------------------- */

static void
advance_requests(struct requests *r)
{
	struct request *q;
	int before;

	do {
		before = r->count;
		q = TAILQ_FIRST(&r->list);
		if (q != NULL && q->step == STEP_NONE)
			request_begin(q);
	} while (r->count < before);
	if (r->count == 0)
		mq_timer_stop(&r->timer);
	else if (!mq_timer_runs(&r->timer))
		mq_timer_start(&r->timer, PATIENCE, 0);
	if (r->count == 0 && r->awaited) {
		r->awaited = false;
		tell(r->shared, FACT_ANSWERED, .n = r->number, .yes = true);
	} else if (r->full && !r->awaited && !requests_full(r)) {
		tell(r->shared, FACT_ANSWERED, .n = r->number);
	}
	r->full = requests_full(r);
}

static void
on_answer(void *arg, const struct mq_answer *a)
{
	struct request *q = arg;
	struct requests *r = q->of;
	struct remote *remote = q->remote;
	enum step step = q->step;

	q->step = STEP_NONE;
	if (r == NULL) {
		request_free(q);
		return;
	}
	/* The connection is lost, and nothing was done.  The event of the loss resumes the
	 * request, unless it has come before. */
	if (a == NULL && step == STEP_KNOWN &&
	    (q->remote == NULL || q->remote->state != REMOTE_DOWN))
		return;
	/* The connection may be reading more answers: as a user, this function keeps it from
	 * being freed. */
	if (remote != NULL)
		remote->users++;
	if (a != NULL || step != STEP_KNOWN)
		receive_answer(q, step, a);
	advance_requests(r);
	if (remote != NULL)
		remote->users--;
}

static void
on_patience(void *arg)
{
	struct requests *r = arg;
	struct request *q = TAILQ_FIRST(&r->list);

	/* While the run goes on, only SILENCE gives up a duplicate that may exist. */
	if (!r->awaited && q->step == STEP_PUBLISH)
		return;
	do {
		if (q->wrong != NULL)
			answer_request(q, mq_xstrdup(q->wrong));
		else if (q->step == STEP_PUBLISH)
			answer_failed(q, "no answer; the duplicate may exist");
		else
			answer_request(q,
			    not_connected(q,
				q->what.remote != NULL ? "no answer" : NULL));
	} while (r->awaited && (q = TAILQ_FIRST(&r->list)) != NULL);
	advance_requests(r);
}

/* Finds the layout and the full name of the queue.  By default, a URL has our layout and namespace.
 * False: the queue cannot exist; *why: an explanation or NULL. */
static bool
resolve_queue(struct request *q, const char **why)
{
	const struct duplicates *d = q->of->shared;
	const char *ns = q->what.ns, *wrong;
	char *name;

	q->layout = d->opt->layout;
	if (q->what.layout != NULL)
		q->layout = mq_layout_find(q->what.layout);
	else if (ns == NULL)
		ns = d->server->url.ns;
	*why = NULL;
	if (q->layout == NULL)
		*why = "its layout is neither rmq nor rsmq";
	else if (ns != NULL && q->layout->ns == NULL)
		*why = "its layout has no namespaces";
	if (*why != NULL)
		return false;
	name = mq_layout_queue(q->layout, ns, q->what.queue, &wrong);
	if (name == NULL)
		return false;
	free(q->what.queue);
	q->what.queue = name;
	return true;
}

void
requests_ask(struct requests *r, const struct message *m, const char *wrong,
    const char *text)
{
	struct request *q = mq_xcalloc(1, sizeof(*q));

	q->of = r;
	q->m = m;
	if (wrong == NULL)
		wrong = text != NULL ? mq_dup_parse(text, &q->what) :
				       "line too long";
	if (q->what.shown == NULL)
		q->what.shown = mq_xstrdup("");
	if (wrong != NULL)
		q->wrong = dup_failed(wrong);
	else if (!resolve_queue(q, &wrong))
		q->wrong = not_connected(q, wrong);
	TAILQ_INSERT_TAIL(&r->list, q, link);
	r->count++;
	advance_requests(r);
}

bool
requests_empty(const struct requests *r)
{
	return r->count == 0;
}

bool
requests_full(const struct requests *r)
{
	return r->count >= REQUESTS_MAX;
}

bool
requests_await(struct requests *r, bool ended)
{
	r->awaited = r->count > 0;
	if (ended && r->awaited)
		mq_timer_start(&r->timer, PATIENCE, 0);
	return r->awaited;
}

void
requests_hurry(struct requests *r)
{
	if (r->awaited)
		mq_timer_start(&r->timer, 0, 0);
}

struct requests *
requests_new(struct duplicates *d, struct mq_answers *answers, int n)
{
	struct requests *r = mq_xcalloc(1, sizeof(*r));

	r->shared = d;
	r->answers = answers;
	r->number = n;
	TAILQ_INIT(&r->list);
	mq_timer_init(&r->timer, d->loop, on_patience, r);
	TAILQ_INSERT_TAIL(&d->runs, r, link);
	return r;
}

/* --- all runs ----------------------------------------------------------------- */

static void
resume_requests(struct duplicates *d)
{
	struct requests *r;

	TAILQ_FOREACH(r, &d->runs, link)
		if (r->count > 0)
			advance_requests(r);
}

void
duplicates_up(struct duplicates *d, bool up)
{
	d->up = up;
	if (up)
		resume_requests(d);
}

struct duplicates *
duplicates_new(struct ev_loop *loop, const struct options *opt,
    struct facts *facts, struct mq_consumer *consumer, struct mq_server *server,
    struct mq_children *children, struct mq_idgen *ids, const char *host)
{
	struct duplicates *d = mq_xcalloc(1, sizeof(*d));

	d->loop = loop;
	d->opt = opt;
	d->facts = facts;
	d->consumer = consumer;
	d->server = server;
	d->children = children;
	d->ids = ids;
	d->host = host;
	TAILQ_INIT(&d->runs);
	TAILQ_INIT(&d->remotes);
	return d;
}

static void
requests_free(struct requests *r)
{
	struct request *q;

	mq_answers_close(r->answers);
	mq_timer_stop(&r->timer);
	while ((q = TAILQ_FIRST(&r->list)) != NULL) {
		TAILQ_REMOVE(&r->list, q, link);
		request_free(q);
	}
	free(r);
}

void
duplicates_free(struct duplicates *d)
{
	struct requests *r, *next;
	struct remote *server, *more;

	TAILQ_FOREACH_SAFE(r, &d->runs, link, next)
		requests_free(r);
	TAILQ_FOREACH_SAFE(server, &d->remotes, link, more)
		remote_free(server);
	free(d);
}
