/* What --id prints. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"
#include "message/json.h"
#include "one.h"
#include "stats.h"

#define PAYLOAD_COLUMNS 1000

/* --- for people ------------------------------------------------------------ */

static void
line_time(const char *name, int64_t ms, int64_t now_ms)
{
	char at[40], age[24];

	if (ms <= 0)
		return;
	show_time(at, ms);
	if (ms > now_ms)
		show_age(age, ms, now_ms);
	else
		show_age(age, now_ms, ms);
	printf("%-12s%s (%s%s%s)\n", name, at, ms > now_ms ? "in " : "", age,
	    ms > now_ms ? "" : " ago");
}

static void
print_run(const struct mq_run *run, int64_t now_ms)
{
	char *text = mq_xasprintf("attempt %ld for %lld s, pid %ld%s%s: %s%s%s",
	    run->attempt, show_run_s(run, now_ms), run->pid,
	    run->host != NULL ? " on " : "", run->host != NULL ? run->host : "",
	    run->script, *run->text != '\0' ? ": " : "", run->text);

	show_line("running", text);
	free(text);
}

static void
print_headers(const struct shown *s)
{
	json_t *own = show_headers(s), *values, *value;
	const char *name;
	size_t i;
	char *text, *shown;

	json_object_foreach(own, name, values)
		json_array_foreach(values, i, value) {
			text = show_visible(json_string_value(value),
			    json_string_length(value));
			shown = show_visible(name, strlen(name));
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
		show_line("waits for", "its group's turn");
	else if (item->tick > 0)
		show_line("waits for", tick);
	else
		line_time("due", item->due_ms, now_ms);
}

static void
print_wishes(const struct mq_envelope *e, int64_t now_ms)
{
	const char *key = mq_envelope_get(e, MQ_HEADER_KEY);
	char *text;

	show_line("priority", mq_envelope_get(e, MQ_HEADER_PRIORITY));
	show_line("group", mq_envelope_get(e, MQ_HEADER_GROUP));
	if (key != NULL) {
		text = mq_xasprintf("%s (%s%s)", key, show_unique(e),
		    show_unique(e)[strspn(show_unique(e), "0123456789")] ==
			    '\0' ?
			" ms" :
			"");
		show_line("key", text);
		free(text);
	}
	show_line("from tick", mq_envelope_get(e, MQ_HEADER_FROM_TICK));
	show_line("until tick", mq_envelope_get(e, MQ_HEADER_UNTIL_TICK));
	line_time(
	    "expires", mq_envelope_get_long(e, MQ_HEADER_EXPIRES, 0), now_ms);
}

static void
print_payload(const struct shown *s)
{
	int columns = stats_view_stdout().width;
	char *text = show_clipped(s->envelope.payload, s->envelope.payload_len,
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
		shown = show_visible(p, len);
		printf("%-12s%s\n", "  stderr", shown);
		free(shown);
		len += end != NULL;
	}
}

static const char *
member(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

/* "exit 1", "signal SEGV" or "consumer died". */
static char *
how_it_ended(const json_t *v)
{
	const json_t *status = json_object_get(v, "status");
	const char *signal = member(v, "signal");

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
	const char *host = member(v, "host"), *said = member(v, "text");
	int64_t ms = json_integer_value(json_object_get(v, "at_ms"));
	long long attempt = json_integer_value(json_object_get(v, "attempt"));
	const json_t *errors = json_object_get(v, "stderr");
	char at[40] = "-", *how = how_it_ended(v), *text, name[32];

	if (ms > 0)
		show_time(at, ms);
	snprintf(name, sizeof(name), "attempt %lld ", attempt);
	text = mq_xasprintf("%s  %s  %s%s%s", at, host != NULL ? host : "-",
	    how, said != NULL ? ": " : "", said != NULL ? said : "");
	show_line(name, text);
	print_errors(json_string_value(errors), json_string_length(errors));
	free(text);
	free(how);
}

static void
print_history(const struct shown *s)
{
	json_t *list = mq_history_list(&s->envelope), *v;
	size_t i;

	json_array_foreach(list, i, v)
		print_failure(v);
	json_decref(list);
}

static void
print_message(const struct one *one)
{
	struct shown s;

	show_open(&s, &one->item, one->state);
	line_time(
	    "published", (int64_t)mq_id_time(one->id) / 1000, one->now_ms);
	if (one->state == MQ_READY || one->state == MQ_REJECTED)
		line_time("since", s.since_ms, one->now_ms);
	if (one->state == MQ_DELAYED)
		print_wait(&one->item, one->now_ms);
	show_line("connection", one->connection);
	if (one->run != NULL)
		print_run(one->run, one->now_ms);
	printf("%-12s%ld\n", "attempts", s.attempts);
	show_line("reason", s.reason);
	print_wishes(&s.envelope, one->now_ms);
	print_headers(&s);
	print_payload(&s);
	print_history(&s);
	show_close(&s);
}

void
one_print(const struct one *one)
{
	show_line("id", one->id);
	show_line("queue", one->queue);
	show_line("state", mq_state_name(one->state));
	if (one->item.element != NULL) {
		print_message(one);
		return;
	}
	show_line("connection", one->connection);
	print_run(one->run, one->now_ms);
}

/* --- for programs ------------------------------------------------------------ */

static void
set_payload(json_t *v, const struct mq_envelope *e)
{
	struct mq_buf base64 = {0};
	json_t *text =
	    json_stringn(e->payload_len > 0 ? e->payload : "", e->payload_len);

	mq_json_set(v, "size", json_integer((json_int_t)e->payload_len));
	if (text != NULL) {
		mq_json_set(v, "payload", text);
		return;
	}
	mq_base64_encode(&base64, e->payload, e->payload_len);
	mq_json_set(v, "payload_base64", json_stringn(base64.data, base64.len));
	mq_buf_free(&base64);
}

static void
set_message(json_t *v, const struct one *one)
{
	int64_t published_ms = (int64_t)mq_id_time(one->id) / 1000;
	struct shown s;
	json_t *more;

	show_open(&s, &one->item, one->state);
	more = show_facts(&s, &one->item, one->state);
	mq_json_must(json_object_update(v, more) == 0);
	json_decref(more);
	if (published_ms > 0)
		mq_json_set(v, "published_ms", json_integer(published_ms));
	more = show_headers(&s);
	if (more != NULL)
		mq_json_set(v, "headers", more);
	set_payload(v, &s.envelope);
	show_close(&s);
}

void
one_print_json(const struct one *one)
{
	json_t *v = json_pack("{ss so ss}", "id", one->id, "queue",
	    mq_json_text(one->queue), "state", mq_state_name(one->state));
	struct mq_buf out = {0};

	mq_json_must(v != NULL);
	if (one->item.element != NULL)
		set_message(v, one);
	else
		mq_json_set(v, "connection", mq_json_text(one->connection));
	if (one->run != NULL)
		mq_json_set(v, "running", show_run_json(one->run, one->now_ms));
	mq_json_dump(v, &out);
	json_decref(v);
	show_json(out.data, out.len);
	putchar('\n');
	mq_buf_free(&out);
}
