#include "publish.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "shared/interrupt.h"

/* Redis takes 512 MiB as one value, headers included (proto-max-bulk-len). */
#define MESSAGE_MAX ((size_t)511 * 1024 * 1024)

/* A shorter wait for input is none. */
#define MOMENT_MS 20

struct reader {
	struct messages *messages;
	struct transport *transport;
	const struct options *opt;
};

/* Returns 0, or -1 with *why. */
static int
add_json(struct reader *r, const char *line, size_t n, struct mq_buf *payload,
    const char **why)
{
	struct mq_frame_line fields;

	mq_buf_clear(payload);
	if (mq_frame_decode_json(line, n, payload, &fields, why) == -1)
		return -1;
	*why = NULL;
	if (payload->len > MESSAGE_MAX)
		*why = "payload longer than 511 MiB";
	else if (r->opt->message.raw && fields.headers != NULL)
		*why = "has headers, which --raw cannot carry";
	else
		message_add_line(
		    r->messages, &fields, payload->data, payload->len);
	json_decref(fields.headers);
	return *why == NULL ? 0 : -1;
}

/* Waits for input; a signal that comes before it ends the program. */
static bool
wait_for_input(struct reader *r, int fd, int64_t ms)
{
	int n = interrupt_wait(fd, ms);

	if (n == -1)
		outcome_interrupt(r->transport->outcome, 0);
	return n != 0;
}

/* The next record, after sending what is there if it has to be waited for. */
static enum mq_frame_result
next_record(struct reader *r, struct mq_frame_reader *frames,
    const char **record, size_t *n)
{
	enum mq_frame_result result;

	for (;;) {
		result = mq_frame_read(frames, record, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		batch_flush(r->transport);
		/* Making them safe at once would make long waits of short ones. */
		if (r->opt->durable &&
		    !wait_for_input(r, frames->fd, MOMENT_MS))
			batch_settle(r->transport);
		(void)wait_for_input(r, frames->fd, -1);
		message_rested(r->messages);
	}
}

/* A signal ends the program when all that was read is published. */
static void
end_if_interrupted(struct reader *r)
{
	if (interrupt_signal() == 0)
		return;
	batch_flush(r->transport);
	outcome_interrupt(r->transport->outcome, 0);
}

void
read_messages(struct messages *m, struct transport *t, const struct options *o)
{
	struct reader r = {m, t, o};
	bool json = o->framing == MQ_FRAME_JSONL;
	struct mq_frame_reader frames;
	struct mq_buf payload = {0};
	enum mq_frame_result result;
	const char *record, *why;
	size_t n;

	/* A line of JSON may be longer than what it stands for. */
	mq_frame_reader_init(&frames, STDIN_FILENO, o->framing,
	    json ? 2 * MESSAGE_MAX : MESSAGE_MAX);
	while ((result = next_record(&r, &frames, &record, &n)) ==
	    MQ_FRAME_RECORD) {
		end_if_interrupted(&r);
		if (!json)
			message_add(m, record, n);
		else if (add_json(&r, record, n, &payload, &why) == -1)
			batch_end(t, MQ_EXIT_DATA, "record %lu: %s",
			    frames.records, why);
	}
	if (result == MQ_FRAME_BAD)
		batch_end(t, MQ_EXIT_DATA, "record %lu: %s", frames.records + 1,
		    frames.error);
	if (result == MQ_FRAME_FAILED)
		batch_end(t, MQ_EXIT_IO, "standard input: %s", strerror(errno));
	mq_frame_reader_free(&frames);
	mq_buf_free(&payload);
}
