/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publish.h"

#include <sys/stat.h>

#include <fcntl.h>

#include "base/duration.h"

/* Digits of unix milliseconds until the year 2286.  A header is reused with a new time of the
 * same length; the time of --at, which may be longer, stays. */
#define TIME_DIGITS 13
#define TIME_SIZE   24

/* Redis accepts 512 MiB as one value, headers included (proto-max-bulk-len). */
#define MESSAGE_MAX ((size_t)511 * 1024 * 1024)

#define MOMENT_MS 20 /* input that comes sooner is waited for */

/* Bytes of a payload that had better be an attachment. */
#define LARGE ((size_t)16 << 20)

/* --- attachments --------------------------------------------------------------- */

/* Refuses directories, which open(2) does not. */
static int
open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		mq_die(MQ_EXIT_IO, "--attach: %s: %s", path, strerror(EISDIR));
	if (fd == -1)
		mq_die(MQ_EXIT_IO, "--attach: %s: %s", path, strerror(errno));
	return fd;
}

static void __attribute__((noreturn)) end_failed(struct transport *t)
{
	mq_say("--attach: %s", t->redis.error);
	outcome_end(t, t->redis.status);
}

static void
send_attachments(struct transport *t)
{
	struct attachments *a = &t->opt->attachments;
	const struct mq_attachments *how = t->opt->shared.layout->attachments;
	size_t i;
	int fd;

	a->set.redis = &t->redis;
	how->begin(&a->set, t->opt->queue);
	/* An unreadable file must fail before anything is sent. */
	for (i = 0; i < a->n; i++)
		if (access(a->list[i].path, R_OK) == -1)
			(void)open_file(a->list[i].path);
	for (i = 0; i < a->n; i++) {
		fd = open_file(a->list[i].path);
		if (how->add(&a->set, a->list[i].name, fd) == -1)
			end_failed(t);
		close(fd);
	}
	mq_envelope_set(&t->opt->headers, MQ_HEADER_ATTACH, a->set.set);
}

/* --- messages ------------------------------------------------------------------ */

struct messages {
	struct options *opt; /* the transport's */
	const struct mq_layout *layout;
	struct transport *transport;
	/* Ids sort in the order of publishing, by the clock of the server. */
	struct mq_idgen ids;
	uint64_t last_us;     /* time in the last id */
	unsigned long made;   /* ids since the clock must be read */
	unsigned long seen;   /* records */
	bool noted_large;     /* said that a payload is large */
	bool noted_past;      /* said that a time is over */
	struct mq_buf header; /* for messages without headers of their own */
	uint64_t header_ms;   /* time in that header */
};

/* The server's time for the next id, at least 1 us after the last one, so that ids sort in
 * the order of publishing.  The clock is read for every 64th only: a system call on some
 * machines. */
static uint64_t
next_us(struct messages *m)
{
	uint64_t now;

	m->last_us++;
	if (m->made++ % 64 == 0) {
		now = (uint64_t)(mq_clock_steady_us() + m->transport->clock_us);
		m->last_us = MAX(now, m->last_us);
	}
	return m->last_us;
}

static void __attribute__((noreturn))
end_bad(struct messages *m, const char *why)
{
	batch_end(m->transport, MQ_EXIT_DATA, "record %lu: %s", m->seen, why);
}

/* Counts a record.  Ends the program if it is not UTF-8, and other programs of the layout
 * would read other bytes. */
static void
check_text(struct messages *m, const char *payload, size_t n)
{
	m->seen++;
	/* Scripts copy a payload several times, but never an attachment. */
	if (n >= LARGE && !m->noted_large && m->opt->notes &&
	    m->layout->attachments != NULL) {
		m->noted_large = true;
		mq_say("record %lu: a payload of %zu MiB keeps the server "
		       "busy; --attach sends it as a file",
		    m->seen, n >> 20);
	}
	if (!m->opt->raw && m->layout->has & MQ_HAS_TEXT &&
	    !mq_utf8(payload, n))
		end_bad(m, "not UTF-8; --raw publishes it");
}

/* Adds a message without a header.  A delayed one needs an id to differ from its equals. */
static void
add_bare(struct messages *m, const char *payload, size_t n)
{
	static const struct mq_buf none;
	char id[MQ_ID_LEN + 1] = "";

	check_text(m, payload, n);
	/* Readers would take such a payload for a header.  Without --raw, it is a copy
	 * from --jsonl, and must stay the same. */
	if (m->opt->raw && !(m->layout->has & MQ_HAS_IDS) &&
	    mq_envelope_signed(payload, n))
		end_bad(
		    m, "begins like a header of rmq; publish it without --raw");
	if (m->transport->how.has_options ||
	    m->transport->how.when.kind != MQ_WHEN_NOW ||
	    m->layout->has & MQ_HAS_IDS || m->opt->spool_max > 0)
		mq_id_make(&m->ids, next_us(m), id);
	batch_add(m->transport, id, id, &none, payload, n);
}

/* Sets a header to the time when a message published now is due, plus after_ms. */
static void
set_time(const struct messages *m, struct mq_envelope *e, const char *header,
    int64_t after_ms)
{
	const struct mq_when *when = &m->opt->how.when;
	int64_t ms = when->kind != MQ_WHEN_NOW ? when->ms : 0;
	char text[TIME_SIZE];

	if (when->kind != MQ_WHEN_AT)
		ms += (int64_t)m->last_us / 1000;
	snprintf(text, sizeof(text), "%0*jd", TIME_DIGITS,
	    (intmax_t)(ms + after_ms));
	mq_envelope_set(e, header, text);
}

/* Adds the headers that the message lacks.  Those of the command line join its own, except
 * Mq- headers, of which there can be only one: they replace its own. */
static void
complete_header(const struct messages *m, struct mq_envelope *e, const char *id)
{
	const struct options *o = m->opt;
	const char *name;
	json_t *values, *value;
	size_t i;

	if (mq_message_id(e) == NULL)
		mq_envelope_set(e, MQ_HEADER_ID, id);
	if (o->awaited)
		mq_envelope_set(e, MQ_HEADER_REPLY_TO, mq_message_id(e));
	if (o->how.when.kind != MQ_WHEN_NOW)
		set_time(m, e, MQ_HEADER_DUE, 0);
	if (o->expires_ms > 0)
		set_time(m, e, MQ_HEADER_EXPIRES, o->expires_ms);
	json_object_foreach(o->headers.headers, name, values)
		json_array_foreach(values, i, value)
			if (strncmp(name, "Mq-", 3) == 0)
				mq_envelope_set(
				    e, name, json_string_value(value));
			else
				mq_envelope_add(
				    e, name, json_string_value(value));
}

/* Keeps the due time of a message from another queue, unless the options set one. */
static void
set_due(struct messages *m, const struct mq_frame_line *line)
{
	const struct mq_envelope e = {.headers = line->headers};
	int64_t due = mq_envelope_get_long(&e, MQ_HEADER_DUE, 0), said, now;

	if (m->opt->how.when.kind != MQ_WHEN_NOW)
		return;
	due = MIN(MAX(due, line->due_ms), MQ_TIME_MAX);
	if (due > 0)
		(void)next_us(m);
	now = (int64_t)m->last_us / 1000;
	/* The header of a copy may still have the time of an earlier delay. */
	said = line->copied ? line->due_ms : due;
	if (said != 0 && said < now && !m->noted_past &&
	    !m->opt->shared.quiet) {
		m->noted_past = true;
		mq_say("record %lu: its time is over; published at once",
		    m->seen + 1);
	}
	batch_set(m->transport,
	    due > now ? (struct mq_when){MQ_WHEN_AT, due, true} :
			m->opt->how.when,
	    m->transport->how.has_options);
}

/* Adds a message with headers, or ends the program if the layout does not obey one. */
static void
add_with_headers(struct messages *m, const struct mq_frame_line *line,
    const char *payload, size_t n)
{
	struct mq_envelope e = {.headers = line->headers};
	struct mq_buf header = {0}, why = {0};
	char unique[MQ_ID_LEN + 1];

	check_text(m, payload, n);
	if (!mq_layout_obeys(m->layout, &e, &why))
		end_bad(m, mq_buf_str(&why));
	/* A copy of another program's message gets an id of ours. */
	if (!line->copied && mq_envelope_get(&e, MQ_HEADER_ID) != NULL &&
	    mq_message_id(&e) == NULL)
		end_bad(m, "Mq-Id: not an id (32 letters and digits)");
	if (!mq_message_unique_good(&e))
		end_bad(m, "Mq-Unique: not queued, done, or milliseconds");
	if (m->opt->spool_max > 0 && !m->opt->how.replace &&
	    mq_envelope_get(&e, MQ_HEADER_KEY) != NULL)
		end_bad(m, "Mq-Key with --spool needs --replace");
	if (!mq_message_batches_good(&e))
		end_bad(m, "Mq-Batch, Mq-After: not the names of batches");
	if (!mq_message_limits_good(&e))
		end_bad(m, "Mq-Attempts and Mq-Timeout must be above 0");
	mq_id_make(&m->ids, next_us(m), unique);
	complete_header(m, &e, unique);
	if (mq_message_has(&e, MQ_TRAIT_OBEYED | MQ_TRAIT_ORDER))
		batch_set(m->transport, m->transport->how.when, true);
	mq_envelope_write_header(&e, &header);
	batch_add(m->transport, unique, mq_message_id(&e), &header, payload, n);
	mq_buf_free(&header);
	mq_buf_free(&why);
}

/* Offsets in a header of complete_header(): of the id, its first member, and of the id in the
 * second, MQ_HEADER_REPLY_TO. */
#define ID_AT (sizeof("12345{\"" MQ_HEADER_ID "\":[\"") - 1)
#define REPLY_AT                                                               \
	(ID_AT + MQ_ID_LEN + sizeof("\"],\"" MQ_HEADER_REPLY_TO "\":[\"") - 1)

static void
message_add(struct messages *m, const char *payload, size_t n)
{
	const struct options *opt = m->opt;
	struct attachments *a = &m->opt->attachments;
	bool timed = opt->how.when.kind != MQ_WHEN_NOW || opt->expires_ms > 0;
	char id[MQ_ID_LEN + 1] = "";
	struct mq_envelope e = {0};

	if (opt->raw) {
		add_bare(m, payload, n);
		return;
	}
	check_text(m, payload, n);
	mq_id_make(&m->ids, next_us(m), id);
	/* All messages share one header except the ids, and for 1 ms if it has times. */
	if (m->header.len == 0 ||
	    (timed && m->header_ms != m->last_us / 1000)) {
		m->header_ms = m->last_us / 1000;
		mq_buf_clear(&m->header);
		complete_header(m, &e, id);
		mq_envelope_write_header(&e, &m->header);
		mq_envelope_free(&e);
	}
	memcpy(m->header.data + ID_AT, id, MQ_ID_LEN);
	if (opt->awaited)
		memcpy(m->header.data + REPLY_AT, id, MQ_ID_LEN);
	if (a->n > 0) {
		strlcpy(a->id, id, sizeof(a->id));
		if (m->layout->attachments->close(&a->set, id) == -1)
			end_failed(m->transport);
	}
	batch_add(m->transport, id, id, &m->header, payload, n);
}

/* --- input -------------------------------------------------------------------- */

/* Adds the message of a line of JSON.  Returns NULL, or an error. */
static const char *
add_json(struct messages *m, const char *line, size_t n, struct mq_buf *payload)
{
	const struct options *o = m->opt;
	/* The options need a header. */
	bool headed = o->ids || o->awaited || o->headers.headers != NULL ||
	    o->expires_ms > 0;
	struct mq_frame_line fields;
	const char *why;

	mq_buf_clear(payload);
	if (mq_frame_decode_json(line, n, payload, &fields, &why) == -1)
		return why;
	if (payload->len > MESSAGE_MAX)
		why = "payload longer than 511 MiB";
	else if (o->raw && fields.headers != NULL)
		why = "has headers, which --raw cannot carry";
	if (why != NULL) {
		json_decref(fields.headers);
		return why;
	}
	set_due(m, &fields);
	if (fields.headers != NULL)
		add_with_headers(m, &fields, payload->data, payload->len);
	else if (fields.raw && !headed)
		add_bare(m, payload->data, payload->len);
	else
		message_add(m, payload->data, payload->len);
	json_decref(fields.headers);
	return NULL;
}

static void
read_messages(struct messages *m)
{
	struct transport *t = m->transport;
	const struct options *o = t->opt;
	bool json = o->framing == MQ_FRAME_JSONL;
	/* A line of JSON may be longer than its payload. */
	struct mq_frame_reader frames = {.fd = STDIN_FILENO,
	    .framing = o->framing,
	    .max = json ? 2 * MESSAGE_MAX : MESSAGE_MAX};
	struct mq_buf payload = {0};
	enum mq_frame_result result;
	const char *record, *why = NULL;
	size_t n;

	for (;;) {
		result = mq_frame_read(&frames, &record, &n);
		if (result == MQ_FRAME_WAIT) {
			batch_flush(t);
			/* More input may come before messages could be safe. */
			if (o->durable &&
			    !transport_wait(t, frames.fd, MOMENT_MS))
				batch_settle(t);
			(void)transport_wait(t, frames.fd, -1);
			m->made = 0;
			continue;
		}
		if (result != MQ_FRAME_RECORD)
			break;
		/* Records before the signal are published. */
		if (interrupt_signal() != 0) {
			batch_flush(t);
			outcome_interrupt(t);
		}
		if (json)
			why = add_json(m, record, n, &payload);
		else
			message_add(m, record, n);
		if (why != NULL)
			batch_end(t, MQ_EXIT_DATA, "record %lu: %s",
			    frames.records, why);
	}
	if (result == MQ_FRAME_BAD)
		batch_end(t, MQ_EXIT_DATA, "record %lu: %s", frames.records + 1,
		    frames.error);
	if (result == MQ_FRAME_FAILED)
		batch_end(t, MQ_EXIT_IO, "standard input: %s", strerror(errno));
	mq_buf_free(&frames.buf);
	mq_buf_free(&payload);
}

void
publish_messages(struct transport *t)
{
	struct options *o = t->opt;
	struct messages m = {
	    .opt = o, .layout = o->shared.layout, .transport = t};
	int i;

	if (o->attachments.n > 0)
		send_attachments(t);
	/* transport_begin() has read the server's clock. */
	o->how.when =
	    options_when(o, (mq_clock_steady_us() + t->clock_us) / 1000);
	t->how = o->how;
	for (i = 0; i < o->count; i++)
		message_add(&m, o->payloads[i], strlen(o->payloads[i]));
	if (o->count == 0 && isatty(STDIN_FILENO) && !o->shared.quiet)
		mq_say("reading from the terminal; end with ^D");
	if (o->count == 0)
		read_messages(&m);
	mq_buf_free(&m.header);
}
