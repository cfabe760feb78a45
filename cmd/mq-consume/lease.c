/*
 * The lease, which a heartbeat keeps.  The server keeps it for a time of its
 * own; we use it for three quarters of that after the last good renewal was sent, by
 * the boot time clock, which goes on while this process is stopped or the
 * machine sleeps.  So the scripts are killed before anybody else can get their
 * messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"

#define LEASE_USE     0.75
#define REPLY_TIMEOUT 20.0
/* A name that nobody has had; one that lost its lease is never used again. */
void
lease_new_name(struct consumer *c)
{
	char random[7];
	int i;

	mq_id_random(&c->ids, random, 6);
	snprintf(
	    c->connection, sizeof(c->connection), "%s-%s", c->opt->tag, random);
	mq_id_random(&c->ids, random, 6);
	snprintf(c->name, sizeof(c->name), "%s-%s", c->opt->tag, random);
	c->joined = false;
	for (i = 0; i < c->opt->queue_count; i++)
		c->queues[i].received = 0;
}

/* We are alive: what we had is not to be charged with that. */
static void
forgive(struct consumer *c)
{
	struct message *m;

	TAILQ_FOREACH(m, &c->messages, link)
		if (!m->lost)
			mq_consumer_lapsed(&c->self, m->queue, m->element,
			    m->len, m->attempts);
}

void
lease_lost(struct consumer *c, const char *why)
{
	mq_say("%s: lease lost: %s", c->connection, why);
	forgive(c);
	settle_lost(c);
	strlcpy(c->former, c->connection, sizeof(c->former));
	c->self.session.former = c->former;
	lease_new_name(c);
	cleaning_soon(&c->cleaning);
}

bool
lease_held(struct consumer *c)
{
	double use = LEASE_USE * (double)c->lease_ms / 1000;
	char why[64];

	if (!c->joined || mq_clock_steady_s() - c->lease_sent < use)
		return true;
	snprintf(
	    why, sizeof(why), "no heartbeat got through for %.3g seconds", use);
	lease_lost(c, why);
	/* Up or not, it has to join under its new name. */
	link_reset(c, "rejoining");
	return false;
}

static void
on_renewed(void *arg, const struct mq_answer *answer, long long lease_ms)
{
	struct consumer *c = arg;
	double sent = c->renewal_sent;

	c->renewal_sent = 0;
	if (answer == NULL || c->link != LINK_UP)
		return;
	if (answer->error != NULL) {
		link_complain(c, answer->error);
		return;
	}
	if (lease_ms == 0) {
		link_rejoin(c);
		return;
	}
	c->lease_ms = lease_ms;
	c->lease_sent = sent;
}

struct audit {
	struct consumer *c;
	int queue;
	unsigned long moves;
};

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct audit *a = arg;
	struct consumer *c = a->c;
	int queue = a->queue;

	free(a);
	if (answer == NULL || answer->error != NULL || c->link != LINK_UP)
		return;
	/* All that was sent before has been answered by now. */
	settle_reconcile(c, queue, held);
	engine_mark(c);
}

static void
on_count(void *arg, const struct mq_answer *answer, long long count)
{
	struct audit *a = arg;
	struct consumer *c = a->c;
	struct message *m;
	long long ours = 0;

	TAILQ_FOREACH(m, &c->messages, link)
		ours += m->queue == a->queue && !m->lost && !m->gone;
	if (a->moves != c->moves || c->link != LINK_UP || answer == NULL ||
	    answer->error != NULL || ours == count) {
		free(a);
		return;
	}
	if (ours < count && !c->opt->quiet)
		mq_say("%s: it holds other messages for us than we have",
		    c->server.name);
	mq_consumer_held(&c->self, a->queue, on_held, a);
}

/*
 * A command of a connection that we gave up may be carried out after we have
 * compared, when the server was stalled.  So we count now and then, while
 * nothing is moving.
 */
void
lease_audit(struct consumer *c)
{
	struct audit *a;
	int i;

	/* Only what is answered between the sending of these and their own
	 * answers can spoil the comparison, and that changes moves. */
	if (c->claiming || c->settling > 0)
		return;
	for (i = 0; i < c->opt->queue_count; i++) {
		a = mq_xcalloc(1, sizeof(*a));
		*a = (struct audit){c, i, c->moves};
		mq_consumer_held_count(&c->self, i, on_count, a);
	}
}

void
lease_keep(struct consumer *c)
{
	double now = mq_clock_steady_s();

	/* The answer may be behind a large message: that is no silence. */
	if (mq_async_moves(&c->main))
		c->moved_at = now;
	if (c->renewal_sent == 0) {
		c->renewal_sent = now;
		mq_consumer_renew(&c->self, on_renewed, c);
	} else if (now - c->renewal_sent > REPLY_TIMEOUT &&
	    now - c->moved_at > REPLY_TIMEOUT) {
		link_reset(c, "no answer for 20 seconds");
	}
}
