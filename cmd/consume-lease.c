/*
 * The lease, which a heartbeat keeps.  The server keeps it for a time of its
 * own; we use it for three quarters of that after the last good renewal was sent, by
 * the boot time clock, which goes on while this process is stopped or the
 * machine sleeps.  So the scripts are killed before anybody else can get their
 * messages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "consume.h"
#include "say.h"
#include "xalloc.h"

#define LEASE_USE     0.75
#define REPLY_TIMEOUT 20.0
/* A name that nobody has had; one that lost its lease is never used again. */
void
lease_new_name(struct consumer *c)
{
	char random[7];

	mq_id_random(&c->ids, random, 6);
	snprintf(
	    c->connection, sizeof(c->connection), "%s-%s", c->opt->tag, random);
	mq_id_random(&c->ids, random, 6);
	snprintf(c->name, sizeof(c->name), "%s-%s", c->opt->tag, random);
	c->joined = false;
}

void
lease_lost(struct consumer *c, const char *why)
{
	mq_say("%s: lease lost: %s", c->connection, why);
	settle_lost(c);
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
on_count(void *arg, redisReply *reply)
{
	struct audit *a = arg;
	struct consumer *c = a->c;
	struct message *m;
	long long ours = 0;
	int queue = a->queue;
	bool still = a->moves == c->moves && c->link == LINK_UP;

	free(a);
	if (!still || reply == NULL || reply->type != REDIS_REPLY_INTEGER)
		return;
	TAILQ_FOREACH(m, &c->messages, link)
		ours += m->queue == queue && !m->lost;
	if (ours != reply->integer)
		link_reset(c, "it holds other messages for us than we have");
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
