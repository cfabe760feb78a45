/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "message.h"

#include <stdarg.h>

void
message_note(struct message *m, const char *fmt, ...)
{
	va_list ap;

	free(m->news);
	va_start(ap, fmt);
	m->news = mq_xvasprintf(fmt, ap);
	va_end(ap);
}

void
message_say(const struct message *m, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_say("%s%s%s: %s", m->queue_name, m->id[0] != '\0' ? ": " : "", m->id,
	    text);
	free(text);
}

void
message_let_go(struct message *m, bool done)
{
	if (m->cleanup_fd == 0)
		return;
	/* If the cleanup process has died, mq-clean removes the set. */
	if (done && write(m->cleanup_fd, "d", 1) == -1 && errno != EPIPE)
		message_say(m, "attachments: %s", strerror(errno));
	close(m->cleanup_fd);
	m->cleanup_fd = 0;
}

long
message_attempts(const struct options *opt, const struct message *m)
{
	return mq_message_attempts(
	    &m->envelope, rules_of(opt, m->queue)->attempts);
}

double
message_timeout(const struct options *opt, const struct message *m)
{
	return (double)mq_message_timeout_ms(
		   &m->envelope, rules_of(opt, m->queue)->timeout_ms) /
	    1000;
}

bool
message_is_stamped(const struct message *m)
{
	return m->envelope.headers == NULL &&
	    mq_envelope_signed(m->element, m->len);
}

void
message_frame(
    const struct message *m, enum mq_framing framing, struct mq_buf *out)
{
	const struct mq_frame_meta meta = {.id = m->id,
	    .queue = m->queue_name,
	    .attempt = m->attempts + 1,
	    .stamp = message_is_stamped(m) ? m->id : NULL};

	mq_frame_write(out, framing, &m->envelope, &meta);
}

const char *
message_unframable(const struct message *m, enum mq_framing framing)
{
	const struct mq_envelope *e = &m->envelope;

	if (e->payload_len == 0)
		return NULL;
	if (framing == MQ_FRAME_LINES &&
	    memchr(e->payload, '\n', e->payload_len) != NULL)
		return "payload has more than one line, which --lines cannot "
		       "carry";
	if (framing == MQ_FRAME_NULL &&
	    memchr(e->payload, '\0', e->payload_len) != NULL)
		return "payload has a NUL byte, which --null cannot carry";
	return NULL;
}
