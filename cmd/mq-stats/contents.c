#include "stats.h"

#include "message/json.h"

void
contents_begin(struct contents *c)
{
	const struct mq_queue_stats *q = &c->model->stats.queues[0];
	const struct reasons *r = &c->model->rejected[0].reasons;

	c->all = reasons_json(r, q->name, r->count);
	mq_json_set(c->all, "time_ms", json_integer(c->model->stats.now_ms));
	mq_json_set(c->all, "queue", json_queue(c->model, q));
}

/* The next messages of a queue come first; of those that were rejected, the newest
 * are shown. */
bool
contents_next(struct contents *c)
{
	const struct mq_queue_stats *q = &c->model->stats.queues[0];
	enum mq_state state = (enum mq_state)c->done;

	if (c->done == MQ_STATES)
		return false;
	c->done++;
	c->place = (struct mq_place){.queue = q->name, .state = state};
	c->skip = state == MQ_REJECTED && q->rejected > CONTENTS_MESSAGES ?
	    (long)q->rejected - CONTENTS_MESSAGES :
	    0;
	c->list = json_array();
	mq_json_set(c->all, mq_state_name(state), c->list);
	return true;
}

static json_t *
item_json(const struct contents *c, const struct mq_item *item)
{
	char group[REASON_BYTES + 1];
	struct message s;
	json_t *v;

	message_unpack(&s, item, c->place.state);
	v = message_facts(&s, item, c->place.state);
	if (c->place.state == MQ_REJECTED) {
		reason_fold(s.reason, group);
		mq_json_set(v, "reason_group", mq_json_text(group));
	}
	mq_json_set(v, "id", s.id != NULL ? mq_json_text(s.id) : json_null());
	message_set_content(
	    v, &s, c->payloads && s.envelope.payload_len <= CONTENTS_PAYLOAD);
	message_free(&s);
	return v;
}

bool
contents_slice(void *arg, const struct mq_item *item, int count)
{
	struct contents *c = arg;

	for (; count > 0 && json_array_size(c->list) < CONTENTS_MESSAGES;
	     count--, item++)
		mq_json_must(
		    json_array_append_new(c->list, item_json(c, item)) == 0);
	return json_array_size(c->list) < CONTENTS_MESSAGES;
}

void
contents_print(struct contents *c)
{
	json_print_line(c->all);
}
