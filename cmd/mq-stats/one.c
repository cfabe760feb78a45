/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats --id: one message, wherever it is, and its history.  The state of a message
 * can change while the search goes from place to place, so nothing is said to be nowhere
 * before a second look.
 */
#include "stats.h"

#define LOOKS		2
#define PAYLOAD_COLUMNS 1000

/* --- find ---------------------------------------------------------------- */

struct found {
	const struct mq_filter *filter; /* with the id */
	bool exists;
	struct mq_place place;	  /* the message's, or the look's */
	struct mq_search search;  /* walk through that place */
	struct mq_item item;	  /* element NULL: only its run is known */
	const struct mq_run *run; /* NULL: no run is known */
	const char *ended_in;	  /* queue of the end; NULL: no record */
	struct mq_ending ending;
	struct model *model; /* model of the last look */
	/* The batches that the message waits for, and their counts; NULL: none are known. */
	char *awaited;
	long long counts[MQ_BATCH_COUNTS];
};

/* Looks for the message in one place, unless it was found before. */
static void
look_at_place(struct collector *c, struct found *f, const char *queue,
    enum mq_state state, const char *connection)
{
	const struct mq_item *item;

	if (f->exists)
		return;
	f->place = (struct mq_place){
	    .queue = queue, .state = state, .connection = connection};
	mq_scan_free(&f->search.scan);
	f->search = (struct mq_search){c->layout, &c->redis, f->filter,
	    .scan = {f->place, .needle = f->filter->id}};
	item = mq_search_next(&f->search);
	f->exists = item != NULL;
	if (f->exists)
		f->item = *item;
}

/* Looks in the order in which most messages move, so that few slip past. */
static void
look_at_queue(
    struct collector *c, const struct mq_queue_stats *q, struct found *f)
{
	const struct mq_connection_stats *con = f->model->stats.connections;
	const struct mq_connection_stats *end =
	    con + f->model->stats.connection_count;
	long long rest = q->unacked;
	int i;

	if (q->delayed > 0)
		look_at_place(c, f, q->name, MQ_DELAYED, NULL);
	if (q->ready > 0)
		look_at_place(c, f, q->name, MQ_READY, NULL);
	/* Only connections that hold messages of the queue are asked: a thousand
	 * connections times a thousand queues would take long.  The remaining
	 * unacked messages have no known connection. */
	for (; con < end; con++)
		for (i = 0; i < con->count; i++)
			if (con->consumed[i].unacked > 0 &&
			    strcmp(con->consumed[i].queue, q->name) == 0) {
				look_at_place(
				    c, f, q->name, MQ_UNACKED, con->name);
				rest -= con->consumed[i].unacked;
			}
	if (rest > 0)
		look_at_place(c, f, q->name, MQ_UNACKED, NULL);
	if (q->rejected > 0)
		look_at_place(c, f, q->name, MQ_REJECTED, NULL);
}

/* Looks in all places.  Returns false if a named queue does not exist and the other
 * queues do not have the message. */
static bool
find_message(struct collector *c, struct found *f)
{
	struct model *m = f->model;
	bool known = true;
	int looks, i;

	for (looks = 0; looks < LOOKS && known && !f->exists; looks++) {
		collect_stats(c, MQ_STATS_CONNECTIONS, m);
		for (i = 0; i < m->stats.count && !f->exists; i++) {
			known &= m->stats.queues[i].known;
			if (m->stats.queues[i].known)
				look_at_queue(c, &m->stats.queues[i], f);
		}
		known |= f->exists;
	}
	if (!known)
		collect_elsewhere(c, m);
	collect_runs(c, m);
	/* A listed run may have ended within the last second. */
	for (i = 0; i < m->runs.count && f->run == NULL; i++)
		if ((!f->exists || f->place.state == MQ_UNACKED) &&
		    strcmp(m->runs.runs[i].id, f->filter->id) == 0)
			f->run = &m->runs.runs[i];
	/* A message that came without an id runs under an id that only its consumer
	 * knows. */
	if (!f->exists && f->run != NULL) {
		f->exists = true;
		f->place.state = MQ_UNACKED;
		f->place.queue = f->run->queue;
		f->item.connection = f->run->connection;
	}
	if (!f->exists && known && c->layout->has & MQ_HAS_RESULTS) {
		collect_stats(c, 0, m);
		mq_option_must(&c->redis,
		    mq_queue_ending(&c->redis, c->layout, &m->stats,
			f->filter->id, &f->ending, &f->ended_in));
	}
	return known;
}

/* Finds out how many messages are open of the batches that the message waits for. */
static void
find_awaited(struct collector *c, struct found *f)
{
	const char *names;
	struct message s;
	bool known;

	message_unpack(&s, &f->item, f->place.state);
	names = mq_envelope_get(&s.envelope, MQ_HEADER_AFTER);
	if (names != NULL &&
	    mq_queue_batch(&c->redis, c->layout, f->place.queue, names, &known,
		f->counts) == 0 &&
	    known)
		f->awaited = mq_xstrdup(names);
	mq_envelope_free(&s.envelope);
}

/* --- text ---------------------------------------------------------------- */

#define TEXT_TIME 40

/* Writes a local time as RFC 3339 defines it. */
static void
time_text(char out[TEXT_TIME], int64_t unix_ms)
{
	time_t t = (time_t)(unix_ms / 1000);
	struct tm tm;
	size_t n;

	localtime_r(&t, &tm);
	n = strftime(out, TEXT_TIME - 1, "%Y-%m-%dT%H:%M:%S%z", &tm);
	/* +0100 becomes +01:00. */
	memmove(out + n - 1, out + n - 2, 3);
	out[n - 2] = ':';
}

static void
print_time(const char *name, int64_t ms, int64_t now_ms)
{
	bool later = ms > now_ms;
	char at[TEXT_TIME], age[TEXT_AGE];

	if (ms <= 0)
		return;
	time_text(at, ms);
	text_age(age, (double)(later ? ms - now_ms : now_ms - ms) / 1000);
	printf("%-12s%s (%s%s%s)\n", name, at, later ? "in " : "", age,
	    later ? "" : " ago");
}

static void
print_found_run(const struct mq_run *run, int64_t now_ms)
{
	char *text = mq_xasprintf("attempt %ld for %lld s, pid %ld%s%s: %s%s%s",
	    run->attempt, run_seconds(run, now_ms), run->pid,
	    run->host != NULL ? " on " : "", run->host != NULL ? run->host : "",
	    run->script, *run->text != '\0' ? ": " : "", run->text);

	text_line("running", text);
	free(text);
}

/* The attempts, and the limits that the message brings along. */
static void
print_limits(const struct message *s)
{
	long most = mq_message_attempts(&s->envelope, LONG_MAX);
	int64_t ms = mq_message_timeout_ms(&s->envelope, 0);
	char text[64], age[TEXT_AGE];

	snprintf(text, sizeof(text), "%ld, at most %ld", s->attempts, most);
	if (most == LONG_MAX)
		text[strcspn(text, ",")] = '\0';
	text_line("attempts", text);
	if (ms == 0)
		return;
	text_age(age, (double)ms / 1000);
	text_line("timeout", age);
}

static void
print_headers(const struct message *s, int64_t now_ms)
{
	const struct mq_envelope *e = &s->envelope;
	const char *key = mq_envelope_get(e, MQ_HEADER_KEY), *name;
	const char *unique = message_unique(e);
	json_t *own = message_headers(s), *values, *value;
	size_t i;
	char *text, *shown;

	text_line("priority", mq_envelope_get(e, MQ_HEADER_PRIORITY));
	text_line("group", mq_envelope_get(e, MQ_HEADER_GROUP));
	text_line("batch", mq_envelope_get(e, MQ_HEADER_BATCH));
	text_line("after", mq_envelope_get(e, MQ_HEADER_AFTER));
	if (mq_envelope_get(e, MQ_HEADER_AFTER_OK) != NULL)
		text_line("after ok", "rejected if a message of these is");
	text_line("to", mq_envelope_get(e, MQ_HEADER_TO));
	if (key != NULL) {
		text = mq_xasprintf("%s (%s%s)", key, unique,
		    unique[strspn(unique, "0123456789")] == '\0' ? " ms" : "");
		text_line("key", text);
		free(text);
	}
	text_line("from tick", mq_envelope_get(e, MQ_HEADER_FROM_TICK));
	text_line("until tick", mq_envelope_get(e, MQ_HEADER_UNTIL_TICK));
	print_time(
	    "expires", mq_envelope_get_long(e, MQ_HEADER_EXPIRES, 0), now_ms);
	json_object_foreach(own, name, values)
		json_array_foreach(values, i, value) {
			text = mq_visible(json_string_value(value),
			    json_string_length(value));
			shown = mq_visible(name, strlen(name));
			printf("%-12s%s: %s\n", "header", shown, text);
			free(shown);
			free(text);
		}
	json_decref(own);
}

static const char *
get_member(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

static void
print_failure(const json_t *v)
{
	const char *host = get_member(v, "host"), *said = get_member(v, "text");
	const char *signal = get_member(v, "signal");
	const json_t *status = json_object_get(v, "status");
	const json_t *errors = json_object_get(v, "stderr");
	int64_t ms = json_integer_value(json_object_get(v, "at_ms"));
	long long attempt = json_integer_value(json_object_get(v, "attempt"));
	const char *p = json_string_value(errors), *end;
	size_t n = json_string_length(errors), len;
	char at[TEXT_TIME] = "-", how[32] = "no exit status", name[32], *text;

	if (ms > 0)
		time_text(at, ms);
	if (signal == NULL && status != NULL)
		snprintf(how, sizeof(how), "exit %lld",
		    (long long)json_integer_value(status));
	snprintf(name, sizeof(name), "attempt %lld ", attempt);
	text = mq_xasprintf("%s  %s  %s%s%s%s", at, host != NULL ? host : "-",
	    signal != NULL ? "signal " : "", signal != NULL ? signal : how,
	    said != NULL ? ": " : "", said != NULL ? said : "");
	text_line(name, text);
	free(text);
	/* Print the recorded end of stderr line by line. */
	for (; n > 0; p += len, n -= len) {
		end = memchr(p, '\n', n);
		len = end != NULL ? (size_t)(end - p) : n;
		text = mq_visible(p, len);
		printf("%-12s%s\n", "  stderr", text);
		free(text);
		len += end != NULL;
	}
}

static void
print_message(const struct found *f)
{
	int64_t now_ms = f->model->stats.now_ms;
	enum mq_state state = f->place.state;
	int columns = text_view().width;
	struct message s;
	json_t *history, *v;
	char *text;
	size_t i;

	message_unpack(&s, &f->item, state);
	print_time(
	    "published", (int64_t)mq_id_time(f->filter->id) / 1000, now_ms);
	if (state == MQ_READY || state == MQ_REJECTED)
		print_time("since", s.since_ms, now_ms);
	if (state == MQ_DELAYED && f->item.in_line)
		text_line("waits for", "its group's turn");
	else if (f->awaited != NULL) {
		text = mq_xasprintf("batch %s (%lld of %lld open)", f->awaited,
		    f->counts[MQ_BATCH_OPEN], f->counts[MQ_BATCH_TOTAL]);
		text_line("waits for", text);
		free(text);
	} else if (f->item.follows)
		text_line("waits for", "a batch");
	else if (state == MQ_DELAYED && f->item.tick > 0)
		printf(
		    "%-12stick %lld\n", "waits for", (long long)f->item.tick);
	else if (state == MQ_DELAYED)
		print_time("due", f->item.due_ms, now_ms);
	text_line("connection", f->item.connection);
	if (f->run != NULL)
		print_found_run(f->run, now_ms);
	print_limits(&s);
	text_line("reason", s.reason);
	print_headers(&s, now_ms);
	text = text_clipped(s.envelope.payload, s.envelope.payload_len,
	    columns > 40 ? columns - 12 : PAYLOAD_COLUMNS);
	printf("%-12s%zu\n", "size", s.envelope.payload_len);
	printf("%-12s%s\n", "payload", text);
	free(text);
	history = mq_history_list(&s.envelope, false);
	json_array_foreach(history, i, v)
		print_failure(v);
	json_decref(history);
	mq_envelope_free(&s.envelope);
}

static void
print_text(const struct found *f)
{
	const struct mq_ending *e = &f->ending;
	char at[TEXT_TIME];

	text_line("id", f->exists ? f->filter->id : e->id);
	text_line("queue", f->exists ? f->place.queue : f->ended_in);
	text_line("state",
	    f->exists ? mq_state_name(f->place.state) : mq_end_name(e->state));
	if (f->item.element != NULL) {
		print_message(f);
	} else if (f->exists) {
		text_line("connection", f->item.connection);
		print_found_run(f->run, f->model->stats.now_ms);
	} else {
		text_line("to", e->to);
		if (e->finished_ms > 0) {
			time_text(at, e->finished_ms);
			text_line("finished", at);
		}
		printf("%-12s%ld\n", "attempts", e->attempts);
		text_line("host", e->host);
		text_line("signal", e->signal);
		if (e->signal == NULL && e->status >= 0)
			printf("%-12s%d\n", "status", e->status);
		text_line("text", e->text);
		if (e->result != NULL)
			printf("%-12s%zu bytes%s\n", "result", e->result_len,
			    e->result_cut ? ", cut" : "");
	}
}

/* Prints the bytes of the result; returns whether there is one. */
static bool
print_result(const struct found *f, bool quiet)
{
	const struct mq_ending *e = &f->ending;
	struct mq_buf text = {0};

	if (f->exists || e->result == NULL) {
		if (!quiet)
			mq_say("%s: %s", f->filter->id,
			    f->exists ?
				"has not ended, and has no result yet" :
				"no result is kept (mq-consume --result)");
		return false;
	}
	if (isatty(STDOUT_FILENO))
		mq_buf_visible(&text, e->result, e->result_len);
	else
		mq_buf_add(&text, e->result, e->result_len);
	fwrite(text.data, 1, text.len, stdout);
	mq_buf_free(&text);
	if (e->result_cut && !quiet)
		mq_say("%s: the result is cut after %zu bytes", f->filter->id,
		    e->result_len);
	return true;
}

static json_t *
found_json(const struct found *f, bool payload)
{
	json_t *v = json_pack("{so so}", "id",
		   mq_json_text(f->exists ? f->filter->id : f->ending.id),
		   "queue",
		   mq_json_name(f->exists ? f->place.queue : f->ended_in)),
	       *facts;
	int64_t published_ms;
	struct message s;

	if (!f->exists) {
		json_object_update(v, f->ending.json);
		if (!payload) {
			json_object_del(v, "result");
			json_object_del(v, "result_base64");
		}
		return v;
	}
	mq_json_set(v, "state", json_string(mq_state_name(f->place.state)));
	if (f->item.element != NULL) {
		message_unpack(&s, &f->item, f->place.state);
		facts = message_facts(&s);
		json_object_update(v, facts);
		json_decref(facts);
		published_ms = (int64_t)mq_id_time(f->filter->id) / 1000;
		if (published_ms > 0)
			mq_json_set(
			    v, "published_ms", json_integer(published_ms));
		if (f->awaited != NULL) {
			mq_json_set(v, "awaited", mq_json_text(f->awaited));
			mq_json_set(v, "awaited_open",
			    json_integer(f->counts[MQ_BATCH_OPEN]));
			mq_json_set(v, "awaited_total",
			    json_integer(f->counts[MQ_BATCH_TOTAL]));
		}
		message_set_content(v, &s, payload);
		mq_envelope_free(&s.envelope);
	} else {
		mq_json_set(v, "connection", mq_json_name(f->item.connection));
	}
	if (f->run != NULL)
		mq_json_set(v, "running",
		    fields_json(run_fields, f->run, f->model->stats.now_ms));
	return v;
}

bool
one_print(struct collector *c, const struct stats_options *o, struct model *m)
{
	struct found f = {.filter = &o->list.filter, .model = m};
	bool known = find_message(c, &f);
	bool placed = f.exists || f.ended_in != NULL, found;
	json_t *json, *output;

	if (f.item.element != NULL && f.item.follows)
		find_awaited(c, &f);
	if (!known)
		(void)model_report_missing(m);
	/* The kept output outlives a message that has left nothing else. */
	output = o->output ? output_member(c, m, f.filter->id) : NULL;
	found = placed || output != NULL;
	if (o->result && (found || known)) {
		found = print_result(&f, o->shared.quiet);
	} else if (found && o->format == FORMAT_JSON) {
		json = placed ?
		    found_json(&f, o->payloads || !o->requested) :
		    json_pack("{so}", "id", mq_json_text(f.filter->id));
		mq_json_set(json, "output", output);
		output_json_line(json);
	} else if (found)
		print_text(&f);
	else if (known && !o->shared.quiet)
		mq_say("%s: no such message", f.filter->id);
	free(f.awaited);
	mq_scan_free(&f.search.scan);
	mq_ending_free(&f.ending);
	return found;
}
