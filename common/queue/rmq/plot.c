/*
 * The rmq layout: one queue of a dead connection.
 */
#include "keys.h"
#include "plot.h"
#include "scripts.h"

/* Bytes of headers in one reply; it has one in any case. */
#define SHOW_BYTES 16384
/* What one step returns at most, as in bury.lua.  So many go back in one step
 * with those that may have been running: whoever waits for messages finds the
 * latter in front, and knows that a consumer has died. */
#define STEP 500
/* What is before the headers in a reply. */
enum { MOVED, BACK, OUT, LEFT, UNLISTED, FIRST };
/* What is left when the queue has keys in the form for a cluster. */
#define CLUSTER (-2)

static long
at_most(long n, long max)
{
	return n < max ? n : max;
}

static long
shown(const struct rmq_plot *p)
{
	if (p->shown == NULL)
		return 0;
	return at_most((long)p->shown->elements - FIRST, RMQ_HEADERS);
}

/* What is to become of the messages that were shown. */
static void
add_charges(struct rmq_plot *p, struct mq_command *c)
{
	struct mq_buf header = {0};
	const redisReply *old;
	long i, n = shown(p);

	for (i = 0; i < n; i++) {
		old = p->shown->element[FIRST + i];
		mq_buf_clear(&header);
		p->charged[i] = rmq_charge(
		    old, p->grave->attempts, p->grave->host, &header);
		mq_command_arg(c, old->str, old->len);
		mq_command_arg(c, header.data, header.len);
		mq_command_str(c,
		    p->charged[i] == RMQ_CHARGE_REJECT ? "rejected" : "ready");
	}
	mq_buf_free(&header);
}

long
rmq_plot_kept(const struct rmq_plot *p)
{
	return p->grave->slots > 0 ? p->grave->slots + STEP : 0;
}

void
rmq_plot_step(
    struct rmq_round *w, struct rmq_plot *p, bool show, struct mq_command *c)
{
	const char *connection = p->grave->connection;

	p->looks = show && !p->looked && !w->how->dry_run;
	p->looked |= p->looks;
	mq_command_script(
	    c, &rmq_script_bury, RMQ_HOME + (p->grave->ours ? 11 : 9));
	rmq_key_home(c, p->queue);
	rmq_key_both(c, connection, p->queue, "unacked");
	rmq_key_queue(c, p->queue, "rejected");
	rmq_key_connection(c, connection, "heartbeat");
	rmq_key_both(c, connection, p->queue, "consumers");
	rmq_key_connection(c, connection, "queues");
	mq_command_str(c, RMQ_QUEUES);
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_cluster(c, connection, p->queue);
	if (p->grave->ours) {
		rmq_key_connection(c, connection, "info");
		rmq_key_connection(c, connection, "running");
	}
	mq_command_str(c, p->queue);
	mq_command_str(c, connection);
	mq_command_int(c, show ? p->grave->slots : rmq_plot_kept(p));
	mq_command_int(c, show ? SHOW_BYTES : 0);
	p->at += shown(p);
	if (w->how->dry_run || p->looks)
		mq_command_int(c, p->at);
	else
		mq_command_str(c, "");
	add_charges(p, c);
}

static bool
is_sound(struct rmq_round *w, const redisReply *reply)
{
	size_t i;

	if (!rmq_round_good(w, reply, REDIS_REPLY_ARRAY))
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
		    (i < FIRST ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return rmq_round_nonsense(w);
	return i >= FIRST || rmq_round_nonsense(w);
}

/* Counts the first n of the messages that were charged. */
static void
count_charged(struct rmq_round *w, const struct rmq_plot *p, long n)
{
	long i, crashed = 0, rejected = 0;

	for (i = 0; i < n; i++) {
		crashed += p->charged[i] != RMQ_CHARGE_NONE;
		rejected += p->charged[i] == RMQ_CHARGE_REJECT;
	}
	w->out->rejected += rejected;
	w->out->returned += n - rejected;
	rmq_tally(w, p->queue, crashed, rejected, 0);
}

static void
count_reply(struct rmq_round *w, struct rmq_plot *p, const redisReply *reply)
{
	long moved = (long)reply->element[MOVED]->integer;
	long charged = (long)(reply->element[BACK]->integer +
	    reply->element[OUT]->integer);
	long left = (long)reply->element[LEFT]->integer;

	if (w->how->dry_run) {
		if (p->shown == NULL && left > p->grave->slots)
			moved = left - p->grave->slots;
		charged = shown(p);
		left = at_most(left, p->grave->slots) - p->at;
	}
	if (reply->element[UNLISTED]->integer > 0) {
		w->out->connections++;
		p->grave->closed = true;
	}
	w->out->returned += moved;
	count_charged(w, p, at_most(charged, shown(p)));
	p->left = left;
}

static void
leave_alone(struct rmq_round *w, struct rmq_grave *g)
{
	if (!g->cluster && w->how->cluster != NULL)
		mq_names_add(w->how->cluster, g->connection, NULL);
	g->cluster = true;
}

/* What has become of it is known only if the reply is sound. */
void
rmq_plot_reply(struct rmq_round *w, struct rmq_plot *p, redisReply *reply)
{
	if (!is_sound(w, reply)) {
		p->grave->failed = true;
		p->left = 0;
		freeReplyObject(reply);
		return;
	}
	if (reply->element[LEFT]->integer < 0) {
		/* Its heart beats again, or it is none of ours to clean. */
		p->grave->failed = true;
		p->left = 0;
		if (reply->element[LEFT]->integer == CLUSTER)
			leave_alone(w, p->grave);
	} else if (!p->looks) {
		count_reply(w, p, reply);
	}
	if (p->shown != NULL)
		freeReplyObject(p->shown);
	p->shown = reply;
}

void
rmq_plot_free(struct rmq_plot *p)
{
	if (p->shown != NULL)
		freeReplyObject(p->shown);
}
