#include "outbox.h"

#include <string.h>

static void
on_reported(void *arg, const struct mq_answer *answer)
{
	struct running_report *r = arg;

	/* If the server's memory is full, the next tick tries again. */
	if (answer == NULL || answer->error != NULL)
		r->reported = false;
}

void
running_report_send(struct running_report *r, struct mq_buf *text)
{
	if (r->reported && text->len == r->last.len &&
	    (text->len == 0 ||
		memcmp(text->data, r->last.data, text->len) == 0)) {
		mq_buf_free(text);
		return;
	}
	mq_consumer_tell_running(r->server, text, on_reported, r);
	mq_buf_free(&r->last);
	r->last = *text;
	*text = (struct mq_buf){0};
	r->reported = true;
}

void
running_report_lost(struct running_report *r)
{
	r->reported = false;
}

void
running_report_free(struct running_report *r)
{
	mq_buf_free(&r->last);
}
