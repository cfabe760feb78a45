#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"
#include "message/json.h"

#define PAYLOAD_COLUMNS 1000

static void
print_time(const char *name, int64_t ms, int64_t now_ms)
{
	char at[TEXT_TIME], age[TEXT_AGE];

	if (ms <= 0)
		return;
	text_time(at, ms);
	if (ms > now_ms)
		text_age_since(age, ms, now_ms);
	else
		text_age_since(age, now_ms, ms);
	printf("%-12s%s (%s%s%s)\n", name, at, ms > now_ms ? "in " : "", age,
	    ms > now_ms ? "" : " ago");
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

static void
print_headers(const struct message *s)
{
	json_t *own = message_headers(s), *values, *value;
	const char *name;
	size_t i;
	char *text, *shown;

	json_object_foreach(own, name, values)
		json_array_foreach(values, i, value) {
			text = text_visible(json_string_value(value),
			    json_string_length(value));
			shown = text_visible(name, strlen(name));
			printf("%-12s%s: %s\n", "header", shown, text);
			free(shown);
			free(text);
		}
	json_decref(own);
}

static void
print_wait(const struct mq_item *item, int64_t now_ms)
{
	char tick[32];

	snprintf(tick, sizeof(tick), "tick %lld", (long long)item->tick);
	if (item->in_line)
		text_line("waits for", "its group's turn");
	else if (item->tick > 0)
		text_line("waits for", tick);
	else
		print_time("due", item->due_ms, now_ms);
}

static void
print_options(const struct mq_envelope *e, int64_t now_ms)
{
	const char *key = mq_envelope_get(e, MQ_HEADER_KEY);
	char *text;

	text_line("priority", mq_envelope_get(e, MQ_HEADER_PRIORITY));
	text_line("group", mq_envelope_get(e, MQ_HEADER_GROUP));
	if (key != NULL) {
		text = mq_xasprintf("%s (%s%s)", key, message_unique(e),
		    message_unique(
			e)[strspn(message_unique(e), "0123456789")] == '\0' ?
			" ms" :
			"");
		text_line("key", text);
		free(text);
	}
	text_line("from tick", mq_envelope_get(e, MQ_HEADER_FROM_TICK));
	text_line("until tick", mq_envelope_get(e, MQ_HEADER_UNTIL_TICK));
	print_time(
	    "expires", mq_envelope_get_long(e, MQ_HEADER_EXPIRES, 0), now_ms);
}

static void
print_payload(const struct message *s)
{
	int columns = text_view().width;
	char *text = text_clipped(s->envelope.payload, s->envelope.payload_len,
	    columns > 40 ? columns - 12 : PAYLOAD_COLUMNS);

	printf("%-12s%zu\n", "size", s->envelope.payload_len);
	printf("%-12s%s\n", "payload", text);
	free(text);
}

/* The end of stderr, line by line. */
static void
print_errors(const char *p, size_t n)
{
	const char *end;
	size_t len;
	char *shown;

	for (; n > 0; p += len, n -= len) {
		end = memchr(p, '\n', n);
		len = end != NULL ? (size_t)(end - p) : n;
		shown = text_visible(p, len);
		printf("%-12s%s\n", "  stderr", shown);
		free(shown);
		len += end != NULL;
	}
}

static const char *
get_member(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

/* "exit 1", "signal SEGV" or "consumer died". */
static char *
ending_text(const json_t *v)
{
	const json_t *status = json_object_get(v, "status");
	const char *signal = get_member(v, "signal");

	if (signal != NULL)
		return mq_xasprintf("signal %s", signal);
	if (status != NULL)
		return mq_xasprintf(
		    "exit %lld", (long long)json_integer_value(status));
	return mq_xstrdup("no exit status");
}

static void
print_failure(const json_t *v)
{
	const char *host = get_member(v, "host"), *said = get_member(v, "text");
	int64_t ms = json_integer_value(json_object_get(v, "at_ms"));
	long long attempt = json_integer_value(json_object_get(v, "attempt"));
	const json_t *errors = json_object_get(v, "stderr");
	char at[TEXT_TIME] = "-", *how = ending_text(v), *text, name[32];

	if (ms > 0)
		text_time(at, ms);
	snprintf(name, sizeof(name), "attempt %lld ", attempt);
	text = mq_xasprintf("%s  %s  %s%s%s", at, host != NULL ? host : "-",
	    how, said != NULL ? ": " : "", said != NULL ? said : "");
	text_line(name, text);
	print_errors(json_string_value(errors), json_string_length(errors));
	free(text);
	free(how);
}

static void
print_history(const struct message *s)
{
	json_t *list = mq_history_list(&s->envelope), *v;
	size_t i;

	json_array_foreach(list, i, v)
		print_failure(v);
	json_decref(list);
}

static void
print_message(const struct found *f)
{
	struct message s;

	message_unpack(&s, &f->item, f->state);
	print_time("published", (int64_t)mq_id_time(f->id) / 1000,
	    f->model->stats.now_ms);
	if (f->state == MQ_READY || f->state == MQ_REJECTED)
		print_time("since", s.since_ms, f->model->stats.now_ms);
	if (f->state == MQ_DELAYED)
		print_wait(&f->item, f->model->stats.now_ms);
	text_line("connection", f->connection);
	if (f->run != NULL)
		print_found_run(f->run, f->model->stats.now_ms);
	printf("%-12s%ld\n", "attempts", s.attempts);
	text_line("reason", s.reason);
	print_options(&s.envelope, f->model->stats.now_ms);
	print_headers(&s);
	print_payload(&s);
	print_history(&s);
	message_free(&s);
}

/* Of a message that does not exist any more. */
static void
print_ending(const struct found *f)
{
	const struct mq_ending *e = &f->ending;
	char at[TEXT_TIME];

	text_line("id", e->id);
	text_line("queue", f->ended_in);
	text_line("state", mq_end_name(e->state));
	text_line("to", e->to);
	if (e->finished_ms > 0) {
		text_time(at, e->finished_ms);
		text_line("finished", at);
	}
	printf("%-12s%ld\n", "attempts", e->attempts);
	text_line("host", e->host);
	text_line("signal", e->signal);
	if (e->signal == NULL && e->status >= 0)
		printf("%-12s%d\n", "status", e->status);
	text_line("text", e->text);
}

static void
print_found(const struct found *f)
{
	if (!f->exists) {
		print_ending(f);
		return;
	}
	text_line("id", f->id);
	text_line("queue", f->queue);
	text_line("state", mq_state_name(f->state));
	if (f->item.element != NULL) {
		print_message(f);
		return;
	}
	text_line("connection", f->connection);
	print_found_run(f->run, f->model->stats.now_ms);
}

static void
set_message(json_t *v, const struct found *f, bool payload)
{
	int64_t published_ms = (int64_t)mq_id_time(f->id) / 1000;
	struct message s;
	json_t *more;

	message_unpack(&s, &f->item, f->state);
	more = message_facts(&s, &f->item, f->state);
	mq_json_must(json_object_update(v, more) == 0);
	json_decref(more);
	if (published_ms > 0)
		mq_json_set(v, "published_ms", json_integer(published_ms));
	message_set_content(v, &s, payload);
	message_free(&s);
}

static json_t *
ending_json(const struct found *f)
{
	json_t *v = mq_json_pack("{so so}", "id", mq_json_text(f->ending.id),
	    "queue", mq_json_name(f->ended_in));

	mq_json_must(json_object_update(v, f->ending.json) == 0);
	return v;
}

static json_t *
found_json(const struct found *f, bool payload)
{
	json_t *v = mq_json_pack("{ss so ss}", "id", f->id, "queue",
	    mq_json_name(f->queue), "state", mq_state_name(f->state));

	if (f->item.element != NULL)
		set_message(v, f, payload);
	else
		mq_json_set(v, "connection", mq_json_name(f->connection));
	if (f->run != NULL)
		mq_json_set(v, "running",
		    fields_json(run_fields, f->run, f->model->stats.now_ms));
	return v;
}

void
one_print(const struct found *f, bool json, bool payload)
{
	if (!json)
		print_found(f);
	else
		text_json_line(
		    f->exists ? found_json(f, payload) : ending_json(f));
}
