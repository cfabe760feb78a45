/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Reports of runs, and requests to end one. */
#include <poll.h>

#include "base/clock.h"
#include "layout.h"
#include "message/json.h"
#include "message/verdict.h"

void
mq_runs_write(const struct mq_run *runs, int n, struct mq_buf *out)
{
	json_t *list = json_array(), *run;

	for (; n > 0; n--, runs++) {
		run = json_pack("{so so sI sI so sI sI so}", "queue",
		    mq_json_name(runs->queue), "id", mq_json_text(runs->id),
		    "attempt", (json_int_t)runs->attempt, "pid",
		    (json_int_t)runs->pid, "script", mq_json_text(runs->script),
		    "started_ms", (json_int_t)runs->started_ms, "grace_ms",
		    (json_int_t)runs->grace_ms, "text",
		    mq_json_text(runs->text));
		json_array_append_new(list, run);
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
			.percent = mq_verb_percent(said),
			.attempt = (long)attempt,
			.pid = (long)pid,
			/* Bounded, as another program may have written them. */
			.started_ms = MAX(started, 0),
			.grace_ms = MIN(grace, 1LL << 48)};
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
	mq_names_free(&runs->wrong);
	*runs = (struct mq_runs){0};
}

/* By queue, then by start. */
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
	/* For the current connection; there are no replies of a lost node. */
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

	a->source->ask(c, a->source->facts[i % n].question,
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
store_fact(void *arg, size_t i, redisReply *reply)
{
	struct asked *a = arg;
	size_t n = a->source->n;
	enum mq_run_fact fact = a->source->facts[i % n].is;
	bool there = reply->type == REDIS_REPLY_STRING;

	if (i / n != a->at)
		add_runs(a);
	a->at = i / n;
	if (fact == MQ_RUN_LEASE) {
		if (reply->type != REDIS_REPLY_INTEGER)
			return -1;
		a->alive = reply->integer > 0;
	} else if (!there && reply->type != REDIS_REPLY_NIL &&
	    reply->type != REDIS_REPLY_ERROR) {
		return -1;
	} else if (there && fact == MQ_RUN_HOST) {
		a->host = mq_xstrdup(reply->str);
		a->alive |= a->source->facts[0].is != MQ_RUN_LEASE;
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
		rv = mq_ask_typed(r, source->n * connections->elements,
		    ask_fact, store_fact, &a, &out->wrong);
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

/* --- stopping ------------------------------------------------------------ */

#define HEAR_MS 5000 /* for a consumer to notice: it renews within 4 s */
#define LOOK_MS 50   /* between two looks for the answer */

static const char *const words[] = {[MQ_STOP_NONE] = "",
    [MQ_STOP_PURGE] = "purge",
    [MQ_STOP_RETURN] = "return",
    [MQ_STOP_PURGED] = "purged",
    [MQ_STOP_RETURNED] = "returned",
    [MQ_STOP_REJECTED] = "rejected",
    [MQ_STOP_OVER] = "over"};

enum mq_stop
mq_stop_read(char *text, struct mq_run *run)
{
	const char *word = strsep(&text, " "), *attempt = strsep(&text, " ");
	enum mq_stop what = MQ_STOP_OVER;

	run->id = strsep(&text, " ");
	if (text == NULL || !mq_id_safe(run->id, strlen(run->id)))
		return MQ_STOP_NONE;
	run->attempt = strtol(attempt, NULL, 10);
	run->connection = text;
	while (what != MQ_STOP_NONE && strcmp(words[what], word) != 0)
		what--;
	return what;
}

/* Writes even if memory is full, which the run may have caused. */
void
mq_extra_stop(const struct mq_extra_keys *extra, struct mq_command *c,
    const struct mq_run *run, enum mq_stop what, int64_t ms)
{
	mq_command_script(c, &mq_script_write_when_full);
	extra->key(c, run->queue, "stop");
	mq_command_str(c, "SET");
	mq_command_fmt(c, "%s %ld %s %s", words[what], run->attempt, run->id,
	    run->connection);
	mq_command_add(c, "PX %lld", (long long)ms);
}

/* --- asking -------------------------------------------------------------- */

/* *found: the request or answer about this run; NONE: there is none.  *there: about another
 * run, or this one. */
static int
look(struct mq_redis *r, const struct mq_extra_keys *extra,
    const struct mq_run *run, bool *there, enum mq_stop *found)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_run about = {0};
	redisReply *reply;

	*found = MQ_STOP_NONE;
	mq_command_plain(&c, "GET");
	extra->key(&c, run->queue, "stop");
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	*there = reply->type == REDIS_REPLY_STRING;
	if (*there)
		*found = mq_stop_read(reply->str, &about);
	if (*found != MQ_STOP_NONE &&
	    (about.attempt != run->attempt || strcmp(about.id, run->id) != 0 ||
		strcmp(about.connection, run->connection) != 0))
		*found = MQ_STOP_NONE;
	freeReplyObject(reply);
	return 0;
}

/* Stores the request, and wakes the consumer.  Without the right to wake it, the answer comes
 * later. */
static int
request(struct mq_redis *r, const struct mq_extra_keys *extra,
    const struct mq_run *run, enum mq_stop what, int64_t ms)
{
	struct mq_command c = mq_redis_command(r);

	mq_extra_stop(extra, &c, run, what, ms);
	if (mq_call_done(r, &c) == -1)
		return -1;
	mq_command_plain(&c, "PUBLISH");
	mq_command_fmt(&c, "mq::wake::%s", run->connection);
	extra->key(&c, run->queue, "stop");
	return mq_call_done(r, &c) == -1 && mq_redis_lost(r) ? -1 : 0;
}

int
mq_stop_run(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_run *run, enum mq_stop what, enum mq_stop *answer)
{
	int64_t left = HEAR_MS + run->grace_ms;
	double until = mq_clock_steady_s() + (double)left / 1000;
	struct mq_command c = mq_redis_command(r);
	enum mq_stop found = MQ_STOP_NONE;
	bool there = false;
	int rv = 0;

	while (rv == 0 && found < MQ_STOP_PURGED && left > 0) {
		rv = look(r, layout->extra, run, &there, &found);
		/* Waits until another request is answered. */
		if (rv == 0 && !there)
			rv = request(r, layout->extra, run, what, left);
		if (found < MQ_STOP_PURGED)
			(void)poll(NULL, 0, LOOK_MS);
		left = (int64_t)((until - mq_clock_steady_s()) * 1000);
	}
	*answer = found >= MQ_STOP_PURGED ? found : MQ_STOP_NONE;
	/* Removes the answer, or our request. */
	if (rv == 0 && (found == what || *answer != MQ_STOP_NONE)) {
		mq_command_plain(&c, "DEL");
		layout->extra->key(&c, run->queue, "stop");
		rv = mq_call_done(r, &c);
	}
	return rv;
}
