/*
 * mq-publish: put messages into a queue.  With --http, options.c makes options and a stdin
 * of a request.  message.c makes messages of the records on stdin, and transport.c brings
 * them to the server in batches, whatever happens to the connection, and counts what the
 * server says.  Calls go that way only.
 */
#include <fcntl.h>
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
	struct mq_redis redis;
	struct mq_publisher publisher;
	struct transport transport;
	struct messages messages;
};

static void
connect_modules(struct modules *m, int payloads)
{
	struct options *o = &m->opt;
	bool single = payloads == 1 ||
	    (payloads == 0 && o->framing == MQ_FRAME_WHOLE &&
		!isatty(STDIN_FILENO));

	if (mq_redis_open(&m->redis, &m->server) == -1)
		mq_die(m->redis.status, "%s", m->redis.error);
	interrupt_catch(0);
	mq_publisher_init(&m->publisher, &m->redis, o->shared.layout, o->queue,
	    &o->attributes);
	m->transport = (struct transport){
	    .opt = o, .redis = &m->redis, .publisher = &m->publisher};
	transport_begin(&m->transport, single);
}

/* Returns the exit status. */
static int
publish(struct modules *m, char *payloads[], int count)
{
	struct options *o = &m->opt;
	struct transport *t = &m->transport;
	int i, status, waited;
	struct mq_report r;

	if (o->attachments.n > 0)
		attachments_send(t);
	/* It is known now who we are, how to publish, and what time it is. */
	o->how.when =
	    options_when(o, (mq_clock_steady_us() + t->clock_us) / 1000);
	t->how = o->how;
	m->messages = (struct messages){
	    .opt = o, .layout = o->shared.layout, .transport = t};
	for (i = 0; i < count; i++)
		message_add(&m->messages, payloads[i], strlen(payloads[i]));
	if (count == 0 && isatty(STDIN_FILENO) && !o->shared.quiet)
		mq_say("reading from the terminal; end with ^D");
	if (count == 0)
		read_messages(&m->messages);
	batch_settle(t);
	status = outcome_finish(t);
	if (o->wait) {
		waited = wait_for_endings(t);
		status = waited > status ? waited : status;
	}
	/* To a person; who may not ask does not learn it. */
	if (o->notes && m->server.url.kind != MQ_URL_CLUSTER &&
	    mq_report_ask(&m->redis, &r) == 0 && r.aof == 0)
		mq_say("%s: what this server loses is lost; mq-stats --server "
		       "says how to keep it",
		    m->server.name);
	return status;
}

int
main(int argc, char *argv[])
{
	struct modules m = {0};
	const struct options *o = &m.opt;
	int count, status = MQ_EXIT_OK;
	long long now;
	char **payloads;

	mq_option_begin();
	options_parse(&m.opt, argc, argv, &payloads, &count);
	if (o->http)
		options_serve(&m.opt);
	mq_option_prints(o->ids || o->wait);
	if (count == 0 && o->tick < 0 &&
	    (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		mq_die(MQ_EXIT_IO,
		    "standard input: not open for reading; nothing was done");
	(void)mq_option_server(&m.opt.shared, &m.server);
	options_use_layout(&m.opt, &m.server);
	connect_modules(&m, count);
	if (o->tick < 0)
		status = publish(&m, payloads, count);
	else if (mq_publisher_tick(&m.publisher, o->tick, &now) == -1)
		mq_die(m.redis.status, "%s", m.redis.error);
	else if (now > o->tick)
		mq_die(MQ_EXIT_NO,
		    "%s: --tick %ld: the queue is at tick %lld already",
		    o->queue, o->tick, now);
	mq_publisher_free(&m.publisher);
	mq_redis_close(&m.redis);
	mq_buf_free(&m.messages.header);
	transport_free(&m.transport);
	mq_server_free(&m.server);
	options_free(&m.opt);
	mq_close_stdout();
	return status;
}
