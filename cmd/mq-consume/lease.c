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
	struct mq_command *cmd;
	struct message *m;

	if (c->layout->lapsed == NULL)
		return;
	TAILQ_FOREACH(m, &c->messages, link)
		if (!m->lost) {
			c->lapsed = mq_xreallocarray(c->lapsed,
			    (size_t)c->lapsed_count + 1, sizeof(*c->lapsed));
			cmd = &c->lapsed[c->lapsed_count++];
			*cmd = (struct mq_command){0};
			c->layout->lapsed(&c->session, m->queue, m->element,
			    m->len, m->attempts, cmd);
		}
}

void
lease_tell_lapsed(struct consumer *c)
{
	int i;

	for (i = 0; i < c->lapsed_count; i++) {
		mq_async_send(&c->main, &c->lapsed[i], NULL, NULL);
		mq_command_free(&c->lapsed[i]);
	}
	free(c->lapsed);
	c->lapsed = NULL;
	c->lapsed_count = 0;
}

void
lease_lost(struct consumer *c, const char *why)
{
	mq_say("%s: lease lost: %s", c->connection, why);
	forgive(c);
	settle_lost(c);
	strlcpy(c->former, c->connection, sizeof(c->former));
	c->session.former = c->former;
	lease_new_name(c);
	c->next_clean = 0;
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

void
lease_renew(struct consumer *c, mq_async_fn *fn, void *arg)
{
	struct mq_command cmd = {0};
	int step;

	for (step = 0; c->layout->renew(&c->session, step, &cmd); step++)
		mq_async_send(&c->main, &cmd, step == 0 ? fn : NULL, arg);
	mq_command_free(&cmd);
}

static void
on_renewed(void *arg, redisReply *reply)
{
	struct consumer *c = arg;
	double sent = c->renewal_sent;

	c->renewal_sent = 0;
	if (reply == NULL || c->link != LINK_UP)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		link_complain(c, reply->str);
		return;
	}
	if (c->layout->lease(reply) == 0) {
		link_rejoin(c);
		return;
	}
	c->lease_ms = c->layout->lease(reply);
	c->lease_sent = sent;
}

struct audit {
	struct consumer *c;
	int queue;
	unsigned long moves;
};

static void
on_held(void *arg, redisReply *reply)
{
	struct audit *a = arg;
	struct consumer *c = a->c;
	int queue = a->queue;

	free(a);
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    c->link != LINK_UP)
		return;
	/* All that was sent before has been answered by now. */
	settle_reconcile(c, queue, reply);
	engine_mark(c);
}

static void
on_count(void *arg, redisReply *reply)
{
	struct audit *a = arg;
	struct consumer *c = a->c;
	struct mq_command cmd = {0};
	struct message *m;
	long long ours = 0;

	TAILQ_FOREACH(m, &c->messages, link)
		ours += m->queue == a->queue && !m->lost && !m->gone;
	if (a->moves != c->moves || c->link != LINK_UP || reply == NULL ||
	    reply->type != REDIS_REPLY_INTEGER || ours == reply->integer) {
		free(a);
		return;
	}
	if (ours < reply->integer && !c->opt->quiet)
		mq_say("%s: it holds other messages for us than we have",
		    c->server.name);
	c->layout->held(&c->session, a->queue, &cmd);
	mq_async_send(&c->main, &cmd, on_held, a);
	mq_command_free(&cmd);
}

/*
 * A command of a connection that we gave up may be carried out after we have
 * compared, when the server was stalled.  So we count now and then, while
 * nothing is moving.
 */
void
lease_audit(struct consumer *c)
{
	struct mq_command cmd = {0};
	struct audit *a;
	int i;

	/* Only what is answered between the sending of these and their own
	 * answers can spoil the comparison, and that changes moves. */
	if (c->claiming || c->settling > 0)
		return;
	for (i = 0; i < c->opt->queue_count; i++) {
		a = mq_xcalloc(1, sizeof(*a));
		*a = (struct audit){c, i, c->moves};
		c->layout->held_count(&c->session, i, &cmd);
		mq_async_send(&c->main, &cmd, on_count, a);
	}
	mq_command_free(&cmd);
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
		lease_renew(c, on_renewed, c);
	} else if (now - c->renewal_sent > REPLY_TIMEOUT &&
	    now - c->moved_at > REPLY_TIMEOUT) {
		link_reset(c, "no answer for 20 seconds");
	}
}
