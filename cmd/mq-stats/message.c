/* What is to be said of one message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"
#include "message/headers.h"
#include "message/history.h"
#include "message/json.h"

static int64_t
published_ms(const struct shown *s)
{
	return s->id != NULL && mq_id_valid(s->id, strlen(s->id)) ?
	    (int64_t)mq_id_time(s->id) / 1000 :
	    0;
}

static int64_t
since(const struct shown *s, enum mq_state state)
{
	switch (state) {
	case MQ_DELAYED:
		return published_ms(s);
	case MQ_REJECTED:
		return mq_history_last_ms(&s->envelope);
	default:
		return mq_message_since_ms(&s->envelope);
	}
}

void
show_open(struct shown *s, const struct mq_item *item, enum mq_state state)
{
	const char *why;

	*s = (struct shown){0};
	if (mq_envelope_parse(item->element, item->len, &s->envelope, &why) ==
	    -1) {
		s->envelope = (struct mq_envelope){
		    .payload = item->element, .payload_len = item->len};
		snprintf(s->bad, sizeof(s->bad), "bad header: %s", why);
		s->reason = s->bad;
		return;
	}
	s->id = mq_message_name(&s->envelope);
	s->reason = mq_envelope_get(&s->envelope, MQ_HEADER_ERROR);
	s->attempts = mq_envelope_get_long(&s->envelope, MQ_HEADER_ATTEMPT, 0);
	/* Of one that is in a queue of its own, its history tells. */
	if (state == MQ_REJECTED &&
	    mq_envelope_get(&s->envelope, MQ_HEADER_ATTEMPT) == NULL)
		s->attempts = mq_history_last_attempt(&s->envelope);
	s->since_ms = since(s, state);
}

void
show_close(struct shown *s)
{
	mq_envelope_free(&s->envelope);
}

static void
set_text(json_t *v, const char *name, const char *text)
{
	if (text != NULL)
		mq_json_set(v, name, mq_json_text(text));
}

static void
set_number(json_t *v, const char *name, const struct mq_envelope *e,
    const char *header)
{
	const char *text = mq_envelope_get(e, header);

	if (text != NULL)
		mq_json_set(v, name, json_integer(strtoll(text, NULL, 10)));
}

static void
set_wishes(json_t *v, const struct mq_envelope *e)
{
	const char *key = mq_envelope_get(e, MQ_HEADER_KEY);

	set_number(v, "priority", e, MQ_HEADER_PRIORITY);
	set_text(v, "group", mq_envelope_get(e, MQ_HEADER_GROUP));
	set_text(v, "key", key);
	if (key != NULL)
		set_text(v, "unique", show_unique(e));
	set_number(v, "from_tick", e, MQ_HEADER_FROM_TICK);
	set_number(v, "until_tick", e, MQ_HEADER_UNTIL_TICK);
	set_number(v, "expires_ms", e, MQ_HEADER_EXPIRES);
}

const char *
show_unique(const struct mq_envelope *e)
{
	const char *unique = mq_envelope_get(e, MQ_HEADER_UNIQUE);

	return unique != NULL && mq_message_unique_good(e) ? unique : "done";
}

static void
set_wait(json_t *v, const struct mq_item *item)
{
	mq_json_set(v, "waits_for",
	    json_string(item->in_line ? "turn" :
		    item->tick > 0    ? "tick" :
					"time"));
	if (item->tick > 0)
		mq_json_set(v, "tick", json_integer(item->tick));
	else if (!item->in_line)
		mq_json_set(v, "due_ms", json_integer(item->due_ms));
}

json_t *
show_facts(
    const struct shown *s, const struct mq_item *item, enum mq_state state)
{
	json_t *v = json_object(), *history;

	mq_json_must(v != NULL);
	mq_json_set(v, "state", json_string(mq_state_name(state)));
	mq_json_set(v, "attempts", json_integer(s->attempts));
	if (s->since_ms > 0)
		mq_json_set(v, "since_ms", json_integer(s->since_ms));
	if (state == MQ_DELAYED)
		set_wait(v, item);
	if (state == MQ_UNACKED && item->connection != NULL)
		mq_json_set(v, "connection", mq_json_text(item->connection));
	if (s->reason != NULL)
		mq_json_set(v, "reason", mq_json_text(s->reason));
	set_wishes(v, &s->envelope);
	history = mq_history_list(&s->envelope);
	if (json_array_size(history) > 0)
		mq_json_set(v, "history", history);
	else
		json_decref(history);
	return v;
}

json_t *
show_headers(const struct shown *s)
{
	const char *name;
	json_t *own, *v;

	if (s->envelope.headers == NULL)
		return NULL;
	own = json_object();
	mq_json_must(own != NULL);
	json_object_foreach(s->envelope.headers, name, v)
		if (strncmp(name, "Mq-", 3) != 0)
			mq_json_must(json_object_set(own, name, v) == 0);
	return own;
}

const struct mq_run *
show_run(const struct mq_runs *runs, const char *id)
{
	int i;

	for (i = 0; i < runs->count; i++)
		if (strcmp(runs->runs[i].id, id) == 0)
			return &runs->runs[i];
	return NULL;
}
