/*
 * Messages from standard input, as a framing says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "publish.h"

/* Redis takes 512 MiB as one value, headers included (proto-max-bulk-len). */
#define MESSAGE_MAX ((size_t)511 * 1024 * 1024)

/* Returns 0, or -1 with *why. */
static int
publish_json(struct publisher *p, const char *line, size_t n,
    struct mq_buf *payload, const char **why)
{
	struct mq_frame_line fields;

	mq_buf_clear(payload);
	if (mq_frame_decode_json(line, n, payload, &fields, why) == -1)
		return -1;
	*why = NULL;
	if (payload->len > MESSAGE_MAX)
		*why = "its payload is longer than 511 MiB";
	else if (p->opt->raw && fields.headers != NULL)
		*why = "it has headers, which --raw cannot carry";
	else
		publish_line(p, &fields, payload->data, payload->len);
	json_decref(fields.headers);
	return *why == NULL ? 0 : -1;
}

void
publish_bad(struct publisher *p, unsigned long record, const char *why)
{
	publish_settle(p);
	mq_say("record %lu: %s", record, why);
	publish_report(p, 0);
	exit(MQ_EXIT_DATA);
}

/* The next record, after sending what is there if it has to be waited for. */
static enum mq_frame_result
next_record(struct publisher *p, struct mq_frame_reader *reader,
    const char **record, size_t *n)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	enum mq_frame_result result;

	for (;;) {
		result = mq_frame_read(reader, record, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		publish_flush(p);
		/* Making them safe at once would make long waits of short ones. */
		if (p->opt->durable && !publish_wait(p, reader->fd, &moment))
			publish_settle(p);
		(void)publish_wait(p, reader->fd, NULL);
		/* That may have taken long. */
		p->made = 0;
	}
}

void
publish_stream(struct publisher *p, int fd)
{
	struct mq_frame_reader reader;
	struct mq_buf payload = {0};
	enum mq_frame_result result;
	const char *record, *why;
	size_t n;

	/* A line of JSON may be longer than what it stands for. */
	mq_frame_reader_init(&reader, fd, p->opt->framing,
	    p->opt->framing == MQ_FRAME_JSONL ? 2 * MESSAGE_MAX : MESSAGE_MAX);
	while ((result = next_record(p, &reader, &record, &n)) ==
	    MQ_FRAME_RECORD) {
		publish_check(p);
		if (p->opt->framing != MQ_FRAME_JSONL)
			publish_message(p, record, n);
		else if (publish_json(p, record, n, &payload, &why) == -1)
			publish_bad(p, reader.records, why);
	}
	if (result == MQ_FRAME_BAD)
		publish_bad(p, reader.records + 1, reader.error);
	if (result == MQ_FRAME_FAILED) {
		why = strerror(errno);
		publish_settle(p);
		mq_say("standard input: %s", why);
		publish_report(p, 0);
		exit(MQ_EXIT_IO);
	}
	mq_frame_reader_free(&reader);
	mq_buf_free(&payload);
}
