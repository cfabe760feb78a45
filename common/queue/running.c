
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/json.h"
#include "stats.h"

void
mq_runs_write(const struct mq_run *runs, int n, struct mq_buf *out)
{
	json_t *list = json_array(), *run;

	for (; n > 0; n--, runs++) {
		run = mq_json_pack("{so so sI sI so sI sI so}", "queue",
		    mq_json_name(runs->queue), "id", mq_json_text(runs->id),
		    "attempt", (json_int_t)runs->attempt, "pid",
		    (json_int_t)runs->pid, "script", mq_json_text(runs->script),
		    "started_ms", (json_int_t)runs->started_ms, "grace_ms",
		    (json_int_t)runs->grace_ms, "text",
		    mq_json_text(runs->text));
		mq_json_must(json_array_append_new(list, run) == 0);
	}
	mq_json_dump(list, out);
	json_decref(list);
}

void
mq_runs_read(struct mq_runs *runs, const char *text, size_t n,
    const char *connection, const char *host)
{
	json_t *list = mq_json_load(text, n, false), *v;
	json_int_t attempt, pid, started, grace;
	const char *queue, *id, *script, *said;
	size_t i;

	json_array_foreach(list, i, v) {
		script = said = "";
		attempt = pid = started = 0;
		grace = -1;
		if (json_unpack(v, "{ss ss s?I s?I s?s s?I s?I s?s}", "queue",
			&queue, "id", &id, "attempt", &attempt, "pid", &pid,
			"script", &script, "started_ms", &started, "grace_ms",
			&grace, "text", &said) == -1)
			continue;
		runs->runs = mq_xreallocarray(
		    runs->runs, (size_t)runs->count + 1, sizeof(*runs->runs));
		runs->runs[runs->count++] =
		    (struct mq_run){.connection = mq_xstrdup(connection),
			.host = host != NULL ? mq_xstrdup(host) : NULL,
			.queue = mq_xstrdup(queue),
			.id = mq_xstrdup(id),
			.script = mq_xstrdup(script),
			.text = mq_xstrdup(said),
			.attempt = (long)attempt,
			.pid = (long)pid,
			.started_ms = started,
			.grace_ms = grace};
	}
	json_decref(list);
}

void
mq_runs_free(struct mq_runs *runs)
{
	struct mq_run *run;
	int i;

	for (i = 0; i < runs->count; i++) {
		run = &runs->runs[i];
		free(run->connection);
		free(run->host);
		free(run->queue);
		free(run->id);
		free(run->script);
		free(run->text);
	}
	free(runs->runs);
	*runs = (struct mq_runs){0};
}

/* Then by when they started. */
static int
by_queue(const void *a, const void *b)
{
	const struct mq_run *x = a, *y = b;
	int d = strcmp(x->queue, y->queue);

	if (d == 0)
		d = (x->started_ms > y->started_ms) -
		    (x->started_ms < y->started_ms);
	return d != 0 ? d : strcmp(x->id, y->id);
}

struct asked {
	const struct mq_run_source *source;
	const redisReply *connections;
	const char *anywhere;
	struct mq_runs *out;
	/* Of the connection at work.  Facts of a lost node do not come. */
	size_t at;
	bool alive;
	char *host;
	struct mq_buf text;
};

static void
ask_fact(void *arg, size_t i, struct mq_command *c)
{
	const struct asked *a = arg;
	size_t n = a->source->n;

	a->source->ask(c, a->source->order[i % n],
	    a->connections->element[i / n]->str, a->anywhere);
}

static void
add_runs(struct asked *a)
{
	if (a->alive && a->text.len > 0)
		mq_runs_read(a->out, a->text.data, a->text.len,
		    a->connections->element[a->at]->str, a->host);
	a->alive = false;
	mq_buf_clear(&a->text);
	free(a->host);
	a->host = NULL;
}

static int
take_fact(void *arg, size_t i, redisReply *reply)
{
	struct asked *a = arg;
	size_t n = a->source->n;
	enum mq_run_fact fact = a->source->order[i % n];
	bool there = reply->type == REDIS_REPLY_STRING;

	if (i / n != a->at)
		add_runs(a);
	a->at = i / n;
	if (fact == MQ_RUN_LEASE) {
		if (reply->type != REDIS_REPLY_INTEGER)
			return -1;
		a->alive = reply->integer > 0;
	} else if (!there && reply->type != REDIS_REPLY_NIL) {
		return -1;
	} else if (there && fact == MQ_RUN_HOST) {
		a->host = mq_xstrdup(reply->str);
		a->alive |= n < MQ_RUN_FACTS;
	} else if (there) {
		mq_buf_add(&a->text, reply->str, reply->len);
	}
	return 0;
}

int
mq_runs_ask(struct mq_redis *r, redisReply *connections,
    const struct mq_run_source *source, const char *anywhere,
    struct mq_runs *out)
{
	struct asked a = {.source = source,
	    .connections = connections,
	    .anywhere = anywhere,
	    .out = out};
	int rv = -1;

	*out = (struct mq_runs){0};
	if (connections != NULL) {
		rv = mq_ask_all(r, source->n * connections->elements, ask_fact,
		    take_fact, &a);
		add_runs(&a);
		freeReplyObject(connections);
	}
	free(a.host);
	mq_buf_free(&a.text);
	if (rv == -1)
		mq_runs_free(out);
	else if (out->count > 0)
		qsort(out->runs, (size_t)out->count, sizeof(*out->runs),
		    by_queue);
	return rv;
}
