/*
 * The rmq layout: a connection's own keys, from joining to leaving.
 *
 * A heartbeat that has expired stays so: it is renewed with EXPIRE, which does
 * nothing when it is gone, and a consumer that finds it gone takes a new name.
 * So a cleaner that once found a connection of ours dead can never meet it
 * alive again.  (Go renews with SET, which a full server refuses.)
 */
#include "rmq.h"

#include <unistd.h>

#include "base/clock.h"
#include "queue/scripts.h"

/* Kept for a cleaner to read after the connection's death. */
#define INFO_S 3600

/* Of a lease on a cluster: shorter than a heartbeat, so that no cleaner takes what may
 * still be claimed; longer than a failover takes. */
#define QUEUE_LEASE_MS 40000
/* What was claimed, when nobody renews it any more. */
#define QUEUE_INFO_S 86400

/* A command on one key that goes through even when memory is full; the caller adds
 * the arguments behind the key. */
static void
force_set(struct mq_command *c, const char *verb, const char *key)
{
	mq_command_script(c, &mq_script_write_when_full, 1);
	rmq_key_all(c, key);
	mq_command_str(c, verb);
}

static void
force_connection(const struct mq_session *s, struct mq_command *c,
    const char *verb, const char *what)
{
	mq_command_script(c, &mq_script_write_when_full, 1);
	rmq_key_connection(c, s->connection, what);
	mq_command_str(c, verb);
}

static void
set_info(const struct mq_session *s, struct mq_command *c)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	force_connection(s, c, "HSET", "info");
	mq_command_str(c, "host");
	mq_command_str(c, host);
	mq_command_str(c, "pid");
	mq_command_int(c, getpid());
	mq_command_str(c, "slots");
	mq_command_int(c, s->slots);
	if (s->attempts != -1) {
		mq_command_str(c, "attempts");
		mq_command_int(c, s->attempts);
	}
	if (s->notify != NULL) {
		mq_command_str(c, "notify");
		mq_command_str(c, s->notify);
	}
	if (s->lease_ms > 0) {
		mq_command_str(c, "lease");
		mq_command_int(c, s->lease_ms);
	}
}

/* The info goes by itself when only a Go cleaner, which knows nothing of it, came. */
static void
keep_info(const struct mq_session *s, struct mq_command *c)
{
	mq_command_plain(c, "EXPIRE");
	rmq_key_connection(c, s->connection, "info");
	mq_command_int(c, INFO_S + s->lease_ms / 1000);
}

/* What a former connection tells of itself is on other nodes of a cluster. */
static void
tell_lapsed(const struct mq_session *s, struct mq_command *c)
{
	double age_s = mq_clock_steady_s() - s->former_s;

	mq_command_script(c, &rmq_script_lapsed, c->cluster ? 1 : 2);
	rmq_key_connection(c, s->connection, "info");
	if (c->cluster)
		mq_command_int(c,
		    INFO_S * INT64_C(1000) + s->lease_ms -
			(int64_t)(age_s * 1000));
	else
		rmq_key_connection(c, s->former, "info");
}

/* The uses of the first n keys of rmq_probe(). */
static void
add_uses(struct mq_command *c, int n)
{
	static const char *const uses[] = {"LLEN LPUSH", "ZCARD ZADD",
	    "ZCARD ZADD", "HLEN HSET", "GET", "GET", "LLEN LPUSH",
	    "LLEN LPUSH LREM", "SCARD SADD"};
	int i;

	for (i = 0; i < n; i++)
		mq_command_str(c, uses[i]);
}

/* The same of a connection's keys, which are not in the slot of its queue. */
static void
add_own_uses(struct mq_command *c, const char *connection)
{
	mq_command_words(c, RMQ_QUEUES " SADD " RMQ_CONNECTIONS " SADD");
	rmq_key_connection(c, connection, "heartbeat");
	mq_command_str(c, "SET");
	rmq_key_connection(c, connection, "info");
	mq_command_str(c, "HSET EXPIRE");
	rmq_key_connection(c, connection, "queues");
	mq_command_str(c, "SADD");
}

void
rmq_probe(struct mq_command *c, const struct mq_session *s, const char *queue,
    bool special)
{
	int keys = s != NULL ? RMQ_QUEUE_KEYS + 3 :
	    special	     ? RMQ_QUEUE_KEYS :
			       1;

	mq_command_script(c, &mq_script_probe, keys);
	if (keys == 1)
		rmq_key_queue(c, queue, "ready");
	else
		rmq_queue_keys(c, queue);
	if (s != NULL) {
		rmq_key_queue(c, queue, "rejected");
		rmq_key_both(c, s->connection, queue, "unacked");
		rmq_key_both(c, s->connection, queue, "consumers");
	}
	add_uses(c, keys);
	if (s != NULL)
		add_own_uses(c, s->connection);
}

/* The names of queues come last: a consumer that is refused makes no queue. */
static bool
make_queue(const struct mq_session *s, int step, struct mq_command *c)
{
	const char *queue = step < s->queue_count ? s->queues[step] : s->push;

	if (!s->make || step > s->queue_count || queue == NULL)
		return false;
	force_set(c, "SADD", RMQ_QUEUES);
	c->optional = true;
	mq_command_str(c, queue);
	return true;
}

/* The steps of one queue; on a cluster the last one is its lease. */
static void
join_queue(const struct mq_session *s, const char *queue, int step,
    struct mq_command *c)
{
	if (step == 0) {
		force_connection(s, c, "SADD", "queues");
		mq_command_str(c, queue);
		return;
	}
	mq_command_script(c, &mq_script_write_when_full, 1);
	rmq_key_both(
	    c, s->connection, queue, step == 1 ? "consumers" : "lease");
	if (step == 1) {
		mq_command_str(c, "SADD");
		mq_command_str(c, s->consumer);
	} else {
		mq_command_words(c, "SET 1 PX");
		mq_command_int(c, QUEUE_LEASE_MS);
	}
}

bool
rmq_join(const struct mq_session *s, int step, struct mq_command *c)
{
	bool tells = s->former != NULL;
	int each = c->cluster ? 3 : 2;

	switch (step) {
	case 0:
		force_connection(s, c, "SET", "heartbeat");
		mq_command_words(c, "1 EX");
		mq_command_int(c, RMQ_LEASE_S);
		return true;
	case 1:
		force_set(c, "SADD", RMQ_CONNECTIONS);
		mq_command_str(c, s->connection);
		return true;
	case 2:
		set_info(s, c);
		return true;
	case 3:
		if (!tells)
			break;
		tell_lapsed(s, c);
		return true;
	}
	step -= tells ? 4 : 3;
	if (step-- == 0) {
		keep_info(s, c);
		return true;
	}
	if (step >= each * s->queue_count)
		return make_queue(s, step - each * s->queue_count, c);
	join_queue(s, s->queues[step / each], step % each, c);
	return true;
}

bool
rmq_renew_queue(
    const struct mq_session *s, int queue, int step, struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_plain(c, step == 0 ? "PEXPIRE" : "EXPIRE");
	rmq_key_both(c, s->connection, name, step == 0 ? "lease" : "info");
	if (step == 0)
		mq_command_int(
		    c, s->lease_ms > 0 ? s->lease_ms : QUEUE_LEASE_MS);
	else
		mq_command_int(c, QUEUE_INFO_S + s->lease_ms / 1000);
	return step < 2;
}

void
rmq_take_over(const struct mq_session *s, int queue, const char *from,
    struct mq_command *c)
{
	const char *name = s->queues[queue];

	mq_command_script(c, &rmq_script_take_over, 6);
	rmq_key_both(c, from, name, "unacked");
	rmq_key_both(c, from, name, "consumers");
	rmq_key_both(c, from, name, "lease");
	rmq_key_both(c, from, name, "info");
	rmq_key_both(c, s->connection, name, "unacked");
	rmq_key_both(c, s->connection, name, "info");
	mq_command_str(c, from);
}

/*
 * A crash in the middle leaves a listed connection, which a cleaner takes
 * apart from there, or, behind the SREM, keys that expire by themselves.
 */
bool
rmq_leave(const struct mq_session *s, int step, struct mq_command *c)
{
	static const char *const keys[] = {
	    "queues", NULL, "heartbeat", "info", "running"};

	if (step < s->queue_count) {
		mq_command_plain(c, "DEL");
		rmq_key_both(c, s->connection, s->queues[step], "consumers");
		if (c->cluster) {
			rmq_key_lease(c, s->connection, s->queues[step]);
			rmq_key_info(c, s->connection, s->queues[step]);
		}
		return true;
	}
	step -= s->queue_count;
	if (step == 1) {
		mq_command_plain(c, "SREM");
		rmq_key_all(c, RMQ_CONNECTIONS);
		mq_command_str(c, s->connection);
	} else if (step < 5) {
		mq_command_plain(c, "DEL");
		rmq_key_connection(c, s->connection, keys[step]);
	}
	return step < 5;
}

/* A heartbeat outlasts the lease, which is renewed behind it. */
static int64_t
longer_than(int64_t lease_ms)
{
	int64_t more = lease_ms / 3 + 1000;

	return lease_ms + (more < 20000 ? more : 20000);
}

bool
rmq_renew(const struct mq_session *s, int step, struct mq_command *c)
{
	switch (step) {
	case 0:
		mq_command_plain(c, "PEXPIRE");
		rmq_key_connection(c, s->connection, "heartbeat");
		mq_command_int(c,
		    s->lease_ms == 0 ? RMQ_LEASE_S * 1000LL :
			c->cluster   ? longer_than(s->lease_ms) :
				       s->lease_ms);
		return true;
	case 1:
		keep_info(s, c);
		return true;
	case 2:
		mq_command_plain(c, "EXPIRE");
		c->optional = true;
		rmq_key_connection(c, s->connection, "running");
		mq_command_int(c, RMQ_LEASE_S);
		return true;
	default:
		return false;
	}
}

/* Joining answers OK, renewing 1 or 0. */
int64_t
rmq_lease(const redisReply *reply, bool cluster)
{
	if (reply->type == REDIS_REPLY_INTEGER && reply->integer != 1)
		return 0;
	return cluster ? QUEUE_LEASE_MS : RMQ_LEASE_S * INT64_C(1000);
}
