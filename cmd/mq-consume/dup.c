/*
 * The verb dup: a script asks for a duplicate of its message in some queue,
 * and waits for the answer on its descriptor 4.
 *
 * A run has its requests carried out one after the other, so that the answers
 * come in order, and its message is not settled before all have theirs: what
 * it asked for is not forgotten when it ends at once.  Each is two commands:
 * whether there is such a queue, and the publishing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"

/* How long a queue's server may take to be there; and how long all requests
 * of a script may take that has ended. */
#define PATIENCE 10.0
/* With so many requests, the script is not heard until some are answered. */
#define BUSY 64

/* A request; it lives until it is answered and no reply is due any more. */
struct dup {
	TAILQ_ENTRY(dup) link;
	struct slot *s;	   /* NULL: it was answered */
	struct message *m; /* to be duplicated; until then */
	enum {
		DUP_WAITING, /* for its turn, or for the server */
		DUP_ASKED,   /* whether there is such a queue */
		DUP_SENT
	} step;
	bool in_flight;
	struct mq_dup what;
	const char *wrong;		/* with it; NULL: nothing */
	struct far *far;		/* NULL: our own server */
	const struct mq_layout *layout; /* of that queue; NULL: not found yet */
	char id[MQ_ID_LEN + 1];
};

static void
drop(struct dup *d)
{
	if (d->far != NULL)
		far_put(d->far);
	mq_dup_free(&d->what);
	free(d);
}

/* The answer is in words for the script, and for others if it has gone. */
static void
dup_answer(struct dup *d, const char *text)
{
	struct slot *s = d->s;
	const struct options *opt = s->c->opt;
	bool failed = strncmp(text, "ok ", 3) != 0;

	mq_answers_say(&s->answers, text);
	if (opt->verbose || (failed && s->over && !opt->quiet))
		message_say(d->m, "dup to %s: %s", d->what.shown, text);
	TAILQ_REMOVE(&s->dups, d, link);
	s->dup_count--;
	d->s = NULL;
	if (!d->in_flight)
		drop(d);
}

static void __attribute__((format(printf, 2, 3)))
fail(struct dup *d, const char *fmt, ...)
{
	struct mq_buf text = {0};
	va_list ap;
	char *words;

	va_start(ap, fmt);
	words = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_buf_printf(&text, "fail %s", words);
	dup_answer(d, mq_buf_str(&text));
	mq_buf_free(&text);
	free(words);
}

static void
fail_to_connect(struct dup *d, const char *why)
{
	const char *name = d->what.web != NULL ? d->what.queue : d->what.shown;

	fail(d, "couldn't connect to queue - %s%s%s", name,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

static void next(struct slot *);

static const char *
refused(enum mq_published how)
{
	return how == MQ_PUBLISHED_TOO_LONG ?
	    "the message is longer than the maxsize of that queue" :
	    "the last tick of the message is over";
}

static void
on_published(void *arg, const struct mq_answer *answer, enum mq_published how)
{
	struct dup *d = arg;
	struct slot *s = d->s;
	char ok[MQ_ID_LEN + 4];

	d->in_flight = false;
	if (s == NULL) {
		drop(d);
		return;
	}
	if (answer == NULL) {
		fail(d,
		    "dup failed - the connection was lost, and nobody "
		    "knows whether there is a duplicate");
	} else if (answer->error != NULL) {
		fail(d, "dup failed - %s", answer->error);
	} else if (how != MQ_PUBLISHED) {
		fail(d, "dup failed - %s", refused(how));
	} else {
		snprintf(ok, sizeof(ok), "ok %s", d->id);
		dup_answer(d, ok);
	}
	next(s);
}

/* False: it has its answer. */
static bool
publish(struct dup *d)
{
	struct consumer *c = d->s->c;
	struct mq_publishing how;
	struct mq_envelope copy;
	struct mq_buf why = {0};
	bool can =
	    copy_make(d->m, d->layout, &d->what, d->id, &how, &copy, &why);

	if (can) {
		d->step = DUP_SENT;
		d->in_flight = true;
		mq_ask_publish(far_or_main(c, d->far), d->layout, d->what.queue,
		    &how, d->id, &copy, on_published, d);
	} else {
		fail(d, "dup failed - %s", mq_buf_str(&why));
	}
	mq_envelope_free(&copy);
	mq_buf_free(&why);
	return can;
}

static void
on_known(void *arg, const struct mq_answer *answer, long long known)
{
	struct dup *d = arg;
	struct slot *s = d->s;

	d->in_flight = false;
	if (s == NULL) {
		drop(d);
		return;
	}
	d->step = DUP_WAITING;
	/* The connection is lost: whoever sees to it calls dup_go_on(), if that
	 * has not been done already. */
	if (answer == NULL) {
		if (d->far != NULL && far_error(d->far) != NULL)
			next(s);
		return;
	}
	if (answer->error != NULL)
		fail(d, "dup failed - %s", answer->error);
	else if (known == 0)
		fail_to_connect(d, NULL);
	else if (d->m->lost)
		fail(d, "dup failed - the lease of the message was lost");
	else if (publish(d))
		return;
	next(s);
}

/* Finds out what the queue is called there.  What the URL of another server
 * does not name, the layout and the namespace, is as it is here.  False: it can
 * be none; *why may say so. */
static bool
resolve(struct dup *d, const char **why)
{
	const struct consumer *c = d->s->c;
	const struct mq_layout *layout = c->layout;
	const char *ns = d->what.ns, *wrong;
	char *name;

	*why = NULL;
	if (d->layout != NULL)
		return true;
	if (d->what.layout != NULL)
		layout = mq_layout_find(d->what.layout);
	else if (ns == NULL)
		ns = c->server.url.ns;
	if (layout == NULL)
		*why = "its layout is neither rmq nor rsmq";
	else if (ns != NULL && layout->ns == NULL)
		*why = "its layout has no namespaces";
	if (*why != NULL)
		return false;
	name = mq_layout_queue(layout, ns, d->what.queue, &wrong);
	if (name == NULL)
		return false;
	free(d->what.queue);
	d->what.queue = name;
	d->layout = layout;
	return true;
}

/* Whether d is under way, or has to wait; else it has its answer. */
static bool
advance(struct dup *d)
{
	struct consumer *c = d->s->c;
	const char *why;

	if (d->step != DUP_WAITING || d->in_flight)
		return true;
	if (d->wrong != NULL) {
		fail(d, "dup failed - %s", d->wrong);
		return false;
	}
	if (!resolve(d, &why)) {
		fail_to_connect(d, why);
		return false;
	}
	if (d->what.far != NULL && d->far == NULL &&
	    (d->far = far_get(c, d->what.far)) == NULL)
		why = "too many other servers at once";
	else if (d->far != NULL)
		why = far_error(d->far);
	if (why != NULL) {
		fail_to_connect(d, why);
		return false;
	}
	if (d->far != NULL ? !far_ready(d->far) : c->link != LINK_UP)
		return true;
	d->step = DUP_ASKED;
	d->in_flight = true;
	mq_ask_known(
	    far_or_main(c, d->far), d->layout, d->what.queue, on_known, d);
	return true;
}

/* Carries on with the requests of a run. */
static void
next(struct slot *s)
{
	struct ev_loop *loop = s->c->loop;
	struct dup *d;

	while ((d = TAILQ_FIRST(&s->dups)) != NULL && !advance(d))
		if (!s->over)
			ev_timer_stop(loop, &s->dup_timer);
	if (d != NULL && !ev_is_active(&s->dup_timer)) {
		ev_timer_set(&s->dup_timer, PATIENCE, 0);
		ev_timer_start(loop, &s->dup_timer);
	}
	if (d == NULL)
		ev_timer_stop(loop, &s->dup_timer);
	if (d == NULL && s->over)
		run_over(s);
	else if (!s->over && s->dup_count < BUSY)
		run_listen(s);
}

static void
give_up(struct dup *d)
{
	if (d->step == DUP_SENT)
		fail(d,
		    "dup failed - no answer came, and nobody knows whether "
		    "there is a duplicate");
	else
		fail_to_connect(d, d->what.far != NULL ? "no answer" : NULL);
}

static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;
	struct dup *d;

	(void)loop;
	(void)events;
	while ((d = TAILQ_FIRST(&s->dups)) != NULL) {
		/* Its connection is given up in time if nothing comes. */
		if (!s->over && d->step == DUP_SENT)
			return;
		give_up(d);
		if (!s->over)
			break;
	}
	next(s);
}

void
dup_ask(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	struct dup *d = mq_xcalloc(1, sizeof(*d));

	d->s = s;
	d->m = slot_at(s, which);
	if (which == -1 && s->ones != NULL && s->count > 1)
		d->wrong = "which message? say its number: dup #N ...";
	else if (d->m == NULL)
		d->wrong = "there is no message of that number";
	else if (text == NULL)
		d->wrong = "the line is too long";
	else if (mq_dup_parse(text, &d->what, &d->wrong) == 0)
		d->wrong = NULL;
	if (d->m == NULL)
		d->m = slot_on(s);
	if (d->what.shown == NULL)
		d->what.shown = mq_xstrdup("");
	TAILQ_INSERT_TAIL(&s->dups, d, link);
	s->dup_count++;
	next(s);
}

void
dup_begin(struct slot *s, int fd)
{
	TAILQ_INIT(&s->dups);
	s->dup_count = 0;
	mq_answers_open(&s->answers, s->c->loop, fd);
	ev_timer_init(&s->dup_timer, on_patience, PATIENCE, 0);
	s->dup_timer.data = s;
}

bool
dup_busy(const struct slot *s)
{
	return s->dup_count >= BUSY;
}

bool
dup_over(struct slot *s)
{
	ev_timer_stop(s->c->loop, &s->dup_timer);
	if (TAILQ_EMPTY(&s->dups))
		return true;
	ev_timer_set(&s->dup_timer, PATIENCE, 0);
	ev_timer_start(s->c->loop, &s->dup_timer);
	return false;
}

void
dup_hurry(struct slot *s)
{
	ev_timer_stop(s->c->loop, &s->dup_timer);
	ev_timer_set(&s->dup_timer, 0, 0);
	ev_timer_start(s->c->loop, &s->dup_timer);
}

void
dup_go_on(struct consumer *c)
{
	int i;

	for (i = 0; c->slots != NULL && i < c->opt->slots; i++)
		if (c->slots[i].dup_count > 0)
			next(&c->slots[i]);
}

void
dup_end(struct consumer *c)
{
	struct slot *s;
	struct dup *d;
	int i;

	for (i = 0; c->slots != NULL && i < c->opt->slots; i++) {
		s = &c->slots[i];
		if (s->pid != 0)
			mq_answers_close(&s->answers);
		if (s->dup_count == 0)
			continue;
		ev_timer_stop(c->loop, &s->dup_timer);
		while ((d = TAILQ_FIRST(&s->dups)) != NULL) {
			TAILQ_REMOVE(&s->dups, d, link);
			d->s = NULL;
			if (!d->in_flight)
				drop(d);
		}
	}
}
