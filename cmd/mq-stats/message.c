/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

void
message_unpack(
    struct message *m, const struct mq_item *item, enum mq_state state)
{
	struct mq_envelope *e = &m->envelope;
	const char *why;

	*m = (struct message){.item = item, .state = state};
	if (mq_envelope_parse(item->element, item->len, e, &why) == -1) {
		*e = (struct mq_envelope){NULL, item->element, item->len};
		snprintf(m->bad, sizeof(m->bad), "bad header: %s", why);
		m->reason = m->bad;
		return;
	}
	m->id = mq_message_name(e);
	m->reason = mq_envelope_get(e, MQ_HEADER_ERROR);
	m->attempts = mq_envelope_get_long(e, MQ_HEADER_ATTEMPT, 0);
	/* Rejected messages in a queue of their own have the number of attempts only
	 * in their history. */
	if (state == MQ_REJECTED &&
	    mq_envelope_get(e, MQ_HEADER_ATTEMPT) == NULL)
		m->attempts = (long)mq_history_last_number(e, "attempt");
	if (state == MQ_REJECTED)
		m->since_ms = mq_history_last_number(e, "at_ms");
	else if (state != MQ_DELAYED)
		m->since_ms = mq_message_since_ms(e);
	else if (m->id != NULL && mq_id_valid(m->id, strlen(m->id)))
		m->since_ms = (int64_t)mq_id_time(m->id) / 1000;
}

const char *
message_unique(const struct mq_envelope *e)
{
	const char *unique = mq_envelope_get(e, MQ_HEADER_UNIQUE);

	return unique != NULL && mq_message_unique_good(e) ? unique : "done";
}

static void
set_options(json_t *v, const struct mq_envelope *e)
{
	static const struct {
		const char *name, *header;
		bool number;
	} all[] = {
	    {"priority", MQ_HEADER_PRIORITY, true},
	    {"group", MQ_HEADER_GROUP, false},
	    {"batch", MQ_HEADER_BATCH, false},
	    {"after", MQ_HEADER_AFTER, false},
	    {"after_ok", MQ_HEADER_AFTER_OK, true},
	    {"to", MQ_HEADER_TO, false},
	    {"key", MQ_HEADER_KEY, false},
	    {"unique", MQ_HEADER_UNIQUE, false},
	    {"from_tick", MQ_HEADER_FROM_TICK, true},
	    {"until_tick", MQ_HEADER_UNTIL_TICK, true},
	    {"expires_ms", MQ_HEADER_EXPIRES, true},
	    {"timeout_ms", MQ_HEADER_TIMEOUT, true},
	    {"attempts_max", MQ_HEADER_ATTEMPTS, true},
	};
	bool has_key = mq_envelope_get(e, MQ_HEADER_KEY) != NULL;
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		text = mq_envelope_get(e, all[i].header);
		if (strcmp(all[i].name, "unique") == 0)
			text = has_key ? message_unique(e) : NULL;
		if (text != NULL)
			mq_json_set(v, all[i].name,
			    all[i].number ?
				json_integer(strtoll(text, NULL, 10)) :
				mq_json_text(text));
	}
}

json_t *
message_facts(const struct message *m)
{
	const struct mq_item *item = m->item;
	json_t *v = json_pack("{ss sI}", "state", mq_state_name(m->state),
		   "attempts", (json_int_t)m->attempts),
	       *history;

	if (m->since_ms > 0)
		mq_json_set(v, "since_ms", json_integer(m->since_ms));
	if (m->state == MQ_DELAYED) {
		mq_json_set(v, "waits_for",
		    json_string(item->in_line ? "turn" :
			    item->follows     ? "batch" :
			    item->tick > 0    ? "tick" :
						"time"));
		if (item->tick > 0)
			mq_json_set(v, "tick", json_integer(item->tick));
		else if (!item->in_line && !item->follows)
			mq_json_set(v, "due_ms", json_integer(item->due_ms));
	}
	if (m->state == MQ_UNACKED)
		mq_json_set(v, "connection", mq_json_name(item->connection));
	mq_json_set(v, "reason", mq_json_text(m->reason));
	set_options(v, &m->envelope);
	history = mq_history_list(&m->envelope, false);
	if (json_array_size(history) > 0)
		mq_json_set(v, "history", history);
	else
		json_decref(history);
	return v;
}

json_t *
message_headers(const struct message *m)
{
	const char *name;
	json_t *own, *v;

	if (m->envelope.headers == NULL)
		return NULL;
	own = json_object();
	json_object_foreach(m->envelope.headers, name, v)
		if (strncmp(name, "Mq-", 3) != 0)
			json_object_set(own, name, v);
	return own;
}

void
message_set_content(json_t *v, const struct message *m, bool payload)
{
	const struct mq_envelope *e = &m->envelope;
	struct mq_buf base64 = {0};
	json_t *text;

	mq_json_set(v, "headers", message_headers(m));
	mq_json_set(v, "size", json_integer((json_int_t)e->payload_len));
	if (!payload)
		return;
	text =
	    json_stringn(e->payload_len > 0 ? e->payload : "", e->payload_len);
	if (text != NULL) {
		mq_json_set(v, "payload", text);
		return;
	}
	mq_base64_encode(&base64, e->payload, e->payload_len);
	mq_json_set(v, "payload_base64", json_stringn(base64.data, base64.len));
	mq_buf_free(&base64);
}
