#include "selection.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/exit.h"
#include "message/headers.h"
#include "message/json.h"
#include "queue/attach.h"
#include "queue/publisher.h"

static int
open_publisher(struct clones *c)
{
	static const struct mq_attributes usual = MQ_ATTRIBUTES_NONE;
	bool missing;

	if (c->open)
		return 0;
	c->clock_us = mq_clock_unix_us() - mq_clock_steady_us();
	mq_publisher_init(&c->publisher, c->redis, c->layout, c->to, &usual);
	c->open = true;
	if (mq_publisher_open(&c->publisher, true, true, &c->clock_us,
		&missing) != MQ_CALL_DONE)
		return -1;
	c->start_us = c->last_us =
	    (uint64_t)(mq_clock_steady_us() + c->clock_us);
	return 0;
}

static void
next_id(struct clones *c, char id[MQ_ID_LEN + 1])
{
	uint64_t now = (uint64_t)(mq_clock_steady_us() + c->clock_us);

	c->last_us = now > c->last_us ? now : c->last_us + 1;
	mq_id_make(&c->random, c->last_us, id);
}

/* The files of the message are those of the copy, too, before that is visible. */
static int
refer_to_files(struct clones *c, const struct mq_envelope *e, const char *id)
{
	const char *set = mq_envelope_get(e, MQ_HEADER_ATTACH);

	if (set == NULL || c->layout->attachments == NULL)
		return 0;
	return mq_attach_refer(c->redis, c->layout->attachments, set, id);
}

static void
take_verdict(void *arg, int i, enum mq_published how, const char *joined)
{
	(void)i;
	(void)joined;
	*(enum mq_published *)arg = how;
}

static int
publish_copy(struct clones *c, const struct mq_envelope *e, const char *id,
    enum mq_published *how)
{
	const struct mq_publishing special = {
	    .when.said = true, .special = true, .limits = MQ_UNLIMITED};
	struct mq_buf header = {0};
	struct mq_post post = {0};
	enum mq_call result;

	if (e->headers != NULL)
		mq_envelope_write_header(e, &header);
	mq_post_begin(&c->publisher, &post, &special);
	mq_post_add(
	    &c->publisher, &post, id, &header, e->payload, e->payload_len);
	do
		result = mq_post_send(&c->publisher, &post, NULL, true) == -1 ?
		    MQ_CALL_LOST :
		    mq_post_answer(&c->publisher, &post, take_verdict, how);
	while (result == MQ_CALL_AGAIN);
	mq_post_free(&post);
	mq_buf_free(&header);
	c->unsure = result == MQ_CALL_LOST;
	return result == MQ_CALL_DONE ? 0 : -1;
}

static void
tell_id(struct clones *c, const char *id)
{
	if (c->ids != NULL)
		mq_json_must(
		    json_array_append_new(c->ids, json_string(id)) == 0);
	else
		puts(id);
}

/* A message without a header gets one for its id, unless the layout has ids. */
static int
make_copy(struct clones *c, const struct mq_item *item, long *made)
{
	struct mq_duplicate as = {.stamped = true};
	enum mq_published how = MQ_PUBLISHED;
	struct mq_envelope e, copy;
	char id[MQ_ID_LEN + 1];
	const char *why, *old;
	int rv = 0;

	if (mq_envelope_parse(item->element, item->len, &e, &why) == -1)
		e = (struct mq_envelope){NULL, item->element, item->len};
	old = mq_message_id(&e);
	if (old == NULL || mq_id_time(old) < c->start_us) {
		next_id(c, id);
		as.id = id;
		mq_message_duplicate(&e, &as, &copy);
		rv = refer_to_files(c, &e, id) == -1 ||
			publish_copy(c, &copy, id, &how) == -1 ?
		    -1 :
		    0;
		if (rv == 0 && how == MQ_PUBLISHED) {
			(*made)++;
			tell_id(c, id);
		}
		mq_envelope_free(&copy);
	}
	mq_envelope_free(&e);
	return rv;
}

int
clones_make(struct clones *c, const struct mq_scan *scan, const bool *chosen,
    long *made)
{
	int i, rv = open_publisher(c);

	*made = 0;
	for (i = 0; i < scan->count && rv == 0; i++)
		if (chosen[i])
			rv = make_copy(c, &scan->items[i], made);
	/* A signal may end the program. */
	(void)fflush(stdout);
	return rv;
}

void
clones_end(struct clones *c)
{
	if (!c->open)
		return;
	mq_publisher_forget(&c->publisher);
	mq_publisher_free(&c->publisher);
	c->open = false;
}
