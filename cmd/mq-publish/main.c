/*
 * mq-publish: put messages into a queue.
 *
 * message.c takes records from stdin and makes messages of them, and transport.c
 * brings them to the server in batches, whatever happens to the connection, and counts
 * what the server says.  Calls go that way only.  Commands and replies
 * are the business of queue/publisher.h, and of redis/connection.h.  With --http, options.c
 * makes options and a stdin of a request first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "publish.h"
#include "redis/connection.h"

struct modules {
	struct options opt;
	struct mq_server server;
	const struct mq_layout *layout;
	struct mq_redis redis;
	struct mq_publisher publisher;
	struct outcome outcome;
	struct transport transport;
	struct messages messages;
	int64_t clock_us; /* the server's clock minus the steady one */
};

static void
set_tick(struct modules *m)
{
	long long now;

	if (mq_publisher_tick(&m->publisher, m->opt.tick, &now) == -1)
		mq_die(m->redis.status, "%s", m->redis.error);
	if (now > m->opt.tick)
		mq_die(MQ_EXIT_NO,
		    "%s: --tick %ld: the queue is at tick %lld already",
		    m->opt.queue, m->opt.tick, now);
}

static bool
is_special(const struct options *o)
{
	return o->how.special || o->tick >= 0 ||
	    o->message.attachments != NULL ||
	    o->message.when.kind != MQ_WHEN_NOW;
}

/* Finds out the server's clock, too, if it says that. */
static void
open_queue(void *arg)
{
	struct modules *m = arg;
	const struct options *o = &m->opt;
	bool yes;
	enum mq_call result = mq_publisher_open(&m->publisher, is_special(o),
	    !o->shared.existing, &m->clock_us, &yes);

	if (result == MQ_CALL_LOST && !o->durable &&
	    o->message.attachments == NULL)
		mq_die(m->redis.status, "%s", m->redis.error);
	if (result == MQ_CALL_LOST)
		mq_say("%s", m->redis.error);
	else if (result != MQ_CALL_DONE)
		mq_say("%s: %s", o->queue, m->redis.error);
	if (result != MQ_CALL_DONE)
		outcome_end(&m->outcome, 0, m->redis.status);
	if (o->shared.existing && !yes) {
		mq_option_unknown(&m->redis, m->layout, o->queue);
		exit(MQ_EXIT_NO); /* which is 404, too */
	}
	if (!o->shared.existing && yes)
		mq_option_made(&o->shared, &m->redis, o->queue);
}

static void
connect_modules(struct modules *m, int payloads)
{
	const struct options *o = &m->opt;
	bool late;

	if (mq_redis_open(&m->redis, &m->server) == -1)
		mq_die(m->redis.status, "%s", m->redis.error);
	/*
	 * Nothing has to be asked before there is a message, which is the only one:
	 * not the time, as the server is on this machine, and what is wrong with the
	 * queue can be said later.  A private server has its socket only now.
	 */
	late = m->server.socket[0] != '\0' &&
	    m->layout->publish_known != NULL && !is_special(o) && !o->durable &&
	    (payloads == 1 ||
		(payloads == 0 && o->framing == MQ_FRAME_WHOLE &&
		    !isatty(STDIN_FILENO)));
	interrupt_catch(0);
	mq_publisher_init(
	    &m->publisher, &m->redis, m->layout, o->queue, &o->attributes);
	m->outcome = (struct outcome){.queue = o->queue,
	    .what = m->layout->has & MQ_HAS_IDS ? "id" : "key",
	    .print_ids = o->message.ids,
	    .http = o->http,
	    .collect_ids = o->message.wait};
	m->transport = (struct transport){.redis = &m->redis,
	    .publisher = &m->publisher,
	    .outcome = &m->outcome,
	    .quiet = o->shared.quiet,
	    .open = late ? open_queue : NULL,
	    .arg = m};
	transport_begin(&m->transport, o->durable);
	m->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	if (!late)
		open_queue(m);
}

/* Returns the exit status. */
static int
publish(struct modules *m, char *payloads[], int count)
{
	struct options *o = &m->opt;
	int i, status, waited;
	struct mq_report r;

	if (o->message.attachments != NULL)
		attachments_send(o->message.attachments, &m->outcome,
		    m->layout->attachments, &m->redis, &o->message.headers);
	/* It is known now who we are, how to publish, and what time it is. */
	o->message.when =
	    options_when(o, (mq_clock_steady_us() + m->clock_us) / 1000);
	o->how.when = o->message.when;
	m->transport.how = o->how;
	message_init(
	    &m->messages, &o->message, m->layout, &m->transport, m->clock_us);
	for (i = 0; i < count; i++)
		message_add(&m->messages, payloads[i], strlen(payloads[i]));
	if (count == 0 && isatty(STDIN_FILENO) && !o->shared.quiet)
		mq_say("reading from the terminal; end with ^D");
	if (count == 0)
		read_messages(&m->messages, o);
	batch_settle(&m->transport);
	status =
	    outcome_finish(&m->outcome, o->shared.quiet, o->shared.verbose);
	if (o->message.wait) {
		waited = wait_for_endings(&m->transport, o);
		status = waited > status ? waited : status;
	}
	/* To a person; who may not ask does not learn it. */
	if (o->message.notes && m->server.url.kind != MQ_URL_CLUSTER &&
	    mq_report_ask(&m->redis, &r) == 0 && r.aof == 0)
		mq_say("%s: what this server loses is lost; mq-stats --server "
		       "says how to keep it",
		    m->server.name);
	return status;
}

int
main(int argc, char *argv[])
{
	struct modules m = {.layout = NULL};
	const struct options *o = &m.opt;
	int count, status = MQ_EXIT_OK;
	char **payloads;

	mq_option_begin();
	options_parse(&m.opt, argc, argv, &payloads, &count);
	if (o->http)
		options_serve(&m.opt);
	mq_option_prints(o->message.ids || o->message.wait);
	if (count == 0 && o->tick < 0 &&
	    (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		mq_die(MQ_EXIT_IO,
		    "standard input: not open for reading; nothing was done");
	m.layout = mq_option_server(&m.opt.shared, &m.server);
	options_use_layout(&m.opt, &m.server);
	connect_modules(&m, count);
	if (o->tick >= 0)
		set_tick(&m);
	else
		status = publish(&m, payloads, count);
	mq_publisher_free(&m.publisher);
	mq_redis_close(&m.redis);
	mq_buf_free(&m.messages.header);
	transport_free(&m.transport);
	mq_server_free(&m.server);
	options_free(&m.opt);
	mq_close_stdout();
	return status;
}
